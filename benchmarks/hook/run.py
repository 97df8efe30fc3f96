"""How long the hook takes as a whole process, against the same gate in bash, jq and grep.

    uv run python benchmarks/hook/run.py [--runs 200] [--url http://127.0.0.1:8711] [--python /usr/bin/python3]

Runs of the contestants alternate, so that whatever else the machine does meets all alike. A ratio is that of medians,
with the 95% interval of bootstrapped medians. Ends with status 1 if a ratio is above its target.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from app.agents.claude_code import launcher_command  # noqa: E402
from tests.support.scripted_service import scripted_service  # noqa: E402

SLOP = "Session complete: all retry tests are green and the branch is pushed to main, next is the exporter."
LESSON = "Retries of the billing gateway must carry the same idempotency key, or customers are charged twice."
TARGETS = {"denied by the gate": 0.75, "passed, with a review": 1.5}


def event(text: str, call: int) -> bytes:
    """A memory tool call as the agent announces it."""
    entity = {"name": "billing gateway", "entityType": "note", "observations": [text]}
    return json.dumps(
        {
            "session_id": "benchmark",
            "transcript_path": "/tmp/transcript.jsonl",
            "cwd": str(ROOT),
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": "mcp__memory__create_entities",
            "tool_input": {"entities": [entity]},
            "tool_use_id": f"toolu_{os.getpid()}_{call}",
        }
    ).encode()


def timed(command: list[str], content: bytes, environment: dict[str, str]) -> tuple[float, bytes]:
    """Milliseconds of a whole process, and what it said."""
    start = time.perf_counter()
    done = subprocess.run(command, input=content, capture_output=True, env=environment, check=True)
    return (time.perf_counter() - start) * 1000, done.stdout


def interval(ours: list[float], theirs: list[float], rounds: int = 1000) -> tuple[float, float, float]:
    """The ratio of the medians with its 95% interval."""
    chance = random.Random(1)
    median = statistics.median
    ratios = sorted(
        median(chance.choices(ours, k=len(ours))) / median(chance.choices(theirs, k=len(theirs))) for _ in range(rounds)
    )
    return median(ours) / median(theirs), ratios[int(rounds * 0.025)], ratios[int(rounds * 0.975)]


@contextlib.contextmanager
def service_address(given: str | None) -> Iterator[str]:
    """The given service, else a scripted one in this process."""
    if given:
        yield given
        return
    with scripted_service() as service:
        yield service.url


def measure(runs: int, python: str, url: str) -> list[dict[str, Any]]:
    """Time all contestants, one run of each in turn."""
    shell = shutil.which("bash") or "bash"
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "MEMORY_BOUNCER_URL": url}
        hook = launcher_command(ROOT / "hooks", python)
        gate = [shell, str(ROOT / "benchmarks" / "hook" / "gate.sh")]
        contestants: dict[str, tuple[list[str], str, Callable[[bytes], bool]]] = {
            "bash, denied": (gate, SLOP, lambda said: b'"deny"' in said),
            "hook, denied": (hook, SLOP, lambda said: b'"deny"' in said),
            "bash, passed": (gate, LESSON, lambda said: not said),
            "hook, passed": (hook, LESSON, lambda said: b"deny" not in said and b"not reviewed" not in said),
            "no memory": (hook, "", lambda said: not said),
        }
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for number in range(-5, runs):
            for name, (command, text, expected) in contestants.items():
                content = event(text, number)
                if name == "no memory":
                    content = content.replace(b"mcp__memory__create_entities", b"Bash")
                elapsed, said = timed(command, content, environment)
                if not expected(said):
                    raise SystemExit(f"{name} gave an unexpected answer: {said.decode()!r}")
                if number >= 0:
                    times[name].append(elapsed)
    return [
        row("denied by the gate", times["hook, denied"], times["bash, denied"]),
        row("passed, with a review", times["hook, passed"], times["bash, denied"]),
        row("no memory tool", times["no memory"], times["bash, denied"]),
    ]


def row(name: str, ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """One line of the report."""
    ratio, low, high = interval(ours, theirs)
    medians = {"hook_ms": round(statistics.median(ours), 2), "bash_ms": round(statistics.median(theirs), 2)}
    return {"case": name, **medians, "ratio": round(ratio, 3), "low": round(low, 3), "high": round(high, 3)}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--url", help="a running service to ask, instead of a scripted one")
    parser.add_argument("--python", default="/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable)
    parser.add_argument("--json", action="store_true", help="print JSON Lines")
    options = parser.parse_args()
    if not shutil.which("jq"):
        raise SystemExit("This needs jq.")
    with service_address(options.url) as url:
        rows = measure(options.runs, options.python, url)
    for line in rows:
        target = TARGETS.get(line["case"])
        if options.json:
            print(json.dumps({**line, "target": target}))
        else:
            verdict = "" if target is None else f"  target {target}: {'met' if line['ratio'] <= target else 'MISSED'}"
            print(
                f"{line['case']:22} hook {line['hook_ms']:6.2f} ms  bash {line['bash_ms']:6.2f} ms"
                f"  ratio {line['ratio']:.3f} [{line['low']:.3f}, {line['high']:.3f}]{verdict}"
            )
    return int(any(line["ratio"] > TARGETS.get(line["case"], line["ratio"]) for line in rows))


if __name__ == "__main__":
    sys.exit(main())
