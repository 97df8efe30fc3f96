"""The way of a candidate, stage by stage.

Looking happens on a snapshot, without a lock: gate, twin, neighbours, cache, and the offline reviewer, which is free.
Where the second model is to be asked, a first short transaction writes the call down and reserves its cost; no
connection is held while the model thinks. One short transaction under the project's lock then re-checks what may
have changed meanwhile, decides, and makes the entries. Calls that wait for SQLite's one writer share a transaction.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app import budget, decisions, entries, gate, messages, policy, projects, reviews, verdict_cache
from app.breaker import Breaker
from app.budget import NoRoom, Payer, strictest
from app.callers import Caller
from app.cases import Case, Draft, Outcome, Twin
from app.db import Database, new_id, utc_now
from app.embeddings import Embedder, KeptVectors
from app.errors import Unavailable
from app.in_flight import InFlight
from app.index import Index
from app.metrics import Metrics
from app.models import LOCAL_KEY, Call, Entry
from app.neighbours import Indexed, Newcomer, Vicinity
from app.projects import ProjectRow
from app.reviewers import Reviewer
from app.reviewers.offline import OfflineReviewer
from app.reviews import SentBack
from app.rounds import Answer, Asked, Rounds
from app.schemas import (
    AtCap,
    Brief,
    CallOut,
    Category,
    Decision,
    EntryRef,
    EntryStatus,
    Facts,
    Fault,
    Judgement,
    Level,
    Neighbour,
    Operation,
    PassageRef,
    Reason,
    ReviewOut,
    ReviewRequest,
    Shortcut,
    Verdict,
)
from app.settings import Settings
from app.stores import can_update
from app.words import overlap

MARGIN_SECONDS = 0.5
LEASE_SECONDS = 30.0
# In a project with fewer changes, nearly every new entry is a neighbour of the next one.
FEWEST_IN_COMPANY = 1_000
POLL_SECONDS = 0.05
MODEL_CALLS_AT_ONCE = 8
# A timeout of a caller with less time than this says nothing about the model's service.
PATIENT_SECONDS = 5.0
LAPSE_EVERY = timedelta(seconds=1)
NEAR_SIMILARITY = 0.8
NEAR_WORDS = 0.6

log = structlog.get_logger(__name__)

NOTE_NO_MODEL = "no model is configured; the offline reviewer answered"
NOTE_SURE = "the offline reviewer was sure enough, so the model was not asked"
NOTE_NO_BUDGET = "no budget covers the model; the offline reviewer answered"
NOTE_OFFLINE = "{}; the offline reviewer answered"
NOTE_UNREVIEWED = "{}; NOBODY REVIEWED this text, as the budget wants it"


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
        self._refused_vectors = KeptVectors(embedder)
        self._database = database
        self._settings = settings
        self._offline = OfflineReviewer()
        self._model = model
        self._now = now
        self._lapsed = datetime.min.replace(tzinfo=UTC)
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
                if isinstance(answer, Case):
                    answer = await self._with_model(answer, give_up)
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
                        held += self._hold(session, call, now)
        with self._database.write() as session:
            budget.expire(session, now)
            self.index.documents.erase_retired(session, now)
        self._tell(held)

    @staticmethod
    def _hold(session: Session, call: Call, now: datetime) -> list[ReviewOut]:
        rows = [row for row in reviews.of_call(session, call.id) if row["verdict"] is None]
        for row in rows:
            reviews.settle(row, _held(Fault.INTERRUPTED), now=now)
        reviews.save(session, rows)
        if not call.dry_run:
            reviews.wait(session, rows, now)
        reviews.close_call(session, call.id)
        return [reviews.out(row, "") for row in rows]

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

    # --- stages ----------------------------------------------------------------------------------------------

    def _without_model(self, caller: Caller, request: ReviewRequest) -> CallOut | Case | None:
        """The answer, if none has to be paid for; the case, if the model is to be asked; None while it is asked."""
        now = self._now()
        self._let_lapse(now)
        if self._model is None:
            return self._at_once(caller, request, now)
        with self._database.read() as session:
            if (call := reviews.find_call(session, caller, request)) is not None:
                return self._repeated(session, call)
            project = projects.find(session, caller, request.project)
            case = self._look_around(session, project, caller, request, self._drafts(request))
        if case.asks_model:
            return case
        self._judge_offline(case)
        return self._record(case)

    def _at_once(self, caller: Caller, request: ReviewRequest, now: datetime) -> CallOut | None:
        """Look, judge and record in one transaction, where there is no model that one would have to wait for."""
        drafts = self._drafts(request)
        with self._database.write() as session:
            if (call := reviews.find_call(session, caller, request)) is not None:
                return self._repeated(session, call)
            project = projects.locked(session, caller, request.project, now)
            case = self._look_around(session, project, caller, request, drafts)
            self._judge_offline(case)
            answer = self._write_down(session, project, case, self._now())
        self._tell(answer.reviews, dry_run=request.dry_run)
        return answer

    # --- several calls in one transaction ---------------------------------------------------------------------------

    def _round(self, asked: Sequence[Asked]) -> list[Answer | Exception]:
        """The answer to each call, or the exception that it ended in; those that do not go together come one by one."""
        self._let_lapse(self._now())
        together = self._in_company([one.request for one in asked], asked[0].caller) if len(asked) > 1 else {}
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

    def _in_company(self, requests: list[ReviewRequest], caller: Caller) -> dict[str, CallOut]:
        """Answers by session; none at all if one of the calls fails, so that it fails alone.

        Raises:
            Unavailable: the database does not answer.
        """
        simple = [request for request in requests if _is_simple(request)]
        if len(simple) < 2:
            return {}
        try:
            drafted = list(zip(simple, self._drafts(*simple), strict=True))
            with self._database.write() as session:
                project = projects.locked(session, caller, requests[0].project, self._now())
                if project.revision < FEWEST_IN_COMPANY:
                    return {}
                cases = self._look_around_all(session, project, caller, drafted)
                return self._write_all_down(session, project, cases)
        except Unavailable:
            raise
        except Exception:
            log.warning("round.failed", exc_info=True)
            return {}

    def _look_around_all(
        self, session: Session, project: ProjectRow, caller: Caller, drafted: list[tuple[ReviewRequest, Draft]]
    ) -> list[tuple[Case, Vicinity]]:
        """What `_look_around` finds, of the calls about whose texts nothing is known yet."""
        level = project.level or self._settings.level
        if level is not Level.OFFLINE:
            return []
        known = reviews.known_calls(session, caller, [request for request, _ in drafted])
        hashes = [draft.text_hash for _, draft in drafted]
        met = entries.with_twin(session, project.id, hashes) | decisions.with_pass(session, project.id, hashes)
        new = [
            (request, draft)
            for request, draft in drafted
            if (request.session_id, request.tool_call_id) not in known and draft.text_hash not in met and not draft.gate
        ]
        if not new:
            return []
        sent_back = reviews.sent_back_of_each(session, caller, [request.session_id for request, _ in new], project.id)
        shortlists = self.index.neighbourhood.shortlists(
            session, project, [(draft.text, draft.vector) for _, draft in new], self._settings.neighbours
        )
        cases: list[tuple[Case, Vicinity]] = []
        for (request, draft), (near, vicinity) in zip(new, shortlists, strict=True):
            case = Case(caller, request, new_id(), level, [draft], self._now(), revision=project.revision)
            passages = self.index.documents.shortlist(session, project, draft.vector, self._settings.passages)
            draft.brief = draft.brief.model_copy(update={"neighbours": near, "passages": passages})
            if not can_update(request.store):
                case.told = sent_back[request.session_id].told
            self._recall(draft, sent_back[request.session_id])
            cases.append((case, vicinity))
        return cases

    def _write_all_down(
        self, session: Session, project: ProjectRow, cases: list[tuple[Case, Vicinity]]
    ) -> dict[str, CallOut]:
        """Judge and decide in order, and write down what no entry that is made before it could have changed."""
        now = self._now()
        decided: list[tuple[Case, Draft, Outcome, reviews.Row]] = []
        proposed: list[tuple[Draft, reviews.Row, entries.Proposal]] = []
        newcomers: list[Newcomer] = []
        taken: set[str] = set()
        for case, vicinity in cases:
            (draft,) = case.drafts
            if draft.text_hash in taken or any(vicinity.may_change(newcomer) for newcomer in newcomers):
                continue
            self._judge_offline(case)
            (outcome,) = self._decide_all(session, project, case)
            if outcome.supersedes is not None:
                continue
            (row,) = reviews.undecided(case, project.id)
            decided.append((case, draft, outcome, row))
            if outcome.decision.verdict is Verdict.APPROVE and (proposal := self._proposal(case, draft, row, now)):
                proposed.append((draft, row, proposal))
                newcomers.append(Newcomer.of(draft.text, draft.vector))
                taken.add(draft.text_hash)
                if proposal.category is Category.STATE:
                    break  # which all others would meet
        if not decided:
            return {}
        reviews.add_calls(session, [case for case, _, _, _ in decided], project.id)
        made = entries.add_all(session, project.id, [proposal for _, _, proposal in proposed], now)
        indexed: list[Indexed] = []
        for (draft, row, _), (entry_id, revision) in zip(proposed, made, strict=True):
            row["entry_id"] = entry_id
            indexed.append(Indexed(entry_id, draft.text, draft.vector, revision))
        self.index.neighbourhood.add_all(session, project.id, indexed)
        for case, draft, outcome, row in decided:
            self._settle(case, draft, outcome, row, now)
        rows = [row for _, _, _, row in decided]
        reviews.add(session, rows)
        reviews.wait(session, rows, now)
        return {row["session_id"]: _answer([row], project.name, replayed=False) for row in rows}

    async def _with_model(self, case: Case, give_up: float) -> CallOut | None:
        calls = sum(draft.undecided for draft in case.drafts)
        callers = (f"key {case.caller.key_id}", f"project {case.request.project}")
        fault = self.breaker.admit(callers, calls)
        if fault is not None:
            return await asyncio.to_thread(self._do_without, case, fault)
        try:
            if not await asyncio.to_thread(self._open, case):
                return None
        finally:
            if not case.opened:
                self.breaker.give_back(callers, calls)
        if case.no_room is not None:
            return await asyncio.to_thread(self._do_without, case, Fault.BUDGET_EXHAUSTED)
        try:
            await self._ask_model(case, give_up)
        finally:
            # Also on cancellation: what was paid is settled, and what nobody judged is held, not lost.
            recorded = asyncio.ensure_future(self._record_paid(case, give_up))
            await asyncio.shield(recorded)
        return recorded.result()

    async def _record_paid(self, case: Case, give_up: float) -> CallOut:
        """Record what was paid for, waiting for a database that is away while there is time."""
        while True:
            try:
                return await asyncio.to_thread(self._record, case)
            except Unavailable:
                if asyncio.get_running_loop().time() >= give_up:
                    raise
                await asyncio.sleep(POLL_SECONDS)

    def _drafts(self, *requests: ReviewRequest) -> list[Draft]:
        """The candidates of calls, in their order.

        Raises:
            Unavailable: the embeddings server does not answer.
        """
        checked = [
            (request, candidate, gate.check(candidate.text)) for request in requests for candidate in request.candidates
        ]
        texts = [
            gate.redact(candidate.text) if Reason.SECRET in reasons else candidate.text
            for _, candidate, reasons in checked
        ]
        drafts: list[Draft] = []
        for (request, candidate, reasons), text, vector in zip(checked, texts, self.index.embed(texts), strict=True):
            brief = Brief(
                text=gate.legible(text),
                project=request.project,
                operation=request.operation,
                key=gate.redact(candidate.key) if candidate.key else None,
                neighbours=(),
                passages=(),
            )
            drafts.append(Draft(candidate, text, gate.text_hash(text), reasons, vector, brief))
        return drafts

    def _look_around(
        self,
        session: Session,
        project: ProjectRow | None,
        caller: Caller,
        request: ReviewRequest,
        drafts: list[Draft],
    ) -> Case:
        level = (project.level if project else None) or self._settings.level
        case = Case(caller, request, new_id(), level, drafts, self._now())
        if level is Level.GATE:
            return case
        if project is not None:
            case.revision = project.revision
            sent_back = reviews.sent_back(session, caller, request.session_id, project.id)
            if request.operation is Operation.UPDATE or not can_update(request.store):
                case.told = sent_back.told
            for draft in drafts:
                self._take_decision(session, project, draft)
                if draft.gate:
                    continue
                self._meet_neighbours(session, project, case, draft)
                self._recall(draft, sent_back)
        if level is Level.MODEL:
            self._plan_model(session, case)
        return case

    def _take_decision(self, session: Session, project: ProjectRow, draft: Draft) -> None:
        """Let pass without another judgement what was decided to be stored, word for word, save a secret."""
        if Reason.SECRET in draft.gate or (facts := self._pass(session, project, draft)) is None:
            return
        draft.passed, draft.gate = True, ()
        draft.judgement = Judgement(reviewer="decision", facts=facts)

    def _pass(self, session: Session, project: ProjectRow, draft: Draft) -> Facts | None:
        told_after = self._now() - timedelta(days=self._settings.held_days)
        return decisions.open_pass(session, project.id, draft.text_hash, told_after)

    def _meet_neighbours(self, session: Session, project: ProjectRow, case: Case, draft: Draft) -> None:
        request = case.request
        if request.operation is Operation.UPDATE:
            named = entries.named(session, project.id, request.store, draft.candidate.store_id, draft.candidate.key)
            draft.updates = frozenset(entry.id for entry in named)
            draft.replaces = named[0].id if len(named) == 1 else None
        draft.twin = entries.twin(session, project.id, draft.text_hash)
        if draft.twin is not None and not _refuses(draft.twin, case, draft.replaces):
            draft.retries = draft.twin.entry.id
        near = self.index.neighbourhood.shortlist(
            session, project, draft.text, draft.vector, self._settings.neighbours, leave_out=draft.own
        )
        edited = draft.candidate.key if request.operation is Operation.UPDATE else None
        passages = self.index.documents.shortlist(
            session, project, draft.vector, self._settings.passages, leave_out=edited
        )
        draft.brief = draft.brief.model_copy(update={"neighbours": near, "passages": passages})

    def _recall(self, draft: Draft, sent_back: SentBack) -> None:
        """Hold for a person what the session has rephrased too often."""
        if not draft.passed and self._is_worn_out(draft, sent_back.refused):
            draft.judgement = Judgement(reviewer="gate", facts=None, fault=Fault.REPEATED_REFUSALS)

    def _is_worn_out(self, draft: Draft, refused: list[str]) -> bool:
        """Whether near-same texts were refused so often in this session that only a person should decide on another.

        It keeps an agent from rephrasing until some wording happens to pass.
        """
        if len(refused) < policy.MOST_REFUSALS:
            return False
        similarities = self._refused_vectors.embed(refused) @ draft.vector
        near = sum(
            similarity >= NEAR_SIMILARITY or overlap(draft.text, text) >= NEAR_WORDS
            for similarity, text in zip(similarities, refused, strict=True)
        )
        return int(near) >= policy.MOST_REFUSALS

    def _plan_model(self, session: Session, case: Case) -> None:
        if self._model is None:
            case.note = NOTE_NO_MODEL
            return
        for draft in case.drafts:
            if draft.gate or draft.passed:
                continue
            draft.brief = verdict_cache.in_fixed_order(draft.brief)
            draft.cache_key = verdict_cache.key(draft.brief, self._model.fingerprint)
            draft.judgement = draft.judgement or reviews.cached(session, draft.cache_key)
            if draft.judgement is not None:
                continue
            if draft.twin and _refuses(draft.twin, case, draft.replaces):
                # An equal text is a duplicate without a reviewer; the decision is made again under the lock.
                self._judge_draft_offline(draft)
            elif self._settings.cascade == "on":
                found = self._offline.judge(draft.brief)
                if found.sure:
                    draft.judgement = found.model_copy(update={"shortcut": Shortcut.CASCADE})
                    draft.cache_key = None
        undecided = [draft for draft in case.drafts if draft.undecided]
        case.worst = sum(self._model.worst_case_microdollars(draft.brief) for draft in undecided)
        covers = budget.covering(session, self.budget_setting, _payer(case), case.created_at) if undecided else []
        case.at_cap = strictest(covers) if covers else self._settings.at_cap
        case.asks_model = bool(undecided) and (bool(covers) or case.worst == 0)
        if undecided and not case.asks_model:
            case.note = NOTE_NO_BUDGET

    def _judge_offline(self, case: Case) -> None:
        for draft in case.drafts:
            if draft.undecided and case.level is not Level.GATE:
                self._judge_draft_offline(draft)

    def _judge_draft_offline(self, draft: Draft) -> None:
        draft.judgement = self._offline.judge(draft.brief)
        draft.cache_key = None  # what it found must never pass for the model's word

    def _open(self, case: Case) -> bool:
        """Write the call down and reserve its cost, before anything is paid; False if another request did so.

        Where the budgets have no room nothing is written down, and the case says so.
        """
        now = self._now()
        open_until = now + timedelta(seconds=case.request.deadline_seconds + LEASE_SECONDS)
        try:
            with self._database.write() as session:
                if reviews.find_call(session, case.caller, case.request) is not None:
                    return False
                project = projects.ensure(session, case.caller, case.request.project, now)
                reviews.add_calls(session, [case], project.id, open_until)
                reviews.add(session, reviews.undecided(case, project.id))
                case.reservation = budget.reserve(
                    session,
                    self.budget_setting,
                    call_id=case.call_id,
                    payer=_payer(case),
                    amount=case.worst,
                    now=now,
                    open_until=open_until,
                )
                case.opened = True
        except NoRoom as no_room:
            case.no_room = no_room
        return True

    def _do_without(self, case: Case, fault: Fault) -> CallOut:
        """Record a case whose model may not be asked, by what its budgets say of that."""
        why = messages.FAULTS[fault]
        if case.no_room is not None and case.no_room.shortages:
            case.at_cap = strictest(case.no_room.covers)
            why = f"{case.no_room.covers[0].name} is used up"
        # That all may pass is said of spending, not of a provider that is down or an agent that runs away.
        if case.at_cap is AtCap.ALLOW and fault is Fault.BUDGET_EXHAUSTED:
            case.note = NOTE_UNREVIEWED.format(why)
            self._let_pass(case)
        elif case.at_cap is AtCap.HOLD:
            for draft in case.drafts:
                if draft.undecided:
                    draft.judgement = _unasked(fault, str(case.no_room or ""))
        else:
            case.note = NOTE_OFFLINE.format(why) if case.no_room is None or case.no_room.covers else NOTE_NO_BUDGET
            self._judge_offline(case)
        return self._record(case)

    def _let_pass(self, case: Case) -> None:
        """Approve what nobody reviews, but for what looks like an attack: no budget asks for that to pass."""
        for draft in case.drafts:
            if draft.undecided:
                self._judge_draft_offline(draft)
                assert draft.judgement is not None  # noqa: S101
                facts = draft.judgement.facts
                if draft.judgement.fault is None and not (facts and facts.addresses_reader):
                    draft.judgement = Judgement(reviewer="gate", facts=None, fault=Fault.BUDGET_EXHAUSTED)
                    draft.unreviewed = True

    async def _ask_model(self, case: Case, give_up: float) -> None:
        assert self._model is not None  # noqa: S101
        model, clock = self._model, asyncio.get_running_loop().time
        places = asyncio.Semaphore(MODEL_CALLS_AT_ONCE)

        async def ask(draft: Draft) -> None:
            async with places:
                left = give_up - MARGIN_SECONDS - clock()
                judgement = await model.review(draft.brief, left) if left > 0 else _unasked(Fault.TIMEOUT)
                if judgement.fault is not Fault.TIMEOUT or left >= PATIENT_SECONDS:
                    self.breaker.learn(judgement.fault)
                draft.judgement = _with_storable_suggestion(judgement)

        async with asyncio.TaskGroup() as group:
            for draft in case.drafts:
                if draft.undecided:
                    self.in_flight.asks(group.create_task(ask(draft)))

    def _record(self, case: Case) -> CallOut:
        """Decide under the project's lock, make the entries and write everything down, in one transaction.

        Raises:
            IntegrityError: another request wrote the same call, or an equal text, meanwhile.
        """
        now = self._now()
        self._let_lapse(now)
        with self._database.write() as session:
            project = projects.locked(session, case.caller, case.request.project, now)
            answer = self._write_down(session, project, case, now)
        self._tell(answer.reviews, dry_run=case.request.dry_run)
        for cover in case.warned:
            log.warning("budget.warning", scope=cover.scope, period=cover.period, percent=cover.warn_percent)
        return answer

    def _write_down(self, session: Session, project: ProjectRow, case: Case, now: datetime) -> CallOut:
        if case.opened:
            rows = reviews.of_call(session, case.call_id)
        else:
            reviews.add_calls(session, [case], project.id)
            rows = reviews.undecided(case, project.id)
        outcomes = self._decide_all(session, project, case)
        # What a person decided while the model was thinking stands, and counts for the call like any other verdict.
        open_ = [
            (row, draft, outcome)
            for row, draft, outcome in zip(rows, case.drafts, outcomes, strict=True)
            if row["verdict"] is None
        ]
        verdicts = [row["verdict"] or outcome.decision.verdict for row, outcome in zip(rows, outcomes, strict=True)]
        makes_entries = policy.combine(verdicts) is Verdict.APPROVE and not case.request.dry_run
        for row, draft, outcome in open_:
            made = self._make_entry(session, project, case, draft, outcome, row, now) if makes_entries else outcome
            self._settle(case, draft, made, row, now)
        if case.opened:
            decided = [row for row, _, _ in open_]
            reviews.save(session, decided)
            if not case.request.dry_run:
                reviews.wait(session, decided, now)
            self._settle_cost(session, case, rows, open_ids={row["id"] for row in decided}, now=now)
            reviews.close_call(session, case.call_id)
        elif case.request.dry_run:
            session.rollback()  # it cost nothing, so nothing need be on record
        else:
            reviews.add(session, rows)
            reviews.wait(session, rows, now)
            if case.no_room is not None:
                budget.note_refusal(session, case.no_room)
        return _answer(rows, project.name, replayed=False)

    @staticmethod
    def _settle_cost(
        session: Session, case: Case, rows: list[reviews.Row], *, open_ids: set[str], now: datetime
    ) -> None:
        """Settle what was reserved, and charge those reviews too whose verdict was found otherwise meanwhile."""
        cost = 0
        for row, draft in zip(rows, case.drafts, strict=True):
            if draft.judgement is not None and draft.judgement.usage.cost_microdollars:
                cost += draft.judgement.usage.cost_microdollars
                if row["id"] not in open_ids:
                    reviews.charge(session, row, draft.judgement)
        if case.reservation is not None:
            case.warned = budget.settle(session, case.reservation, cost=cost, now=now)

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

    @staticmethod
    def _settle(case: Case, draft: Draft, outcome: Outcome, row: reviews.Row, now: datetime) -> None:
        reviews.settle(
            row,
            outcome,
            draft.judgement,
            note=_note(case, draft),
            updatable=can_update(case.request.store),
            now=now,
        )
        row["cache_key"] = draft.cache_key if row["facts"] else None

    # --- decisions under the lock --------------------------------------------------------------------------------

    def _decide_all(self, session: Session, project: ProjectRow, case: Case) -> list[Outcome]:
        outcomes: list[Outcome] = []
        seen: set[str] = set()
        states = 0
        for draft in case.drafts:
            outcome = self._decide(session, project, case, draft)
            if outcome.decision.verdict is Verdict.APPROVE and case.level is not Level.GATE:
                is_state = _category(draft) is Category.STATE
                states += is_state
                if draft.text_hash in seen:
                    outcome = Outcome(Decision(verdict=Verdict.DUPLICATE, reasons=(Reason.DUPLICATE,)))
                elif is_state and states > 1:
                    outcome = Outcome(Decision(verdict=Verdict.REWRITE, reasons=(Reason.SECOND_STATE,)))
            seen.add(draft.text_hash)
            outcomes.append(outcome)
        return outcomes

    def _decide(self, session: Session, project: ProjectRow, case: Case, draft: Draft) -> Outcome:
        if draft.gate:
            return Outcome(policy.refused_by_gate(draft.gate))
        if case.level is Level.GATE:
            return Outcome(Decision(verdict=Verdict.APPROVE))
        if project.revision != case.revision:
            draft.twin = entries.twin(session, project.id, draft.text_hash)
        known = draft.twin
        if known is not None and _refuses(known, case, draft.replaces):
            decision = Decision(verdict=Verdict.DUPLICATE, reasons=(Reason.DUPLICATE,))
            return Outcome(decision, entry=known.entry)
        draft.retries = known.entry.id if known is not None else None
        if draft.judgement is None or (draft.passed and self._pass(session, project, draft) is None):
            return _held(Fault.INTERRUPTED)  # nobody judged it; or what let it pass was taken back at this moment
        self._recheck(session, project, case, draft)
        facts = draft.judgement.facts
        if facts is None:
            verdict = Verdict.APPROVE if draft.unreviewed else Verdict.HELD
            return Outcome(Decision(verdict=verdict), fault=draft.judgement.fault)
        if draft.passed:
            decision = _as_decided(facts, draft.brief)
        else:
            may = case.told | draft.updates
            decision = policy.decide(facts, draft.brief, replaces=draft.replaces, may_supersede=may)
        suspicious = decision.verdict is Verdict.APPROVE and draft.judgement.fault is Fault.SUSPICIOUS
        return _held(Fault.SUSPICIOUS) if suspicious else self._point(session, case, draft, draft.judgement, decision)

    def _recheck(self, session: Session, project: ProjectRow, case: Case, draft: Draft) -> None:
        """Take in what was written to the project after the candidate's neighbours were looked up."""
        if project.revision == case.revision or draft.judgement is None:
            return
        amended = self.index.neighbourhood.amended(
            session, project, draft.brief, draft.vector, since=case.revision, leave_out=draft.own
        )
        if amended == draft.brief:
            return
        shown = {n.entry_id for n in draft.brief.neighbours}
        newcomers = tuple(n for n in amended.neighbours if n.entry_id not in shown)
        draft.brief = amended
        draft.cache_key = None
        again = self._offline.judge(amended.model_copy(update={"neighbours": newcomers}))
        if draft.judgement.reviewer == "offline":
            shortcut = draft.judgement.shortcut
            draft.judgement = self._offline.judge(amended).model_copy(update={"shortcut": shortcut})
        elif draft.judgement.facts is not None and again.facts is not None and again.facts.duplicate_of:
            facts = draft.judgement.facts.model_copy(update={"duplicate_of": again.facts.duplicate_of})
            draft.judgement = draft.judgement.model_copy(update={"facts": facts})
        elif again.possible_duplicate:
            draft.judgement = draft.judgement.model_copy(update={"possible_duplicate": again.possible_duplicate})

    def _point(self, session: Session, case: Case, draft: Draft, judgement: Judgement, decision: Decision) -> Outcome:
        """Turn the decision's labels into the things they name, and give way to another session's pending update."""
        by_label = {n.label: n for n in draft.brief.neighbours}
        target = by_label[decision.entry] if decision.entry else None
        passage = next((p for p in draft.brief.passages if p.label == decision.passage), None)
        quote = judgement.facts.restates.quote if judgement.facts and judgement.facts.restates else ""
        possible = by_label.get(judgement.possible_duplicate or "")
        if possible is target:
            possible = None
        outcome = Outcome(
            decision,
            entry=_reference(target),
            passage=PassageRef(path=passage.path, heading=passage.heading, quote=quote) if passage else None,
            possible_duplicate=_reference(possible),
        )
        if decision.verdict is not Verdict.APPROVE:
            return outcome
        superseded = draft.replaces or (target.entry_id if target else None)
        if superseded is None:
            return outcome
        return self._give_way(session, case, draft, replace(outcome, supersedes=superseded))

    def _give_way(self, session: Session, case: Case, draft: Draft, outcome: Outcome) -> Outcome:
        assert outcome.supersedes is not None  # noqa: S101
        current = session.get_one(Entry, outcome.supersedes)
        expected = draft.candidate.expected_version
        if (expected is not None and expected != current.version) or entries.rival(
            session, case.caller, current.id, case.request.session_id
        ):
            return Outcome(Decision(verdict=Verdict.UPDATE), entry=entries.reference(current))
        return outcome

    def _make_entry(
        self,
        session: Session,
        project: ProjectRow,
        case: Case,
        draft: Draft,
        outcome: Outcome,
        row: reviews.Row,
        now: datetime,
    ) -> Outcome:
        proposal = self._proposal(case, draft, row, now)
        if proposal is None:
            return outcome
        if outcome.supersedes is not None:
            older = session.get_one(Entry, outcome.supersedes)
            entries.propose_version(session, older, proposal, now)
            row["entry_id"] = older.id
            # An update in place needs no further deed; a newer item beside the older one does.
            in_place = case.request.operation is Operation.UPDATE
            return replace(outcome, entry=None if in_place else entries.reference(older))
        if draft.retries is not None and draft.retries != draft.replaces:
            entries.renew(session, session.get_one(Entry, draft.retries), proposal, now)
            row["entry_id"] = draft.retries
        else:
            row["entry_id"], revision = entries.add(session, project.id, proposal, now)
            made = Indexed(row["entry_id"], draft.text, draft.vector, revision)
            self.index.neighbourhood.add(session, project.id, made)
        return outcome

    def _proposal(self, case: Case, draft: Draft, row: reviews.Row, now: datetime) -> entries.Proposal | None:
        """The entry that an approved text becomes; None where nobody judged, at level `gate` or at the cap.

        Nothing of that kind is indexed before it is stored.
        """
        facts = draft.judgement.facts if draft.judgement else None
        if facts is None:
            return None
        return entries.Proposal(
            category=facts.category,
            text=draft.text,
            text_hash=draft.text_hash,
            store=case.request.store,
            key=draft.brief.key,
            store_id=draft.candidate.store_id,
            review_id=row["id"],
            key_id=case.caller.key_id,
            session_id=case.request.session_id,
            agent=case.request.agent,
            expires_at=now + timedelta(minutes=self._settings.pending_minutes),
        )

    @staticmethod
    def _repeated(session: Session, call: reviews.KnownCall) -> CallOut | None:
        if call.open:
            return None
        rows = reviews.of_call(session, call.id)
        return _answer(rows, projects.name_of(session, call.project_id), replayed=True)


