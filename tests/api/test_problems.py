"""Every error has the one shape, a stable type, and tells nothing that is private."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.http_service import call, http_service
from tests.support.pipelines import GOOD

Problem = Callable[[httpx.Response], dict[str, object]]
CANARY = "xyzzy-" + "plugh" * 3


def type_of(body: dict[str, object]) -> str:
    """The last part of a problem's type."""
    return str(body["type"]).rpartition(":")[2]


@pytest.mark.parametrize(
    ("method", "path", "status", "type_"),
    [
        ("GET", "/nowhere", 404, "not-found"),
        ("GET", "/v1/reviews/0190aaaa", 404, "not-found"),
        ("POST", "/v1/reviews/0190aaaa/failed", 404, "not-found"),
        ("GET", "/v1/entries/0190aaaa", 404, "not-found"),
        ("DELETE", "/v1/entries/0190aaaa", 404, "not-found"),
        ("DELETE", "/v1/reviews", 405, "method-not-allowed"),
        ("PATCH", "/healthz", 405, "method-not-allowed"),
        ("GET", "/v1/policy", 422, "invalid"),
        ("GET", "/v1/entries?count=0", 422, "invalid"),
        ("GET", "/v1/reviews?verdict=maybe", 422, "invalid"),
        ("GET", "/v1/entries/a%20b", 422, "invalid"),
    ],
)
def test_errors_have_the_one_shape(
    http: httpx.Client, problem: Problem, method: str, path: str, status: int, type_: str
) -> None:
    response = http.request(method, path)
    body = problem(response)
    assert (response.status_code, type_of(body), body["instance"]) == (status, type_, httpx.URL(path).path)


def test_an_unsupported_method_names_those_that_are(http: httpx.Client) -> None:
    assert http.delete("/v1/policy").headers["allow"] == "GET"


def test_a_reused_call_id_is_a_conflict(http: httpx.Client, problem: Problem, project: str) -> None:
    body = call(GOOD[0], project=project)
    http.post("/v1/reviews", json=body)
    response = http.post("/v1/reviews", json=body | {"candidates": [{"text": GOOD[1]}]})
    assert (response.status_code, type_of(problem(response))) == (409, "conflict")


def test_an_import_of_what_is_there_is_a_conflict(http: httpx.Client, problem: Problem, project: str) -> None:
    entry = {"project": project, "category": "RULE", "text": GOOD[0]}
    http.post("/v1/entries", json=entry)
    response = http.post("/v1/entries", json=entry)
    assert (response.status_code, type_of(problem(response))) == (409, "conflict")


def test_a_text_without_its_hash_is_invalid(http: httpx.Client, problem: Problem, project: str) -> None:
    document = {"path": "a.md", "sha256": "0" * 64, "text": "Another text."}
    response = http.put(f"/v1/projects/{project}/documents", json={"documents": [document]})
    assert (response.status_code, type_of(problem(response))) == (400, "invalid")


# --- nothing private in an error ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"candidates": [{"text": CANARY * 3_000}]},
        {"candidates": [{"text": "fine", CANARY: 1}]},
        {"candidates": CANARY},
        {"candidates": [{"text": "fine", "key": [CANARY]}]},
        {"session_id": f"{CANARY} with spaces"},
        {"operation": CANARY},
        {"deadline_seconds": CANARY},
        {"hygiene_read": CANARY},
        {CANARY: "x"},
    ],
)
def test_a_rejected_request_is_not_repeated_in_the_answer(
    http: httpx.Client, problem: Problem, project: str, change: dict[str, object]
) -> None:
    response = http.post("/v1/reviews", json=call("fine", project=project) | change)
    assert (response.status_code, type_of(problem(response))) == (422, "invalid")
    assert CANARY[:12] not in response.text


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"candidates": "' + CANARY.encode(), b"[]", b"null", b'"x"', b"\xff\xfe" + CANARY.encode()],
)
def test_a_body_that_is_no_request_is_invalid(http: httpx.Client, problem: Problem, content: bytes) -> None:
    response = http.post("/v1/reviews", content=content, headers={"Content-Type": "application/json"})
    assert (response.status_code, type_of(problem(response))) in {(422, "invalid"), (400, "bad-request")}
    assert CANARY[:12] not in response.text


@pytest.mark.parametrize(
    ("name", "value"), [("deadline_seconds", True), ("deadline_seconds", "7"), ("dry_run", 1), ("hygiene_read", "yes")]
)
def test_a_value_of_another_type_is_not_taken_for_one(
    http: httpx.Client, problem: Problem, project: str, name: str, value: object
) -> None:
    response = http.post("/v1/reviews", json=call(GOOD[0], project=project) | {name: value})
    assert (response.status_code, problem(response)["type"]) == (422, "urn:memory-bouncer:problem:invalid")


