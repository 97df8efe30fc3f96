"""From a key to its caller, and the life of a key, on both databases with a clock in the hand."""

import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from app import audit_log, keys
from app.callers import LOCAL, RIGHTS, Caller, Right
from app.db import Database
from app.errors import ConfigurationError, Conflict, Invalid, NotFound
from app.keys import Pepper
from app.models import ApiKey
from app.schemas.keys import KeyIn, KeyMade
from app.schemas.vocabulary import Role
from tests.support.team import SECRET

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PEPPER = Pepper(SecretStr(SECRET))
OTHER = Pepper(SecretStr(SECRET[::-1]))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    database.migrate()
    yield database
    database.close()


def make(database: Database, role: Role = Role.MEMBER, *projects: str, **more: Any) -> KeyMade:
    """A new key."""
    with database.write() as session:
        asked = KeyIn(name="ann", role=role, projects=list(projects) or None, **more)
        return keys.create(session, PEPPER, LOCAL, asked, NOW)


def caller_of(database: Database, key: str, *, at: datetime = NOW, pepper: Pepper = PEPPER) -> Caller | None:
    """Whose key it is at the moment."""
    with database.read() as session:
        return keys.identify(session, pepper, key, at)


def rotate(database: Database, made: KeyMade, *, hours: int = 24, at: datetime = NOW) -> KeyMade:
    """The key with a new secret."""
    with database.write() as session:
        return keys.rotate(session, PEPPER, LOCAL, made.details.id, timedelta(hours=hours), at)


# --- from a key to its caller -------------------------------------------------------------------------------------


@pytest.mark.parametrize("projects", [(), ("github.com/acme/app", "github.com/acme/web")])
def test_a_key_leads_to_its_role_and_projects(database: Database, projects: tuple[str, ...]) -> None:
    made = make(database, Role.REVIEWER, *projects)
    caller = caller_of(database, made.key)
    assert caller == Caller(made.details.id, Role.REVIEWER, frozenset(projects) or None)


def test_a_key_is_recognisable_and_random(database: Database) -> None:
    first, second = make(database), make(database)
    prefix, key_id, secret = first.key.split("_", 2)
    assert (prefix, key_id) == ("mbk", first.details.id)
    assert len(secret) == 43, "32 bytes in base64 without padding: 256 bits"
    assert secret not in second.key


def test_nothing_that_lets_anybody_in_lies_in_the_database(database: Database) -> None:
    made = make(database)
    secret = made.key.split("_", 2)[2]
    with database.read() as session:
        row = session.get_one(ApiKey, made.details.id)
        assert secret not in str(row.model_dump())
        assert row.secret_hash == PEPPER.hash_of(row.id, secret)
        assert row.secret_hash not in repr(row)
    assert caller_of(database, made.key, pepper=OTHER) is None
    assert secret not in repr(made) + repr(PEPPER) + str(vars(OTHER))


def wrong(made: KeyMade) -> dict[str, str]:
    """Keys that look more or less like one."""
    _, key_id, secret = made.key.split("_", 2)
    return {
        "nothing": "",
        "the id alone": f"mbk_{key_id}",
        "no secret": f"mbk_{key_id}_",
        "another secret": f"mbk_{key_id}_{secret[::-1]}",
        "a shortened secret": made.key[:-1],
        "a longer secret": made.key + "A",
        "an unknown id": f"mbk_{'0' * 32}_{secret}",
        "another prefix": "mbx" + made.key[3:],
        "another case": made.key.upper(),
        "a new line": made.key + "\n",
        "a space": f" {made.key}",
        "something else": "Bearer",
        "the hash": PEPPER.hash_of(key_id, secret),
        "other scripts": f"mbk_{'٣' * 32}_{secret}",
    }


def test_what_only_looks_like_the_key_is_nobodys(database: Database) -> None:
    made = make(database)
    for what, key in wrong(made).items():
        assert caller_of(database, key) is None, what


@given(text=st.text(max_size=120) | st.from_regex(r"mbk_[0-9a-f]{32}_[0-9A-Za-z_-]{43}", fullmatch=True))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_breaks_the_way(database: Database, text: str) -> None:
    assert caller_of(database, text) is None


