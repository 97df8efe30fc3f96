"""Who judges: the embedded reviewer, which is free, or the second model within its budgets."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlmodel import Session

from app import budget, gate, messages, projects, reviews, verdict_cache
from app.breaker import Breaker
from app.budget import NoRoom, strictest
from app.cases import Case, Draft
from app.db import Database
from app.in_flight import InFlight
from app.reviewers import Reviewer
from app.reviewers.offline import OfflineReviewer
from app.schemas.judging import Fault, Judgement, Shortcut
from app.schemas.vocabulary import AtCap, Level
from app.settings import Settings

MARGIN_SECONDS = 0.5
LEASE_SECONDS = 30.0
MODEL_CALLS_AT_ONCE = 8
# A timeout of a caller with less time than this says nothing about the model's service.
PATIENT_SECONDS = 5.0

NOTE_NO_MODEL = "no model is configured; the offline reviewer answered"
NOTE_SURE = "the offline reviewer was sure enough, so the model was not asked"
NOTE_NO_BUDGET = "no budget covers the model; the offline reviewer answered"
NOTE_OFFLINE = "{}; the offline reviewer answered"
NOTE_UNREVIEWED = "{}; NOBODY REVIEWED this text, as the budget wants it"


class OfflineJudging:
    """The embedded reviewer's word on drafts."""

    def __init__(self) -> None:
        self.reviewer = OfflineReviewer()

    def judge(self, case: Case) -> None:
        """Judge what nobody has judged yet; at level `gate` nobody does."""
        for draft in case.drafts:
            if draft.undecided and case.level is not Level.GATE:
                self.judge_draft(draft)

    def judge_draft(self, draft: Draft) -> None:
        """Judge one draft, whether or not it was judged before."""
        draft.judgement = self.reviewer.judge(draft.brief)
        draft.cache_key = None  # what it found must never pass for the model's word


class ModelJudging:
    """The second model's word on drafts: planned, reserved, asked, or done without."""

    def __init__(
        self,
        model: Reviewer,
        offline: OfflineJudging,
        database: Database,
        settings: Settings,
        budget_setting: budget.Setting,
        breaker: Breaker,
        in_flight: InFlight,
        now: Callable[[], datetime],
    ) -> None:
        self._model = model
        self._offline = offline
        self._database = database
        self._settings = settings
        self._budget_setting = budget_setting
        self._breaker = breaker
        self._in_flight = in_flight
        self._now = now

    def plan(self, session: Session, case: Case) -> None:
        """Find out what the model need not be asked, whether it may be asked the rest, and what that may cost."""
        for draft in case.drafts:
            if draft.gate or draft.passed:
                continue
            draft.brief = verdict_cache.in_fixed_order(draft.brief)
            draft.cache_key = verdict_cache.key(draft.brief, self._model.fingerprint)
            draft.judgement = draft.judgement or reviews.cached(session, draft.cache_key)
            if draft.judgement is not None:
                continue
            if case.repeats(draft):
                # An equal text is a duplicate without a reviewer; the decision is made again under the lock.
                self._offline.judge_draft(draft)
            elif self._settings.cascade == "on":
                found = self._offline.reviewer.judge(draft.brief)
                if found.sure:
                    draft.judgement = found.model_copy(update={"shortcut": Shortcut.CASCADE})
                    draft.cache_key = None
        undecided = [draft for draft in case.drafts if draft.undecided]
        case.worst = sum(self._model.worst_case_microdollars(draft.brief) for draft in undecided)
        covers = budget.covering(session, self._budget_setting, case.payer, case.created_at) if undecided else []
        case.at_cap = strictest(covers) if covers else self._settings.at_cap
        case.asks_model = bool(undecided) and (bool(covers) or case.worst == 0)
        if undecided and not case.asks_model:
            case.note = NOTE_NO_BUDGET

    async def admit(self, case: Case) -> Fault | None:
        """Write the call down and reserve its cost, before anything is paid; what speaks against it, if something does.

        Where the breaker or the budgets have no room nothing is written down. Nor is it if another request did so;
        then the case is not opened either.

        Raises:
            Unavailable: the database does not answer.
        """
        calls = sum(draft.undecided for draft in case.drafts)
        callers = (f"key {case.caller.key_id}", f"project {case.request.project}")
        fault = self._breaker.admit(callers, calls)
        if fault is not None:
            return fault
        try:
            await asyncio.to_thread(self.open, case)
        finally:
            if not case.opened:
                self._breaker.give_back(callers, calls)
        return Fault.BUDGET_EXHAUSTED if case.no_room is not None else None

    def open(self, case: Case) -> None:
        """Write the call down and reserve its cost, if no other request has and the budgets have room."""
        now = self._now()
        open_until = now + timedelta(seconds=case.request.deadline_seconds + LEASE_SECONDS)
        try:
            with self._database.write() as session:
                if reviews.find_call(session, case.caller, case.request) is not None:
                    return
                project = projects.ensure(session, case.caller, case.request.project, now)
                reviews.add_calls(session, [case], project.id, open_until)
                reviews.add(session, reviews.undecided(case, project.id))
                case.reservation = budget.reserve(
                    session,
                    self._budget_setting,
                    call_id=case.call_id,
                    payer=case.payer,
                    amount=case.worst,
                    now=now,
                    open_until=open_until,
                )
                case.opened = True
        except NoRoom as no_room:
            case.no_room = no_room

    async def ask(self, case: Case, give_up: float) -> None:
        """Ask about every draft that is undecided, several at once; ``give_up`` is a time of the event loop's clock."""
        clock = asyncio.get_running_loop().time
        places = asyncio.Semaphore(MODEL_CALLS_AT_ONCE)

        async def ask(draft: Draft) -> None:
            async with places:
                left = give_up - MARGIN_SECONDS - clock()
                judgement = await self._model.review(draft.brief, left) if left > 0 else _unasked(Fault.TIMEOUT)
                if judgement.fault is not Fault.TIMEOUT or left >= PATIENT_SECONDS:
                    self._breaker.learn(judgement.fault)
                draft.judgement = _with_storable_suggestion(judgement)

        async with asyncio.TaskGroup() as group:
            for draft in case.drafts:
                if draft.undecided:
                    self._in_flight.asks(group.create_task(ask(draft)))

    def do_without(self, case: Case, fault: Fault) -> None:
        """Judge a case whose model may not be asked, by what its budgets say of that."""
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
            self._offline.judge(case)

    def _let_pass(self, case: Case) -> None:
        """Approve what nobody reviews, but for what looks like an attack: no budget asks for that to pass."""
        for draft in case.drafts:
            if draft.undecided:
                self._offline.judge_draft(draft)
                assert draft.judgement is not None  # noqa: S101
                facts = draft.judgement.facts
                if draft.judgement.fault is None and not (facts and facts.addresses_reader):
                    draft.judgement = Judgement(reviewer="gate", facts=None, fault=Fault.BUDGET_EXHAUSTED)
                    draft.unreviewed = True


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
