"""The real service, started again within a fraction of a second, for tests that kill it many times.

A process that has loaded everything forks one child for each start; what a child does is what `bouncer serve` does.
Run as a program it reads commands from stdin: each line starts a service, and is answered with its process id.
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
        self.pid = 0
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
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        print("start", file=self._parent.stdin, flush=True)
        self.pid = int(self._parent.stdout.readline())
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert _lives(self.pid), self.log.read_text(encoding="utf-8", errors="replace")[-4_000:]
            time.sleep(POLL_SECONDS)
        raise AssertionError("the service did not start")

    def kill(self) -> None:
        """End it at once, wherever it stands."""
        os.kill(self.pid, signal.SIGKILL)
        while _lives(self.pid):
            time.sleep(POLL_SECONDS)
        self.pid = 0

    def close(self) -> None:
        """End it with its parent."""
        if self.pid:
            self.kill()
        self._parent.kill()
        self._parent.communicate()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _parent() -> None:
    from app.embeddings import word_llama  # noqa: PLC0415
    from app.reviewers import anthropic, offline  # noqa: F401, PLC0415
    from app.server import run  # noqa: PLC0415
    from app.settings import load_settings  # noqa: PLC0415

    word_llama()
    settings = load_settings()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while sys.stdin.readline():
        if (child := os.fork()) == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run(settings, started=lambda _: None)
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    _parent()
