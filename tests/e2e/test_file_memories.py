"""Memories that an agent keeps in files: what it writes, edits and appends there is gated like any other."""

from pathlib import Path

import pytest

from tests.support.agent_client import Desk
from tests.support.memories import MIGRATIONS, RETRIES, SESSION_SUMMARY
from tests.support.scripted_client_model import Call
from tests.support.service import Service

pytestmark = pytest.mark.e2e

MEMORY = f"# Memory\n\n- {MIGRATIONS}\n"


def test_writing_slop_into_a_memory_file_is_refused(desk: Desk) -> None:
    file = desk.project / "MEMORY.md"

    run = desk.run([_write(file, f"# Memory\n\n- {SESSION_SUMMARY}\n")])

    assert "[session_summary]" in run.refusal(0)
    assert not file.exists()


def test_the_agents_own_memory_folder_is_gated(desk: Desk) -> None:
    file = desk.memory_folder / "MEMORY.md"

    run = desk.run([_write(file, f"# Memory\n\n- {SESSION_SUMMARY}\n"), _write(file, f"# Memory\n\n- {RETRIES}\n")])

    assert "[session_summary]" in run.refusal(0)
    assert run.result(1).refusal is None
    assert file.read_text(encoding="utf-8") == f"# Memory\n\n- {RETRIES}\n"


def test_an_edit_that_adds_a_slop_bullet_is_refused(desk: Desk) -> None:
    file = _memory_file(desk)

    run = desk.run([Call("Read", {"file_path": str(file)}), _append(file, SESSION_SUMMARY)])

    assert "[session_summary]" in run.refusal(1)
    assert file.read_text(encoding="utf-8") == MEMORY


def test_an_edit_that_adds_a_good_bullet_is_stored_and_known(desk: Desk, service: Service) -> None:
    file = _memory_file(desk)

    run = desk.run([Call("Read", {"file_path": str(file)}), _append(file, RETRIES)])

    assert run.result(1).refusal is None
    assert file.read_text(encoding="utf-8") == f"{MEMORY}- {RETRIES}\n"
    [entry] = service.entries(desk.project_name)
    assert (entry["text"], entry["status"]) == (RETRIES, "stored")


@pytest.mark.parametrize(
    "command",
    [
        f"echo '- {SESSION_SUMMARY}' >> MEMORY.md",
        f"printf '%s\\n' '- {SESSION_SUMMARY}' | tee -a MEMORY.md",
        f"cat >> MEMORY.md <<'EOF'\n- {SESSION_SUMMARY}\nEOF",
    ],
    ids=["echo", "tee", "here document"],
)
def test_appending_slop_from_the_shell_is_refused(desk: Desk, command: str) -> None:
    file = _memory_file(desk)

    run = desk.run([_bash(command)])

    assert "[session_summary]" in run.refusal(0)
    assert file.read_text(encoding="utf-8") == MEMORY


def test_appending_a_good_bullet_from_the_shell_is_let_through(desk: Desk) -> None:
    file = _memory_file(desk)

    run = desk.run([_bash(f"echo '- {RETRIES}' >> MEMORY.md")])

    assert run.result(0).refusal is None
    assert file.read_text(encoding="utf-8") == f"{MEMORY}- {RETRIES}\n"


def test_ordinary_files_are_nobodys_memory(desk: Desk) -> None:
    file = desk.project / "CHANGELOG.md"

    run = desk.run([_write(file, f"{SESSION_SUMMARY}\n"), _bash(f"echo '{SESSION_SUMMARY}' >> CHANGELOG.md")])

    assert [run.result(number).refusal for number in (0, 1)] == [None, None]
    assert file.read_text(encoding="utf-8") == f"{SESSION_SUMMARY}\n" * 2


def _memory_file(desk: Desk) -> Path:
    file = desk.project / "MEMORY.md"
    file.write_text(MEMORY, encoding="utf-8")
    return file


def _write(file: Path, content: str) -> Call:
    return Call("Write", {"file_path": str(file), "content": content})


def _append(file: Path, bullet: str) -> Call:
    last = f"- {MIGRATIONS}\n"
    return Call("Edit", {"file_path": str(file), "old_string": last, "new_string": f"{last}- {bullet}\n"})


def _bash(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "note"})
