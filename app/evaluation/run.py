"""Put labelled texts through the real pipeline, each in a project of its own that holds its surroundings."""

import asyncio
import tempfile
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from app.breaker import Breaker
from app.callers import LOCAL
from app.db import new_id, open_database, utc_now
from app.embeddings import Embedder
from app.errors import Conflict
from app.evaluation.data import Labelled
from app.logs import configure_logs
from app.pipeline import Pipeline
from app.reviewers import Reviewer
from app.schemas.entries import EntryIn
from app.schemas.fields import Model
from app.schemas.judging import Fault, Shortcut
from app.schemas.projects import DocumentIn
from app.schemas.reviews import Candidate, ReviewOut, ReviewRequest
from app.schemas.vocabulary import Category, Level, Reason, Verdict
from app.settings import Settings

AT_ONCE = 8
DEADLINE_SECONDS = 60.0


class Judged(Model):
    """What came of a labelled text."""

    case: Labelled
    verdict: Verdict
    category: Category | None
    reasons: tuple[Reason, ...]
    reviewer: str
    confidence: float | None
    fault: Fault | None
    cost_microdollars: int
    possible_duplicate: bool
    prompt_hash: str | None
    model: str | None
    shortcut: Shortcut | None = None


def evaluate(
    cases: Iterable[Labelled],
    *,
    settings: Settings,
    embedder: Embedder,
    model: Reviewer | None = None,
    progress: Callable[[], None] = lambda: None,
) -> list[Judged]:
    """Judge every case on a database of its own that is thrown away afterwards; in the order given.

    The arguments are those of `offer`.
    """
    return offer(cases, 1, settings=settings, embedder=embedder, model=model, progress=progress)[0]


def offer(
    cases: Iterable[Labelled],
    times: int,
    *,
    settings: Settings,
    embedder: Embedder,
    model: Reviewer | None = None,
    progress: Callable[[], None] = lambda: None,
) -> list[list[Judged]]:
    """Judge every case, and then all of them again on the same database, so many times.

    Args:
        cases: the labelled texts.
        times: how often they are offered.
        settings: budget and thresholds; the database and the level are replaced.
        embedder: for neighbours and passages.
        model: the second model; None leaves the judgement to the offline reviewer.
        progress: called after each case.
    """
    configure_logs("error")  # what is judged here is no event of a service
    with tempfile.TemporaryDirectory(prefix="bouncer-eval-") as folder:
        level = Level.MODEL if model else Level.OFFLINE
        own = settings.model_copy(update={"data_dir": Path(folder), "database_url": "", "level": level})
        # It asks many times in a row on purpose, and is to see what the model's service says each time.
        breaker = Breaker(utc_now, failures=0)
        pipeline = Pipeline(open_database(own), own, embedder, model=model, breaker=breaker)
        try:
            return asyncio.run(_judge_all(pipeline, list(cases), times, progress))
        finally:
            pipeline.index.database.close()


async def _judge_all(
    pipeline: Pipeline, cases: list[Labelled], times: int, progress: Callable[[], None]
) -> list[list[Judged]]:
    places = asyncio.Semaphore(AT_ONCE)
    furnishing = asyncio.Lock()  # documents are read one at a time, and who waits for too long is sent away

    async def judge(case: Labelled) -> Judged:
        async with places:
            async with furnishing:
                await asyncio.to_thread(furnish, pipeline, case)
            answer = await pipeline.review(LOCAL, request_for(case))
            progress()
            return _judged(case, answer.reviews[0])

    return [list(await asyncio.gather(*(judge(case) for case in cases))) for _ in range(times)]


def project_name(case: Labelled) -> str:
    """The project that a case has for itself; its name tells the reviewer nothing of the case's labels."""
    return f"{case.project}-{sha256(case.id.encode()).hexdigest()[:12]}"


def request_for(case: Labelled) -> ReviewRequest:
    """The review request that a hook would send for the case; nothing is stored for it."""
    return ReviewRequest(
        tool_call_id=f"{case.id}-{new_id()}",
        session_id=f"evaluation-{case.id}",
        project=project_name(case),
        agent="evaluation",
        candidates=[Candidate(text=case.text)],
        deadline_seconds=DEADLINE_SECONDS,
        dry_run=True,
    )


def furnish(pipeline: Pipeline, case: Labelled) -> None:
    """Give the case's project its entries and documents."""
    name = project_name(case)
    for entry in case.entries:
        try:
            pipeline.index.add_entry(LOCAL, EntryIn(project=name, category=entry.category, text=entry.text))
        except Conflict:
            continue  # a second run over the same database
    by_path: dict[str, str] = {}
    for passage in case.documents:
        by_path[passage.path] = by_path.get(passage.path, "") + f"## {passage.heading}\n\n{passage.text}\n\n"
    if by_path:
        pipeline.index.put_documents(
            LOCAL,
            name,
            [
                DocumentIn(path=path, sha256=sha256(text.encode()).hexdigest(), text=text)
                for path, text in by_path.items()
            ],
        )


def _judged(case: Labelled, review: ReviewOut) -> Judged:
    return Judged(
        case=case,
        verdict=review.verdict,
        category=review.category,
        reasons=tuple(review.reasons),
        reviewer=review.reviewer,
        confidence=review.confidence,
        fault=review.fault,
        cost_microdollars=review.usage.cost_microdollars,
        possible_duplicate=review.possible_duplicate is not None,
        prompt_hash=review.usage.prompt_hash,
        model=review.usage.model,
        shortcut=review.shortcut,
    )
