"""The journal: what was turned away or let through is kept, privately, and survives crashes and crowds."""

import json
import multiprocessing
import stat
from pathlib import Path

import pytest

from hooks import store_hygiene_gate as hook
from hooks.store_hygiene_gate import JOURNAL_BYTES, Config, journal_append, journal_flush, journal_mark, journal_path
from tests.support.canaries import canaries
from tests.support.hook_runs import LESSON, LESSON_TOO, SLOP, event, journal, tell, write
from tests.support.scripted_service import ScriptedService


@pytest.fixture
def config(project: Path) -> Config:
    return hook.load_config(str(project))


def entry(number: int, text: str = LESSON) -> dict[str, object]:
    return {"id": f"e{number}", "at": hook.now(), "event": "denied", "text": text}


def test_a_refused_text_is_kept_with_all_that_is_known_of_it() -> None:
    tell(write(SLOP, agent_id="reviewer"))

    [kept] = journal()
    assert kept["event"] == kept["outcome"] == "denied"
    assert (kept["text"], kept["key"], kept["reasons"]) == (SLOP, "billing gateway", ["session_summary"])
    assert (kept["session_id"], kept["tool_call_id"], kept["agent"]) == ("session-1", "toolu_1", "claude-code")
    assert (kept["tool"], kept["store"], kept["agent_id"]) == ("mcp__memory__create_entities", "memory", "reviewer")
    assert kept["project"].startswith("project-")
    assert kept["at"].endswith("Z")


def test_a_text_that_the_service_refuses_is_kept_with_its_codes(service: ScriptedService) -> None:
    service.verdicts = ["rewrite"]
    tell(write(LESSON))

    assert [(kept["text"], kept["reasons"]) for kept in journal()] == [(LESSON, ["too_specific"])]


def test_what_is_approved_is_not_kept(service: ScriptedService) -> None:
    tell(write(LESSON))
    assert journal() == []


def test_nobody_else_can_read_it(config: Config) -> None:
    tell(write(SLOP))

    assert stat.S_IMODE(Path(config.state).stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(journal_path(config)).stat().st_mode) == 0o600


def test_a_torn_last_line_is_tolerated_and_closed(config: Config) -> None:
    journal_append(config, [entry(1)])
    with Path(journal_path(config)).open("a", encoding="utf-8") as file:
        file.write('{"id": "torn", "te')

    journal_append(config, [entry(2)])

    assert [kept["id"] for kept in journal()] == ["e1", "e2"]


@pytest.mark.parametrize(
    "line", ["", "5", "[]", "null", "{}", '{"id": 5, "text": "x"}', '{"id": "ghost", "event": "stored"}', "\x00"]
)
def test_lines_that_are_no_records_are_passed_over(config: Config, line: str) -> None:
    journal_append(config, [entry(1)])
    with Path(journal_path(config)).open("a", encoding="utf-8") as file:
        file.write(line + "\n")

    assert [kept["id"] for kept in journal()] == ["e1"]


