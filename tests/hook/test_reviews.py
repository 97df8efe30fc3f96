"""Before a memory call: what the service is asked, and how each of its verdicts is passed on."""

import re

import pytest

from hooks.store_hygiene_gate import LONGEST_REASON, MAXIMUM_CANDIDATES, TOOLS
from tests.support.canaries import canaries
from tests.support.hook_runs import LESSON, LESSON_TOO, SLOP, event, run, tell, write
from tests.support.scripted_service import ScriptedService

REFUSALS = ["rewrite", "update", "duplicate", "reject"]


def test_the_gate_refuses_slop_by_itself(service: ScriptedService) -> None:
    said = run(write(SLOP))

    assert said.decision == "deny"
    assert "[session_summary]" in said.reason
    assert said.reason.endswith("Do not write it elsewhere.")
    assert service.requests == []


def test_an_approved_memory_gets_no_decision_and_no_word(service: ScriptedService) -> None:
    assert run(write(LESSON)).output == {}


def test_what_the_service_wants_said_is_said(service: ScriptedService) -> None:
    service.context = "Approved as a RULE."

    said = run(write(LESSON))

    assert (said.decision, said.context) == (None, "Approved as a RULE.")


@pytest.mark.parametrize("verdict", REFUSALS)
def test_a_refusal_denies_with_the_service_s_message(service: ScriptedService, verdict: str) -> None:
    service.verdicts = [verdict]

    said = run(write(LESSON))

    assert said.decision == "deny"
    assert f"Message 0: {verdict}." in said.reason


def test_one_bad_text_denies_the_call_and_is_named(service: ScriptedService) -> None:
    service.verdicts = ["approve", "duplicate"]

    said = tell(write(LESSON, LESSON_TOO))

    assert said.decision == "deny"
    assert "Nothing of this call was stored." in said.reason
    assert f"“{LESSON_TOO[:50]}" in said.reason
    assert LESSON[:50] not in said.reason
    assert "Its other text was not refused: send the call again" in said.reason


def test_the_gate_names_the_bad_text_among_several(service: ScriptedService) -> None:
    said = tell(write(LESSON, SLOP))

    assert f"“{SLOP[:50]}" in said.reason
    assert LESSON[:50] not in said.reason
    assert service.requests == []


def test_a_refused_text_beside_a_held_one_denies(service: ScriptedService) -> None:
    service.verdicts = ["held", "reject"]

    assert tell(write(LESSON, LESSON_TOO)).decision == "deny"


def test_many_refusals_give_a_short_reason(service: ScriptedService) -> None:
    said = tell(write(*(f"{SLOP} Number {number} of many." for number in range(40))))

    assert len(said.reason) <= LONGEST_REASON
    assert re.search(r"… and \d+ more\.", said.reason)
    assert said.reason.endswith("Do not write it elsewhere.")


def test_more_texts_than_a_review_takes_are_refused(service: ScriptedService) -> None:
    said = tell(write(*(f"{LESSON} Number {number}." for number in range(MAXIMUM_CANDIDATES + 1))))

    assert "[too_long]" in said.reason
    assert service.requests == []


def test_the_service_is_told_all_that_is_known(service: ScriptedService) -> None:
    tell(write(LESSON, LESSON_TOO, name="gateway", agent_id="sub-1", session_id="s 1", tool_use_id="toolu_9"))

    [request] = service.requests
    body = request.json
    assert 0 < body.pop("deadline_seconds") < 8
    assert body.pop("project").startswith("project-")
    assert body == {
        "tool_call_id": "toolu_9",
        "session_id": "s_1",
        "agent": "claude-code",
        "agent_id": "sub-1",
        "store": "memory",
        "tool": "mcp__memory__create_entities",
        "operation": "write",
        "candidates": [{"text": LESSON, "key": "gateway"}, {"text": LESSON_TOO, "key": "gateway"}],
        "hygiene_read": False,
        "reminder": True,
    }
    assert request.headers["user-agent"].startswith("memory-bouncer-hook/")
    assert "authorization" not in request.headers


