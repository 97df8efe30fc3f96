"""At the start of a session the agent is told what was decided meanwhile, and the service that it was told."""

from typing import Any

import pytest

from tests.support.hook_runs import LESSON, Said, event, journal, run, tell, write
from tests.support.scripted_service import ScriptedService

TOLD = "/v1/decisions/told"


def start() -> Said:
    return run(event("SessionStart", source="startup"))


def item(number: int, message: str = "Approved. Store exactly this text.") -> dict[str, Any]:
    return {"decision_id": f"d{number}", "review_id": f"r{number}", "message": message}


def told(service: ScriptedService) -> list[str]:
    """Ids of the decisions that the service heard were told."""
    return [name for request in service.requests if request.path == TOLD for name in request.json["decisions"]]


def test_decisions_are_told_and_acknowledged(service: ScriptedService) -> None:
    service.news = [item(1, f"Approved. Store exactly this text:\n{LESSON}"), item(2, "Turned away (reject): “…”")]

    said = start()

    assert "2 held or overruled memories were decided" in said.context
    assert LESSON in said.context
    assert "Turned away" in said.context
    assert "/hygiene" in said.context
    assert told(service) == ["d1", "d2"]
    asked = next(request for request in service.requests if request.path == "/v1/decisions/news")
    assert asked.query["agent"] == "claude-code"
    assert asked.query["project"].startswith("project-")


def test_without_decisions_nothing_is_said_or_acknowledged(service: ScriptedService) -> None:
    assert "decided" not in start().context
    assert told(service) == []


def test_only_what_was_said_is_acknowledged(service: ScriptedService) -> None:
    service.news = [item(number, f"Turned away {number}. {'x' * 900}") for number in range(1, 11)]

    said = start()

    assert len(said.context) <= 4000
    assert "10 held" in said.context
    assert told(service) == ["d1", "d2", "d3"]
    assert "Turned away 3" in said.context
    assert "7 more" in said.context


def test_a_text_that_is_too_long_is_named(service: ScriptedService) -> None:
    service.news = [item(1, "x" * 4000), item(2)]

    said = start()

    assert "bouncer queue show r1" in said.context
    assert told(service) == ["d1", "d2"]


def test_a_service_that_does_not_hear_tells_again(service: ScriptedService) -> None:
    service.news = [item(1)]
    service.statuses[TOLD] = 503
    assert [("decided" in start().context) for _ in range(2)] == [True, True]
    assert start().exit_code == 0


@pytest.mark.parametrize("news", [["x", 5, None], [{"message": 5}], [{}]])
def test_nonsense_stops_no_session(service: ScriptedService, news: list[Any]) -> None:
    service.news = news
    said = start()
    assert (said.exit_code, said.stderr) == (0, "")
    assert "QUIRK" in said.context


def test_an_older_service_without_decisions_is_no_failure(service: ScriptedService) -> None:
    service.statuses["/v1/decisions/news"] = 404
    assert "QUIRK" in start().context
    assert "cannot be reviewed" not in start().context


def test_at_level_gate_nothing_is_asked(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_LEVEL", "gate")
    service.news = [item(1)]
    assert "decided" not in start().context
    assert service.requests == []


def test_a_held_text_that_was_let_through_is_reported_as_stored(service: ScriptedService) -> None:
    service.verdicts = ["held"]
    call = write(LESSON)
    assert tell(call).decision is None

    tell(call | {"hook_event_name": "PostToolUse", "tool_response": "[]"})

    assert service.paths("POST")[-1] == "/v1/reviews/r0/stored"
    assert "stored" in journal()[0]


def test_a_held_text_that_is_kept_back_is_promised_a_decision(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", "hold")
    service.verdicts = ["held"]
    said = tell(write(LESSON))
    assert said.decision == "deny"
    assert "do not retry" in said.reason
    assert "later session" in said.reason
