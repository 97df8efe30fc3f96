"""Who is let in, and what each role may do, route by route, over real HTTP on both databases."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app import api, door
from app.callers import RIGHTS, Right
from app.db import Database, metadata
from app.deps import Needs
from app.door import OPEN_PATHS, WRONG_KEYS_ALLOWED, WRONG_KEYS_SECONDS, WrongKeys
from app.errors import ConfigurationError, TooManyRequests
from app.main import build_app
from app.schemas.vocabulary import Role
from app.settings import Settings
from tests.support.http_service import call, http_service
from tests.support.pipelines import GOOD
from tests.support.team import SECRET, Team, bearer, team

Problem = Callable[[httpx.Response], dict[str, object]]

# What each route asks of its caller; a route that is missing here, or declares no right, fails the tests below.
ROUTES: dict[str, Right] = {
    "POST /v1/reviews": Right.PROPOSE,
    "GET /v1/reviews": Right.READ,
    "GET /v1/reviews/{review_id}": Right.READ,
    "POST /v1/reviews/{review_id}/stored": Right.PROPOSE,
    "POST /v1/reviews/{review_id}/failed": Right.PROPOSE,
    "POST /v1/hooks/claude-code": Right.PROPOSE,
    "GET /v1/queue": Right.READ,
    "POST /v1/reviews/{review_id}/decision": Right.DECIDE,
    "GET /v1/decisions/news": Right.PROPOSE,
    "POST /v1/decisions/told": Right.PROPOSE,
    "GET /v1/decisions/overrides": Right.DECIDE,
    "POST /v1/withdrawals": Right.ADMINISTER,
    "GET /v1/entries": Right.READ,
    "POST /v1/entries": Right.DECIDE,
    "POST /v1/entries/deleted": Right.PROPOSE,
    "GET /v1/entries/search": Right.READ,
    "GET /v1/entries/{entry_id}": Right.READ,
    "DELETE /v1/entries/{entry_id}": Right.DECIDE,
    "GET /v1/policy": Right.READ,
    "PUT /v1/projects/{project:path}/documents": Right.PROPOSE,
    "GET /v1/projects/{project:path}/documents": Right.READ,
    "PUT /v1/projects/{project:path}": Right.ADMINISTER,
    "GET /v1/keys": Right.ADMINISTER,
    "POST /v1/keys": Right.ADMINISTER,
    "POST /v1/keys/{key_id}/rotate": Right.ADMINISTER,
    "DELETE /v1/keys/{key_id}": Right.ADMINISTER,
    "GET /v1/audit-log": Right.ADMINISTER,
    "GET /v1/budgets": Right.ADMINISTER,
    "PUT /v1/budgets": Right.ADMINISTER,
    "GET /v1/budgets/report": Right.ADMINISTER,
    "DELETE /v1/budgets/{budget_id}": Right.ADMINISTER,
}


def routes() -> Iterator[tuple[str, APIRoute]]:
    """All routes of ours, by method and path."""
    for router in api.ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            method = min(route.methods or ())
            yield f"{method} {route.path}", route


def needs(dependant: Dependant) -> list[Right]:
    """The rights that a route declares, at whatever depth."""
    own = [dependant.call.right] if isinstance(dependant.call, Needs) else []
    return own + [right for inner in dependant.dependencies for right in needs(inner)]


def test_every_route_declares_the_one_right_that_the_table_says() -> None:
    declared = {name: needs(route.dependant) for name, route in routes() if route.path not in OPEN_PATHS}
    assert declared == {name: [right] for name, right in ROUTES.items()}


def test_what_is_open_wants_nothing_and_there_is_no_more_of_it() -> None:
    assert {route.path for _, route in routes() if not needs(route.dependant)} == OPEN_PATHS


def filled(route: str) -> tuple[str, str]:
    """Method and path of a route, with names of nothing for its parameters."""
    method, path = route.split()
    for name in ("review_id", "entry_id", "key_id", "project:path"):
        path = path.replace(f"{{{name}}}", "nothing")
    return method, path


@pytest.mark.parametrize("role", Role)
def test_a_role_may_do_what_its_rights_say_and_nothing_else(keyed: Team, problem: Problem, role: Role) -> None:
    client = keyed.client(role)
    for route, right in ROUTES.items():
        method, path = filled(route)
        response = client.request(method, path)
        if right in RIGHTS[role]:
            assert response.status_code in (200, 404, 422), route
        else:
            body = problem(response)
            assert (response.status_code, str(body["type"]).rpartition(":")[2]) == (403, "forbidden"), route
            assert right in str(body["detail"])


# --- the door -----------------------------------------------------------------------------------------------------

PATHS = [*ROUTES, "GET /docs", "GET /openapi.json", "GET /nowhere", "GET /v1", "OPTIONS /v1/reviews", "GET //healthz"]


@pytest.mark.parametrize("route", PATHS)
def test_without_a_key_nothing_is_answered_whether_it_exists_or_not(keyed: Team, problem: Problem, route: str) -> None:
    response = keyed.anybody.request(*filled(route))
    assert (response.status_code, problem(response)["type"]) == (401, "urn:memory-bouncer:problem:unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
def test_operation_needs_no_key(keyed: Team, path: str) -> None:
    assert keyed.anybody.get(path).status_code == 200


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "header", ["{}", "Basic {}", "Bearer", "Bearer {}x", "Bearer x{}", "Bearer {} {}", "Bearer mbk_{}"]
)
def test_a_key_must_come_whole_as_a_bearer_token(keyed: Team, header: str) -> None:
    given = header.format(*[keyed.root["key"]] * 2)
    response = keyed.anybody.get("/v1/entries", headers={"Authorization": given})
    assert response.status_code == 401
    assert keyed.root["key"] not in response.text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(keyed: Team, scheme: str) -> None:
    response = keyed.anybody.get("/v1/entries", headers={"Authorization": f"{scheme} {keyed.root['key']}"})
    assert response.status_code == 200


@pytest.mark.usefixtures("patient")
def test_a_revoked_key_is_out_with_the_next_request(keyed: Team) -> None:
    made = keyed.made(Role.MEMBER)
    client, root = keyed.holder(made["key"]), keyed.holder(keyed.root["key"])
    assert client.get("/v1/entries").status_code == 200
    revoked = root.delete(f"/v1/keys/{made['details']['id']}")
    assert revoked.json()["revoked_at"] is not None
    assert client.get("/v1/entries").status_code == 401
    assert root.post(f"/v1/keys/{made['details']['id']}/rotate", json={}).status_code == 409


@pytest.mark.usefixtures("patient")
def test_a_rotated_key_goes_on_without_a_gap(keyed: Team) -> None:
    made, root = keyed.made(Role.MEMBER), keyed.holder(keyed.root["key"])
    path = f"/v1/keys/{made['details']['id']}/rotate"
    second = root.post(path, json={"overlap_hours": 1}).json()
    assert [keyed.holder(key["key"]).get("/v1/entries").status_code for key in (made, second)] == [200, 200]
    third = root.post(path, json={"overlap_hours": 0})
    assert third.headers["cache-control"] == "no-store"
    statuses = [keyed.holder(key["key"]).get("/v1/entries").status_code for key in (made, second, third.json())]
    assert statuses == [401, 401, 200]


def test_a_key_is_shown_once(keyed: Team) -> None:
    made = keyed.made(Role.REVIEWER, "github.com/acme/app", expires_in_days=3)
    secret = made["key"].split("_", 2)[2]
    root = keyed.holder(keyed.root["key"])
    listed = root.get("/v1/keys", params={"count": 200})
    assert made["details"] in listed.json()["items"]
    assert secret not in listed.text + root.get("/v1/audit-log", params={"count": 200}).text


def test_an_admins_key_cannot_be_bound(keyed: Team, problem: Problem) -> None:
    asked = {"name": "ann", "role": "admin", "projects": ["github.com/acme/app"]}
    response = keyed.holder(keyed.root["key"]).post("/v1/keys", json=asked)
    assert (response.status_code, problem(response)["type"]) == (400, "urn:memory-bouncer:problem:invalid")


def test_what_an_admin_changes_is_on_record(keyed: Team, project: str) -> None:
    root, who = keyed.holder(keyed.root["key"]), keyed.root["details"]["id"]
    root.put(f"/v1/projects/{project}", json={"level": "gate"})
    root.put(f"/v1/projects/{project}", json={"level": "model"})
    entry = root.post("/v1/entries", json={"project": project, "category": "RULE", "text": GOOD[0]}).json()
    for _ in range(2):
        root.delete(f"/v1/entries/{entry['id']}")
    lines = root.get("/v1/audit-log", params={"count": 3}).json()["items"]
    assert [(line["key_id"], line["action"], line["subject"], line["before"], line["after"]) for line in lines] == [
        (who, "entry.deleted", entry["id"], {"project": project, "status": "stored"}, {"status": "deleted"}),
        (who, "project.level_set", project, {"level": "gate"}, {"level": "model"}),
        (who, "project.level_set", project, {"level": None}, {"level": "gate"}),
    ]


def test_the_audit_log_is_paged(keyed: Team) -> None:
    made = [keyed.made(Role.MEMBER)["details"]["id"] for _ in range(3)]
    root = keyed.holder(keyed.root["key"])
    first = root.get("/v1/audit-log", params={"count": 2}).json()
    second = root.get("/v1/audit-log", params={"count": 1, "before": first["next"]}).json()
    assert [line["subject"] for page in (first, second) for line in page["items"]] == made[::-1]


# --- from open to shut --------------------------------------------------------------------------------------------


def test_a_service_without_keys_is_open_and_the_first_key_shuts_it(tmp_path: Path, project: str) -> None:
    with http_service(tmp_path, secret=SECRET) as client:
        assert client.get("/v1/keys", headers=bearer("whatever")).json()["items"] == []
        answer = client.post("/v1/reviews", json=call(GOOD[0], project=project)).json()
        assert answer["reviews"][0]["key_id"] == "local"
        asked = {"name": "ann", "role": "admin", "projects": None}
        made = client.post("/v1/keys", json=asked).json()
        assert client.get("/v1/keys").status_code == 401
        assert client.get("/v1/keys", headers=bearer(made["key"])).status_code == 200


def test_a_service_without_a_secret_makes_no_keys_and_says_what_it_lacks(tmp_path: Path, problem: Problem) -> None:
    with http_service(tmp_path) as client:
        response = client.post("/v1/keys", json={"name": "ann", "role": "admin", "projects": None})
        assert response.status_code == 409
        assert "MEMORY_BOUNCER_SECRET" in str(problem(response)["detail"])
        assert client.get("/v1/keys").status_code == 200


@pytest.mark.parametrize("secret", [None, SECRET[::-1]], ids=["none", "another"])
def test_a_service_whose_secret_fits_no_key_refuses_to_start(tmp_path: Path, secret: str | None) -> None:
    with team(tmp_path):
        pass
    settings = Settings.model_validate({"data_dir": tmp_path, "secret": secret})
    with pytest.raises(ConfigurationError, match="MEMORY_BOUNCER_SECRET") as refused:
        build_app(settings)
    assert SECRET not in refused.value.detail


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "bouncer.internal"])
@pytest.mark.parametrize("secret", [None, SECRET], ids=["none", "good"])
def test_a_service_that_is_exposed_refuses_to_start_without_keys(tmp_path: Path, host: str, secret: str | None) -> None:
    with pytest.raises(ConfigurationError, match="beyond this machine") as refused:
        build_app(Settings.model_validate({"data_dir": tmp_path, "host": host, "secret": secret}))
    assert ("MEMORY_BOUNCER_SECRET" if secret is None else "bouncer keys create") in refused.value.detail


def test_the_last_use_of_a_key_is_on_record_to_the_hour(tmp_path: Path) -> None:
    with team(tmp_path) as ours:
        assert ours.client(Role.MEMBER).get("/v1/entries").status_code == 200
    with team_again(tmp_path, ours.root["key"]) as root:
        used = [key["used_at"] for key in root.get("/v1/keys").json()["items"]]
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    assert {datetime.fromisoformat(at) for at in used} <= {hour, hour - timedelta(hours=1)}


@contextlib.contextmanager
def team_again(folder: Path, key: str) -> Iterator[httpx.Client]:
    """The service started again on its database, and a client with a known key."""
    with http_service(folder, secret=SECRET) as anybody:
        anybody.headers.update(bearer(key))
        yield anybody


def test_an_expired_key_is_out(tmp_path: Path) -> None:
    with team(tmp_path) as ours:
        made = ours.made(Role.MEMBER, expires_in_days=1)
        client = ours.holder(made["key"])
        assert client.get("/v1/entries").status_code == 200
        database = Database(f"sqlite:///{tmp_path / 'bouncer.db'}")
        table = metadata.tables["api_key"]
        with database.write() as session:
            ended = {"expires_at": datetime.now(UTC) - timedelta(seconds=1)}
            session.execute(table.update().where(table.c.id == made["details"]["id"]).values(**ended))
        database.close()
        assert client.get("/v1/entries").status_code == 401


# --- wrong keys ---------------------------------------------------------------------------------------------------


def test_too_many_wrong_keys_are_told_to_stop_and_good_ones_pass(tmp_path: Path, problem: Problem) -> None:
    with team(tmp_path) as ours:
        statuses = [ours.holder("wrong").get("/v1/entries").status_code for _ in range(WRONG_KEYS_ALLOWED)]
        assert set(statuses) == {401}
        response = ours.holder("wrong").get("/v1/entries")
        assert (response.status_code, problem(response)["type"]) == (
            429,
            "urn:memory-bouncer:problem:too-many-requests",
        )
        assert 1 <= int(response.headers["retry-after"]) <= WRONG_KEYS_SECONDS
        assert ours.holder(ours.root["key"]).get("/v1/entries").status_code == 200
        assert ours.client(Role.MEMBER).get("/v1/entries").status_code == 200
        assert ours.anybody.get("/v1/entries").status_code == 401, "no key is no wrong key"


def test_wrong_keys_are_counted_by_address_and_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    wrong = WrongKeys(clock=lambda: now)
    monkeypatch.setattr(door, "MOST_ADDRESSES", 2)

    def refused(address: str) -> int:
        """After how many seconds the address may try again; 0 if it may at once."""
        try:
            wrong.count(address)
        except TooManyRequests as exc:
            return exc.retry_after_seconds
        return 0

    assert [refused("a") for _ in range(WRONG_KEYS_ALLOWED + 1)][-2:] == [0, WRONG_KEYS_SECONDS]
    assert refused("b") == 0
    now = WRONG_KEYS_SECONDS - 10
    assert refused("a") == 10
    now = WRONG_KEYS_SECONDS
    assert refused("a") == 0
    for address in ("b", "c", "d"):
        refused(address)
    assert len(wrong._windows) == 2, "bounded"


# --- nothing of a key anywhere ------------------------------------------------------------------------------------


def test_no_key_is_in_any_log_or_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    with team(tmp_path, log_level="debug") as ours:
        made = ours.made(Role.MEMBER, "github.com/acme/app")
        for key in (made["key"], made["key"][:-1] + "!"):
            client = ours.holder(key)
            told += [client.request(*filled(route)).text for route in ROUTES]
            told.append(client.get("/v1/entries", params={"count": key}).text)
    output = capfd.readouterr()
    secret = made["key"].split("_", 2)[2][:-1]
    assert secret not in "".join(told) + output.out + output.err
