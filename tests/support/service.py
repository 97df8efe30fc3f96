"""The real service in a process of its own, started with `bouncer serve` on a free loopback port.

with running_service(tmp_path) as service:
    assert service.get("/v1/entries")["items"] == []
"""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

BOUNCER = (sys.executable, "-c", "from app.cli import main; main()")
START_SECONDS = 120.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
ANNOUNCED = re.compile(r"http://127\.0\.0\.1:(\d+)")
PRIVATE = ("MEMORY_BOUNCER_", "ANTHROPIC_", "XDG_")


class Service:
    """A service with a data folder of its own, which may be stopped and started again at the same address."""

    program: Sequence[str] = BOUNCER

    def __init__(self, data_dir: Path, environment: Mapping[str, str] | None = None, *, port: int = 0) -> None:
        """Nothing is started yet.

        Args:
            data_dir: where its database and its log lie.
            environment: further settings (`MEMORY_BOUNCER_…`).
            port: where to listen; a free port, chosen at the first start, if not given.
        """
        self.data_dir = data_dir
        self.port = port
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith(PRIVATE)} | dict(
            environment or {}
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._log = data_dir / "service.log"

    @property
    def url(self) -> str:
        """The address, which is the same after each start."""
        assert self.port, "The service was never started, so its port is not chosen yet."
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What the service wrote to its output since its last start."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of its log, which are JSON each and all."""
        return [json.loads(line) for line in self.log.splitlines()]

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """Its process, while it runs."""
        assert self._process is not None, "The service is not running."
        return self._process

    def start(self) -> None:
        """Start it and wait until it answers."""
        assert self._process is None, "The service runs already."
        self.data_dir.mkdir(parents=True, exist_ok=True)
        address = ["--host", "127.0.0.1", "--port", str(self.port)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self.program, "serve", *address, "--data-dir", str(self.data_dir)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        try:
            self.port = self._announced_port()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it, by force if it does not go; does nothing if it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()
        self._process = None

    def metrics(self) -> dict[str, float]:
        """What `/metrics` says, by name and labels as they are written there: ``name{label="value"}``."""
        page = httpx.get(f"{self.url}/metrics", trust_env=False, timeout=START_SECONDS).raise_for_status().text
        return {
            name: float(value)
            for name, _, value in (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        }

    def get(self, path: str, **query: str | int) -> Any:
        """The JSON that a GET of the path answers with; fails on an error."""
        response = httpx.get(f"{self.url}{path}", params=query, trust_env=False, timeout=START_SECONDS)
        response.raise_for_status()
        return response.json()

    def entries(self, project: str, **query: str | int) -> list[dict[str, Any]]:
        """The project's entries, newest first."""
        items: list[dict[str, Any]] = self.get("/v1/entries", project=project, **query)["items"]
        return items

    def reviews(self, project: str, **query: str | int) -> list[dict[str, Any]]:
        """The project's reviews, newest first."""
        items: list[dict[str, Any]] = self.get("/v1/reviews", project=project, **query)["items"]
        return items

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What an SQL query finds in its database, for what the API does not show."""
        with contextlib.closing(sqlite3.connect(self.data_dir / "bouncer.db")) as database:
            return database.execute(query).fetchall()

    def _announced_port(self) -> int:
        assert self._process is not None
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up:
            if (found := ANNOUNCED.search(self.log)) is not None:
                return int(found[1])
            if self._process.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"The service did not start:\n{self.log}")


@contextlib.contextmanager
def running_service(data_dir: Path, environment: Mapping[str, str] | None = None) -> Iterator[Service]:
    """A running service, stopped at the end."""
    service = Service(data_dir, environment)
    service.start()
    try:
        yield service
    finally:
        service.stop()
