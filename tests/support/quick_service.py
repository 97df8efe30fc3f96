"""The real service, started again within a fraction of a second, for tests that kill it many times.

A process that has loaded everything forks one child for each start; what a child does is what `bouncer serve` does.
Run as a program it reads commands from stdin, `start` and `kill`, and answers each with the process id when it is done.
Only the parent kills: until it has waited for its child, nobody else can get that number.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
POLL_SECONDS = 0.02


class QuickService:
    """A service that can be killed and started again at once, always at the same address."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Load everything; nothing is started yet.

        Args:
            folder: for its database and its log.
            environment: further settings (`MEMORY_BOUNCER_…`).
        """
        folder.mkdir(parents=True, exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "service.log"
        own = {"MEMORY_BOUNCER_DATA_DIR": str(folder), "MEMORY_BOUNCER_PORT": str(self.port)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_BOUNCER_")}
        with self.log.open("wb") as log:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "tests.support.quick_service"],
                cwd=ROOT,
                env=kept | own | dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def start(self) -> None:
        """Start it and wait until it listens."""
        self._told("start")
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"It did not start:\n{self.log.read_text(encoding='utf-8', errors='replace')[-4_000:]}")

    def kill(self) -> None:
        """End it at once, wherever it stands."""
        self._told("kill")

    def close(self) -> None:
        """End it with its parent."""
        with contextlib.suppress(OSError):
            self.kill()
        self._parent.kill()
        self._parent.communicate()

    def _told(self, command: str) -> None:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        print(command, file=self._parent.stdin, flush=True)
        self._parent.stdout.readline()


def _parent() -> None:
    from app.embeddings import word_llama  # noqa: PLC0415
    from app.reviewers import anthropic, offline  # noqa: F401, PLC0415
    from app.server import run  # noqa: PLC0415
    from app.settings import load_settings  # noqa: PLC0415

    word_llama()
    settings = load_settings()
    child = 0
    while command := sys.stdin.readline().strip():
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            child = 0
        if command == "start" and (child := os.fork()) == 0:
            run(settings, started=lambda _: None)
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    _parent()
