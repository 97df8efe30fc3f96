"""Broken JSON anywhere leaves the gate at work, in a process that has never imported the json package."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.hook_runs import SLOP, run, write

BROKEN = ("{bad", '{"minimum_words": 9,}', "[1, 2", '{"a": tru}', '"open')


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_project_file_does_not_switch_the_gate_off(tmp_path: Path, text: str) -> None:
    (tmp_path / ".bouncer.json").write_text(text, encoding="utf-8")
    assert run(write(SLOP, cwd=str(tmp_path))).decision == "deny"


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_user_file_does_not_switch_the_gate_off(text: str) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "memory-bouncer"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(text, encoding="utf-8")
    assert run(write(SLOP)).decision == "deny"


def test_an_argument_that_only_starts_like_json_is_judged_as_text() -> None:
    assert run(write("{bad, " + SLOP)).decision == "deny"


def test_an_event_that_comes_in_two_pieces_is_waited_for() -> None:
    content = json.dumps(write(SLOP))
    cut = content.index("}") + 1
    hook = Path(__file__).parents[2] / "hooks" / "store_hygiene_gate.py"
    with subprocess.Popen(
        ["python3", "-I", "-S", str(hook)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write(content[:cut])
        process.stdin.flush()
        time.sleep(0.3)
        out, _ = process.communicate(content[cut:], timeout=30)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "deny"
