"""The service under a clock that a test sets, in a process of its own: `clocked(file)` is the program to start.

The file holds the moment (ISO 8601) that it is now; in between no time goes by.
"""

import argparse
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from app.server import run
from app.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


def clocked(file: Path) -> tuple[str, ...]:
    """The program of a service that takes the time from the file."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.support.clocked_service import main; main()"
    return (sys.executable, "-c", start, str(file))


def set_clock(file: Path, moment: datetime) -> None:
    """Let it be that moment for all that read the file."""
    fresh = file.with_suffix(".fresh")
    fresh.write_text(moment.isoformat(), encoding="utf-8")
    fresh.replace(file)


def clock(file: Path) -> Callable[[], datetime]:
    """The clock that reads the file."""
    return lambda: datetime.fromisoformat(file.read_text(encoding="utf-8"))


def main() -> None:
    """Serve, as `bouncer serve` does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("clock", type=Path)
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    settings = load_settings().model_copy(
        update={"host": given.host, "port": given.port, "data_dir": given.data_dir, "log_level": "warning"}
    )
    run(settings, started=lambda _: None, now=clock(given.clock))
