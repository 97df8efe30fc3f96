"""Shell commands that write to memory files: the text is read out of the command, or the call is said to be unread."""

from pathlib import Path

import pytest

from hooks.store_hygiene_gate import Call, extract
from tests.support.hook_runs import LESSON, LESSON_TOO

UNREAD = "does not show the text"


def shell(command: str, project: Path, tool: str = "Bash") -> Call | None:
    return extract(tool, {"command": command}, str(project))


def texts(call: Call | None) -> list[str]:
    return [candidate.text for candidate in call.texts] if call else []


@pytest.mark.parametrize(
    "command",
    [
        f'echo "- {LESSON}" >> CLAUDE.md',
        f"echo '- {LESSON}' >>CLAUDE.md",
        f"echo -e '\\n- {LESSON}' >> ./CLAUDE.md",
        f"printf '%s\\n' '- {LESSON}' >> CLAUDE.md",
        f"printf '- {LESSON}\\n' >> CLAUDE.md",
        f"cat >> CLAUDE.md <<'EOF'\n- {LESSON}\nEOF",
        f"cat <<EOF >> CLAUDE.md\n- {LESSON}\nEOF",
        f"cat <<-'END' >> CLAUDE.md && git add CLAUDE.md\n- {LESSON}\n\tEND\necho ok",
        f"tee -a CLAUDE.md <<'EOF'\n- {LESSON}\nEOF",
        f"echo '- {LESSON}' | tee -a CLAUDE.md > /dev/null",
        f"echo '- {LESSON}' | sudo tee --append CLAUDE.md",
        f"cat <<< '- {LESSON}' >> CLAUDE.md",
        f"mkdir -p x && cd . && echo '- {LESSON}' >> CLAUDE.md; ls",
        f"cat <<'EOF' | tee -a CLAUDE.md\n- {LESSON}\nEOF",
        f'echo "- {LESSON}" > CLAUDE.md',
    ],
)
def test_the_text_is_read_from_the_command(project: Path, command: str) -> None:
    call = shell(command, project)

    assert texts(call) == [LESSON]
    assert call is not None
    assert (call.store, call.problem) == ("files", "")


@pytest.mark.parametrize(
    "command",
    [
        f'Add-Content -Path CLAUDE.md -Value "- {LESSON}"',
        f"Add-Content CLAUDE.md '- {LESSON}' -Encoding utf8",
        f'"- {LESSON}" | Out-File -FilePath CLAUDE.md -Append -Encoding utf8',
        f"'- {LESSON}' >> CLAUDE.md",
        f"Set-Content -Path CLAUDE.md -Value '- {LESSON}'",
        f"@'\n- {LESSON}\n'@ | Add-Content CLAUDE.md",
        f"Write-Output '- {LESSON}' | Add-Content -Path .\\CLAUDE.md",
    ],
)
def test_powershell_is_read_too(project: Path, command: str) -> None:
    assert texts(shell(command, project, "PowerShell")) == [LESSON]


@pytest.mark.parametrize(
    "command",
    [
        "cat notes.txt >> CLAUDE.md",
        'echo "$(cat notes.txt)" >> CLAUDE.md',
        "python3 summarise.py > MEMORY.md",
        "sed -i 's/a/b/' CLAUDE.md",
        "git log --oneline | tee -a CLAUDE.md",
        "echo 'it is not closed >> CLAUDE.md",
        "{ echo a; echo b; } >> CLAUDE.md",
    ],
)
def test_a_text_that_the_command_does_not_show_is_unread(project: Path, command: str) -> None:
    call = shell(command, project)

    assert call is not None
    assert UNREAD in call.problem


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls -la",
        "cat CLAUDE.md",
        "grep -n rule CLAUDE.md > /tmp/out.txt",
        "cat CLAUDE.md | tee /tmp/copy.txt",
        "echo 'see CLAUDE.md' > notes.txt",
        "echo done 2>&1 > README.md",
        "sed -n 1,5p CLAUDE.md",
        "wc -l < CLAUDE.md > /dev/null",
        "git diff CLAUDE.md > x.md",
    ],
)
def test_other_commands_are_no_concern(project: Path, command: str) -> None:
    assert shell(command, project) is None


@pytest.mark.parametrize("folder", ["~/.claude", "$HOME/.claude", '"$HOME"/.claude', "${HOME}/.claude"])
def test_the_home_folder_is_expanded(project: Path, folder: str) -> None:
    call = shell(f"echo '- {LESSON}' >> {folder}/projects/app/memory/db.md", project)

    assert texts(call) == [LESSON]


def test_overwriting_judges_only_what_the_file_gains(project: Path) -> None:
    (project / "CLAUDE.md").write_text(f"- {LESSON}\n", encoding="utf-8")

    call = shell(f"printf '%s\\n' '- {LESSON}' '- {LESSON_TOO}' > CLAUDE.md", project)

    assert texts(call) == [LESSON_TOO]


def test_two_files_in_one_command_are_both_read(project: Path) -> None:
    call = shell(f"echo '- {LESSON}' >> CLAUDE.md; echo '- {LESSON_TOO}' >> AGENTS.md", project)

    assert call is not None
    assert [(c.key, c.text) for c in call.texts] == [("CLAUDE.md", LESSON), ("AGENTS.md", LESSON_TOO)]


@pytest.mark.parametrize(
    "arguments", [{}, {"command": None}, {"command": 5}, {"command": ["echo", "x", ">>", "CLAUDE.md"]}]
)
def test_arguments_of_another_shape_are_no_concern(project: Path, arguments: dict[str, object]) -> None:
    assert extract("Bash", arguments, str(project)) is None
