"""The log: one line of JSON for each request and each review, and no word of anybody's texts in any."""

import contextlib
import json
import os
import pty
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.logs import configure_logs
from tests.support.canaries import canaries
from tests.support.http_service import call
from tests.support.messages_api import (
    MessagesApi,
    asking_always,
    drop,
    error,
    junk,
    messages_api,
    refusal,
    reply,
    truncated,
)
from tests.support.pipelines import GOOD, SLOP
from tests.support.service import BOUNCER, Service, running_service

PLAIN = "xyzzy" + "-plugh" * 3
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def ask(service: Service, *texts: str, **more: Any) -> dict[str, Any]:
    """The answer to a call of a project at level `model`."""
    body = call(*texts, project="github.com/acme/payments", **more)
    response = httpx.post(f"{service.url}/v1/reviews", json=body, trust_env=False, timeout=30)
    answer: dict[str, Any] = response.raise_for_status().json()
    return answer


@pytest.fixture(scope="module")
def model() -> Iterator[MessagesApi]:
    with messages_api() as api:
        yield api


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model: MessagesApi) -> Iterator[Service]:
    settings = asking_always(model, MEMORY_BOUNCER_BUSY_TIMEOUT_SECONDS="0.3")
    with running_service(tmp_path_factory.mktemp("service"), settings) as running:
        yield running


def named(service: Service, event: str, count: int = 0, **also: object) -> list[dict[str, Any]]:
    """The events of a name and with these values; waits until there are so many."""
    give_up = time.monotonic() + 20
    while True:
        found = [line for line in service.events if line.items() >= {"event": event, **also}.items()]
        if len(found) >= count or time.monotonic() > give_up:
            return found
        time.sleep(0.02)


def test_a_review_is_one_line_beside_its_request_under_one_id(service: Service) -> None:
    parent = f"00-{TRACE}-00f067aa0ba902b7-01"
    body = call(GOOD[0], SLOP, project="p")
    response = httpx.post(
        f"{service.url}/v1/reviews?token={PLAIN}", json=body, headers={"traceparent": parent}, trust_env=False
    )
    first, second = response.json()["reviews"]
    (request,) = named(service, "request", 1, request=TRACE)
    assert response.headers["x-request-id"] == request["request"] == TRACE
    assert (request["method"], request["route"], request["status"]) == ("POST", "/v1/reviews", 200)
    passed, refused = named(service, "review", request=TRACE)
    assert (passed["request"], passed["review"], refused["review"]) == (TRACE, first["id"], second["id"])
    assert (passed["verdict"], passed["reviewer"], passed["cost_microdollars"]) == (
        "approve",
        "anthropic",
        first["usage"]["cost_microdollars"],
    )
    assert (refused["verdict"], refused["reviewer"], refused["reasons"]) == ("reject", "gate", ["session_summary"])


def test_an_answer_given_again_is_no_second_review(service: Service) -> None:
    first, again = (ask(service, GOOD[0], call_id="the-same") for _ in range(2))
    assert again["reviews"] == first["reviews"]
    assert len(named(service, "review", review=first["reviews"][0]["id"])) == 1


