"""The tool map: which calls are memory calls, and where their texts, keys and ids lie."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import FILE_TOOLS, TOOLS, extract, keys_taken


def texts(tool: str, tool_input: object, **more: Any) -> list[str]:
    call = extract(tool, tool_input, "/", **more)
    return [candidate.text for candidate in call.candidates] if call else []


STORES: list[tuple[str, dict[str, Any], str, str, list[tuple[str, str, str]]]] = [
    (
        "create_entities",
        {"entities": [{"name": "Ana", "observations": ["one", "two"]}, {"name": "Bo", "observations": ["three"]}]},
        "memory",
        "write",
        [("one", "Ana", ""), ("two", "Ana", ""), ("three", "Bo", "")],
    ),
    (
        "add_observations",
        {"observations": [{"entityName": "Ana", "contents": ["likes tea"]}]},
        "memory",
        "write",
        [("likes tea", "Ana", "")],
    ),
    ("delete_entities", {"entityNames": ["Ana", "Bo"]}, "memory", "delete", [("", "Ana", ""), ("", "Bo", "")]),
    (
        "delete_observations",
        {"deletions": [{"entityName": "Ana", "observations": ["likes tea"]}]},
        "memory",
        "delete",
        [("likes tea", "", "")],
    ),
    (
        "mem_save",
        {"title": "Auth", "content": "JWT", "topic_key": "auth/jwt"},
        "engram",
        "write",
        [("Auth\nJWT", "auth/jwt", "")],
    ),
    (
        "mem_save",
        {"title": "Auth", "observation": "Auth by JWT"},
        "engram",
        "write",
        [("Auth by JWT", "", "")],
    ),
    ("mem_update", {"id": 42, "content": "PASETO"}, "engram", "update", [("PASETO", "", "42")]),
    ("mem_session_summary", {"content": "done"}, "engram", "write", [("done", "", "")]),
    ("store_memory", {"content": "short answers", "tags": ["pref"]}, "engram", "write", [("short answers", "", "")]),
    ("update_memory", {"memory_id": "m1", "content": "new"}, "engram", "update", [("new", "", "m1")]),
    ("update_memory", {"memory_id": "m1", "text": "new"}, "mem0", "update", [("new", "", "m1")]),
    ("supersede_memory", {"old_memory_id": "m1", "content": "new"}, "engram", "update", [("new", "", "m1")]),
    ("memory_store_fact", {"content": "CI runs on Fridays"}, "engram", "write", [("CI runs on Fridays", "", "")]),
    ("add_memory", {"text": "moved to Lyon", "user_id": "u1"}, "mem0", "write", [("moved to Lyon", "", "")]),
    (
        "add_memory",
        {"messages": [{"role": "user", "content": "I moved"}, {"role": "user", "content": "to Lyon"}]},
        "mem0",
        "write",
        [("I moved\nto Lyon", "", "")],
    ),
    (
        "add_memory",
        {"name": "standup", "episode_body": "Ana owns billing"},
        "graphiti",
        "write",
        [("standup\nAna owns billing", "", "")],
    ),
    ("add_memories", {"text": "Deploys on Mondays"}, "openmemory", "write", [("Deploys on Mondays", "", "")]),
    (
        "write_note",
        {"title": "DB choice", "content": "We use Postgres", "directory": "decisions"},
        "basic-memory",
        "write",
        [("DB choice\nWe use Postgres", "DB choice", "")],
    ),
    (
        "edit_note",
        {"identifier": "db-choice", "operation": "append", "content": "since 2024"},
        "basic-memory",
        "update",
        [("since 2024", "", "db-choice")],
    ),
    (
        "memory_store",
        {"content": "Use uv", "metadata": {"tags": "py"}},
        "mcp-memory-service",
        "write",
        [("Use uv", "", "")],
    ),
    ("write_memory", {"memory_name": "style", "content": "4 spaces"}, "serena", "write", [("4 spaces", "style", "")]),
    (
        "edit_memory",
        {"memory_name": "style", "needle": "4 spaces", "repl": "4 spaces. Never use tabs in YAML."},
        "serena",
        "update",
        [("4 spaces. Never use tabs in YAML.", "style", "")],
    ),
    (
        "core_memory_append",
        {"label": "human", "content": "likes jazz"},
        "letta",
        "write",
        [("likes jazz", "human", "")],
    ),
    ("archival_memory_insert", {"content": "likes jazz"}, "letta", "write", [("likes jazz", "", "")]),
    (
        "memory",
        {"command": "create", "path": "/memories/a.md", "file_text": "x"},
        "memory-tool",
        "write",
        [("x", "/memories/a.md", "")],
    ),
    ("memory", {"command": "delete", "path": "/memories/a.md"}, "memory-tool", "delete", [("", "/memories/a.md", "")]),
    ("memory", {"content": "Uses Vim", "action": "save"}, "supermemory", "write", [("Uses Vim", "", "")]),
    ("manage_memory", {"content": "Dark mode", "action": "create"}, "langmem", "write", [("Dark mode", "", "")]),
    ("manage_memory", {"id": "7", "action": "delete"}, "langmem", "delete", [("", "", "7")]),
    (
        "remember",
        {"data": "Ana leads infra", "dataset_name": "main"},
        "cognee",
        "write",
        [("Ana leads infra", "main", "")],
    ),
    ("remember", {"content": "Ana leads infra"}, "unknown", "write", [("Ana leads infra", "", "")]),
    (
        "create_long_term_memories",
        {"memories": [{"text": "Ships Fridays", "id": "a"}]},
        "redis",
        "write",
        [("Ships Fridays", "", "a")],
    ),
]


@pytest.mark.parametrize(("tool", "tool_input", "store", "operation", "found"), STORES)
def test_each_store_is_read(
    tool: str, tool_input: dict[str, Any], store: str, operation: str, found: list[tuple[str, str, str]]
) -> None:
    call = extract(f"mcp__server__{tool}", tool_input, "/")

    assert call is not None
    assert (call.store, call.operation, call.problem) == (store, operation, "")
    assert [(c.text, c.key, c.store_id) for c in call.candidates] == found


@pytest.mark.parametrize(
    "tool",
    [
        "mem_save",
        "mcp__engram__mem_save",
        "mcp__plugin_a_b__mem_save",
        "mcp__my__odd__server__mem_save",
        "mcp__x__mem-save",
    ],
)
def test_any_server_may_offer_the_tool(tool: str) -> None:
    assert texts(tool, {"content": "We use Postgres."}) == ["We use Postgres."]


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("mcp__memory__read_graph", {}),
        ("mcp__memory__search_nodes", {"query": "x"}),
        ("mcp__memory__create_relations", {"relations": [{"from": "a", "to": "b", "relationType": "c"}]}),
        ("mcp__mem_save__search", {"content": "x"}),
        ("memory", {"command": "view", "path": "/memories"}),
        ("Read", {"file_path": "/MEMORY.md"}),
        ("", {}),
        ("mcp__memory__create_entities", {"entities": [{"name": "a", "entityType": "b", "observations": []}]}),
        ("mcp__memory__create_entities", {"entities": []}),
        ("mcp__engram__mem_update", {"id": 4, "type": "decision"}),
    ],
)
def test_what_stores_no_text_is_no_concern(tool: str, tool_input: dict[str, Any]) -> None:
    assert extract(tool, tool_input, "/") is None


@pytest.mark.parametrize(
    "tool_input",
    [
        {"entities": [{"name": "Ana", "observations": ["likes tea"]}]},
        json.dumps({"entities": [{"name": "Ana", "observations": ["likes tea"]}]}),
        {"entities": json.dumps([{"name": "Ana", "observations": ["likes tea"]}])},
        {"entities": [json.dumps({"name": "Ana", "observations": ["likes tea"]})]},
        {"entities": [{"name": "Ana", "observations": '["likes tea"]'}]},
        {"entities": [{"name": "Ana", "observations": "likes tea"}]},
        {"entities": {"name": "Ana", "observations": ["likes tea"]}},
        {"entities": [{"name": "Ana", "observations": [[{"type": "text", "text": "likes tea"}]]}]},
    ],
)
def test_arguments_that_are_json_or_lone_items_are_understood(tool_input: object) -> None:
    call = extract("create_entities", tool_input, "/")

    assert call is not None
    assert [(c.text, c.key) for c in call.candidates] == [("likes tea", "Ana")]


@pytest.mark.parametrize(
    "tool_input",
    [
        None,
        5,
        "text",
        [],
        {},
        {"entities": 5},
        {"entities": [5]},
        {"things": []},
        {"entities": [{"observations": 5.5}]},
    ],
)
def test_arguments_of_no_known_shape_are_a_problem_and_no_pass(tool_input: object) -> None:
    call = extract("create_entities", tool_input, "/")

    assert call is not None
    assert call.problem


def test_what_can_be_read_is_judged_although_the_rest_cannot() -> None:
    call = extract("create_entities", {"entities": [{"name": "Ana", "observations": ["likes tea"]}, 5]}, "/")

    assert call is not None
    assert [candidate.text for candidate in call.candidates] == ["likes tea"]
    assert call.problem


def test_a_title_is_part_of_the_text_unless_the_text_begins_with_it() -> None:
    assert texts("mem_save", {"title": "Retries", "content": "Retries need a key."}) == ["Retries need a key."]


def test_own_rows_go_first_and_are_one_line_each() -> None:
    row = {
        "tool": "keep",
        "store": "notes",
        "texts": ["note.body", "also[].body"],
        "key": "note.name",
        "title": "note.head",
    }
    call = extract(
        "mcp__notes__keep",
        {"note": {"body": "text", "name": "n", "head": "Head"}, "also": [{"body": "more"}]},
        "/",
        [row, *TOOLS],
    )

    assert call is not None
    assert call.store == "notes"
    assert [(c.text, c.key) for c in call.candidates] == [("Head\ntext", "n"), ("Head\nmore", "n")]


def test_the_longest_name_that_is_known_decides() -> None:
    rows: list[Mapping[str, object]] = [{"tool": "mcp__crm__create_entities", "operation": "ignore"}, *TOOLS]
    entities = {"entities": [{"name": "Ana", "observations": ["likes tea"]}]}

    assert extract("mcp__crm__create_entities", entities, "/", rows) is None
    assert extract("mcp__memory__create_entities", entities, "/", rows) is not None


def test_tools_with_two_underscores_in_their_names_are_matched() -> None:
    rows = [
        {"tool": "notes__keep", "store": "notes", "texts": "body"},
        {"tool": "keep", "store": "other", "texts": "body"},
    ]

    call = extract("mcp__my__server__notes__keep", {"body": "text"}, "/", rows)

    assert call is not None
    assert call.store == "notes"


def test_the_memory_server_names_what_it_took() -> None:
    answer = json.dumps({"entities": [{"name": "Ana", "observations": []}]})

    assert keys_taken("mcp__memory__create_entities", answer) == {"Ana"}
    assert keys_taken("mcp__memory__create_entities", "done") is None
    assert keys_taken("mcp__engram__mem_save", answer) is None


_NAMES = st.sampled_from(
    [
        "entities",
        "observations",
        "contents",
        "name",
        "content",
        "text",
        "messages",
        "edits",
        "file_path",
        "command",
        "id",
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from([*(str(row["tool"]) for row in TOOLS), *FILE_TOOLS, "Bash", "PowerShell"]), json_values)
def test_any_arguments_are_read_without_a_fault(tool: str, tool_input: object) -> None:
    call = extract(tool, tool_input, "/nowhere")
    assert call is None or call.candidates or call.problem