@pytest.mark.parametrize("version", [True, "1"])
def test_a_version_is_a_number(http: httpx.Client, project: str, version: object) -> None:
    body = call(GOOD[0], project=project)
    body["candidates"][0]["expected_version"] = version
    assert http.post("/v1/reviews", json=body).status_code == 422


def test_a_body_nested_beyond_all_measure_is_refused(http: httpx.Client, problem: Problem) -> None:
    content = b'{"tool_input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    response = http.post("/v1/hooks/claude-code", content=content, headers={"Content-Type": "application/json"})
    problem(response)
    assert 400 <= response.status_code < 500


def test_a_body_that_is_no_json_is_refused(http: httpx.Client, problem: Problem) -> None:
    """So that no page can post a form across sites."""
    response = http.post("/v1/reviews", content=b"{}", headers={"Content-Type": "text/plain"})
    problem(response)
    assert 400 <= response.status_code < 500


# --- the door -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8711", "127.0.0.1.evil.example", "", "["])
def test_a_foreign_host_name_is_refused(http: httpx.Client, problem: Problem, host: str) -> None:
    for path in ("/v1/entries", "/healthz", "/docs", "/nowhere"):
        response = http.get(path, headers={"Host": host})
        assert (response.status_code, type_of(problem(response))) == (403, "host-refused")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8711", "LOCALHOST", "[::1]:8711"])
def test_this_machines_names_are_let_in(http: httpx.Client, host: str) -> None:
    assert http.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://127.0.0.1.evil.example", "http://["])
def test_a_foreign_page_is_refused(http: httpx.Client, problem: Problem, project: str, origin: str) -> None:
    response = http.post("/v1/reviews", json=call(GOOD[0], project=project), headers={"Origin": origin})
    assert (response.status_code, type_of(problem(response))) == (403, "host-refused")
    assert http.get("/v1/reviews", params={"project": project}).json()["items"] == []


def test_the_own_page_is_let_in(http: httpx.Client) -> None:
    origin = str(http.base_url).rstrip("/")
    assert http.get("/v1/entries", headers={"Origin": origin}).status_code == 200


def test_other_names_can_be_allowed(tmp_path: Path) -> None:
    with http_service(tmp_path, allowed_hosts=["bouncer.internal"]) as client:
        assert client.get("/healthz", headers={"Host": "Bouncer.Internal:80"}).status_code == 200
        assert client.get("/healthz").status_code == 403


# --- a database that does not answer ------------------------------------------------------------------------------


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[tuple[httpx.Client, Path]]:
    """A service that waits for its database a fifth of a second, and its database file."""
    with http_service(tmp_path, busy_timeout_seconds=0.2) as client:
        client.put("/v1/projects/p", json={"level": "offline"})
        yield client, tmp_path / "bouncer.db"


def test_a_locked_database_is_told_and_passes(
    fragile: tuple[httpx.Client, Path], problem: Problem, project: str
) -> None:
    client, file = fragile
    lock = sqlite3.connect(file, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    body = call(GOOD[0], project=project)
    writes: list[tuple[str, str, dict[str, object]]] = [
        ("POST", "/v1/reviews", body | {"deadline_seconds": 1}),
        ("PUT", "/v1/projects/p", {"level": "gate"}),
        ("POST", "/v1/entries", {"project": "p", "category": "RULE", "text": GOOD[0]}),
        ("POST", "/v1/entries/deleted", {"project": "p", "store": "memory", "keys": ["x"]}),
    ]
    for method, path, sent in writes:
        response = client.request(method, path, json=sent)
        assert (response.status_code, type_of(problem(response))) == (503, "unavailable")
    assert client.get("/v1/entries").status_code == 200, "reading goes on"
    lock.rollback()
    lock.close()
    assert client.post("/v1/reviews", json=body).json()["verdict"] == "approve"


def test_many_writers_on_a_locked_database_are_all_answered(fragile: tuple[httpx.Client, Path]) -> None:
    client, file = fragile
    lock = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN IMMEDIATE")
    statuses: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: statuses.append(client.put("/v1/projects/p", json={"level": "gate"}).status_code)
        )
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    lock.rollback()
    lock.close()
    assert statuses == [503] * 12


def test_a_damaged_database_is_told(fragile: tuple[httpx.Client, Path], problem: Problem, project: str) -> None:
    client, file = fragile
    with file.open("r+b") as damaged:
        damaged.write(os.urandom(file.stat().st_size))
    for name in ("bouncer.db-wal", "bouncer.db-shm"):
        file.with_name(name).write_bytes(os.urandom(32_768))
    for response in (
        client.get("/v1/entries"),
        client.get("/readyz"),
        client.post("/v1/reviews", json=call(GOOD[0], project=project) | {"deadline_seconds": 1}),
    ):
        assert (response.status_code, type_of(problem(response))) == (503, "unavailable")
    assert client.get("/healthz").status_code == 200
