"""The program itself: options, descriptors, and what is written where."""

import io
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hooks import store_hygiene_gate as hook
from tests.support.hook_runs import LESSON, SLOP, Said, event, journal, tell, write
from tests.support.scripted_service import ScriptedService


@contextmanager
def standard_input(content: bytes) -> Iterator[None]:
    """Put the content where the program reads."""
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    kept = os.dup(0)
    os.dup2(reader, 0)
    try:
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reader)


def main(payload: object, *arguments: str) -> int:
    with standard_input(json.dumps(payload).encode()):
        return hook.main(arguments, time.monotonic())


def test_the_answer_goes_to_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(write(SLOP)) == 0

    out, err = capfd.readouterr()
    assert Said(json.loads(out)).decision == "deny"
    assert err == ""


def test_no_opinion_is_no_output(capfd: pytest.CaptureFixture[str], service: ScriptedService) -> None:
    assert main(write(LESSON)) == 0
    assert capfd.readouterr() == ("", "")


def test_in_exit_code_mode_notes_go_to_stderr_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(write(LESSON), "--exit-code") == 0
    assert main(write(SLOP), "--exit-code") == 2

    out, err = capfd.readouterr()
    assert out == ""
    assert "not reviewed" in err
    assert "[session_summary]" in err


@pytest.mark.parametrize(("option", "words"), [("--version", hook.VERSION), ("--help", "--exit-code")])
def test_options_for_people(capfd: pytest.CaptureFixture[str], option: str, words: str) -> None:
    assert hook.main([option]) == 0
    assert words in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "status", "words"), [(SLOP, 1, "session_summary: It tells"), (LESSON, 0, "lets it pass")]
)
def test_a_text_can_be_checked(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, status: int, words: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    assert hook.main(["--check"]) == status
    assert words in capfd.readouterr().out


def test_nothing_is_left_armed_behind_an_answer() -> None:
    tell(write(SLOP))
    assert hook.arm(0) == 0


def test_a_disk_that_is_full_loses_the_text_loudly_and_the_journal_not_at_all() -> None:
    tell(write(SLOP))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = Path(hook.journal_path(hook.load_config("."))).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
    try:
        said = tell(write(f"{SLOP} Again."))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    tell(write(f"{SLOP} And again."))

    assert said.decision == "deny"
    assert "could not be kept in the journal" in said.context
    assert [entry["text"] for entry in journal()] == [SLOP, f"{SLOP} And again."]


@pytest.mark.parametrize("depth", [50, 400, 900, 5000])
def test_arguments_nested_deeply_are_no_crash_and_no_approval(depth: int) -> None:
    nested: object = LESSON
    for _ in range(depth):
        nested = [nested]

    said = tell(event("PreToolUse", "mcp__engram__store_memory", {"content": nested}))

    assert said.decision is None
    assert said.context


def test_a_project_file_that_is_no_json_is_said(project: Path) -> None:
    (project / ".bouncer.json").write_text("nonsense", encoding="utf-8")

    assert ".bouncer.json" in tell(event("SessionStart")).context
