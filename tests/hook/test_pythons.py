"""The hook runs on every Python from 3.9 on that this machine has, with nothing but the standard library."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.hook_runs import HOOKS, LESSON, SLOP, event, run, write
from tests.support.scripted_service import ScriptedService

VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
PYENV = Path.home() / ".pyenv" / "versions"  # read before a test changes the home folder
SLOW = {"re", "json", "enum", "typing", "socket", "subprocess", "dataclasses", "functools", "collections"}
SOURCE = HOOKS / "store_hygiene_gate.py"


def find_python(version: str) -> str:
    """A working interpreter of the version, or a skipped test."""
    places = [
        *PYENV.glob(f"{version}.*/bin/python"),
        shutil.which(f"python{version}"),
    ]
    for place in map(str, filter(None, places)):
        if subprocess.run([place, "-I", "-c", ""], capture_output=True, check=False).returncode == 0:
            return place
    pytest.skip(f"Python {version} is not here")


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return find_python(request.param)


def test_it_answers_all_kinds_of_events(python: str, service: ScriptedService) -> None:
    service.verdicts = ["approve", "rewrite", "approve"]

    assert run(write(SLOP), python=python).decision == "deny"
    assert run(write(LESSON), python=python).output == {}
    assert run(write(LESSON), python=python).decision == "deny"
    assert run(write(LESSON) | {"hook_event_name": "PostToolUse", "tool_response": "[]"}, python=python).output == {}
    assert "QUIRK" in run(event("SessionStart"), python=python).context
    command = f"cat >> CLAUDE.md <<'EOF'\n- {LESSON}\nEOF"
    assert run(event("PreToolUse", "Bash", {"command": command}), python=python).output == {}


def test_it_sends_documents(python: str, service: ScriptedService, project: Path) -> None:
    (project / "docs").mkdir()
    for path in ("README.md", "docs/a.md", "docs/b.md"):
        (project / path).write_text(LESSON, encoding="utf-8")
    (project / ".gitignore").write_text("b.*\n!a.md\n", encoding="utf-8")

    run(event("SessionStart"), python=python)

    [sent] = [request.json["documents"] for request in service.requests if request.method == "PUT"]
    assert [document["path"] for document in sent] == ["README.md", "docs/a.md"]


def test_a_service_that_is_away_or_silent_is_told_apart(python: str, silence: str) -> None:
    assert "refuses connections" in run(write(LESSON), python=python).context
    quick = {"MEMORY_BOUNCER_URL": silence, "MEMORY_BOUNCER_DEADLINE": "1"}
    assert "did not answer in time" in run(write(LESSON), quick, python=python).context


def test_it_is_written_in_the_syntax_of_3_9() -> None:
    ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_it_imports_nothing_but_the_standard_library() -> None:
    imported = set()
    for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    assert imported <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    "payload",
    [event("PreToolUse", "Bash", {"command": "ls"}), write(LESSON), write(SLOP)],
    ids=["ordinary", "passed", "denied"],
)
def test_the_usual_run_imports_nothing_that_is_slow(service: ScriptedService, payload: dict[str, Any]) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(HOOKS)!r}); import store_hygiene_gate as hook;"
        f"name, said = hook.answer(hook.STARTED, lambda: {payload!r}); assert not said.notes;"
        f"print(*{SLOW!r} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