def test_it_stays_bounded_and_keeps_the_latest(config: Config) -> None:
    text = "x" * 30_000
    for number in range(2 * JOURNAL_BYTES // len(text) + 20):
        journal_append(config, [entry(number, text)])

    sizes = [path.stat().st_size for path in Path(config.state).glob("journal.jsonl*")]
    assert len(sizes) == 2
    assert max(sizes) <= JOURNAL_BYTES
    assert journal()[-1]["id"] == f"e{number}"


def test_a_text_without_end_is_cut(config: Config) -> None:
    journal_append(config, [entry(1, "x" * 1_000_000)])
    assert len(str(journal()[0]["text"])) == hook.MAXIMUM_TEXT


def _append(state: str, worker: int) -> None:
    config = Config()
    config.state = state
    for number in range(50):
        journal_append(config, [entry(1000 * worker + number, "y" * 20_000)])


def test_several_hooks_at_once_lose_nothing_and_tear_nothing(config: Config) -> None:
    workers = [multiprocessing.get_context("spawn").Process(target=_append, args=(config.state, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert len(journal()) == 200
    for line in Path(journal_path(config)).read_text(encoding="utf-8").splitlines():
        json.loads(line)


def test_secrets_are_redacted_in_every_field(config: Config) -> None:
    secret = canaries()["npm"]
    journal_append(config, [entry(1) | {"text": f"the token {secret}", "key": secret}])

    assert secret not in Path(journal_path(config)).read_text(encoding="utf-8")


def test_what_became_of_an_entry_is_told_with_it(config: Config) -> None:
    journal_append(config, [entry(1), entry(2)])
    journal_mark(config, [entry(1)], "flushed", "approve")

    first, second = journal()
    assert first["flushed"] == "approve"
    assert "flushed" not in second


@pytest.mark.parametrize("policy", ["allow", "ask", "hold", "deny"])
def test_a_journal_that_cannot_be_written_is_said_and_nothing_crashes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", policy)

    said = tell(write(LESSON))

    assert "could not be kept in the journal" in said.reason + said.context
    assert "could not be kept in the journal" in tell(write(SLOP)).context
    assert tell(event("SessionStart")).context


def test_pending_texts_are_reviewed_when_the_service_is_back(
    config: Config, service: ScriptedService, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", nobody)
    tell(write(LESSON, LESSON_TOO))
    monkeypatch.setenv("MEMORY_BOUNCER_URL", service.url)
    service.verdicts = ["approve", "rewrite"]

    assert journal_flush(hook.load_config("."), 5) == (2, 0)

    [request] = [request.json for request in service.requests]
    assert [candidate["text"] for candidate in request["candidates"]] == [LESSON, LESSON_TOO]
    assert (request["tool_call_id"], request["operation"], request["store"]) == ("toolu_1", "write", "memory")
    assert [kept["flushed"] for kept in journal()] == ["approve", "rewrite"]
    assert journal_flush(hook.load_config("."), 5) == (0, 0)


def test_what_was_stored_meanwhile_is_reported(
    config: Config, service: ScriptedService, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", nobody)
    tell(write(LESSON))
    tell(write(LESSON) | {"hook_event_name": "PostToolUse", "tool_response": "[]"})
    monkeypatch.setenv("MEMORY_BOUNCER_URL", service.url)

    journal_flush(hook.load_config("."), 5)

    assert service.paths() == ["/v1/reviews", "/v1/reviews/r0/stored"]
    assert service.requests[-1].json == {"store_id": "billing gateway"}


def test_what_was_held_back_is_reported_as_not_stored(
    config: Config, service: ScriptedService, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", nobody)
    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", "hold")
    tell(write(LESSON))
    monkeypatch.setenv("MEMORY_BOUNCER_URL", service.url)

    journal_flush(hook.load_config("."), 5)

    assert service.paths() == ["/v1/reviews", "/v1/reviews/r0/failed"]


def test_what_is_not_accepted_is_tried_once(config: Config, service: ScriptedService) -> None:
    service.statuses["/v1/reviews"] = 503
    tell(write(LESSON))
    service.statuses["/v1/reviews"] = 422

    assert journal_flush(hook.load_config("."), 5) == (1, 0)
    assert "422" in journal()[0]["flushed"]


@pytest.mark.parametrize("status", [403, 404])
def test_what_the_key_may_not_send_waits_and_holds_nothing_else_up(
    config: Config, service: ScriptedService, status: int
) -> None:
    service.statuses["/v1/reviews"] = 503
    tell(write(LESSON))
    tell(write(LESSON_TOO) | {"tool_use_id": "toolu_2"})
    service.statuses["/v1/reviews"] = status

    assert journal_flush(hook.load_config("."), 5) == (0, 2)
    assert service.paths().count("/v1/reviews") == 4, "both were tried again"


def test_a_service_that_is_still_down_leaves_all_as_it_is(config: Config) -> None:
    tell(write(LESSON))
    assert journal_flush(config, 5) == (0, 1)
    assert journal_flush(config, 0) == (0, 1)
