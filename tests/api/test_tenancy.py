"""What is foreign is as if it did not exist: each route, asked with the key of another project."""

import itertools
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import httpx
import pytest

from app.schemas.vocabulary import Role
from tests.api.test_keys import ROUTES
from tests.support.http_service import call
from tests.support.pipelines import GOOD, SLOP
from tests.support.team import Team

README = "# Storage\n\nRaw pages are stored first, and rules can be replayed over them."
_numbers = itertools.count(1)
SESSION = "a-session"


@dataclass(frozen=True)
class Tenant:
    """A project with a member's key bound to it, and one of everything in it."""

    project: str
    client: httpx.Client
    key_id: str
    call: dict[str, Any]
    review: dict[str, Any]
    entry_id: str
    refused: dict[str, Any]


def settle(team: Team) -> Tenant:
    """A tenant with an approved and stored memory, a refused one and a document."""
    project = f"github.com/tenants/{next(_numbers)}"
    made = team.made(Role.MEMBER, project)
    client = team.holder(made["key"])
    sent = call(GOOD[0], project=project, session=SESSION)
    (review,) = client.post("/v1/reviews", json=sent).json()["reviews"]
    assert review["verdict"] == "approve"
    assert client.post(f"/v1/reviews/{review['id']}/stored", json={"store_id": "item-1"}).status_code == 200
    (refused,) = client.post("/v1/reviews", json=call(SLOP, project=project, session=SESSION)).json()["reviews"]
    document = {"path": "README.md", "sha256": sha256(README.encode()).hexdigest(), "text": README}
    path = f"/v1/projects/{project}/documents"
    assert client.put(path, json={"documents": [document]}).json() == {"wanted": [], "passages": 1}
    return Tenant(project, client, made["details"]["id"], sent, review, review["entry_id"], refused)


@pytest.fixture(scope="module")
def tenants(keyed: Team) -> tuple[Tenant, Tenant]:
    return settle(keyed), settle(keyed)


def requests(foreign: Tenant) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """A request to each route that asks for what is the foreign tenant's, and would succeed if asked by them."""
    review, entry = foreign.review["id"], foreign.entry_id
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": SESSION,
        "tool_use_id": "t-1",
        "tool_name": "mcp__memory__create_entities",
        "tool_input": {"entities": [{"name": "n", "entityType": "t", "observations": [GOOD[1]]}]},
    }
    named = {"project": foreign.project}
    return {
        "POST /v1/reviews": ("POST", "/v1/reviews", {"json": call(GOOD[1], project=foreign.project)}),
        "GET /v1/reviews": ("GET", "/v1/reviews", {"params": named}),
        "GET /v1/reviews/{review_id}": ("GET", f"/v1/reviews/{review}", {}),
        "POST /v1/reviews/{review_id}/stored": ("POST", f"/v1/reviews/{review}/stored", {"json": {}}),
        "POST /v1/reviews/{review_id}/failed": ("POST", f"/v1/reviews/{review}/failed", {}),
        "POST /v1/hooks/claude-code": ("POST", "/v1/hooks/claude-code", {"params": named, "json": event}),
        "GET /v1/entries": ("GET", "/v1/entries", {"params": named}),
        "POST /v1/entries": (
            "POST",
            "/v1/entries",
            {"json": {"project": foreign.project, "category": "RULE", "text": GOOD[2]}},
        ),
        "POST /v1/entries/deleted": (
            "POST",
            "/v1/entries/deleted",
            {"json": {"project": foreign.project, "store": "memory", "store_ids": ["item-1"]}},
        ),
        "GET /v1/entries/search": ("GET", "/v1/entries/search", {"params": named | {"query": GOOD[0]}}),
        "GET /v1/entries/{entry_id}": ("GET", f"/v1/entries/{entry}", {}),
        "DELETE /v1/entries/{entry_id}": ("DELETE", f"/v1/entries/{entry}", {}),
        "GET /v1/policy": ("GET", "/v1/policy", {"params": named}),
        "GET /v1/queue": ("GET", "/v1/queue", {"params": named}),
        "POST /v1/reviews/{review_id}/decision": (
            "POST",
            f"/v1/reviews/{review}/decision",
            {"json": {"verdict": "reject", "reason": "It is foreign."}},
        ),
        "GET /v1/decisions/news": ("GET", "/v1/decisions/news", {"params": named | {"agent": "claude-code"}}),
        "POST /v1/decisions/told": ("POST", "/v1/decisions/told", {"json": {"decisions": ["0" * 32]}}),
        "GET /v1/decisions/overrides": ("GET", "/v1/decisions/overrides", {"params": named}),
        "PUT /v1/projects/{project:path}/documents": (
            "PUT",
            f"/v1/projects/{foreign.project}/documents",
            {"json": {"documents": []}},
        ),
        "GET /v1/projects/{project:path}/documents": ("GET", f"/v1/projects/{foreign.project}/documents", {}),
    }