def _is_simple(request: ReviewRequest) -> bool:
    """Whether a call only writes one text, as nearly all do."""
    return request.operation is Operation.WRITE and len(request.candidates) == 1 and not request.dry_run


def _answer(rows: list[reviews.Row], project: str, *, replayed: bool) -> CallOut:
    outs = [reviews.out(row, project) for row in rows]
    verdict = policy.combine([out.verdict for out in outs])
    return CallOut(verdict=verdict, reviews=outs, context=messages.context(verdict, outs), replayed=replayed)


def _payer(case: Case) -> Payer:
    key_id = case.caller.key_id
    return Payer(project=case.request.project, key_id=None if key_id == LOCAL_KEY else key_id)


def _unasked(fault: Fault, detail: str = "") -> Judgement:
    return Judgement(reviewer="anthropic", facts=None, fault=fault, fault_detail=detail or None)


def _with_storable_suggestion(judgement: Judgement) -> Judgement:
    """The judgement without its suggested text if that would be refused: no advice to write what is sent back.

    Nothing is suggested for an attack: what is left of it in other words would reach the agent as our own advice.
    """
    facts = judgement.facts
    if facts is None or facts.suggested_text is None:
        return judgement
    if not facts.addresses_reader and not gate.check(facts.suggested_text):
        return judgement
    return judgement.model_copy(update={"facts": facts.model_copy(update={"suggested_text": None})})


