"""The commands as a person meets them: results, exit codes, and one clear line for what goes wrong."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import app_version
from tests.support.commands import SECONDS, bouncer, complaint
from tests.support.memories import MIGRATIONS
from tests.support.pipelines import GOOD, SLOP
from tests.support.scripted_service import scripted_service
from tests.support.service import Service, running_service


def test_version_and_help() -> None:
    assert bouncer("--version").stdout.strip() == f"memory-bouncer {app_version()}"
    commands = ("serve", "check", "demo", "init", "uninstall", "doctor", "journal", "docs", "eval", "budget", "keys")
    for command in (*commands, "audit-log"):
        done = bouncer(command, "--help")
        assert (done.returncode, f"bouncer {command}" in done.stdout) == (0, True), command


def test_a_good_text_is_approved_and_nothing_is_stored() -> None:
    for _ in range(2):
        done = bouncer("check", GOOD[0])
        assert (done.returncode, done.stdout.split()[0]) == (0, "approve"), done


def test_slop_is_refused_with_its_reason() -> None:
    done = bouncer("check", SLOP)
    assert done.returncode == 1
    assert "[session_summary]" in done.stdout


def test_a_text_may_come_from_a_file_or_from_stdin(tmp_path: Path) -> None:
    file = tmp_path / "memory.md"
    file.write_text(GOOD[1], encoding="utf-8")
    assert bouncer("check", str(file)).returncode == 0
    assert bouncer("check", "-", stdin=SLOP).returncode == 1


def test_json_has_the_whole_answer() -> None:
    answer = json.loads(bouncer("check", "--json", GOOD[2]).stdout)
    assert (answer["verdict"], answer["reviews"][0]["text"]) == ("approve", GOOD[2])


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_a_mistake(text: str) -> None:
    assert "no text" in complaint(bouncer("check", text))


def test_what_is_no_text_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "picture"
    file.write_bytes(b"\x89PNG\xff")
    assert "no text" in complaint(bouncer("check", str(file)))
    for encoding in ("utf-8:strict", "utf-8:surrogateescape"):
        with file.open("rb") as stream:
            done = subprocess.run(
                [sys.executable, "-m", "app", "check", "-"],
                stdin=stream,
                env={**os.environ, "PYTHONIOENCODING": encoding},
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        assert "stdin is no text" in complaint(done)


def test_a_projects_name_that_is_too_long_is_named() -> None:
    assert "project's name" in complaint(bouncer("check", GOOD[0], "--project", "p" * 600))


def test_a_terminal_that_knows_ascii_only_gets_all_the_same_what_it_can_show() -> None:
    done = bouncer("doctor", "--no-client", PYTHONIOENCODING="ascii")
    assert "\\u2713 Python:" in done.stdout
    assert done.stderr == ""


def test_an_interrupt_while_the_program_loads_ends_it_quietly() -> None:
    program = (
        "import sys; from importlib.abc import MetaPathFinder\n"
        "class Interrupt(MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'app.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from app.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", [("queue", "list"), ("budget", "list"), ("keys", "list"), ("audit-log",)])
@pytest.mark.parametrize("body", ['{"status": "fine"}', "[]", "<html>hello</html>"])
def test_another_program_at_the_services_address_is_told_from_it(command: tuple[str, ...], body: str) -> None:
    with scripted_service() as other:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        other.raw = (head + body).encode()
        assert "is not this version of Memory Bouncer" in complaint(bouncer(*command, MEMORY_BOUNCER_URL=other.url))


def test_a_file_that_cannot_be_written_is_named_with_its_place(tmp_path: Path) -> None:
    labelled = tmp_path / "mine.jsonl"
    labelled.write_text('{"id": "a", "text": "b", "category": "NONE", "verdict": "reject"}\n', encoding="utf-8")
    assert f"{labelled}: " in complaint(bouncer("eval", str(labelled), "--out", str(labelled)))


def test_a_running_service_is_asked(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        done = bouncer("check", GOOD[0], "--url", service.url)
        assert done.returncode == 0
        assert service.get("/v1/reviews")["items"] == []
        assert service.get("/v1/entries")["items"] == []


def test_a_named_service_that_does_not_answer_is_named(free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}"
    assert f"No verdict from {url}" in complaint(bouncer("check", GOOD[0], "--url", url))


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = complaint(bouncer("serve", "--port", str(port)))
    assert f"Port {port} on 127.0.0.1 is taken" in line
    assert "--port" in line


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    line = complaint(bouncer("serve", "--port", "0", "--data-dir", str(file / "data")))
    assert "MEMORY_BOUNCER_DATA_DIR" in line


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "bouncer.db").write_bytes(b"certainly no database" * 100)
    assert "bouncer.db" in complaint(bouncer("serve", "--port", "0", "--data-dir", str(tmp_path)))


def test_an_unusable_setting_is_named_without_its_value() -> None:
    line = complaint(bouncer("serve", MEMORY_BOUNCER_PORT="hunter2"))
    assert "MEMORY_BOUNCER_PORT" in line
    assert "hunter2" not in line


def test_a_model_without_a_known_price_refuses_to_start() -> None:
    line = complaint(
        bouncer(
            "serve", "--port", "0", MEMORY_BOUNCER_ANTHROPIC_API_KEY="sk-x", MEMORY_BOUNCER_MODEL="claude-unheard-of"
        )
    )
    assert "claude-unheard-of" in line


def test_the_demo_turns_slop_away_and_lets_the_rule_in() -> None:
    done = bouncer("demo")
    assert done.returncode == 0, done.stderr
    outcomes = [line for line in done.stdout.splitlines() if line.endswith((": stored", ": turned away"))]
    assert [line.rpartition(": ")[2] for line in outcomes] == ["turned away", "stored", "turned away", "stored"]
    assert "[session_summary]" in done.stdout
    assert "[duplicate]" in done.stdout


class TestJournal:
    """`bouncer journal`, filled by the real hook while no service runs."""

    @pytest.fixture
    def url(self, tmp_path: Path, free_port: int) -> str:
        """Where a service will be; its hook has let one memory through unreviewed and denied another."""
        url = f"http://127.0.0.1:{free_port}"
        for number, text in enumerate((MIGRATIONS, SLOP)):
            event = {
                "hook_event_name": "PreToolUse",
                "session_id": "s",
                "cwd": str(tmp_path),
                "tool_use_id": f"call-{number}",
                "tool_name": "mcp__memory__create_entities",
                "tool_input": {"entities": [{"name": "n", "entityType": "t", "observations": [text]}]},
            }
            hook = Path(__file__).parents[2] / "hooks" / "store_hygiene_gate.py"
            subprocess.run(
                ["python3", "-I", str(hook)],
                input=json.dumps(event),
                env={**os.environ, "MEMORY_BOUNCER_URL": url},
                text=True,
                timeout=SECONDS,
                check=True,
                capture_output=True,
            )
        return url

    def test_list_and_show(self, url: str) -> None:
        records = json.loads(bouncer("journal", "list", "--json", MEMORY_BOUNCER_URL=url).stdout)
        assert [(record["event"], record["text"]) for record in records] == [
            ("denied", SLOP),
            ("unreviewed", MIGRATIONS),
        ]
        shown = json.loads(bouncer("journal", "show", records[0]["id"]).stdout)
        assert shown == records[0]
        assert "session_summary" in bouncer("journal", "list").stdout

    def test_flush_waits_for_the_service_and_then_sends(self, url: str, tmp_path: Path) -> None:
        assert f"is the service at {url} running" in complaint(bouncer("journal", "flush", MEMORY_BOUNCER_URL=url))
        service = Service(tmp_path / "service", port=int(url.rpartition(":")[2]))
        (tmp_path / "service").mkdir()
        service.start()
        try:
            assert bouncer("journal", "flush", MEMORY_BOUNCER_URL=url).stdout.strip() == "Texts sent: 1."
            assert bouncer("journal", "flush", MEMORY_BOUNCER_URL=url).stdout.strip() == "Nothing waits in the journal."
            assert service.get("/v1/reviews")["items"][0]["text"] == MIGRATIONS
        finally:
            service.stop()

    def test_half_a_surrogate_pair_hides_no_record(self, url: str) -> None:
        shown = bouncer("journal", "list", MEMORY_BOUNCER_URL=url).stdout
        (file,) = Path(os.environ["XDG_STATE_HOME"]).rglob("journal.jsonl")
        file.write_text(file.read_text(encoding="utf-8").replace(SLOP[:8], "\\ud800" + SLOP[:8]), encoding="utf-8")
        done = bouncer("journal", "list", MEMORY_BOUNCER_URL=url)
        assert (done.returncode, "\\ud800" in done.stdout) == (0, True)
        assert "\\ud800" not in shown

    def test_a_journal_that_cannot_be_read_is_named_and_not_called_empty(self, url: str) -> None:
        (file,) = Path(os.environ["XDG_STATE_HOME"]).rglob("journal.jsonl")
        file.unlink()
        file.mkdir()
        assert str(file) in complaint(bouncer("journal", "list", MEMORY_BOUNCER_URL=url))

    def test_an_unknown_record_is_named(self) -> None:
        assert "no record xyz" in complaint(bouncer("journal", "show", "xyz"))


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
