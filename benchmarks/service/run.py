"""How many reviews a second one process of the service answers, against the plainest route that stores a row.

    uv run python benchmarks/service/run.py [--entries 10000] [--rounds 6] [--seconds 2] [--clients 16]

Both are real uvicorn servers in processes of their own, on SQLite, asked by the same driver over connections that are
kept alive. The project has its entries before, the level is `offline`, every text is new. Rounds of the two alternate,
so that whatever else the machine does meets both alike. Ends with status 1 if a target is missed.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from app import entries, gate, projects  # noqa: E402
from app.callers import LOCAL  # noqa: E402
from app.db import open_database, utc_now  # noqa: E402
from app.embeddings import WordLlamaEmbedder  # noqa: E402
from app.neighbours import Indexed, open_neighbourhood  # noqa: E402
from app.schemas.entries import EntryIn  # noqa: E402
from app.schemas.vocabulary import Category  # noqa: E402
from app.settings import Settings  # noqa: E402

PROJECT = "github.com/acme/benchmark"
LEAST_RATIO = 0.40
MOST_SPREAD = 5.0
START_SECONDS = 60.0
KINDS = (
    "Always {} the {} before the {}, because the {} of {} {} without {} otherwise.",
    "Never {} {} in the {} directly; {} expects {} from {}, and {} breaks silently.",
    "We chose {} over {} for {} because {} keeps {} and the {} stays {}.",
    "{} returns {} instead of {} when {} is {}, so check the {} of {} first.",
)

Sample = tuple[float, bool]


class Texts:
    """New memories for ever: some common words, many rare ones, as in real notes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "ix")]
        self._words = ["".join(self._random.choices(syllables, k=self._random.randint(2, 3))) for _ in range(6_000)]
        self._shares = list(itertools.accumulate(1 / (place + 2) for place in range(len(self._words))))

    def new(self) -> str:
        """A text that did not come before."""
        kind = self._random.choice(KINDS)
        words = self._random.choices(self._words, cum_weights=self._shares, k=kind.count("{}"))
        return f"{kind.format(*words)} See {self._random.choice(self._words)}_{self._random.getrandbits(32):08x}."