def test_the_key_is_sent_as_a_bearer_token(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_KEY", "mb_key")

    tell(write(LESSON))

    assert service.requests[-1].headers["authorization"] == "Bearer mb_key"


def test_the_address_may_have_a_path(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", f"{service.url}/team/")

    tell(write(LESSON))

    assert service.paths() == ["/team/v1/reviews"]


@pytest.mark.parametrize("text", [f"{LESSON} \ud83d\ude00 \ud800", f"{LESSON} \x00", f"{LESSON} 🧹"])
def test_any_text_reaches_the_service_as_sound_json(service: ScriptedService, text: str) -> None:
    assert tell(write(text)).decision is None
    service.requests[-1].json["candidates"][0]["text"].encode()


def test_an_update_names_the_item_that_it_replaces(service: ScriptedService) -> None:
    tell(event("PreToolUse", "mcp__engram__mem_update", {"id": 42, "content": LESSON}))

    body = service.requests[-1].json
    assert (body["operation"], body["candidates"]) == ("update", [{"text": LESSON, "store_id": "42"}])


def test_a_deletion_is_not_reviewed(service: ScriptedService) -> None:
    said = tell(event("PreToolUse", "mcp__memory__delete_entities", {"entityNames": ["a"]}))

    assert said.output == {}
    assert service.requests == []


def test_at_level_gate_the_service_is_not_asked(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_LEVEL", "gate")

    assert tell(write(LESSON)).output == {}
    assert tell(write(SLOP)).decision == "deny"
    assert service.requests == []


def test_a_call_without_an_id_has_the_same_id_before_and_after(service: ScriptedService) -> None:
    payload = write(LESSON, tool_use_id=None)
    tell(payload)
    tell(payload | {"hook_event_name": "PostToolUse", "tool_response": "[]"})

    assert service.paths() == ["/v1/reviews", "/v1/reviews/r0/stored"]


@pytest.mark.parametrize(
    "payload",
    [
        event("PreToolUse", "Bash", {"command": "ls"}),
        event("PreToolUse", "Write", {"file_path": "/tmp/a.py", "content": SLOP}),
        event("PreToolUse", "mcp__memory__read_graph", {}),
        event("PostToolUse", "Bash", {"command": "ls"}, tool_response="a"),
        event("PostToolUse", "mcp__memory__read_graph", {}, tool_response="{}"),
        event("Stop"),
        event("UserPromptSubmit", prompt=SLOP),
        event("Unheard"),
        {},
    ],
)
def test_what_is_no_memory_call_gets_no_word(service: ScriptedService, payload: object) -> None:
    said = run(payload)

    assert (said.output, said.exit_code, said.stderr) == ({}, 0, "")
    assert service.requests == []


def test_file_memories_are_reviewed_too(service: ScriptedService) -> None:
    tell(event("PreToolUse", "Write", {"file_path": "MEMORY.md", "content": f"# Rules\n\n- {LESSON}\n"}))

    body = service.requests[-1].json
    assert (body["store"], body["candidates"]) == ("files", [{"text": LESSON, "key": "MEMORY.md"}])


def test_headings_and_pointers_meet_the_patterns_but_not_the_floor(service: ScriptedService) -> None:
    assert tell(event("PreToolUse", "Write", {"file_path": "MEMORY.md", "content": "- [DB](db.md)\n"})).output == {}
    assert tell(event("PreToolUse", "Write", {"file_path": "MEMORY.md", "content": "# Phase 3 COMPLETE ✅"})).decision
    assert service.requests == []


def test_a_secret_in_another_argument_is_refused(service: ScriptedService) -> None:
    tool_input = {"content": LESSON, "tags": [canaries()["npm"]]}

    said = tell(event("PreToolUse", "mcp__engram__store_memory", tool_input))

    assert "[secret]" in said.reason
    assert service.requests == []


def test_a_secret_in_the_key_is_refused(service: ScriptedService) -> None:
    said = tell(write(LESSON, name=canaries()["GitLab"]))

    assert "[secret]" in said.reason
    assert service.requests == []


def test_a_secret_that_an_edit_takes_away_is_no_reason_to_refuse_it(service: ScriptedService) -> None:
    edit = {"label": "human", "old_content": canaries()["npm"], "new_content": LESSON}

    assert tell(event("PreToolUse", "mcp__letta__core_memory_replace", edit)).decision is None


def test_text_that_only_the_shell_knows_goes_by_the_failure_policy(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = event("PreToolUse", "Bash", {"command": "cat notes.txt >> CLAUDE.md"})

    assert "not reviewed" in tell(payload).context
    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", "deny")
    assert tell(payload).decision == "deny"


@pytest.mark.parametrize("name", ["hygiene", "memory-bouncer:hygiene", "/hygiene"])
def test_whether_the_skill_ran_before_is_told(service: ScriptedService, name: str) -> None:
    assert tell(event("PreToolUse", "Skill", {"skill": name})).output == {}
    tell(write(LESSON))
    tell(write(LESSON, session_id="another"))

    assert [request.json["hygiene_read"] for request in service.requests] == [True, False]


def test_other_skills_are_not_noted(service: ScriptedService) -> None:
    tell(event("PreToolUse", "Skill", {"skill": "release-hygiene-check", "args": "x"}))
    tell(write(LESSON))

    assert not service.requests[-1].json["hygiene_read"]


def test_no_answer_ever_approves(service: ScriptedService) -> None:
    for row in TOOLS:
        payload = event("PreToolUse", str(row["tool"]), {"content": LESSON, "text": LESSON, "data": LESSON})
        assert tell(payload).decision in (None, "deny")


def test_in_exit_code_mode_a_denial_is_status_2_with_the_message_on_stderr(service: ScriptedService) -> None:
    denied = run(write(SLOP), arguments=["--exit-code"])
    passed = run(write(LESSON), arguments=["--exit-code"])

    assert (denied.exit_code, denied.output) == (2, {})
    assert "[session_summary]" in denied.stderr
    assert (passed.exit_code, passed.output, passed.stderr) == (0, {}, "")
