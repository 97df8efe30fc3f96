"""Each route over real HTTP."""

from hashlib import sha256
from typing import Any

import httpx
import pytest

from tests.support.http_service import call
from tests.support.pipelines import GOOD, SLOP


def review(http: httpx.Client, *texts: str, **more: Any) -> dict[str, Any]:
    """The answer to a memory tool call."""
    response = http.post("/v1/reviews", json=call(*texts, **more))
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def add(http: httpx.Client, text: str, project: str, **more: Any) -> dict[str, Any]:
    """An imported entry."""
    response = http.post("/v1/entries", json={"project": project, "category": "RULE", "text": text, **more})
    assert response.status_code == 201, response.text
    entry: dict[str, Any] = response.json()
    return entry


# --- reviews ------------------------------------------------------------------------------------------------------


def test_a_call_is_answered_with_one_review_for_each_text(http: httpx.Client, project: str) -> None:
    answer = review(http, GOOD[0], SLOP, project=project)
    assert answer["verdict"] == "reject"
    assert [(r["position"], r["verdict"], r["reasons"]) for r in answer["reviews"]] == [
        (0, "approve", []),
        (1, "reject", ["session_summary"]),
    ]
    assert answer["context"] is None


def test_the_same_call_gets_the_same_answer(http: httpx.Client, project: str) -> None:
    body = call(GOOD[0], project=project)
    first, again = (http.post("/v1/reviews", json=body).json() for _ in range(2))
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["reviews"] == again["reviews"]


def test_a_review_is_found_by_its_id_and_by_its_call(http: httpx.Client, project: str) -> None:
    body = call(GOOD[0], GOOD[1], project=project, session=f"s-{project[-5:]}")
    reviews = http.post("/v1/reviews", json=body).json()["reviews"]
    assert http.get(f"/v1/reviews/{reviews[1]['id']}").json() == reviews[1]
    found = http.get("/v1/reviews", params={"session_id": body["session_id"], "tool_call_id": body["tool_call_id"]})
    assert found.json() == {"items": reviews[::-1], "next": None}


def test_reviews_can_be_narrowed_down_to_a_project_and_a_verdict(http: httpx.Client, project: str) -> None:
    kept, refused = review(http, GOOD[0], SLOP, project=project)["reviews"]
    for query, expected in (
        ({}, [refused["id"], kept["id"]]),
        ({"verdict": "reject"}, [refused["id"]]),
        ({"verdict": "held"}, []),
    ):
        found = http.get("/v1/reviews", params={"project": project, **query}).json()
        assert [item["id"] for item in found["items"]] == expected
    assert http.get("/v1/reviews", params={"project": "nowhere"}).json() == {"items": [], "next": None}


def test_a_stored_report_is_shown_in_review_and_entry(http: httpx.Client, project: str) -> None:
    (made,) = review(http, GOOD[0], project=project)["reviews"]
    reported = http.post(f"/v1/reviews/{made['id']}/stored", json={"store_id": "item-1"}).json()
    assert reported["stored_at"] is not None
    assert reported == http.post(f"/v1/reviews/{made['id']}/stored", json={}).json()
    entry = http.get(f"/v1/entries/{made['entry_id']}").json()
    assert (entry["status"], entry["store_id"], entry["review_id"]) == ("stored", "item-1", made["id"])


def test_a_failed_report_frees_the_text(http: httpx.Client, project: str) -> None:
    (made,) = review(http, GOOD[0], project=project)["reviews"]
    assert http.post(f"/v1/reviews/{made['id']}/failed").status_code == 200
    assert http.get(f"/v1/entries/{made['entry_id']}").json()["status"] == "unconfirmed"
    assert review(http, GOOD[0], project=project, session="s2")["verdict"] == "approve"


# --- entries ------------------------------------------------------------------------------------------------------


def test_an_entry_is_added_listed_and_deleted(http: httpx.Client, project: str) -> None:
    entry = add(http, GOOD[0], project, store="memory", store_id="item-1", key="payments")
    assert http.get(f"/v1/entries/{entry['id']}").json() == entry
    assert http.get("/v1/entries", params={"project": project}).json() == {"items": [entry], "next": None}
    gone = http.delete(f"/v1/entries/{entry['id']}").json()
    assert gone["status"] == "deleted"
    for query, number in (({"status": "stored"}, 0), ({"status": "deleted"}, 1), ({"category": "QUIRK"}, 0)):
        assert len(http.get("/v1/entries", params={"project": project, **query}).json()["items"]) == number
    assert http.get("/v1/entries", params={"project": "nowhere"}).json() == {"items": [], "next": None}


def test_a_delete_report_names_the_entries_that_it_reached(http: httpx.Client, project: str) -> None:
    entry = add(http, GOOD[0], project, store="memory", key="payments")
    report = {"project": project, "store": "memory", "keys": ["payments"]}
    assert http.post("/v1/entries/deleted", json=report).json() == {"entries": [entry["id"]]}
    assert http.post("/v1/entries/deleted", json=report).json() == {"entries": []}
    nowhere = report | {"project": "nowhere"}
    assert http.post("/v1/entries/deleted", json=nowhere).json() == {"entries": []}


def test_a_search_answers_with_entries_and_similarities(http: httpx.Client, project: str) -> None:
    for text in GOOD:
        add(http, text, project)
    found = http.get("/v1/entries/search", params={"project": project, "query": GOOD[2], "count": 2}).json()
    assert found[0]["entry"]["text"] == GOOD[2]
    assert len(found) == 2
    assert found[0]["similarity"] > found[1]["similarity"]


