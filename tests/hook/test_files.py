"""Agents' file memories: which files count, and that only what a call adds to them is judged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import Call, added_lines, extract, memory_file
from tests.support.hook_runs import LESSON, LESSON_TOO

RULE = "Every new queue needs a dead-letter queue of its own, since the shared one hides which job failed."


def edit(path: Path, old: str, new: str) -> Call | None:
    return extract("Edit", {"file_path": str(path), "old_string": old, "new_string": new}, str(path.parent))


def write(path: Path, content: str) -> Call | None:
    return extract("Write", {"file_path": str(path), "content": content}, str(path.parent))


def judged(call: Call | None) -> list[str]:
    return [candidate.text for candidate in call.texts] if call else []


def only_patterns(call: Call | None) -> list[str]:
    return [candidate.text for candidate in call.candidates if not candidate.review] if call else []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/u/.claude/projects/-home-u-app/memory/MEMORY.md", "memory"),
        ("/home/u/.claude/projects/-home-u-app/memory/db.md", "memory"),
        ("/home/u/.claude/agent-memory/reviewer/MEMORY.md", "memory"),
        ("/p/.claude/agent-memory-local/reviewer/notes.md", "memory"),
        ("/p/.claude/memory/db.md", "memory"),
        ("/p/.serena/memories/style.md", "memory"),
        ("/p/memory-bank/activeContext.md", "memory"),
        ("/p/MEMORY.md", "memory"),
        ("/p/memory/MEMORY.md", "memory"),
        ("/p/CLAUDE.md", "instructions"),
        ("/p/CLAUDE.local.md", "instructions"),
        ("/p/services/AGENTS.md", "instructions"),
        ("/p/GEMINI.md", "instructions"),
        ("/p/.claude/rules/style.md", "instructions"),
        ("/home/u/.claude/CLAUDE.md", "instructions"),
        (r"C:\Users\u\.claude\projects\app\memory\db.md", "memory"),
        ("/p/README.md", ""),
        ("/p/docs/MEMORY.md", ""),
        ("/p/docs/memory/layout.md", ""),
        ("/p/src/memory.py", ""),
        ("/p/memory.md/readme.txt", ""),
        ("/p/tests/fixtures/CLAUDE.md", ""),
        ("/p/templates/AGENTS.md", ""),
        ("/p/node_modules/x/CLAUDE.md", ""),
        ("/p/.claude/skills/x/SKILL.md", ""),
        ("/p/.claude/commands/release.md", ""),
        ("/p/.claude/plans/plan.md", ""),
        ("", ""),
    ],
)
def test_which_files_are_memories(path: str, kind: str) -> None:
    assert memory_file(path, "/p") == kind


def test_a_moved_configuration_folder_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/data/agent")
    assert memory_file("/data/agent/projects/app/memory/db.md", "/p") == "memory"
    assert memory_file("/data/agent/skills/x/SKILL.md", "/p") == ""


def test_ordinary_files_are_no_concern(project: Path) -> None:
    assert write(project / "README.md", "Session complete") is None
    assert edit(project / "src.py", "a", "b") is None


def test_a_new_memory_is_judged_whole_without_front_matter_and_headings(project: Path) -> None:
    call = write(project / "MEMORY.md", f"---\ntype: project\n---\n# Billing\n\n{LESSON}\nIt was seen twice.\n")

    assert judged(call) == [f"{LESSON}\nIt was seen twice."]
    assert only_patterns(call) == ["type: project\n# Billing"]


def test_a_heading_as_long_as_a_memory_is_judged_as_one(project: Path) -> None:
    call = write(project / "MEMORY.md", f"# Billing\n\n## {RULE}\n\n- {LESSON}\n")

    assert judged(call) == [f"## {RULE}", LESSON]
    assert only_patterns(call) == ["# Billing"]


def test_the_file_is_named_as_the_project_sees_it(project: Path) -> None:
    (project / ".git").mkdir()
    call = write(project / "services" / "AGENTS.md", LESSON)

    assert call is not None
    assert call.texts[0].key == "services/AGENTS.md"
    assert call.store == "files"


def test_files_outside_the_project_show_no_folders_of_the_machine(project: Path) -> None:
    path = project.parent / "home" / ".claude" / "projects" / "app" / "memory" / "db.md"
    call = extract("Write", {"file_path": str(path), "content": LESSON}, str(project))

    assert call is not None
    assert call.texts[0].key == "memory/db.md"


def test_writing_a_file_anew_judges_only_what_it_gains(project: Path) -> None:
    path = project / "CLAUDE.md"
    path.write_text(f"# Rules\n\n- {LESSON}\n", encoding="utf-8")

    assert judged(write(path, f"# Rules\n\n- {LESSON}\n- {RULE}\n")) == [RULE]


def test_an_edit_judges_only_the_lines_that_are_new(project: Path) -> None:
    path = project / "CLAUDE.md"
    path.write_text(f"- {LESSON}\n", encoding="utf-8")

    call = edit(path, f"- {LESSON}", f"- {LESSON}\n- {RULE}")

    assert judged(call) == [RULE]
    assert call is not None
    assert call.operation == "write"


def test_an_edit_that_goes_on_after_a_line_judges_what_goes_on(project: Path) -> None:
    assert judged(edit(project / "CLAUDE.md", f"- {LESSON}", f"- {LESSON} {RULE}")) == [RULE]


def test_an_edit_that_replaces_text_is_an_update(project: Path) -> None:
    call = edit(project / "CLAUDE.md", f"- {LESSON}", f"- {RULE}")

    assert judged(call) == [RULE]
    assert call is not None
    assert call.operation == "update"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"- {LESSON}\n- {RULE}", f"- {RULE}"),
        (f"- {LESSON}\n- {RULE}", f"- {RULE}\n- {LESSON}"),
        ("The exporter reads teh ledger.", "The exporter reads the ledger."),
        ("PostgreSQL 16 in production.", "PostgreSQL 17 in production."),
        (f"{LESSON}", LESSON.replace(" same", "\nsame")),
        (LESSON, ""),
    ],
)
def test_deletions_moves_and_slips_of_the_pen_pass(project: Path, old: str, new: str) -> None:
    assert edit(project / "CLAUDE.md", old, new) is None


def test_a_line_that_moves_within_the_file_is_not_new(project: Path) -> None:
    path = project / "CLAUDE.md"
    path.write_text(f"- {LESSON}\n\n## Queues\n", encoding="utf-8")

    assert judged(edit(path, "## Queues", f"## Queues\n- {LESSON}\n- {RULE}")) == [RULE]


def test_a_short_line_that_is_added_is_no_slip_of_the_pen(project: Path) -> None:
    assert judged(edit(project / "CLAUDE.md", "# Rules", "# Rules\n- PR merged")) == ["PR merged"]


def test_bullets_that_stand_alone_are_candidates_of_their_own(project: Path) -> None:
    call = write(project / "MEMORY.md", f"# Rules\n\n- {LESSON}\n  It was seen twice.\n- {RULE}\n1. {LESSON_TOO}\n")

    assert judged(call) == [f"{LESSON}\nIt was seen twice.", RULE, LESSON_TOO]


def test_bullets_under_a_sentence_belong_to_it(project: Path) -> None:
    call = write(project / "MEMORY.md", f"Two rules hold for queues:\n\n- {LESSON}\n- {RULE}\n")

    assert judged(call) == [f"Two rules hold for queues:\n- {LESSON}\n- {RULE}"]


def test_bullets_too_short_to_stand_alone_are_judged_together(project: Path) -> None:
    call = write(project / "MEMORY.md", f"- Use pnpm\n- Never npm\n- {RULE}\n- Node 24 or later\n")

    assert judged(call) == ["Use pnpm\nNever npm\nNode 24 or later", RULE]


def test_code_is_part_of_the_prose(project: Path) -> None:
    text = "Start the stack with this, else the ports clash:\n\n```\n# compose\n- up\n```"

    assert judged(write(project / "MEMORY.md", text)) == [text.replace("\n\n", "\n")]


def test_pointers_in_an_index_only_meet_the_patterns(project: Path) -> None:
    call = write(project / "MEMORY.md", "- [Database](db.md) — which one and why\n- `queues.md`: dead letters\n")

    assert judged(call) == []
    assert only_patterns(call) == ["[Database](db.md) — which one and why\n`queues.md`: dead letters"]


def test_instructions_written_in_one_go_are_a_document(project: Path) -> None:
    content = "# App\n\n" + "\n".join(f"- `make step-{number}`" for number in range(12))
    path = project / "CLAUDE.md"

    assert judged(write(path, content)) == []
    assert only_patterns(write(path, content))
    path.write_text("# App\n", encoding="utf-8")
    assert judged(write(path, content))


def test_several_edits_in_one_call_are_all_judged(project: Path) -> None:
    edits = [
        {"old_string": "# A", "new_string": f"# A\n- {LESSON}"},
        {"old_string": "# B", "new_string": f"# B\n- {RULE}"},
    ]

    call = extract("MultiEdit", {"file_path": str(project / "CLAUDE.md"), "edits": edits}, str(project))

    assert judged(call) == [LESSON, RULE]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("Write", {}), ("Write", {"content": 5}), ("Edit", {"new_string": "x"}), ("MultiEdit", {"edits": [5]})],
)
def test_arguments_of_no_known_shape_are_a_problem(project: Path, tool: str, arguments: dict[str, object]) -> None:
    call = extract(tool, {"file_path": str(project / "CLAUDE.md"), **arguments}, str(project))

    assert call is not None
    assert call.problem


def test_a_file_that_cannot_be_read_as_text_is_judged_as_if_new(project: Path) -> None:
    path = project / "CLAUDE.md"
    path.mkdir()

    assert judged(write(path, f"- {RULE}")) == [RULE]


lines = st.lists(st.text(alphabet=" ab-#\n`x", max_size=12), max_size=8).map("\n".join)


@given(lines, lines)
def test_what_was_there_already_is_never_new(old: str, new: str) -> None:
    known = {line.strip() for line in old.splitlines()}
    assert not {line.strip() for line in added_lines(old, new) if line.strip()} & known


@given(lines)
def test_nothing_is_added_by_writing_the_same(text: str) -> None:
    assert added_lines(text, text) == []