@dataclass
class Contestant:
    """A server, the requests that it gets, and how long each took (milliseconds, and whether the text was approved)."""

    name: str
    path: str
    port: int
    process: int
    calls: Iterator[int] = field(default_factory=itertools.count)
    samples: list[list[Sample]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    processor_seconds: float = 0.0

    @property
    def processor(self) -> float:
        """Milliseconds of a processor that the server took for a request; says more than the rate on a busy machine."""
        return 1_000 * self.processor_seconds / sum(map(len, self.samples))

    @property
    def rates(self) -> list[float]:
        """Requests a second, round by round."""
        return [len(round_) / seconds for round_, seconds in zip(self.samples, self.seconds, strict=True)]

    def percentile(self, share: float) -> float:
        """The time in milliseconds that this share of the requests stayed below."""
        times = sorted(took for round_ in self.samples for took, _ in round_)
        return times[min(len(times) - 1, int(share * len(times)))]

    @property
    def approved(self) -> float:
        """Share of the texts that were approved."""
        flags = [flag for round_ in self.samples for _, flag in round_]
        return sum(flags) / len(flags)

    def body(self, text: str, client: int) -> bytes:
        """A request with this text."""
        if self.path == "/rows":
            return json.dumps({"text": text}).encode()
        return json.dumps(
            {
                "tool_call_id": f"call-{next(self.calls)}",
                "session_id": f"session-{self.process}-{client}",
                "project": PROJECT,
                "agent": "claude-code",
                "store": "memory",
                "tool": "create_entities",
                "candidates": [{"text": text, "key": "benchmark"}],
            }
        ).encode()


def fill(settings: Settings, texts: Texts, number: int) -> None:
    """Put stored entries into the project, in one transaction."""
    database = open_database(settings)
    embedder = WordLlamaEmbedder()
    neighbourhood = open_neighbourhood(database, embedder)
    with database.write() as session:
        project = projects.ensure(session, LOCAL, PROJECT, utc_now())
        for _ in range(number):
            given = EntryIn(project=PROJECT, category=Category.RULE, text=texts.new(), store="memory")
            entry = entries.add_stored(session, LOCAL, project.id, given, gate.text_hash(given.text), utc_now())
            vector = embedder.embed([entry.text])[0]
            neighbourhood.add(session, project.id, Indexed(entry.id, entry.text, vector, entry.revision))
            session.expunge(entry)
    database.close()


@contextlib.contextmanager
def server(command: list[str], folder: Path, settings: dict[str, str] | None = None) -> Iterator[tuple[int, int]]:
    """A server process that tells its address; its port and its process id."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_BOUNCER_")}
    environment |= settings or {}
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        yield _announced_port(process, log), process.pid
    finally:
        process.terminate()
        process.wait()


def _announced_port(process: subprocess.Popen[bytes], log: Path) -> int:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text(errors="replace"))
        if found:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(found[1])), timeout=1):
                return int(found[1])
        time.sleep(0.05)
    raise SystemExit(f"The server did not start:\n{log.read_text(errors='replace')}")


def processor_seconds(process: int) -> float:
    """Processor time that a process has taken; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask(
    contestant: Contestant, text: str, client: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Sample:
    """Send a text over a connection, and wait for the answer."""
    body = contestant.body(text, client)
    head = f"POST {contestant.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    began = time.perf_counter()
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", answer)
    assert length is not None
    content = await reader.readexactly(int(length[1]))
    took = (time.perf_counter() - began) * 1_000
    if not answer.startswith(b"HTTP/1.1 20"):
        raise SystemExit(f"{contestant.name} failed: {content.decode(errors='replace')}")
    return took, b'"verdict":"approve"' in content


async def drive(contestant: Contestant, texts: Texts, clients: int, seconds: float) -> None:
    """Ask with so many clients for so long, and note how long each answer took."""
    samples: list[Sample] = []
    taken = processor_seconds(contestant.process)
    started = time.perf_counter()
    until = started + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", contestant.port)
        while time.perf_counter() < until:
            samples.append(await ask(contestant, texts.new(), number, reader, writer))
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    contestant.samples.append(samples)
    contestant.seconds.append(time.perf_counter() - started)
    contestant.processor_seconds += processor_seconds(contestant.process) - taken


def compare(ours: Contestant, bare: Contestant) -> bool:
    """Print what was measured; whether the targets are met."""
    table = Table("", "requests/s", "p50 ms", "p99 ms", "CPU ms", "requests", title="Reviews against a bare insert")
    for contestant in (bare, ours):
        table.add_row(
            contestant.name,
            f"{statistics.median(contestant.rates):.0f}",
            f"{contestant.percentile(0.50):.1f}",
            f"{contestant.percentile(0.99):.1f}",
            f"{contestant.processor:.2f}",
            str(sum(map(len, contestant.samples))),
        )
    ratios = sorted(mine / theirs for mine, theirs in zip(ours.rates, bare.rates, strict=True))
    ratio = statistics.median(ratios)
    spread = ours.percentile(0.99) / ours.percentile(0.50)
    out = Console()
    out.print(table)
    out.print(f"approved: {ours.approved:.0%} of the texts")
    out.print(
        f"rate: {ratio:.2f} of the bare route (rounds {ratios[0]:.2f} to {ratios[-1]:.2f}; wanted ≥ {LEAST_RATIO})"
    )
    out.print(f"p99 / p50: {spread:.1f} (wanted ≤ {MOST_SPREAD:.0f})")
    return ratio >= LEAST_RATIO and spread <= MOST_SPREAD


def main() -> int:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000, help="entries that the project has before")
    parser.add_argument("--rounds", type=int, default=6, help="rounds for each of the two")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a round")
    parser.add_argument("--clients", type=int, default=16, help="clients that ask at once")
    options = parser.parse_args()
    texts = Texts(seed=1)
    with tempfile.TemporaryDirectory() as place:
        ours_folder, bare_folder = Path(place, "ours"), Path(place, "bare")
        bare_folder.mkdir()
        fill(Settings(data_dir=ours_folder), texts, options.entries)
        serve = [sys.executable, "-c", "from app.cli import main; main()", "serve", "--port", "0"]
        bare_route = [sys.executable, str(ROOT / "benchmarks" / "service" / "bare.py"), str(bare_folder)]
        with (
            server([*serve, "--data-dir", str(ours_folder)], ours_folder) as our_place,
            server(bare_route, bare_folder) as bare_place,
        ):
            ours = Contestant("review, offline", "/v1/reviews", *our_place)
            bare = Contestant("bare FastAPI + SQLModel", "/rows", *bare_place)
            for contestant in (ours, bare):
                asyncio.run(drive(contestant, texts, options.clients, 1.0))
                contestant.samples.clear()
                contestant.seconds.clear()
                contestant.processor_seconds = 0.0
            for number in range(options.rounds):
                for contestant in (ours, bare) if number % 2 else (bare, ours):
                    asyncio.run(drive(contestant, texts, options.clients, options.seconds))
    return 0 if compare(ours, bare) else 1


if __name__ == "__main__":
    raise SystemExit(main())
