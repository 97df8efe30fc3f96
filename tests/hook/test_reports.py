"""After a memory call: the service is told what was stored, under which id, or that it was not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import reported_ids
from tests.support.hook_runs import LESSON, LESSON_TOO, event, journal, tell, write
from tests.support.scripted_service import ScriptedService


def after(payload: dict[str, Any], response: object, *, failed: bool = False) -> dict[str, Any]:
    name = "PostToolUseFailure" if failed else "PostToolUse"
    return payload | {"hook_event_name": name, "tool_response": response}


def saved(text: str = LESSON, **more: Any) -> dict[str, Any]:
    return event("PreToolUse", "mcp__engram__mem_save", {"title": "Retries", "content": text}, **more)


@pytest.mark.parametrize(
    ("response", "ids"),
    [
        ("Memory saved: “Retries” (rule)", []),
        ('{"id": 42, "sync_id": "obs-1"}', ["42"]),
        ({"memory_id": "m-1"}, ["m-1"]),
        ([{"type": "text", "text": '{"id": "m-1"}'}], ["m-1"]),
        ([{"type": "text", "text": "Stored with content hash: 3fa9c1d2"}], ["3fa9c1d2"]),
        (
            '[{"type": "text", "text": "created memory 550e8400-e29b-41d4-a716-446655440000"}]',
            ["550e8400-e29b-41d4-a716-446655440000"],
        ),
        ("Saved with ID: `obs_12`.", ["obs_12"]),
        ({"results": [{"id": "a"}, {"id": "b"}]}, ["a", "b"]),
        ({"result": {"memory": {"id": 7}}}, ["7"]),
        ({"success": True, "content_hash": "ab12"}, ["ab12"]),
        ({"id": True, "uuid": "u-1"}, ["u-1"]),
        (None, []),
        (5, []),
        ("", []),
        ("The identity is hidden", []),
    ],
)
def test_ids_are_found_in_answers_of_any_form(response: object, ids: list[str]) -> None:
    assert reported_ids(response) == ids


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_answer_is_read_without_a_fault(response: object) -> None:
    assert all(isinstance(found, str) for found in reported_ids(response))


def test_what_was_stored_is_reported_with_the_store_s_id(service: ScriptedService) -> None:
    tell(saved())
    assert tell(after(saved(), '{"id": 42}')).output == {}

    assert service.paths() == ["/v1/reviews", "/v1/reviews/r0/stored"]
    assert service.requests[-1].json == {"store_id": "42"}


def test_the_call_is_found_by_session_and_call(service: ScriptedService) -> None:
    tell(saved(session_id="a b", tool_use_id="call/1&x"))
    tell(after(saved(session_id="a b", tool_use_id="call/1&x"), "{}"))

    assert service.paths("GET") == ["/v1/reviews"]
    assert service.paths()[-1] == "/v1/reviews/r0/stored"


def test_the_memory_server_knows_items_by_their_name(service: ScriptedService) -> None:
    tell(write(LESSON, name="gateway"))
    tell(
        after(write(LESSON, name="gateway"), json.dumps({"entities": [{"name": "gateway", "observations": [LESSON]}]}))
    )

    assert service.requests[-1].json == {"store_id": "gateway"}


def test_what_the_memory_server_skipped_is_reported_as_failed(service: ScriptedService) -> None:
    tell(write(LESSON, name="gateway"))
    tell(after(write(LESSON, name="gateway"), json.dumps({"entities": []})))

    assert service.paths()[-1] == "/v1/reviews/r0/failed"


def test_several_texts_are_matched_by_their_place(service: ScriptedService) -> None:
    call = event(
        "PreToolUse", "mcp__r__create_long_term_memories", {"memories": [{"text": LESSON}, {"text": LESSON_TOO}]}
    )
    tell(call)
    tell(after(call, {"memories": [{"id": "a"}, {"id": "b"}]}))

    reports = {request.path: request.json for request in service.requests if request.path.endswith("/stored")}
    assert reports == {"/v1/reviews/r0/stored": {"store_id": "a"}, "/v1/reviews/r1/stored": {"store_id": "b"}}


def test_an_update_keeps_the_id_of_its_item(service: ScriptedService) -> None:
    call = event("PreToolUse", "mcp__engram__mem_update", {"id": 42, "content": LESSON})
    tell(call)
    tell(after(call, "Memory updated"))

    assert service.requests[-1].json == {"store_id": "42"}


def test_a_file_is_known_by_its_path_although_it_holds_the_text_by_now(service: ScriptedService) -> None:
    call = event("PreToolUse", "Write", {"file_path": "MEMORY.md", "content": f"- {LESSON}"})
    tell(call)
    with open("MEMORY.md", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(f"- {LESSON}")
    tell(after(call, {"filePath": "MEMORY.md"}))

    assert service.paths()[-1] == "/v1/reviews/r0/stored"
    assert service.requests[-1].json == {"store_id": "MEMORY.md"}


@pytest.mark.parametrize("command", ["echo '- {}' >> MEMORY.md", "cat >> MEMORY.md <<'EOF'\n- {}\nEOF"])
def test_what_a_shell_wrote_is_reported_too(service: ScriptedService, command: str) -> None:
    call = event("PreToolUse", "Bash", {"command": command.format(LESSON)})
    tell(call)
    tell(after(call, {"stdout": ""}))

    assert service.paths()[-1] == "/v1/reviews/r0/stored"


@pytest.mark.parametrize("response", [{"success": False, "message": "full"}, '{"isError": true}'])
def test_an_answer_that_tells_of_failure_is_believed(service: ScriptedService, response: object) -> None:
    tell(saved())
    tell(after(saved(), response))

    assert service.paths()[-1] == "/v1/reviews/r0/failed"


def test_a_failed_call_is_reported_as_failed(service: ScriptedService) -> None:
    tell(saved())
    tell(after(saved(), None, failed=True) | {"error": "no such table"})

    assert service.paths()[-1] == "/v1/reviews/r0/failed"
    assert service.requests[-1].body == b""


def test_only_what_was_approved_is_reported(service: ScriptedService) -> None:
    service.verdicts = ["reject"]
    tell(saved())
    tell(after(saved(), "{}"))

    assert service.paths() == ["/v1/reviews"]


def test_a_deletion_is_reported_once_it_happened(service: ScriptedService) -> None:
    call = event("PreToolUse", "mcp__memory__delete_entities", {"entityNames": ["a", "b"]})
    tell(after(call, None, failed=True))
    assert service.requests == []

    tell(after(call, "Entities deleted successfully"))

    assert service.paths() == ["/v1/entries/deleted"]
    body = service.requests[-1].json
    assert body.pop("project")
    assert body == {"store": "memory", "store_ids": [], "keys": ["a", "b"], "texts": []}


@pytest.mark.parametrize(
    ("tool", "tool_input", "lists"),
    [
        (
            "mcp__memory__delete_observations",
            {"deletions": [{"entityName": "a", "observations": [LESSON]}]},
            {"store_ids": [], "keys": [], "texts": [LESSON]},
        ),
        ("mcp__engram__mem_delete", {"id": 7}, {"store_ids": ["7"], "keys": [], "texts": []}),
        ("mcp__serena__delete_memory", {"memory_name": "style"}, {"store_ids": [], "keys": ["style"], "texts": []}),
    ],
)
def test_each_store_names_what_it_deleted(
    service: ScriptedService, tool: str, tool_input: object, lists: dict[str, list[str]]
) -> None:
    tell(after(event("PreToolUse", tool, tool_input), "deleted"))

    body = service.requests[-1].json
    assert {name: body[name] for name in lists} == lists


@pytest.mark.parametrize("failed", [False, True])
def test_what_was_let_through_unreviewed_is_marked(failed: bool) -> None:
    tell(saved())
    assert tell(after(saved(), "{}", failed=failed)).output == {}

    [entry] = journal()
    assert ("stored" in entry, "failed" in entry) == (not failed, failed)


def test_a_service_that_is_gone_by_then_is_nobody_s_concern(service: ScriptedService) -> None:
    tell(saved())
    service.raw = b""

    assert tell(after(saved(), "{}")).output == {}


def test_at_level_gate_nothing_is_reported(service: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_LEVEL", "gate")
    tell(after(saved(), "{}"))

    assert service.requests == []
