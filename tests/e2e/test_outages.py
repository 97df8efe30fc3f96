"""When nobody can judge: the person's policy decides, the agent is told, and no text is lost."""

import contextlib
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_client import Desk, MakeDesk
from tests.support.memories import RETRIES, SESSION_SUMMARY
from tests.support.memory_calls import create_entity
from tests.support.service import Service

pytestmark = pytest.mark.e2e

CHECKOUT = Path(__file__).parents[2]


def test_with_the_service_down_the_write_goes_ahead_is_said_and_journalled(make_desk: MakeDesk, nobody: str) -> None:
    desk = make_desk(nobody)

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert desk.memory == {"billing gateway": [RETRIES]}
    assert "not reviewed" in run.heard.context
    assert RETRIES in _journalled(desk)


def test_with_the_service_down_the_gate_still_refuses(make_desk: MakeDesk, nobody: str) -> None:
    desk = make_desk(nobody)

    run = desk.run([create_entity("today", SESSION_SUMMARY)])

    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {}


def test_what_was_let_through_is_reviewed_once_the_service_is_back(
    make_desk: MakeDesk, nobody: str, service: Service
) -> None:
    desk = make_desk(nobody)
    desk.run([create_entity("billing gateway", RETRIES)])
    desk.environment["MEMORY_BOUNCER_URL"] = service.url

    desk.run(["Nothing to store today."])
    desk.run(["Nothing to store today either."])

    [review] = service.reviews(desk.project_name)
    assert (review["text"], review["verdict"]) == (RETRIES, "approve")
    [entry] = service.entries(desk.project_name)
    assert (entry["text"], entry["status"]) == (RETRIES, "stored")


def test_what_was_held_may_be_stored_once_the_service_is_back(
    make_desk: MakeDesk, nobody: str, service: Service
) -> None:
    desk = make_desk(nobody, environment={"MEMORY_BOUNCER_ON_FAILURE": "hold"})
    desk.run([create_entity("billing gateway", RETRIES)])
    desk.environment["MEMORY_BOUNCER_URL"] = service.url

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert run.result(0).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}


def test_asking_stores_nothing_where_nobody_can_be_asked(make_desk: MakeDesk, nobody: str) -> None:
    desk = make_desk(nobody, environment={"MEMORY_BOUNCER_ON_FAILURE": "ask"})

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert [hook.decision for hook in run.hooks_of("PreToolUse")] == ["ask"]
    assert desk.memory == {}
    assert RETRIES in _journalled(desk)


def test_a_service_that_does_not_answer_holds_nobody_up(make_desk: MakeDesk, silence: str) -> None:
    desk = make_desk(silence, environment={"MEMORY_BOUNCER_DEADLINE": "1"})

    run = desk.run([create_entity("billing gateway", RETRIES)])

    # The client cancels a hook that exceeds its time and says nothing; this one answered by itself.
    assert [hook.outcome for hook in run.hooks_of("PreToolUse")] == ["success"]
    assert desk.memory == {"billing gateway": [RETRIES]}
    assert "not reviewed" in run.heard.context
    assert RETRIES in _journalled(desk)


@pytest.mark.parametrize("policy", ["hold", "deny"])
def test_a_strict_policy_stores_nothing_while_the_service_is_down(
    make_desk: MakeDesk, nobody: str, policy: str
) -> None:
    desk = make_desk(nobody, environment={"MEMORY_BOUNCER_ON_FAILURE": policy})

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert run.refusal(0)
    assert desk.memory == {}
    assert RETRIES in _journalled(desk)


@pytest.mark.parametrize("policy", ["hold", "deny"])
def test_a_strict_policy_stores_nothing_while_the_service_is_silent(
    make_desk: MakeDesk, silence: str, policy: str
) -> None:
    desk = make_desk(silence, environment={"MEMORY_BOUNCER_ON_FAILURE": policy, "MEMORY_BOUNCER_DEADLINE": "1"})

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert run.refusal(0)
    assert desk.memory == {}


@pytest.mark.parametrize("damage", ["gone", "no Python", "raises"])
def test_a_damaged_hook_locks_nobody_out_and_is_reported(make_desk: MakeDesk, service: Service, damage: str) -> None:
    desk = make_desk(service.url)
    match damage:
        case "gone":
            desk.hook_file.unlink()
        case "no Python":
            desk.hook_file.write_text("def main(:\n", encoding="utf-8")
        case "raises":
            desk.hook_file.write_text("raise RuntimeError('broken')\n", encoding="utf-8")

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert desk.memory == {"billing gateway": [RETRIES]}
    [answer] = run.hooks_of("PreToolUse")
    assert "not being checked" in answer.context
    assert answer.context in run.heard.context


def test_a_plugin_without_its_hook_locks_nobody_out_and_is_reported(
    make_desk: MakeDesk, service: Service, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin"
    for folder in (".claude-plugin", "hooks"):
        shutil.copytree(CHECKOUT / folder, plugin / folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    desk = make_desk(service.url, plugin=plugin)

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert desk.memory == {"billing gateway": [RETRIES]}
    assert "not being checked" in run.heard.context


@pytest.mark.parametrize(("policy", "stored"), [("allow", True), ("hold", False), ("deny", False)])
def test_without_an_interpreter_the_policy_decides(
    make_desk: MakeDesk, service: Service, policy: str, stored: bool
) -> None:
    desk = make_desk(service.url, environment={"MEMORY_BOUNCER_ON_FAILURE": policy})
    settings = desk.settings_file.read_text(encoding="utf-8")
    desk.settings_file.write_text(settings.replace('"python3"', '"no-such-python"'), encoding="utf-8")

    desk.run([create_entity("billing gateway", RETRIES)])

    assert (desk.memory == {"billing gateway": [RETRIES]}) is stored
    desk.runs.clear()  # a hook that cannot start is not sound, and cannot be


@pytest.fixture
def silence() -> Iterator[str]:
    """An address at which connections are taken and nothing is ever said."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def _journalled(desk: Desk) -> list[Any]:
    return [record.get("text") for record in desk.journal]
