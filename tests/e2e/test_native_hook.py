"""The client's own `type: http` hook, which needs no file of ours on the machine that it runs on."""

import json
from pathlib import Path

import pytest

from tests.support.agent_client import Desk, Programs
from tests.support.memories import MIGRATIONS, RETRIES, SESSION_SUMMARY
from tests.support.memory_calls import add_observations, create_entity, delete_entities
from tests.support.service import Service

pytestmark = pytest.mark.e2e


@pytest.fixture
def desk(programs: Programs, service: Service, tmp_path: Path) -> Desk:
    """A desk at which the client asks the service by itself."""
    desk = Desk(programs, tmp_path)
    hook = {"type": "http", "url": f"{service.url}/v1/hooks/claude-code?project={desk.project_name}", "timeout": 10}
    events = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
    desk.settings_file.parent.mkdir()
    desk.settings_file.write_text(
        json.dumps({"hooks": {event: [{"matcher": "mcp__.*", "hooks": [hook]}] for event in events}}), encoding="utf-8"
    )
    return desk


def test_slop_is_refused_and_the_rewrite_stored_and_known(desk: Desk, service: Service) -> None:
    run = desk.run([create_entity("today", SESSION_SUMMARY), create_entity("billing gateway", RETRIES)])

    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {"billing gateway": [RETRIES]}
    [entry] = service.entries(desk.project_name)
    assert (entry["text"], entry["status"], entry["store_id"]) == (RETRIES, "stored", "billing gateway")


def test_it_never_approves(desk: Desk) -> None:
    run = desk.run([create_entity("billing gateway", RETRIES)], allowed=["Read"])

    assert [hook.decision for hook in run.hooks_of("PreToolUse")] == [None]
    assert desk.memory == {}


def test_what_the_store_deleted_or_did_not_take_may_be_stored(desk: Desk) -> None:
    run = desk.run(
        [
            create_entity("lessons", RETRIES),
            delete_entities("lessons"),
            create_entity("lessons", RETRIES),
            create_entity("lessons", MIGRATIONS),
            add_observations("lessons", MIGRATIONS),
        ]
    )

    assert [run.result(number).refusal for number in range(5)] == [None] * 5
    assert desk.memory == {"lessons": [RETRIES, MIGRATIONS]}
