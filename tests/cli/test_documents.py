"""`bouncer docs sync` and `bouncer docs list`: what a person sees of the project's documents."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from socket import socket

import pytest

from hooks.store_hygiene_gate import project_identity
from tests.support.service import BOUNCER, Service, running_service

README = "# Storage\n\nRaw pages are stored first.\n\n# Replay\n\nRules can be replayed over stored pages.\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two documents and one that is too large."""
    folder = tmp_path / "project"
    (folder / "docs").mkdir(parents=True)
    (folder / "README.md").write_text(README, encoding="utf-8")
    (folder / "docs/a.md").write_text("Only this line is in it.", encoding="utf-8")
    (folder / "docs/big.md").write_text("x" * 300_000, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MEMORY_BOUNCER_URL", service.url)
    return folder


def docs(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `bouncer docs …` in a process of its own, on a wide terminal without colours."""
    return subprocess.run(
        [*BOUNCER, "docs", *arguments],
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def states(*arguments: str) -> dict[str, tuple[str, int | None]]:
    """What `bouncer docs list` says of each path."""
    rows = json.loads(docs("list", "--json", *arguments).stdout)["documents"]
    return {row["path"]: (row["state"], row["passages"]) for row in rows}


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr of a command that could not do its work."""
    assert done.returncode == 2, done
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("bouncer: ")
    return line


def test_what_is_new_is_sent_and_the_rest_is_known(project: Path) -> None:
    name = project_identity(str(project))
    assert docs("sync").stdout == (
        f"2 documents of {name}: 2 sent, 0 known already; memories are compared with 3 passages."
        " 1 left out: see `bouncer docs list`.\n"
    )
    (project / "docs/a.md").write_text("Another line is in it now.", encoding="utf-8")
    assert json.loads(docs("sync", "--json").stdout) == {
        "project": name,
        "documents": 2,
        "sent": 1,
        "passages": 3,
        "left_out": [{"path": "docs/big.md", "why": "is larger than 256 KB"}],
    }
    assert "0 sent, 2 known already" in docs("sync").stdout


def test_the_list_tells_what_is_sent_and_what_is_not_and_why(project: Path) -> None:
    large = ("is larger than 256 KB", None)
    assert states() == {
        "README.md": ("not sent yet", None),
        "docs/a.md": ("not sent yet", None),
        "docs/big.md": large,
    }
    docs("sync")
    (project / "README.md").write_text("Something else.", encoding="utf-8")
    (project / "docs/a.md").unlink()
    assert states() == {
        "README.md": ("changed since it was sent", 2),
        "docs/a.md": ("at the service only", 1),
        "docs/big.md": large,
    }
    docs("sync")
    assert states() == {"README.md": ("sent", 1), "docs/big.md": large}
    shown = docs("list").stdout
    assert "README.md" in shown
    assert "is larger than 256 KB" in shown


def test_another_project_and_another_service_may_be_named(project: Path, service: Service) -> None:
    done = docs("sync", "--project", "elsewhere/documents", "--url", service.url)
    assert done.returncode == 0, done
    assert states("--project", "elsewhere/documents")["README.md"] == ("sent", 2)
    assert states()["README.md"] == ("not sent yet", None)
    assert "is no address" in complaint(docs("sync", "--url", "nowhere"))


def test_without_a_service_sync_fails_and_list_says_what_it_can(project: Path) -> None:
    with closing(socket()) as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        assert "refuses connections" in complaint(docs("sync", "--url", url))
        listed = docs("list", "--url", url)
    assert listed.returncode == 0
    assert "README.md" in listed.stdout
    assert "refuses connections" in listed.stderr


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [("MEMORY_BOUNCER_LEVEL", "gate", "level gate"), ("MEMORY_BOUNCER_DOCUMENTS", "off", "switched off")],
)
def test_what_is_kept_back_is_not_sent_by_command_either(
    project: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert why in complaint(docs("sync"))
    monkeypatch.delenv(variable)
    assert states()["README.md"] == ("not sent yet", None)


def test_a_project_without_documents_has_an_empty_list(project: Path) -> None:
    docs("sync")
    (project / ".bouncer.json").write_text('{"documents": false}', encoding="utf-8")
    assert states()["README.md"] == ("at the service only", 2)
    assert docs("sync").stdout.startswith("0 documents")
    assert docs("list").stdout.endswith("has no documents.\n")