@pytest.mark.parametrize("given", ["", "junk", f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-{PLAIN}-x-01"])
def test_an_unusable_trace_is_replaced(service: Service, given: str) -> None:
    response = httpx.get(f"{service.url}/v1/entries", headers={"traceparent": given}, trust_env=False)
    fresh = response.headers["x-request-id"]
    assert len(fresh) == 32
    assert set(fresh) != {"0"}
    assert len(named(service, "request", 1, request=fresh)) == 1


def test_what_machines_ask_for_every_few_seconds_is_not_noted(service: Service) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/v1/entries"):
        assert httpx.get(f"{service.url}{path}", trust_env=False).status_code == 200
    assert len(named(service, "request", 1, route="/v1/entries")) >= 1
    assert {line["route"] for line in named(service, "request")}.isdisjoint({"/healthz", "/readyz", "/metrics"})


# --- nothing private ------------------------------------------------------------------------------------------------


CANARIES = [PLAIN, canaries()["AWS key id"], canaries()["GitHub classic"]]


def send_everywhere(service: Service, canary: str) -> None:
    """Send a text to each route that there is, wherever a text can stand, in forms right and wrong."""
    described = service.get("/openapi.json")["paths"]
    long = f"Always write {canary} into the runbook of the payments team, because nobody remembers it otherwise."
    bodies: list[object] = [
        call(long, project=canary, session="s-1"),
        call(long, project=canary, session="s-1") | {"candidates": [{"text": long, canary: canary}]},
        call(long, project=canary, session="s-1") | {"operation": canary},
        {"project": canary, "category": "RULE", "text": long},
        {"documents": [{"path": canary, "sha256": "0" * 64, "text": long}]},
        {"tool_name": "mcp__memory__create_entities", "hook_event_name": "PreToolUse", "tool_use_id": "u",
         "session_id": "s", "cwd": canary, "tool_input": {"entities": [{"name": canary, "observations": [long]}]}},
        {canary: canary},
    ]  # fmt: skip
    with httpx.Client(base_url=service.url, trust_env=False, timeout=30) as client:
        for path, operations in described.items():
            for method, operation in operations.items():
                filled = path
                query = {}
                for parameter in operation.get("parameters", []):
                    if parameter["in"] == "path":
                        filled = filled.replace("{" + parameter["name"] + "}", canary)
                    if parameter["in"] == "query" and parameter["schema"].get("type") != "integer":
                        query[parameter["name"]] = canary
                for body in bodies if "requestBody" in operation else [None]:
                    client.request(method, filled, params=query, json=body, headers={"User-Agent": canary})
        client.request("PROPFIND", "/v1/entries")
        client.get(f"/{canary}", headers={"Authorization": f"Bearer {canary}"})
        client.get("/v1/entries", headers={"Host": f"{canary}.example", "Origin": canary})
    with socket.create_connection(("127.0.0.1", service.port)) as raw:
        raw.sendall(f"{canary} {canary}\r\n\r\n".encode())
        raw.recv(1_000)


def check_quiet(service: Service, texts: list[str]) -> None:
    """Nothing of the texts, nor of long pieces of them, is in log or metrics."""
    page = httpx.get(f"{service.url}/metrics", trust_env=False).text
    for text in texts:
        for piece in {text, text[:16], text[-16:], json.dumps(text)[1:-1]}:
            assert piece not in service.log
            assert piece not in page


def test_no_text_is_in_log_or_metrics_whatever_is_sent_where(service: Service) -> None:
    for canary in CANARIES:
        send_everywhere(service, canary)
    assert len(named(service, "request", 100)) >= 100
    check_quiet(service, CANARIES)


def test_no_text_is_in_log_or_metrics_whatever_goes_wrong(service: Service, model: MessagesApi) -> None:
    for number, step in enumerate(
        (
            error(400, message=f"Bad text: {PLAIN}"),
            error(401, message=PLAIN),
            error(404, message=PLAIN),
            error(429, message=PLAIN, retry_after=0),
            error(529, kind="overloaded_error", message=PLAIN),
            error(500, message=PLAIN),
            junk(PLAIN.encode()),
            drop(),
            refusal(),
            truncated(),
            reply(text=PLAIN),
            reply(reason=PLAIN, suggested_text=PLAIN),
            reply(duplicate_of=PLAIN),
        )
    ):
        model.script(step, step)
        ask(service, f"{GOOD[0]} {PLAIN} {number}", session=f"s{number}", deadline_seconds=5)
    faults = {line["fault"] for line in named(service, "review")}
    assert len(faults) > 5, faults

    lock = sqlite3.connect(service.data_dir / "bouncer.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    with contextlib.suppress(httpx.HTTPStatusError):
        ask(service, f"{GOOD[1]} {PLAIN}", deadline_seconds=1)
    lock.rollback()
    # A mishap that nobody foresaw: the statement that fails has the text among its parameters.
    lock.execute("CREATE TRIGGER mishap BEFORE INSERT ON document BEGIN SELECT RAISE(ABORT, 'mishap'); END")
    lock.close()
    document = {"path": PLAIN, "text": PLAIN, "sha256": sha256(PLAIN.encode()).hexdigest()}
    response = httpx.put(f"{service.url}/v1/projects/p/documents", json={"documents": [document]}, trust_env=False)
    assert response.status_code == 500
    assert PLAIN not in response.text
    failed = named(service, "request.failed", 1)[-1]
    assert failed["error"][0] == "IntegrityError"
    assert any("documents.py" in place for place in failed["passed"])
    assert failed["request"] == response.headers["x-request-id"]
    check_quiet(service, [PLAIN])


# --- its form -------------------------------------------------------------------------------------------------------


def test_what_libraries_say_comes_out_the_same_way_and_without_values() -> None:
    program = (
        "import logging; from app.logs import configure_logs; configure_logs('info')\n"
        "logging.getLogger('uvicorn.error').info('Started server process [%d]', 7)\n"
        f"logging.getLogger('asyncio').error('Task failed: %s', {PLAIN!r})\n"
        f"logging.getLogger('chatty').info({PLAIN!r})\n"
        "try:\n"
        "    try:\n"
        f"        raise ValueError({PLAIN!r})\n"
        "    except ValueError as exc:\n"
        "        raise RuntimeError('outer') from exc\n"
        "except RuntimeError:\n"
        "    logging.getLogger('uvicorn.error').exception('Exception in ASGI application')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    started, complained, failed = map(json.loads, done.stderr.splitlines())
    assert (started["event"], started["level"]) == ("Started server process [7]", "info")
    assert (complained["event"], complained["logger"]) == ("library.complained", "asyncio")
    assert (failed["error"], failed["event"]) == (["RuntimeError", "ValueError"], "Exception in ASGI application")
    assert PLAIN not in done.stderr


def test_on_a_terminal_it_is_for_people(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*BOUNCER, "serve", "--port", "0", "--data-dir", str(tmp_path)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        while b"Ctrl-C stops it" not in said:
            said += os.read(ours, 4_096)
        process.terminate()
        assert process.wait(30) == 0
    os.close(ours)
    assert b'{"' not in said


def test_a_level_hides_what_is_below_it(tmp_path: Path) -> None:
    with running_service(tmp_path, {"MEMORY_BOUNCER_LOG_LEVEL": "warning"}) as service:
        service.get("/v1/entries")
        assert [line["event"] for line in service.events] == ["listening"]


def test_the_log_knows_its_levels() -> None:
    with pytest.raises(AttributeError):
        configure_logs("loud")
