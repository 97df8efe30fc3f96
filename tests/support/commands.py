"""The command `bouncer`, run as a person runs it."""

import os
import subprocess
import sys

SECONDS = 60


def bouncer(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, on a wide terminal without colours."""
    return subprocess.run(
        [sys.executable, "-c", "from app.cli import main; main()", *arguments],
        input=stdin,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on stderr of a command that could not do its work."""
    assert done.returncode == 2, done
    (line,) = [line for line in done.stderr.strip().splitlines() if not line.startswith("{")]  # what it logged before
    assert line.startswith("bouncer: ")
    return line
