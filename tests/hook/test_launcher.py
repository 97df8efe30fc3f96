"""The launcher and the settings: a damaged hook locks nobody out, and one definition makes all settings."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.agents.claude_code import hook_settings, launcher_command, tool_matcher
from hooks.store_hygiene_gate import FILE_TOOLS, SHELL_TOOLS, TOOLS, VERSION, Config
from tests.support.hook_runs import HOOKS, LESSON, SLOP, event, run, write
from tests.support.scripted_service import ScriptedService

ROOT = HOOKS.parent
DAMAGES = {
    "gone": None,
    "no Python": "def main(:\n",
    "raises": "raise RuntimeError('broken')\n",
    "exits": "import sys\nsys.exit(2)\n",
    "without main": "x = 1\n",
    "main raises": "def main(arguments):\n    raise KeyboardInterrupt\n",
}


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "hooks"
    folder.mkdir()
    content = DAMAGES[request.param]
    if content is not None:
        (folder / "store_hygiene_gate.py").write_text(content, encoding="utf-8")
    return folder


def test_a_damaged_hook_denies_nothing_and_says_how_to_repair_it(damaged: Path) -> None:
    said = run(write(SLOP), hooks=damaged)

    assert (said.exit_code, said.decision, said.stderr) == (0, None, "")
    assert "not being checked" in said.context
    assert "bouncer init" in said.context
    assert said.output["systemMessage"] == said.context
    assert said.output["hookSpecificOutput"]["hookEventName"] == "PreToolUse"


def test_a_damaged_hook_says_so_when_a_session_starts(damaged: Path) -> None:
    assert "not being checked" in run(event("SessionStart"), hooks=damaged).context


def test_a_damaged_hook_is_silent_about_ordinary_calls(damaged: Path) -> None:
    assert run(event("PreToolUse", "Bash", {"command": "ls"}), hooks=damaged).output == {}
    assert run(event("PreToolUse", "Write", {"file_path": "CLAUDE.md", "content": "x"}), hooks=damaged).context


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b"\xff"])
def test_a_damaged_hook_bears_any_input(damaged: Path, content: bytes) -> None:
    said = run(content, hooks=damaged)
    assert (said.exit_code, said.stderr) == (0, "")


def test_a_folder_that_cannot_be_read_denies_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")

    said = run(write(SLOP), hooks=file / "hooks")

    assert (said.exit_code, said.decision) == (0, None)
    assert "not being checked" in said.context


def test_a_file_without_permissions_or_a_folder_in_its_place_denies_nothing(tmp_path: Path) -> None:
    (tmp_path / "store_hygiene_gate.py").mkdir()

    assert run(write(SLOP), hooks=tmp_path).exit_code == 0


def test_a_copy_of_the_one_file_works_alone_and_with_spaces_in_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces & “quotes”"
    folder.mkdir()
    shutil.copy(HOOKS / "store_hygiene_gate.py", folder)

    assert run(write(SLOP), hooks=folder).decision == "deny"
    assert list((folder / "__pycache__").glob("*.pyc"))


def test_run_as_a_script_it_does_the_same(service: ScriptedService) -> None:
    script = [sys.executable, "-I", "-S", str(HOOKS / "store_hygiene_gate.py")]

    assert run(write(SLOP), command=script).decision == "deny"
    assert run(write(LESSON), command=script).output == {}


@pytest.mark.parametrize(("option", "text"), [("--version", VERSION), ("--help", "usage:")])
def test_people_get_an_answer_too(option: str, text: str) -> None:
    done = subprocess.run([*launcher_command(HOOKS), option], capture_output=True, text=True, check=True)
    assert text in done.stdout


@pytest.mark.parametrize(("text", "status", "answer"), [(SLOP, 1, "session_summary:"), (LESSON, 0, "lets it pass")])
def test_people_can_check_a_text(text: str, status: int, answer: str) -> None:
    done = subprocess.run(
        [*launcher_command(HOOKS, sys.executable), "--check"], input=text, capture_output=True, text=True, check=False
    )

    assert done.returncode == status
    assert answer in done.stdout


# --- settings ---


def handlers(settings: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    return {name: groups[0]["hooks"][0] for name, groups in settings.items()}


def test_the_plugin_s_hooks_are_made_from_the_one_definition() -> None:
    assert json.loads((HOOKS / "hooks.json").read_text(encoding="utf-8"))["hooks"] == hook_settings()


def test_every_event_that_the_hook_answers_is_asked_for() -> None:
    of_tools = {"PreToolUse", "PostToolUse", "PostToolUseFailure"}
    assert set(hook_settings()) == of_tools | {"SessionStart", "UserPromptSubmit", "SessionEnd"}


@pytest.mark.parametrize("row", TOOLS, ids=lambda row: str(row["tool"]))
def test_every_memory_tool_is_matched_from_any_server(row: dict[str, object]) -> None:
    matcher = re.compile(tool_matcher())

    assert matcher.search(f"mcp__any_server__{row['tool']}")
    assert matcher.search(str(row["tool"]))
    assert not matcher.search(f"mcp__any_server__{row['tool']}_history")


@pytest.mark.parametrize("tool", [*FILE_TOOLS, *SHELL_TOOLS])
def test_file_and_shell_tools_are_matched(tool: str) -> None:
    assert re.search(tool_matcher(), tool)
    assert not re.search(tool_matcher(), f"mcp__x__{tool}")


def test_other_tools_are_not_matched() -> None:
    matcher = re.compile(tool_matcher())
    others = ["Read", "Skill", "NotebookEdit", "mcp__memory__read_graph", "mcp__memory__search_nodes", "BashOutput"]

    assert [tool for tool in others if matcher.search(tool)] == []
    assert re.search(hook_settings()["PreToolUse"][0]["matcher"], "Skill")  # type: ignore[call-overload]


def test_own_tools_are_matched_and_ignored_ones_are_not() -> None:
    own = [{"tool": "keep", "texts": "body"}, {"tool": "burn", "operation": "ignore"}]

    assert re.search(tool_matcher(own), "mcp__notes__keep")
    assert not re.search(tool_matcher(own), "mcp__notes__burn")


@pytest.mark.parametrize("deadline", [0.5, 8.0, 30.5])
def test_the_agent_waits_longer_than_the_hook(deadline: float) -> None:
    for handler in handlers(hook_settings(deadline_seconds=deadline)).values():
        assert handler["timeout"] >= deadline + 1.5


def test_the_default_leaves_two_seconds() -> None:
    assert handlers(hook_settings())["PreToolUse"]["timeout"] == Config.deadline_seconds + 2 == 10


@pytest.mark.parametrize(("policy", "blocks"), [("allow", False), ("ask", False), ("hold", True), ("deny", True)])
def test_only_strict_policies_block_when_the_hook_itself_fails(policy: str, blocks: bool) -> None:
    found = handlers(hook_settings(on_failure=policy))

    assert (found["PreToolUse"].get("onFailure") == "block") is blocks
    assert all("onFailure" not in handler for name, handler in found.items() if name != "PreToolUse")


def test_the_command_needs_no_shell() -> None:
    handler = handlers(hook_settings(Path("/a b/hooks"), python="/usr/bin/python3"))["PreToolUse"]

    assert handler["command"] == "/usr/bin/python3"
    assert handler["args"][:3] == ["-I", "-S", "-c"]
    assert handler["args"][-1] == "/a b/hooks"


def test_the_plugin_s_parts_have_the_same_name_and_version() -> None:
    plugin = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))

    assert plugin["name"] == market["plugins"][0]["name"] == "memory-bouncer"
    assert plugin["version"] == VERSION
    assert market["plugins"][0]["source"] == "./"
