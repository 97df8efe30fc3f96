"""For every test of the hook: a service that nobody runs, a folder of its own, and a scripted service on demand."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scripted_service import ScriptedService, scripted_service


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, and nobody else can while the test runs."""
    with contextlib.closing(socket.socket()) as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


@pytest.fixture
def silence() -> Iterator[str]:
    """An address at which connections are taken and nothing is ever said."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobody: str) -> Path:
    """An empty project in which the test runs, with no service unless it asks for one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MEMORY_BOUNCER_URL", nobody)
    return folder


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, project: Path) -> Iterator[ScriptedService]:
    """A scripted service that the hook asks."""
    del project  # sets the address of nobody first
    with scripted_service() as running:
        monkeypatch.setenv("MEMORY_BOUNCER_URL", running.url)
        yield running
