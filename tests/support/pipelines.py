"""A real pipeline on a real database, with the two things that a test wants to hold in its hand: time and the model.

async def test_…(bench: Bench) -> None:
    answer = await bench.review("Never retry a payment …", session="s1")
    assert answer.verdict is Verdict.APPROVE
"""

import asyncio
import inspect
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, text

from app import budget, projects
from app.callers import LOCAL, Caller
from app.db import open_database
from app.embeddings import WordLlamaEmbedder
from app.index import Index
from app.pipeline import Pipeline
from app.schemas.budgets import BudgetIn, BudgetOut
from app.schemas.judging import Brief, Facts, Fault, Judgement, Usage
from app.schemas.reviews import CallOut, Candidate, ReviewRequest
from app.schemas.vocabulary import BudgetScope, Category, Level, Period, Scope
from app.settings import Settings

PROJECT = "github.com/acme/payments"
COST = 700
WORST = 5_000
PATIENCE = 20.0

# Memories that any reviewer lets pass, each about something else.
GOOD = (
    "Never retry a payment without its idempotency key, because the provider charges the card a second time.",
    "Invoice numbers are taken from the ledger's own counter, never from the row id, because auditors want no gaps.",
    "We chose SQLite over Redis for the job queue because one process writes and backups are a file copy.",
    "The PDF library silently drops fonts that are larger than two megabytes instead of raising an error.",
)
SLOP = "Session summary: merged the login branch and then updated all of the snapshots again."
# What the gate does not know, and the offline reviewer cannot take for a memory.
CLEAR_SLOP = (
    "Done today: merged the header branch, bumped dependencies, ran the linter, everything green, then cleaned up the "
    "snapshots and updated the changelog."
)


@cache
def embedder() -> WordLlamaEmbedder:
    """The embedding model, loaded once a process."""
    return WordLlamaEmbedder()


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: datetime = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)) -> None:
        self.at = at

    def __call__(self) -> datetime:
        """The present moment."""
        return self.at

    def pass_(self, **time: float) -> None:
        """Let time go by, as `timedelta` takes it: ``pass_(minutes=11)``."""
        self.at += timedelta(**time)


def facts(category: Category = Category.RULE, **changes: object) -> Facts:
    """Facts of a good memory, with changes."""
    fields: dict[str, object] = {
        "category": category,
        "durable": category is not Category.NONE,
        "self_contained": True,
        "scope": Scope.PATTERN if category in (Category.RULE, Category.DISCOVERY) else None,
        "gives_why": True if category is Category.DECISION else None,
        "single_fact": True,
        "duplicate_of": None,
        "supersedes": None,
        "restates": None,
        "addresses_reader": False,
        "suggested_text": None,
        "reason": "Because of the test.",
        "confidence": 0.9,
        **changes,
    }
    return Facts.model_validate(fields)


def usage(cost: int = COST) -> Usage:
    """Usage of a judgement with this cost in micro-dollars."""
    return Usage(
        model="scripted", prompt_hash="p1", input_tokens=900, output_tokens=80, attempts=1, cost_microdollars=cost
    )


def found(category: Category = Category.RULE, *, cost: int = COST, **changes: object) -> Judgement:
    """A judgement of the second model with these facts."""
    return Judgement(reviewer="anthropic", facts=facts(category, **changes), usage=usage(cost))


def failed(fault: Fault, *, cost: int = 0) -> Judgement:
    """A judgement of the second model that came to nothing."""
    return Judgement(reviewer="anthropic", facts=None, fault=fault, fault_detail="As scripted.", usage=usage(cost))


Answer = Judgement | Callable[[Brief], Judgement]


class ScriptedReviewer:
    """The second model of a test: answers from its script, then for ever with the default.

    After `hold` it thinks: each question waits until `release`; `asked` waits until so many have come in all.
    """

    def __init__(self, default: Answer | None = None) -> None:
        self.fingerprint = "scripted/p1"
        self.briefs: list[Brief] = []
        self.deadlines: list[float] = []
        self.worst_case = WORST
        self.closed = False
        self._default = default or found()
        self._script: list[Answer] = []
        self._news = asyncio.Condition()
        self._go = asyncio.Event()
        self._go.set()

    def script(self, *answers: Answer) -> None:
        """Answer the next questions so, in this order."""
        self._script.extend(answers)

    def hold(self) -> None:
        """Think until `release`."""
        self._go.clear()

    def release(self) -> None:
        """Answer what is waiting."""
        self._go.set()

    async def asked(self, count: int = 1) -> None:
        """Wait until so many questions have come since the beginning."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: len(self.briefs) >= count)

    async def review(self, brief: Brief, deadline_seconds: float) -> Judgement:
        """The next answer of the script."""
        self.briefs.append(brief)
        self.deadlines.append(deadline_seconds)
        answer = self._script.pop(0) if self._script else self._default
        async with self._news:
            self._news.notify_all()
        await self._go.wait()
        return answer(brief) if callable(answer) else answer

    async def aclose(self) -> None:
        """Nothing is open."""
        self.closed = True

    def worst_case_microdollars(self, brief: Brief) -> int:  # noqa: ARG002 - the interface has it
        """What the budget reserves."""
        return self.worst_case


class _AsLocal:
    """An index whose operations are the local caller's."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._index, name)
        wants_caller = inspect.ismethod(found) and "caller" in inspect.signature(found).parameters
        return partial(found, LOCAL) if wants_caller else found


