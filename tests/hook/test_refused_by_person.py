"""A person who says no to an approved call is noticed at the next prompt, or at the session's end."""

import pytest

from tests.support.hook_runs import LESSON, LESSON_TOO, event, run, tell, write
from tests.support.scripted_service import ScriptedService

END = pytest.mark.parametrize("end", ["UserPromptSubmit", "SessionEnd"])


def reported(service: ScriptedService) -> list[str]:
    return [path for path in service.paths("POST") if path.endswith(("/failed", "/stored"))]


@END
def test_an_approved_call_that_never_ran_has_failed(service: ScriptedService, end: str) -> None:
    tell(write(LESSON))
    for _ in range(2):
        said = run(event(end, prompt="Go on."))
        assert (said.output, said.exit_code, said.stderr) == ({}, 0, "")
    assert reported(service) == ["/v1/reviews/r0/failed"]


@END
def test_a_call_that_ran_has_not(service: ScriptedService, end: str) -> None:
    call = write(LESSON)
    tell(call)
    tell(call | {"hook_event_name": "PostToolUse", "tool_response": "[]"})
    tell(event(end))
    assert reported(service) == ["/v1/reviews/r0/stored"]


def test_each_session_answers_for_its_own_calls(service: ScriptedService) -> None:
    tell(write(LESSON, session_id="one"))
    tell(write(LESSON_TOO, session_id="two", tool_use_id="toolu_2"))
    tell(event("UserPromptSubmit", session_id="two"))
    assert reported(service) == ["/v1/reviews/r1/failed"]


def test_a_refused_call_leaves_nothing_to_report(service: ScriptedService) -> None:
    service.verdicts = ["reject"]
    tell(write(LESSON))
    asked = len(service.requests)
    tell(event("UserPromptSubmit"))
    assert len(service.requests) == asked


def test_without_a_service_the_prompt_goes_on(
    service: ScriptedService, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(write(LESSON))
    monkeypatch.setenv("MEMORY_BOUNCER_URL", nobody)
    assert tell(event("UserPromptSubmit")).output == {}
