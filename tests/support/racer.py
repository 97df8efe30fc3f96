"""One of several processes that review at once on one database; started by `race`.

Run as a program it waits for the start signal, reviews its texts all at once and prints its verdicts as JSON.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from app.logs import configure_logs
from app.schemas.vocabulary import Category, Verdict
from tests.support.pipelines import Bench, ScriptedReviewer, found

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0
BUDGET_MICRODOLLARS = 10_000_000


def race(
    folder: Path,
    texts: Sequence[Sequence[str]],
    *,
    database_url: str,
    category: Category = Category.RULE,
    cost: int = 700,
    budget: int = BUDGET_MICRODOLLARS,
) -> list[Verdict]:
    """Let one process for each list review its texts on one database, all at the same time; all their verdicts.

    Args:
        folder: where the processes meet.
        texts: a list for each process; each text comes from a session of its own.
        database_url: the database.
        category: what the scripted model finds in each text.
        cost: what each question costs, and the worst case that is reserved for it.
        budget: the spend cap in micro-dollars; beyond it texts are held.
    """
    bench = Bench(folder, database_url=database_url)
    bench.use_model()
    bench.database.close()
    arguments = [str(folder), database_url, category.value, str(cost), str(budget)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.racer", str(number), *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(len(texts))
    ]
    try:
        _wait_for([folder / f"ready-{number}" for number in range(len(texts))])
        (folder / "start").touch()
        answers = [
            process.communicate(json.dumps(list(mine)), timeout=PATIENCE_SECONDS)[0]
            for process, mine in zip(processes, texts, strict=True)
        ]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [Verdict(verdict) for answer in answers for verdict in json.loads(answer)]


def _wait_for(files: list[Path]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not all(file.exists() for file in files):
        assert time.monotonic() < give_up, f"not all of {[file.name for file in files]} came"
        time.sleep(0.005)


async def _review_all(
    number: int, folder: Path, database_url: str, category: Category, cost: int, budget: int
) -> list[Verdict]:
    model = ScriptedReviewer(found(category, cost=cost))
    model.worst_case = cost
    bench = Bench(
        folder,
        database_url=database_url,
        model=model,
        budget_microdollars=budget,
        at_cap="hold",
        busy_timeout_seconds=30,
    )
    (folder / f"ready-{number}").touch()
    texts: list[str] = json.load(sys.stdin)
    _wait_for([folder / "start"])
    answers = await asyncio.gather(
        *(
            bench.review(text, session=f"p{number}-s{place}", call=f"c{place}", deadline_seconds=60)
            for place, text in enumerate(texts)
        )
    )
    await bench.close()
    return [answer.verdict for answer in answers]


if __name__ == "__main__":
    configure_logs("error")  # what is printed is the verdicts alone
    number, folder, database_url, category, cost, budget = sys.argv[1:]
    verdicts = asyncio.run(
        _review_all(int(number), Path(folder), database_url, Category(category), int(cost), int(budget))
    )
    print(json.dumps(verdicts))