class Bench:
    """A pipeline with its clock, its model and its database: SQLite in the folder, if no `database_url` is given."""

    def __init__(self, folder: Path, *, model: ScriptedReviewer | None = None, **settings: object) -> None:
        self.settings = Settings.model_validate({"data_dir": folder, **settings})
        self.database = open_database(self.settings)
        self.clock = Clock()
        self.model = model
        self._aside = create_engine(self.settings.resolved_database_url, poolclass=NullPool)
        self._calls = itertools.count(1)
        self.pipeline = Pipeline(self.database, self.settings, embedder(), model=model, now=self.clock)

    @property
    def index(self) -> Any:
        """The pipeline's index, for whoever sits at the machine."""
        return _AsLocal(self.pipeline.index)

    def request(
        self, *texts: str | Candidate, session: str = "s1", call: str | None = None, project: str = PROJECT, **more: Any
    ) -> ReviewRequest:
        """A memory tool call with these texts, under a fresh call id unless one is given."""
        return ReviewRequest(
            tool_call_id=call or f"call-{next(self._calls)}",
            session_id=session,
            project=project,
            candidates=[text if isinstance(text, Candidate) else Candidate(text=text) for text in texts],
            **{"store": "memory", "tool": "create_entities", "agent": "claude-code", **more},
        )

    async def review(self, *texts: str | Candidate, **more: Any) -> CallOut:
        """The answer to a memory tool call with these texts, made by whoever sits at the machine."""
        return await self.review_for(LOCAL, *texts, **more)

    async def review_for(self, caller: Caller, *texts: str | Candidate, **more: Any) -> CallOut:
        """The answer to a memory tool call with these texts."""
        return await self.pipeline.review(caller, self.request(*texts, **more))

    async def store(self, text: str, store_id: str | None = None, **more: Any) -> str:
        """Review a text, expect approval and report it as stored; the entry's id."""
        answer = await self.review(text, **more)
        assert answer.verdict == "approve", answer.reviews[0].message
        self.index.report_stored(answer.reviews[0].id, store_id)
        entry_id = answer.reviews[0].entry_id
        assert entry_id is not None
        return entry_id

    def use_model(self, project: str = PROJECT) -> None:
        """Opt the project in to the second model."""
        self.index.set_level(project, Level.MODEL)

    def entries(self) -> list[dict[str, Any]]:
        """All entries as they stand in the database, oldest first."""
        return self.rows("SELECT * FROM entry ORDER BY id")

    def entry(self, entry_id: str | None) -> dict[str, Any]:
        """One entry as it stands in the database."""
        return next(row for row in self.entries() if row["id"] == entry_id)

    def by_words(self, query: str, project: str = PROJECT) -> list[str]:
        """Ids of the project's entries that have words of the query, best first."""
        with self.database.read() as session:
            found = projects.find(session, LOCAL, project)
            assert found is not None
            _, by_words = self.index.neighbourhood.rankings(session, found, query, embedder().embed([query])[0], 8)
        ids: list[str] = by_words
        return ids

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Rows of the database, read by a connection of its own."""
        with self._aside.begin() as connection:
            return [dict(row) for row in connection.execute(text(query)).mappings()]

    def execute(self, statement: str) -> None:
        """Change the database behind the pipeline's back, as another process would."""
        with self._aside.begin() as connection:
            connection.execute(text(statement))

    def put_budget(
        self,
        limit: int,
        *,
        project: str | None = None,
        key: str | None = None,
        period: Period = Period.MONTH,
        **more: Any,
    ) -> None:
        """Set a budget in micro-dollars: of the project, of the key, or of the team."""
        scope = BudgetScope.PROJECT if project else BudgetScope.KEY if key else BudgetScope.TEAM
        change = BudgetIn(scope=scope, subject=project or key, period=period, limit_microdollars=limit, **more)
        with self.database.write() as session:
            budget.put(session, LOCAL, self.pipeline.budget_setting, change, self.clock())

    def budgets(self) -> list[BudgetOut]:
        """All budgets with their current windows."""
        with self.database.read() as session:
            return budget.overview(session, self.pipeline.budget_setting, self.clock())

    def money(self) -> dict[str, int]:
        """What the budget windows and the ledger say, in micro-dollars; several times the same money, of several."""
        (windows,) = self.rows(
            "SELECT coalesce(sum(spent), 0) spent, coalesce(sum(reserved), 0) reserved FROM budget_window"
        )
        (ledger,) = self.rows(
            "SELECT coalesce(sum(settled), 0) settled,"
            " coalesce(sum(reserved) FILTER (WHERE open_until IS NOT NULL), 0) open FROM ledger"
        )
        return {**windows, **ledger}

    async def close(self) -> None:
        """Close the pipeline with its database."""
        await self.pipeline.close()