def test_every_wrong_key_takes_the_same_way_as_a_good_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look-up, one hash, two comparisons in constant time, so that time tells nothing; whatever is wrong."""
    good, revoked, expired = make(database), make(database), make(database, expires_in_days=1)
    with database.write() as session:
        keys.revoke(session, LOCAL, revoked.details.id, NOW)
    steps: list[str] = []
    compare, hash_of = hmac.compare_digest, PEPPER.hash_of

    def counted_compare(a: str, b: str) -> bool:
        steps.append(f"compare {len(a)} {len(b)}")
        return compare(a, b)

    def counted_hash(key_id: str, secret: str) -> str:
        steps.append("hash")
        return hash_of(key_id, secret)

    monkeypatch.setattr(hmac, "compare_digest", counted_compare)
    monkeypatch.setattr(PEPPER, "hash_of", counted_hash)
    at = NOW + timedelta(days=2)
    for key in (good.key, revoked.key, expired.key, *wrong(good).values()):
        steps.clear()
        caller = caller_of(database, key, at=at)
        assert (caller is not None) == (key == good.key)
        assert steps == ["hash", "compare 64 64", "compare 64 64"]


# --- the life of a key --------------------------------------------------------------------------------------------


def test_a_key_expires(database: Database) -> None:
    made = make(database, expires_in_days=30)
    assert made.details.expires_at == NOW + timedelta(days=30)
    assert caller_of(database, made.key, at=NOW + timedelta(days=30, seconds=-1))
    assert caller_of(database, made.key, at=NOW + timedelta(days=30)) is None


def test_a_revoked_key_is_out_at_once_and_for_ever(database: Database) -> None:
    made = make(database)
    with database.write() as session:
        gone = keys.revoke(session, LOCAL, made.details.id, NOW)
    assert caller_of(database, made.key) is None
    with database.write() as session:
        assert keys.revoke(session, LOCAL, made.details.id, NOW + timedelta(days=1)) == gone
    with pytest.raises(Conflict):
        rotate(database, made)
    with database.read() as session:
        assert keys.exist(session), "so that the service does not open again"


def test_a_rotated_key_has_two_secrets_until_the_overlap_is_over(database: Database) -> None:
    made = make(database)
    renewed = rotate(database, made, hours=2)
    assert renewed.details.id == made.details.id
    early, late = NOW + timedelta(hours=1, minutes=59), NOW + timedelta(hours=2)
    assert [caller_of(database, key, at=early) is None for key in (made.key, renewed.key)] == [False, False]
    assert [caller_of(database, key, at=late) is None for key in (made.key, renewed.key)] == [True, False]


def test_a_rotation_without_overlap_or_a_second_one_ends_the_oldest_secret(database: Database) -> None:
    made = make(database)
    second = rotate(database, made)
    third = rotate(database, made, hours=0)
    assert [caller_of(database, key.key) is None for key in (made, second, third)] == [True, True, False]


def test_a_key_that_there_is_not_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound), database.write() as session:
        keys.revoke(session, LOCAL, "0" * 32, NOW)
    with pytest.raises(NotFound), database.write() as session:
        keys.rotate(session, PEPPER, LOCAL, "0" * 32, timedelta(hours=1), NOW)


def test_an_admins_key_is_bound_to_nothing(database: Database) -> None:
    with pytest.raises(Invalid):
        make(database, Role.ADMIN, "github.com/acme/app")


def test_pages_of_keys_are_newest_first_and_whole(database: Database) -> None:
    made = [make(database).details.id for _ in range(5)]
    seen: list[str] = []
    with database.read() as session:
        before = None
        while page := keys.page(session, before=before, count=2):
            seen += [key.id for key in page]
            before = page[-1].id
    assert seen == made[::-1]


def test_the_last_use_is_noted_and_never_turned_back(database: Database) -> None:
    made = make(database)
    for at in (NOW, NOW - timedelta(hours=5)):
        with database.write() as session:
            keys.note_use(session, {made.details.id: at})
    with database.read() as session:
        assert keys.page(session)[0].used_at == NOW


# --- what a service needs at its start ----------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["none", "revoked", "expired", "another secret", "good"])
def test_a_service_that_could_let_nobody_in_is_noticed(database: Database, case: str) -> None:
    at = NOW
    if case != "none":
        made = make(database, expires_in_days=1)
        if case == "revoked":
            with database.write() as session:
                keys.revoke(session, LOCAL, made.details.id, NOW)
        if case == "expired":
            at = NOW + timedelta(days=1)
    with database.read() as session:
        if case == "good":
            keys.check_usable(session, PEPPER, at)
            return
        with pytest.raises(ConfigurationError, match="bouncer keys create"):
            keys.check_usable(session, OTHER if case == "another secret" else PEPPER, at)


# --- roles --------------------------------------------------------------------------------------------------------


def test_each_role_may_do_what_the_one_below_it_may_and_more() -> None:
    assert RIGHTS[Role.MEMBER] < RIGHTS[Role.REVIEWER] < RIGHTS[Role.ADMIN] == set(Right)
    assert not Caller("k", Role.REVIEWER).may(Right.ADMINISTER)


# --- the audit log ------------------------------------------------------------------------------------------------


def test_a_keys_whole_life_is_on_record_and_its_secret_is_not(database: Database) -> None:
    made = make(database, Role.MEMBER, "github.com/acme/app")
    renewed = rotate(database, made)
    with database.write() as session:
        keys.revoke(session, Caller("boss", Role.ADMIN), made.details.id, NOW)
    with database.read() as session:
        events = audit_log.page(session)
    assert [(event.key_id, event.action, event.subject) for event in events] == [
        ("boss", "key.revoked", made.details.id),
        ("local", "key.rotated", made.details.id),
        ("local", "key.created", made.details.id),
    ]
    assert events[-1].after == {
        "name": "ann",
        "role": "member",
        "projects": ["github.com/acme/app"],
        "expires_at": None,
    }
    told = "".join(event.model_dump_json() for event in events)
    for key in (made, renewed):
        assert key.key.split("_", 2)[2] not in told


@pytest.mark.parametrize("change", ["UPDATE audit_event SET key_id = 'nobody'", "DELETE FROM audit_event"])
def test_a_line_of_the_audit_log_stays_as_it_was_written(database: Database, change: str) -> None:
    make(database)
    with pytest.raises(Exception, match="append-only"), database.write() as session:
        session.connection().exec_driver_sql(change)
    with database.read() as session:
        assert [event.action for event in audit_log.page(session)] == ["key.created"]


def test_what_is_rolled_back_is_not_on_record(database: Database) -> None:
    def fail() -> None:
        with database.write() as session:
            keys.create(session, PEPPER, LOCAL, KeyIn(name="ann", role=Role.ADMIN, projects=None), NOW)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.read() as session:
        assert (keys.page(session), audit_log.page(session)) == ([], [])
