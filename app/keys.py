"""Keys of the service's callers: made, shown once, rotated, revoked; and the way from a key to its caller.

A key reads ``mbk_<id>_<secret>``. The id finds the row; of the secret (256 random bits) only an HMAC-SHA256 under the
server's own secret is kept, so that who reads the database can neither use a key nor try guesses on it. A row is never
removed: once there has been a key, the service stays shut to those without.
"""

import hmac
import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256

from pydantic import SecretStr
from sqlalchemy import or_, select, update
from sqlmodel import Session, col

from app import audit_log
from app.callers import Caller
from app.db import new_id
from app.errors import ConfigurationError, Conflict, Invalid, NotFound
from app.models import ApiKey
from app.schemas.keys import KeyIn, KeyMade, KeyOut
from app.schemas.vocabulary import Role

NO_PEPPER = (
    "Set MEMORY_BOUNCER_SECRET, for the service and for `bouncer keys` alike, to a random secret of the server "
    "(`openssl rand -hex 32` makes one)."
)
OTHER_PEPPER = (
    "No key in the database was made under this MEMORY_BOUNCER_SECRET: give the service the one that the keys were "
    "made under, or make a new key with `bouncer keys create`."
)

_FORM = re.compile(r"mbk_([0-9a-f]{32})_([0-9A-Za-z_-]{43})")
# Stand for a key that is malformed or that there is not, so that it takes the same way as one with a wrong secret.
_NO_ID, _NO_SECRET, _NO_HASH = "0" * 32, "", "0" * 64


class Pepper:
    """The server's secret; without it the hashes in the database say nothing."""

    def __init__(self, secret: SecretStr) -> None:
        """Take the configured secret."""
        self._secret = secret.get_secret_value().encode()
        self.mark = self._digest("mark")[:8]
        """Tells this secret from others, and nothing of it."""

    def hash_of(self, key_id: str, secret: str) -> str:
        """What is kept of a key's secret."""
        return self._digest(f"key {key_id} {secret}")

    def _digest(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(), sha256).hexdigest()


def identify(session: Session, pepper: Pepper, given: str, now: datetime) -> Caller | None:
    """Whose key this is; None if it is malformed, unknown, wrong, expired or revoked, all found out in the same way."""
    form = _FORM.fullmatch(given)
    key_id, secret = form.groups() if form else (_NO_ID, _NO_SECRET)
    row = session.get(ApiKey, key_id)
    current, former = (row.secret_hash, row.former_hash or _NO_HASH) if row else (_NO_HASH, _NO_HASH)
    digest = pepper.hash_of(key_id, secret)
    is_current, is_former = hmac.compare_digest(digest, current), hmac.compare_digest(digest, former)
    if row is None or not _is_usable(row, now):
        return None
    if not is_current and not (is_former and row.former_until is not None and now < row.former_until):
        return None
    return Caller(row.id, Role(row.role), None if row.projects is None else frozenset(row.projects))


def exist(session: Session) -> bool:
    """Whether there has ever been a key."""
    return session.execute(select(col(ApiKey.id)).limit(1)).first() is not None


def check_usable(session: Session, pepper: Pepper, now: datetime) -> None:
    """See to it that somebody can be let in.

    Raises:
        ConfigurationError: no key is usable now, or none was made under this secret.
    """
    rows = [row for row in session.execute(select(ApiKey)).scalars() if _is_usable(row, now)]
    if not rows:
        raise ConfigurationError("No key can be used; make one with `bouncer keys create --role admin --name YOU`.")
    if all(row.pepper != pepper.mark for row in rows):
        raise ConfigurationError(OTHER_PEPPER)


def create(session: Session, pepper: Pepper, caller: Caller, asked: KeyIn, now: datetime) -> KeyMade:
    """Make a key.

    Raises:
        Invalid: an admin's key was to be bound to projects.
    """
    if asked.role is Role.ADMIN and asked.projects is not None:
        raise Invalid("The key of an admin is for all projects; bind keys of members or reviewers.")
    secret = secrets.token_urlsafe(32)
    key_id = new_id()
    row = ApiKey(
        id=key_id,
        name=asked.name,
        role=asked.role.value,
        projects=sorted(set(asked.projects)) if asked.projects is not None else None,
        secret_hash=pepper.hash_of(key_id, secret),
        pepper=pepper.mark,
        created_by=caller.key_id,
        created_at=now,
        expires_at=now + timedelta(days=asked.expires_in_days) if asked.expires_in_days else None,
    )
    session.add(row)
    session.flush()
    audit_log.note(session, caller, "key.created", key_id, now=now, after=_terms(row))
    return KeyMade(key=f"mbk_{key_id}_{secret}", details=_out(row))


def rotate(session: Session, pepper: Pepper, caller: Caller, key_id: str, overlap: timedelta, now: datetime) -> KeyMade:
    """Give a key a new secret; the former one is good for the overlap as well, and one from before that no more.

    Raises:
        NotFound: there is no such key.
        Conflict: it is revoked or expired.
    """
    row = _row(session, key_id)
    if not _is_usable(row, now):
        raise Conflict("This key is revoked or expired; make a new one.")
    secret = secrets.token_urlsafe(32)
    row.former_hash, row.former_until = row.secret_hash, now + overlap
    row.secret_hash, row.pepper = pepper.hash_of(key_id, secret), pepper.mark
    session.flush()
    audit_log.note(
        session, caller, "key.rotated", key_id, now=now, after={"former_until": row.former_until.isoformat()}
    )
    return KeyMade(key=f"mbk_{key_id}_{secret}", details=_out(row))


def revoke(session: Session, caller: Caller, key_id: str, now: datetime) -> KeyOut:
    """Shut a key out from the next request on, for ever; doing it twice changes nothing.

    Raises:
        NotFound: there is no such key.
    """
    row = _row(session, key_id)
    if row.revoked_at is None:
        row.revoked_at = now
        session.flush()
        audit_log.note(
            session, caller, "key.revoked", key_id, now=now, before=_terms(row), after={"revoked_at": now.isoformat()}
        )
    return _out(row)


def page(session: Session, *, before: str | None = None, count: int = 50) -> list[KeyOut]:
    """Keys made before the one with the id ``before``, newest first; also revoked and expired ones."""
    query = select(ApiKey).order_by(col(ApiKey.id).desc()).limit(count)
    if before is not None:
        query = query.where(col(ApiKey.id) < before)
    return [_out(row) for row in session.execute(query).scalars()]


def note_use(session: Session, used: Mapping[str, datetime]) -> None:
    """Note when keys were last used."""
    for key_id, at in sorted(used.items()):
        session.execute(
            update(ApiKey)
            .where(col(ApiKey.id) == key_id, or_(col(ApiKey.used_at).is_(None), col(ApiKey.used_at) < at))
            .values(used_at=at)
        )


def _row(session: Session, key_id: str) -> ApiKey:
    row = session.get(ApiKey, key_id, with_for_update=True)
    if row is None:
        raise NotFound("There is no key with this id.")
    return row


def _is_usable(row: ApiKey, now: datetime) -> bool:
    return row.revoked_at is None and (row.expires_at is None or now < row.expires_at)


def _terms(row: ApiKey) -> dict[str, object]:
    """What the audit log says of a key."""
    return _out(row).model_dump(mode="json", include={"name", "role", "projects", "expires_at"})


def _out(row: ApiKey) -> KeyOut:
    return KeyOut.model_validate(row.model_dump(include=set(KeyOut.model_fields)))
