"""The way of a candidate, stage by stage: `looking`, `judging`, `deciding`, `recording`; `company` takes several.

Looking happens on a snapshot, without a lock: gate, twin, neighbours, cache, and the offline reviewer, which is free.
Where the second model is to be asked, a first short transaction writes the call down and reserves its cost; no
connection is held while the model thinks. One short transaction under the project's lock then re-checks what may
have changed meanwhile, decides, and makes the entries. Calls that wait for SQLite's one writer share a transaction.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy.exc import IntegrityError

from app import budget, entries, projects, reviews
from app.breaker import Breaker
from app.callers import Caller
from app.cases import Case
from app.db import Database, utc_now
from app.embeddings import Embedder
from app.errors import Unavailable
from app.in_flight import InFlight
from app.index import Index
from app.metrics import Metrics
from app.pipeline.company import Company
from app.pipeline.deciding import Deciding
from app.pipeline.judging import NOTE_NO_MODEL, ModelJudging, OfflineJudging
from app.pipeline.looking import Looking
from app.pipeline.recording import Recording, hold_open, repeated
from app.reviewers import Reviewer
from app.rounds import Answer, Asked, Rounds
from app.schemas.judging import Fault
from app.schemas.reviews import CallOut, ReviewOut, ReviewRequest
from app.schemas.vocabulary import Level
from app.settings import Settings

POLL_SECONDS = 0.05
LAPSE_EVERY = timedelta(seconds=1)

log = structlog.get_logger(__name__)


class Pipeline:
    """Reviews memory tool calls, and hears what became of the approved ones."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        embedder: Embedder,
        *,
        model: Reviewer | None = None,
        now: Callable[[], datetime] = utc_now,
        metrics: Metrics | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self.in_flight = InFlight()
        self.metrics = metrics or Metrics()
        self.budget_setting = budget.Setting.of(settings)
        self.breaker = breaker or Breaker(now, calls_per_minute=settings.model_calls_per_minute)
        self.metrics.circuit_open.set_function(lambda: self.breaker.state == "open")
        self.index = Index(database, embedder, now=now)
        self._database = database
        self._model = model
        self._now = now
        self._lapsed = datetime.min.replace(tzinfo=UTC)
        self._looking = Looking(self.index, settings, embedder, now)
        self._offline = OfflineJudging()
        self._asking: ModelJudging | None = None
        if model is not None:
            self._asking = ModelJudging(
                model, self._offline, database, settings, self.budget_setting, self.breaker, self.in_flight, now
            )
        deciding = Deciding(self._looking, self.index, self._offline.reviewer)
        self._recording = Recording(deciding, self.index, timedelta(minutes=settings.pending_minutes))
        self._company = Company(self.index, self._looking, self._offline, deciding, self._recording, now)
        # Who waits for the one writer may as well be judged in company; with a model, one waits for that.
        in_rounds = model is None and database.one_writer and self.index.neighbourhood.sees_many
        self._rounds = Rounds(self._round) if in_rounds else None

    async def review(self, caller: Caller, request: ReviewRequest) -> CallOut:
        """Judge a call; the same call again gets the same answer, at no further cost.

        Raises:
            NotFound: the project is none of the caller's.
            Conflict: the session used this tool call id for another content.
            Unavailable: the database does not answer, the same call is still being judged, or the service is stopping.
        """
        caller.check(request.project)
        with self.in_flight.review(), self.metrics.in_flight.track_inprogress():
            return await self._review(caller, request)

    async def _review(self, caller: Caller, request: ReviewRequest) -> CallOut:
        give_up = asyncio.get_running_loop().time() + request.deadline_seconds
        while True:
            try:
                answer = await self._ask_without_model(caller, request)
                if isinstance(answer, Case) and self._asking is not None:
                    answer = await self._with_model(self._asking, answer, give_up)
            except IntegrityError:
                answer = None  # the same call, or the same text, was written at the same moment: look again
            if isinstance(answer, CallOut):
                return answer
            if asyncio.get_running_loop().time() >= give_up:
                raise Unavailable("This call is still being judged; ask again with the same tool_call_id.")
            await asyncio.sleep(POLL_SECONDS)

    async def _ask_without_model(self, caller: Caller, request: ReviewRequest) -> CallOut | Case | None:
        if self._rounds is not None:
            return await self._rounds.ask(caller, request)
        return await asyncio.to_thread(self._without_model, caller, request)

    async def close(self) -> None:
        """Close the model's and the database's connections."""
        if self._model is not None:
            await self._model.aclose()
        self._database.close()

    def sweep(self) -> None:
        """Let lapse what nobody came back for: pending entries, reservations, interrupted calls, documents."""
        now = self._now()
        with self._database.read() as session:
            lapsed = entries.lapsed_projects(session, now)
            interrupted = {call.project_id for call in reviews.interrupted(session, now)}
        held: list[ReviewOut] = []
        # One project at a time, so that nobody waits for more than the own one.
        for project_id in sorted(interrupted.union(lapsed)):
            with self._database.write() as session:
                projects.lock(session, project_id)
                entries.expire(session, project_id, now)
                for call in reviews.interrupted(session, now):
                    if call.project_id == project_id:
                        held += hold_open(session, call, now)
        with self._database.write() as session:
            budget.expire(session, now)
            self.index.documents.erase_retired(session, now)
        self._tell(held)

    def _tell(self, judged: list[ReviewOut], *, dry_run: bool = False) -> None:
        """Tell the log and the metrics of texts that were judged: no word of theirs, only what became of them."""
        for review in judged:
            self.metrics.paid(review)
            if not dry_run:
                self.metrics.reviewed(review)
            log.info(
                "review",
                review=review.id,
                verdict=review.verdict.value,
                reasons=[reason.value for reason in review.reasons],
                reviewer=review.reviewer,
                shortcut=review.shortcut.value if review.shortcut else None,
                fault=review.fault.value if review.fault else None,
                cost_microdollars=review.usage.cost_microdollars,
                ms=round((review.decided_at - review.created_at).total_seconds() * 1_000, 1),
                dry_run=dry_run,
            )

    def _without_model(self, caller: Caller, request: ReviewRequest) -> CallOut | Case | None:
        """The answer, if none has to be paid for; the case, if the model is to be asked; None while it is asked."""
        now = self._now()
        self._let_lapse(now)
        if self._asking is None:
            return self._at_once(caller, request, now)
        with self._database.read() as session:
            if (call := reviews.find_call(session, caller, request)) is not None:
                return repeated(session, call)
            project = projects.find(session, caller, request.project)
            case = self._looking.around(session, project, caller, request, self._looking.drafts(request))
            if case.level is Level.MODEL:
                self._asking.plan(session, case)
        if case.asks_model:
            return case
        self._offline.judge(case)
        return self._record(case)

    def _at_once(self, caller: Caller, request: ReviewRequest, now: datetime) -> CallOut | None:
        """Look, judge and record in one transaction, where there is no model that one would have to wait for."""
        drafts = self._looking.drafts(request)
        with self._database.write() as session:
            if (call := reviews.find_call(session, caller, request)) is not None:
                return repeated(session, call)
            project = projects.locked(session, caller, request.project, now)
            case = self._looking.around(session, project, caller, request, drafts)
            if case.level is Level.MODEL:
                case.note = NOTE_NO_MODEL
            self._offline.judge(case)
            answer = self._recording.write_down(session, project, case, self._now())
        self._tell(answer.reviews, dry_run=request.dry_run)
        return answer

    def _round(self, asked: Sequence[Asked]) -> list[Answer | Exception]:
        """The answer to each call, or the exception that it ended in; those that do not go together come one by one."""
        self._let_lapse(self._now())
        together = self._company.answers([one.request for one in asked], asked[0].caller) if len(asked) > 1 else {}
        answers: list[Answer | Exception] = []
        for one in asked:
            answer: Answer | Exception = together.get(one.request.session_id)
            if isinstance(answer, CallOut):
                one.context.run(self._tell, answer.reviews)
            else:
                try:
                    answer = one.context.run(self._at_once, one.caller, one.request, self._now())
                except Exception as exc:  # noqa: BLE001 - whoever asked gets it
                    answer = exc
            answers.append(answer)
        return answers

    async def _with_model(self, asking: ModelJudging, case: Case, give_up: float) -> CallOut | None:
        """The answer, if possible with the model's word; None if another request is asking for it."""
        fault = await asking.admit(case)
        if fault is not None:
            return await asyncio.to_thread(self._do_without, asking, case, fault)
        if not case.opened:
            return None
        try:
            await asking.ask(case, give_up)
        finally:
            # Also on cancellation: what was paid is settled, and what nobody judged is held, not lost.
            recorded = asyncio.ensure_future(self._record_paid(case, give_up))
            await asyncio.shield(recorded)
        return recorded.result()

    def _do_without(self, asking: ModelJudging, case: Case, fault: Fault) -> CallOut:
        asking.do_without(case, fault)
        return self._record(case)

    async def _record_paid(self, case: Case, give_up: float) -> CallOut:
        """Record what was paid for, waiting for a database that is away while there is time."""
        while True:
            try:
                return await asyncio.to_thread(self._record, case)
            except Unavailable:
                if asyncio.get_running_loop().time() >= give_up:
                    raise
                await asyncio.sleep(POLL_SECONDS)

    def _record(self, case: Case) -> CallOut:
        """Decide under the project's lock, make the entries and write everything down, in one transaction.

        Raises:
            IntegrityError: another request wrote the same call, or an equal text, meanwhile.
        """
        now = self._now()
        self._let_lapse(now)
        with self._database.write() as session:
            project = projects.locked(session, case.caller, case.request.project, now)
            answer = self._recording.write_down(session, project, case, now)
        self._tell(answer.reviews, dry_run=case.request.dry_run)
        for cover in case.warned:
            log.warning("budget.warning", scope=cover.scope, period=cover.period, percent=cover.warn_percent)
        return answer

    def _let_lapse(self, now: datetime) -> None:
        """Let lapse what was never reported as stored, looking for it at most once a second."""
        if now - self._lapsed < LAPSE_EVERY:
            return
        self._lapsed = now
        with self._database.read() as session:
            late = entries.lapsed_projects(session, now)
        for project_id in late:
            with self._database.write() as session:
                projects.lock(session, project_id)
                entries.expire(session, project_id, now)
