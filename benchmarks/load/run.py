"""How many reviews the service bears, with one process and with two, judged offline and by a slow model.

    uv run python benchmarks/load/run.py [--seconds 8] [--clients 16] [--flying 200] [--model-seconds 1.5]

Everything runs on SQLite in processes of its own and is told as a share of what the plainest FastAPI + SQLModel route
that inserts a row does in the same run. With the model, so many calls are sent to each process at once, again and
again, with the seven seconds that a hook waits; what one of them takes of memory is the growth of the process at the
peak, divided by their number. Ends with status 1 if a call failed, or if the word of the model came too late for one
in ten.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from app.logs import configure_logs  # noqa: E402
from app.settings import Settings  # noqa: E402
from benchmarks.service.run import Contestant, Texts, ask, drive, fill, server  # noqa: E402
from tests.support.messages_api import MessagesApi, asking_always, messages_api, reply, slow  # noqa: E402

SERVE = [sys.executable, "-c", "from app.cli import main; main()", "serve", "--port", "0", "--data-dir"]
ENTRIES = 2_000


@dataclass
class Measured:
    """What one arrangement did."""

    name: str
    rate: float
    p50: float
    p99: float
    approved: float
    peak: int = 0
    kilobytes_each: float | None = None


def memory(process: int) -> int:
    """Resident kilobytes of a process; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    return 0


def summed(name: str, contestants: Sequence[Contestant]) -> Measured:
    """The figures of processes that worked side by side."""
    took = sorted(milliseconds for c in contestants for round_ in c.samples for milliseconds, _ in round_)
    flags = [flag for c in contestants for round_ in c.samples for _, flag in round_]
    return Measured(
        name,
        rate=sum(statistics.median(c.rates) for c in contestants),
        p50=took[len(took) // 2],
        p99=took[int(0.99 * (len(took) - 1))],
        approved=sum(flags) / len(flags),
    )


@contextlib.contextmanager
def services(folder: Path, count: int, environment: dict[str, str] | None = None) -> Iterator[list[Contestant]]:
    """So many processes on one database that has entries."""
    fill(Settings(data_dir=folder), Texts(seed=1), ENTRIES)
    with contextlib.ExitStack() as stack:
        started = []
        for number in range(count):
            own = folder / f"process-{number}"
            own.mkdir()
            place = stack.enter_context(server([*SERVE, str(folder)], own, environment))
            started.append(Contestant(f"process {number}", "/v1/reviews", *place))
        yield started


async def together(contestants: Sequence[Contestant], clients: int, seconds: float) -> None:
    """Drive all of them at the same time."""
    share = max(1, clients // len(contestants))
    await asyncio.gather(*(drive(c, Texts(seed=100 + number), share, seconds) for number, c in enumerate(contestants)))


def offline(count: int, clients: int, seconds: float) -> Measured:
    """Reviews by the offline reviewer."""
    with tempfile.TemporaryDirectory() as place, services(Path(place), count) as contestants:
        _warm_up(contestants)
        asyncio.run(together(contestants, clients, seconds))
        return summed(f"offline, {count} process{'es' * (count > 1)}", contestants)


def by_model(count: int, flying: int, seconds: float, model_seconds: float) -> Measured:
    """Reviews by a model that takes its time, with so many calls in flight in each process."""
    with (
        tempfile.TemporaryDirectory() as place,
        messages_api(slow(reply(), before_headers=model_seconds)) as model,
        services(Path(place), count, asking_always(model)) as contestants,
    ):
        _warm_up(contestants)
        before = [memory(c.process) for c in contestants]
        peak, grown = asyncio.run(_watched(contestants, model, flying, seconds))
        measured = summed(f"model, {count} process{'es' * (count > 1)}", contestants)
        measured.peak = peak
        measured.kilobytes_each = sum(grown[n] - before[n] for n in range(count)) / (count * flying)
        return measured


async def _watched(
    contestants: Sequence[Contestant], model: MessagesApi, flying: int, seconds: float
) -> tuple[int, list[int]]:
    """Send them all at once for so long, and watch how many the model has at once, and how far the processes grow."""
    sending = asyncio.gather(
        *(_bursts(c, Texts(seed=100 + number), flying, seconds) for number, c in enumerate(contestants))
    )
    grown = [0 for _ in contestants]
    while not sending.done():
        await asyncio.sleep(0.05)
        grown = [max(most, memory(c.process)) for most, c in zip(grown, contestants, strict=True)]
    await sending
    return model.most_thinking, grown


async def _bursts(contestant: Contestant, texts: Texts, flying: int, seconds: float) -> None:
    pairs = [await asyncio.open_connection("127.0.0.1", contestant.port) for _ in range(flying)]
    give_up = time.perf_counter() + seconds
    while time.perf_counter() < give_up:
        started = time.perf_counter()
        asked = [ask(contestant, texts.new(), number, *pair) for number, pair in enumerate(pairs)]
        contestant.samples.append(await asyncio.gather(*asked))
        contestant.seconds.append(time.perf_counter() - started)
    for _, writer in pairs:
        writer.close()


def _warm_up(contestants: Sequence[Contestant]) -> None:
    asyncio.run(together(contestants, 2 * len(contestants), 1.0))
    for contestant in contestants:
        httpx.get(f"http://127.0.0.1:{contestant.port}/readyz", trust_env=False).raise_for_status()
        contestant.samples.clear()
        contestant.seconds.clear()


def bare(clients: int, seconds: float) -> Measured:
    """The plainest route."""
    with tempfile.TemporaryDirectory() as place:
        program = [sys.executable, str(ROOT / "benchmarks" / "service" / "bare.py"), place]
        with server(program, Path(place)) as started:
            contestant = Contestant("bare", "/rows", *started)
            asyncio.run(drive(contestant, Texts(seed=1), clients, seconds))
            return summed("bare FastAPI + SQLModel, 1 process", [contestant])


def show(reference: float, measured: Sequence[Measured], model_seconds: float) -> None:
    """Print the figures."""
    table = Table("", "requests/s", "of bare", "p50 ms", "p99 ms", "approved", "at the model", "KB each")
    for m in measured:
        table.add_row(
            m.name,
            f"{m.rate:.0f}",
            f"{m.rate / reference:.2f}",
            f"{m.p50:.0f}",
            f"{m.p99:.0f}",
            f"{m.approved:.1%}",
            str(m.peak or ""),
            "" if m.kilobytes_each is None else f"{m.kilobytes_each:.0f}",
        )
    out = Console()
    out.print(table)
    out.print(f"The model takes {model_seconds} s; at the model: the most calls that it had at once.")


def main() -> int:
    """Measure and compare."""
    configure_logs("error")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measurement")
    parser.add_argument("--clients", type=int, default=16, help="clients that ask at once where no model is asked")
    parser.add_argument("--flying", type=int, default=200, help="calls sent at once to each process with the model")
    parser.add_argument("--model-seconds", type=float, default=1.5, help="how long the model takes")
    options = parser.parse_args()
    started = time.monotonic()
    before = bare(options.clients, options.seconds)
    measured = [offline(count, options.clients, options.seconds) for count in (1, 2)]
    measured += [by_model(count, options.flying, options.seconds, options.model_seconds) for count in (1, 2)]
    after = bare(options.clients, options.seconds)
    reference = statistics.mean((before.rate, after.rate))
    show(reference, [before, *measured, after], options.model_seconds)
    print(f"{time.monotonic() - started:.0f} s")
    return 0 if all(m.approved > 0.9 for m in measured if m.peak) else 1


if __name__ == "__main__":
    raise SystemExit(main())
