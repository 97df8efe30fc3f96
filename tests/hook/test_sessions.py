"""At the start of a session: what the agent is told, and what is brought up to date."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from hooks import store_hygiene_gate as hook
from tests.support.hook_runs import LESSON, Said, event, journal, run, tell, write
from tests.support.scripted_service import ScriptedService

CATEGORIES = ["STATE", "DECISION", "RULE", "DISCOVERY", "QUIRK"]


def start(session: str = "session-1") -> Said:
    return tell(event("SessionStart", session_id=session, source="startup"))


def test_it_says_what_is_worth_keeping_and_names_the_skill(service: ScriptedService) -> None:
    said = run(event("SessionStart", source="startup"))

    assert all(category in said.context for category in CATEGORIES)
    assert "/hygiene" in said.context
    assert len(said.context) <= 600
    assert said.decision is None


def test_with_the_reminder_off_it_says_nothing(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_REMINDER", "off")

    assert start().output == {}
    tell(write(LESSON))
    assert service.requests[-1].json["reminder"] is False


def test_on_trial_about_half_of_the_sessions_are_reminded_and_the_service_knows_which(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_REMINDER", "trial")
    sessions = [f"session-{number}" for number in range(40)]

    reminded = [bool(start(session).context) for session in sessions]
    for session in sessions:
        tell(write(LESSON, session_id=session))

    assert 8 < sum(reminded) < 32
    assert [r.json["reminder"] for r in service.requests if r.path == "/v1/reviews"] == reminded


def test_what_needs_saying_is_said_with_the_reminder_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_REMINDER", "off")
    tell(write(LESSON))

    said = start()

    assert "refuses connections" in said.context
    assert "1 unreviewed text waits in the journal." in said.context
    assert "QUIRK" not in said.context


def test_the_journal_is_flushed(service: ScriptedService, nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", nobody)
    tell(write(LESSON))
    monkeypatch.setenv("MEMORY_BOUNCER_URL", service.url)

    said = start()

    assert "waits" not in said.context
    assert journal()[0]["flushed"] == "approve"


def test_the_policy_is_fetched_once_and_then_only_asked_after(service: ScriptedService) -> None:
    service.policy |= {"minimum_words": 20}
    start()
    assert hook.load_config(os.getcwd()).minimum_words == 20  # noqa: PTH109
    service.policy |= {"minimum_words": 30}

    start()

    asked = [request for request in service.requests if request.path == "/v1/policy"]
    assert [request.headers.get("if-none-match") for request in asked] == [None, '"1"']
    assert service.requests[0].query["project"].startswith("project-")
    assert hook.load_config(os.getcwd()).minimum_words == 20  # noqa: PTH109


@pytest.mark.parametrize(
    "policy", [{}, {"minimum_words": "x", "level": 5, "reasons": []}, {"reasons": {"secret": 5, "unheard": "x"}}]
)
def test_a_policy_that_makes_no_sense_changes_nothing(service: ScriptedService, policy: dict[str, Any]) -> None:
    service.policy = policy
    start()

    config = hook.load_config(os.getcwd())  # noqa: PTH109
    assert (config.minimum_words, config.level, dict(config.reasons)) == (8, "", hook.REASONS)


def test_at_level_gate_the_service_is_left_alone(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_LEVEL", "gate")

    assert "QUIRK" in start().context
    assert service.requests == []


def test_a_project_s_level_gate_ends_when_the_service_says_so(service: ScriptedService) -> None:
    service.policy |= {"level": "gate"}
    start()
    assert hook.load_config(os.getcwd()).level == "gate"  # noqa: PTH109

    service.policy |= {"level": "offline"}
    service.etag = '"2"'
    start()
    assert hook.load_config(os.getcwd()).level == "offline"  # noqa: PTH109


def test_a_silent_service_does_not_hold_the_session_up(silence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", silence)
    started = time.monotonic()

    assert "did not answer in time" in start().context
    assert time.monotonic() - started < 7


def test_many_problems_are_cut_short(project: Path) -> None:
    settings = ", ".join(f'"unknown-{number}": 1' for number in range(100))
    (project / ".bouncer.json").write_text(f"{{{settings}}}", encoding="utf-8")

    assert 0 < len(start().context) <= 600


def test_marks_of_old_sessions_are_thrown_away(service: ScriptedService) -> None:
    tell(event("PreToolUse", "Skill", {"skill": "hygiene"}, session_id="old"))
    [mark] = (Path(hook.state_folder()) / "sessions").iterdir()
    os.utime(mark, (0, 0))

    start()

    assert not mark.exists()