@pytest.mark.parametrize("path", ["/v1/entries", "/v1/reviews"])
def test_pages_neither_lose_nor_repeat_while_more_is_written(http: httpx.Client, project: str, path: str) -> None:
    def make(text: str) -> str:
        """Id of one more item."""
        made = add(http, text, project) if path == "/v1/entries" else review(http, text, project=project)["reviews"][0]
        return str(made["id"])

    expected = [make(f"Always keep shelf number {number} free for crates.") for number in range(7)][::-1]
    seen: list[str] = []
    query: dict[str, str | int] = {"project": project, "count": 3}
    while True:
        page = http.get(path, params=query).json()
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        query["before"] = page["next"]
        make(f"Never block the door number {len(seen)}, because the fire brigade checks.")
    assert seen == expected


# --- policy, projects, documents ----------------------------------------------------------------------------------


def test_the_policy_tells_what_a_hook_needs(http: httpx.Client, project: str) -> None:
    policy = http.get("/v1/policy", params={"project": project}).json()
    assert (policy["project"], policy["level"], policy["minimum_words"]) == (project, "offline", 8)
    assert set(policy["reasons"]) >= {"session_summary", "too_short", "secret"}


@pytest.mark.parametrize("sent", ["{}", "W/{}", '"other", {}'])
def test_an_unchanged_policy_is_not_sent_again(http: httpx.Client, project: str, sent: str) -> None:
    first = http.get("/v1/policy", params={"project": project})
    etag = first.headers["etag"]
    again = http.get("/v1/policy", params={"project": project}, headers={"If-None-Match": sent.format(etag)})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)


def test_a_changed_policy_has_another_etag(http: httpx.Client, project: str) -> None:
    etag = http.get("/v1/policy", params={"project": project}).headers["etag"]
    http.put(f"/v1/projects/{project}", json={"level": "gate"})
    changed = http.get("/v1/policy", params={"project": project}, headers={"If-None-Match": etag})
    assert (changed.status_code, changed.json()["level"]) == (200, "gate")


@pytest.mark.parametrize("spelling", ["{}", "github.com%2Facme%2F{}"])
def test_a_projects_level_is_set_under_its_name_with_slashes(http: httpx.Client, project: str, spelling: str) -> None:
    name = project.rpartition("/")[2] if "%2F" in spelling else project
    response = http.put(f"/v1/projects/{spelling.format(name)}", json={"level": "gate"})
    assert (response.json()["name"], response.json()["level"]) == (project, "gate")
    assert review(http, GOOD[0], project=project)["reviews"][0]["reviewer"] == "gate"


def described(path: str, text: str) -> dict[str, str]:
    """A document with its text, as a hook sends it."""
    return {"path": path, "sha256": sha256(text.encode()).hexdigest(), "text": text}


def test_documents_are_sent_by_hash_then_by_text(http: httpx.Client, project: str) -> None:
    text = "# Storage\n\nRaw pages are stored first."
    document = described("README.md", text)
    del document["text"]
    path = f"/v1/projects/{project}/documents"
    assert http.put(path, json={"documents": [document]}).json() == {"wanted": ["README.md"], "passages": 0}
    sent = http.put(path, json={"documents": [document | {"text": text}]})
    assert sent.json() == {"wanted": [], "passages": 1}
    [held] = http.get(path).json()["documents"]
    assert held == document | {"passages": 1, "updated_at": held["updated_at"]}


def test_a_project_that_is_not_known_has_no_documents(http: httpx.Client, project: str) -> None:
    assert http.get(f"/v1/projects/{project}/documents").json() == {"documents": []}


@pytest.mark.parametrize("name", ["documents", "a%2F{}%2Fdocuments", "a/{}%2Fdocuments", "a%2F{}%2fdocuments"])
def test_a_name_may_end_like_the_documents_route(http: httpx.Client, project: str, name: str) -> None:
    name = name.format(project.replace("/", "%2F"))
    plain = name.replace("%2F", "/").replace("%2f", "/")

    level = http.put(f"/v1/projects/{name}", json={"level": "gate"})
    http.put(f"/v1/projects/{name}/documents", json={"documents": [described("a.md", "Only this line is in it.")]})

    assert (level.status_code, level.json()["name"]) == (200, plain)
    assert http.get("/v1/policy", params={"project": plain}).json()["level"] == "gate"
    assert [held["path"] for held in http.get(f"/v1/projects/{name}/documents").json()["documents"]] == ["a.md"]


def test_an_open_slash_before_documents_parts_the_name_from_the_route(http: httpx.Client, project: str) -> None:
    assert http.put(f"/v1/projects/{project}/documents", json={"level": "gate"}).status_code == 422
    assert http.put(f"/v1/projects/{project}/%64ocuments", json={"documents": []}).json()["passages"] == 0
    assert http.get(f"/v1/projects/{project}").status_code == 405
    assert http.delete(f"/v1/projects/{project}/documents").status_code == 405


# --- operation ----------------------------------------------------------------------------------------------------


def test_it_says_that_it_lives_and_is_ready(http: httpx.Client) -> None:
    assert http.get("/healthz").json()["status"] == "ok"
    assert http.get("/readyz").json()["checks"] == {"database": "ok"}


def test_it_shows_its_own_description(http: httpx.Client) -> None:
    assert http.get("/openapi.json").json()["info"]["title"] == "Memory Bouncer"
    assert http.get("/docs").status_code == 200


@pytest.mark.parametrize(
    "text",
    ["Always \x00 keep a NUL out of the database, because it takes none.", "Never keep half \ud83d of a pair around."],
)
def test_what_no_database_stores_is_replaced(http: httpx.Client, project: str, text: str) -> None:
    import json  # noqa: PLC0415 - httpx refuses to send what a careless client may send

    body = json.dumps(call(text, project=project)).encode()
    answer = http.post("/v1/reviews", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    assert "\N{REPLACEMENT CHARACTER}" in answer.json()["reviews"][0]["text"]
