"""The installed programs, one running service for all tests, and desks at which the client is run."""

import contextlib
import fcntl
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.agent_client import Desk, HookRun, MakeDesk, Programs, find_programs
from tests.support.service import Service, running_service

HERE = Path(__file__).parent
INSTALL_SECONDS = 600


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The pinned client and memory server, installed on first use."""
    with (HERE / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that start together install once
        if not _installed():
            npm = shutil.which("npm")
            if npm is None:
                pytest.skip("npm is missing, so the agent client and the memory server cannot be installed")
            command = [npm, "ci", "--prefix", str(HERE), "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS)
    return find_programs(HERE / "node_modules")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that all tests share; each has a project of its own."""
    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def make_desk(programs: Programs, tmp_path: Path) -> Iterator[MakeDesk]:
    """Make desks that ask the service at a URL; the hooks are installed by `bouncer init`, or come with a plugin.

    Whatever a test is about, no hook at any of its desks may ever approve, fail, or print what the client cannot read.
    """
    desks: list[Desk] = []

    def make(
        url: str, *, scope: str | None = "project", plugin: Path | None = None, environment: Mapping[str, str] = {}
    ) -> Desk:
        desk = Desk(
            programs,
            tmp_path / f"desk-{len(desks)}",
            plugin=plugin,
            environment={"MEMORY_BOUNCER_URL": url, **environment},
        )
        desks.append(desk)
        if scope is not None and plugin is None:
            done = desk.bouncer("init", "--scope", scope, "--yes")
            assert done.returncode == 0, done
        return desk

    yield make
    for hook in (hook for desk in desks for run in desk.runs for hook in run.hooks):
        assert_sound(hook)


@pytest.fixture
def desk(make_desk: MakeDesk, service: Service) -> Desk:
    """A desk at the shared service."""
    return make_desk(service.url)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, and nobody else can while the test runs."""
    with contextlib.closing(socket.socket()) as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def assert_sound(hook: HookRun) -> None:
    """A hook that is well exits 0 in time, prints one JSON object or nothing, and never approves."""
    assert (hook.outcome, hook.exit_code, hook.stderr) == ("success", 0, ""), hook
    assert hook.decision in (None, "deny", "ask"), hook


def _installed() -> bool:
    """Whether the pinned versions are what is installed."""
    pinned: dict[str, str] = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    manifests = {name: HERE / "node_modules" / name / "package.json" for name in pinned}
    return all(
        manifest.is_file() and json.loads(manifest.read_text(encoding="utf-8"))["version"] == pinned[name]
        for name, manifest in manifests.items()
    )
