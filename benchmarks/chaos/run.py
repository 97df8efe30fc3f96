"""Kill the service at random moments under load, and count what became of every memory that a hook saw.

    uv run python benchmarks/chaos/run.py [--kills 100] [--database sqlite|postgresql|both] [--seed 1]

Four agents write through the real hook, half of them into a project that asks a scripted model. Afterwards every text
must be in exactly one place, no text approved twice, no reservation left, and the money of windows, ledger and reviews
the same. Ends with status 1 if something is amiss.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from tests.support.chaos import Chaos, Found  # noqa: E402
from tests.support.postgres import own_postgres  # noqa: E402


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'bouncer.db'}"
        return
    with own_postgres() as server:
        yield server.url("postgres")


def show(found: dict[str, Found]) -> None:
    """Print what was found."""
    table = Table("", "kills", "texts", "approved", "refused", "held", "journal", "unjudged", "faults", "seconds")
    for kind, run in found.items():
        counts = [run.states[state] for state in ("approve", "refused", "held", "journal")]
        cells = (run.kills, run.offers, *counts, run.answered["unjudged"], len(run.faults), round(run.seconds))
        table.add_row(kind, *map(str, cells))
    out = Console()
    out.print(table)
    out.print("unjudged: texts that the hook let through or held at the time, and that were judged later.")
    for kind, run in found.items():
        for fault in run.faults[:20]:
            out.print(f"{kind}: {fault}", markup=False)


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="how often the service is killed, on each database")
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn by lot")
    options = parser.parse_args()
    found = {}
    for kind in ("sqlite", "postgresql") if options.database == "both" else (options.database,):
        with tempfile.TemporaryDirectory() as place, database(kind, Path(place)) as url:
            chaos = Chaos(Path(place, "chaos"), url, seed=options.seed, wait_for_leases=True)
            found[kind] = chaos.run(options.kills)
    show(found)
    return 1 if any(run.faults for run in found.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
