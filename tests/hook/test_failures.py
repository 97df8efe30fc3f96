"""When nobody can judge: the person's policy decides, the agent is told, and the text is kept."""

import os
import time
from pathlib import Path

import pytest

from hooks import store_hygiene_gate as hook
from tests.support.hook_runs import LESSON, SLOP, Said, event, journal, run, tell, write
from tests.support.scripted_service import ScriptedService

POLICIES = {"allow": None, "ask": "ask", "hold": "deny", "deny": "deny"}
OUTCOMES = {"allow": "allowed", "ask": "asked", "hold": "kept", "deny": "denied"}
JUNK = [
    b"",
    b"\x00\xff" * 50,
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n{}",
    b"HTTP/1.1 abc\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\n\r\n[]",
    b"HTTP/1.1 200 OK\r\n\r\n{}",
    b'HTTP/1.1 200 OK\r\n\r\n{"verdict": "approve"}',
    b'HTTP/1.1 200 OK\r\n\r\n{"verdict": "approve", "reviews": []}',
    b'HTTP/1.1 200 OK\r\n\r\n{"verdict": "approve", "reviews": [{"verdict": "reject"}]}',
    b'HTTP/1.1 200 OK\r\n\r\n{"verdict": "great", "reviews": [{"verdict": "great"}]}',
    b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    b"HTTP/1.1 200 OK\r\n\r\n" + b'"' + b"x" * (5 << 20),
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.9\r\n",
]


def assert_follows(policy: str, said: Said) -> None:
    assert said.decision == POLICIES[policy]
    told = said.reason or said.context
    assert "not reviewed" in told
    assert [entry["outcome"] for entry in journal()] == [OUTCOMES[policy]]
    assert [entry["text"] for entry in journal()] == [LESSON]


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", request.param)
    return str(request.param)


def test_with_nobody_there_the_policy_decides_at_once(policy: str) -> None:
    started = time.monotonic()
    said = run(write(LESSON))

    assert_follows(policy, said)
    assert "refuses connections" in said.reason + said.context
    assert time.monotonic() - started < 5


def test_a_held_review_follows_the_policy(policy: str, service: ScriptedService) -> None:
    service.verdicts = ["held"]
    said = tell(write(LESSON))

    assert_follows(policy, said)
    assert "Message 0: held." in said.reason + said.context
    assert journal()[0]["event"] == ("denied" if policy == "deny" else "held")


def test_a_service_that_never_answers_is_given_up_on(
    policy: str, silence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", silence)
    monkeypatch.setenv("MEMORY_BOUNCER_DEADLINE", "1")
    started = time.monotonic()

    assert_follows(policy, run(write(LESSON)))
    assert time.monotonic() - started < 5


def test_a_service_that_drips_is_given_up_on(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_DEADLINE", "1")
    service.delay = 3

    assert "did not answer in time" in run(write(LESSON)).context


@pytest.mark.parametrize("status", [301, 401, 403, 404, 409, 422, 429, 500, 503])
def test_any_other_status_is_a_failure(service: ScriptedService, status: int) -> None:
    service.statuses["/v1/reviews"] = status

    assert f"answered with status {status}" in tell(write(LESSON)).context


@pytest.mark.parametrize("raw", JUNK)
def test_junk_is_a_failure(service: ScriptedService, raw: bytes) -> None:
    service.raw = raw

    said = tell(write(LESSON))

    assert said.decision is None
    assert "not reviewed" in said.context


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_another_machine_is_asked_in_the_same_way(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    port = service.url.rpartition(":")[2]
    monkeypatch.setenv("MEMORY_BOUNCER_URL", f"{scheme}://127.0.0.2:{port}")
    monkeypatch.setattr(hook, "_LOOPBACK", ())

    assert "not reviewed" in tell(write(LESSON)).context  # no TLS is spoken there, and nothing listens on .2
    monkeypatch.setenv("MEMORY_BOUNCER_URL", service.url)
    assert tell(write(LESSON)).output == {}
    service.raw = b"nonsense"
    assert "no usable answer" in tell(write(LESSON)).context


def test_a_far_service_that_never_answers_is_given_up_on(silence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "_LOOPBACK", ())
    monkeypatch.setenv("MEMORY_BOUNCER_URL", silence)
    monkeypatch.setenv("MEMORY_BOUNCER_DEADLINE", "1")

    assert "did not answer in time" in tell(write(LESSON)).context


def test_the_gate_needs_no_service(policy: str) -> None:
    assert "[session_summary]" in tell(write(SLOP)).reason


@pytest.mark.parametrize("kind", ["allow", "hold"])
def test_a_text_refused_too_often_waits_for_a_person_whatever_the_policy(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", kind)
    service.verdicts, service.fault = ["held"], "repeated_refusals"

    said = tell(write(LESSON))

    assert said.decision == "deny"
    assert "Message 0: held." in said.reason


def test_arguments_of_no_known_shape_follow_the_policy(policy: str, service: ScriptedService) -> None:
    said = tell(event("PreToolUse", "mcp__memory__create_entities", {"things": [LESSON]}))

    assert said.decision == POLICIES[policy]
    assert "no known shape" in said.reason + said.context
    assert LESSON in str(journal()[0]["text"])
    assert service.requests == []


def test_a_file_that_hangs_is_answered_by_the_policy(
    policy: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        time.sleep(60)

    monkeypatch.setenv("MEMORY_BOUNCER_DEADLINE", "1")
    monkeypatch.setattr(hook, "ask_review", never)

    assert_follows(policy, tell(write(LESSON)))


def test_even_a_journal_that_hangs_holds_nobody_up(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        time.sleep(60)

    monkeypatch.setenv("MEMORY_BOUNCER_DEADLINE", "1")
    monkeypatch.setattr(hook, "journal_append", never)

    said = tell(write(LESSON))

    assert said.decision == POLICIES[policy]
    assert "could not be kept" in said.reason + said.context


def test_a_fault_of_the_hook_is_no_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", "deny")
    monkeypatch.setattr(hook, "gate", fail)

    said = tell(write(LESSON))

    assert said.decision is None
    assert "RuntimeError" in said.context
    assert said.output["systemMessage"] == said.context


def test_a_fault_after_the_call_is_nobody_s_concern(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(hook, "extract", fail)

    assert tell(write(LESSON) | {"hook_event_name": "PostToolUse"}).output == {}


def test_no_proxy_of_the_environment_is_used(service: ScriptedService, nobody: str) -> None:
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"), nobody)

    assert run(write(LESSON), proxies).output == {}


def test_a_folder_that_is_gone_is_no_denial(tmp_path: Path, service: ScriptedService) -> None:
    named, unnamed = write(LESSON, cwd="/nowhere"), write(LESSON, cwd=None)
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()

    assert run(named).output == {}
    assert run(unnamed).decision is None
    assert run(unnamed).exit_code == 0