def _held(fault: Fault | None) -> Outcome:
    return Outcome(Decision(verdict=Verdict.HELD), fault=fault)


def _as_decided(facts: Facts, brief: Brief) -> Decision:
    """Approval; a STATE takes the place of the one that the project has."""
    state = brief.state if facts.category is Category.STATE else None
    return Decision(verdict=Verdict.APPROVE, entry=state.label if state else None)


def _refuses(known: Twin, case: Case, replaces: str | None) -> bool:
    """Whether an entry of equal text makes the candidate a duplicate rather than a retry or an update."""
    if known.entry.status is EntryStatus.UNCONFIRMED or known.entry.id == replaces:
        return False
    own = (known.key_id, known.session_id) == (case.caller.key_id, case.request.session_id)
    # The own session offers again what is on its way, or has reviewed what it was let store unreviewed.
    return not (own and (known.entry.status is EntryStatus.PENDING or known.unreviewed))


def _category(draft: Draft) -> Category | None:
    return draft.judgement.facts.category if draft.judgement and draft.judgement.facts else None


def _reference(neighbour: Neighbour | None) -> EntryRef | None:
    if neighbour is None:
        return None
    shown = neighbour.model_dump(include=EntryRef.model_fields.keys() - {"id"})
    return EntryRef(id=neighbour.entry_id, **shown)


def _note(case: Case, draft: Draft) -> str | None:
    """What is to be said of who judged, where the model did not."""
    judgement = draft.judgement
    if judgement is not None and judgement.shortcut is Shortcut.CASCADE:
        return NOTE_SURE
    told = draft.unreviewed or (judgement is not None and judgement.reviewer == "offline")
    return case.note if told else None