# The routes that list: what is foreign is left out. All others do not find it.
EMPTY: dict[str, Any] = {
    "GET /v1/reviews": {"items": [], "next": None},
    "GET /v1/entries": {"items": [], "next": None},
    "GET /v1/entries/search": [],
    "GET /v1/queue": {"items": [], "counts": [], "next": None},
    "GET /v1/decisions/news": {"items": [], "more": 0},
    "GET /v1/decisions/overrides": {"items": [], "next": None},
    "GET /v1/projects/{project:path}/documents": {"documents": []},
}
# An admin's key is bound to nothing, so nothing is foreign to it.
OF_ADMINS = {route for route in ROUTES if "/keys" in route or "audit" in route or "/budgets" in route} | {
    "PUT /v1/projects/{project:path}",
    "POST /v1/withdrawals",
}
NOT_OF_MEMBERS = {
    "POST /v1/entries",
    "DELETE /v1/entries/{entry_id}",
    "POST /v1/reviews/{review_id}/decision",
    "GET /v1/decisions/overrides",
}
# It says what it was told, whatever that is.
ECHOES = {"POST /v1/decisions/told"}


def nobody(tenant: Tenant) -> Tenant:
    """A tenant that there is not."""
    unknown = {**tenant.review, "id": "0" * 32}
    return Tenant(f"{tenant.project}-no", tenant.client, "", tenant.call, unknown, "0" * 32, tenant.refused)


def snapshot(tenant: Tenant) -> list[Any]:
    """Everything that the tenant sees of the own project."""
    named = {"project": tenant.project}
    paths = ("/v1/reviews", "/v1/entries", f"/v1/projects/{tenant.project}/documents", "/v1/policy")
    return [tenant.client.get(path, params=named).json() for path in paths]


def test_every_route_is_tried() -> None:
    tenant = Tenant("p", httpx.Client(), "k", {}, {"id": "r"}, "e", {})
    tenant.client.close()
    assert requests(tenant).keys() | OF_ADMINS == ROUTES.keys()


@pytest.mark.parametrize("role", [Role.MEMBER, Role.REVIEWER])
@pytest.mark.parametrize("route", sorted(ROUTES.keys() - OF_ADMINS))
def test_what_is_foreign_is_as_if_it_did_not_exist(
    keyed: Team, tenants: tuple[Tenant, Tenant], route: str, role: Role
) -> None:
    mine, foreign = tenants
    before = snapshot(foreign)
    client = keyed.client(role, mine.project)
    answers = []
    for owner in (foreign, nobody(foreign)):
        method, path, more = requests(owner)[route]
        response = client.request(method, path, **more)
        answers.append((response.status_code, response.text.replace(owner.project, "").replace(path, "")))
    assert len(set(answers)) == 1, "the answer does not tell whether it exists"
    status, body = answers[0]
    if role is Role.MEMBER and route in NOT_OF_MEMBERS:
        assert status == 403, "no member may, whatever the project"
    elif route in ECHOES:
        assert status == 200
    elif route in EMPTY:
        assert (status, client.request(method, path, **more).json()) == (200, EMPTY[route])
    else:
        assert (status, "not-found" in body) == (404, True)
    assert snapshot(foreign) == before, "and it changed nothing"


def test_lists_hold_nothing_foreign_under_whatever_filter(tenants: tuple[Tenant, Tenant]) -> None:
    mine, foreign = tenants
    for query in (
        {},
        {"count": 200},
        {"session_id": SESSION},
        {"tool_call_id": foreign.call["tool_call_id"]},
        {"verdict": "reject"},
        {"before": "f" * 32},
        {"before": foreign.review["id"]},
    ):
        found = mine.client.get("/v1/reviews", params=query).json()["items"]
        assert {item["project"] for item in found} <= {mine.project}, query
    for query in ({}, {"count": 200}, {"category": "RULE"}, {"status": "stored"}, {"before": foreign.entry_id}):
        found = mine.client.get("/v1/entries", params=query).json()["items"]
        assert {item["project"] for item in found} <= {mine.project}, query


@pytest.mark.parametrize("path", ["/v1/reviews", "/v1/entries"])
def test_pages_of_several_projects_hold_each_item_once(keyed: Team, tenants: tuple[Tenant, Tenant], path: str) -> None:
    both = keyed.client(Role.REVIEWER, *(tenant.project for tenant in tenants))
    everything = keyed.holder(keyed.root["key"]).get(path, params={"count": 200}).json()["items"]
    expected = [item["id"] for item in everything if item["project"] in {tenant.project for tenant in tenants}]
    seen: list[str] = []
    query: dict[str, str | int] = {"count": 1}
    while (page := both.get(path, params=query).json())["next"] is not None:
        seen += [item["id"] for item in page["items"]]
        query["before"] = page["next"]
    assert (seen, page["items"]) == (expected, [])


def test_a_call_of_another_key_is_not_replayed(keyed: Team, tenants: tuple[Tenant, Tenant]) -> None:
    """Not across projects, and not within one either: a call's id is known under its key only."""
    mine, foreign = tenants
    stolen = foreign.call | {"project": mine.project}
    answer = mine.client.post("/v1/reviews", json=stolen).json()
    assert (answer["replayed"], answer["reviews"][0]["project"]) == (False, mine.project)
    assert answer["reviews"][0]["id"] != foreign.review["id"]
    colleague = keyed.client(Role.MEMBER, foreign.project)
    answer = colleague.post("/v1/reviews", json=foreign.call).json()
    assert (answer["replayed"], answer["verdict"]) == (False, "duplicate"), "it is judged like any other text"
    again = foreign.client.post("/v1/reviews", json=foreign.call).json()
    assert (again["replayed"], again["reviews"][0]["id"]) == (True, foreign.review["id"])


def test_a_report_of_the_native_hook_reaches_the_own_call_only(keyed: Team, tenants: tuple[Tenant, Tenant]) -> None:
    mine, _ = tenants
    sent = call(f"{GOOD[3]} So it is on shelf nine.", project=mine.project, session="s-native", call_id="t-native")
    (review,) = mine.client.post("/v1/reviews", json=sent).json()["reviews"]
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": "s-native",
        "tool_use_id": "t-native",
        "tool_name": "mcp__memory__create_entities",
        "tool_input": {"entities": [{"name": "n", "entityType": "t", "observations": [sent["candidates"][0]["text"]]}]},
        "tool_response": "ok",
    }
    named = {"project": mine.project}
    statuses = []
    for client in (keyed.client(Role.MEMBER, mine.project), mine.client):
        assert client.post("/v1/hooks/claude-code", params=named, json=event).json() == {}
        statuses.append(mine.client.get(f"/v1/entries/{review['entry_id']}").json()["status"])
    assert statuses == ["pending", "stored"]


def test_reviews_and_entries_tell_whose_key_proposed_them(tenants: tuple[Tenant, Tenant]) -> None:
    for tenant in tenants:
        assert tenant.review["key_id"] == tenant.key_id
        entry = tenant.client.get(f"/v1/entries/{tenant.entry_id}").json()
        assert entry.get("key_id") == tenant.key_id, entry


def test_an_unbound_key_sees_every_project(keyed: Team, tenants: tuple[Tenant, Tenant]) -> None:
    for role in Role:
        client = keyed.client(role)
        for tenant in tenants:
            assert client.get(f"/v1/reviews/{tenant.review['id']}").status_code == 200
            assert client.get("/v1/entries", params={"project": tenant.project}).json()["items"] != []
