"""What a case leaves behind: reviews, entries, costs; written in the caller's transaction, under the project's lock."""

from dataclasses import replace
from datetime import datetime, timedelta

from sqlmodel import Session

from app import budget, entries, messages, policy, projects, reviews
from app.cases import Case, Draft, Outcome
from app.index import Index
from app.models import Call, Entry
from app.neighbours import Indexed
from app.pipeline.deciding import Deciding
from app.pipeline.judging import NOTE_SURE
from app.projects import ProjectRow
from app.schemas.judging import Fault, Shortcut
from app.schemas.reviews import CallOut, ReviewOut
from app.schemas.vocabulary import Operation, Verdict
from app.stores import can_update


class Recording:
    """Writes down what was decided, and makes the entries that it leads to."""

    def __init__(self, deciding: Deciding, index: Index, pending: timedelta) -> None:
        """Record what ``deciding`` decides; entries wait ``pending`` to be reported as stored."""
        self._deciding = deciding
        self._index = index
        self._pending = pending

    def write_down(self, session: Session, project: ProjectRow, case: Case, now: datetime) -> CallOut:
        """Decide a case whose drafts have been judged, write it down, and answer the call; a dry run leaves nothing."""
        if case.opened:
            rows = reviews.of_call(session, case.call_id)
        else:
            reviews.add_calls(session, [case], project.id)
            rows = reviews.undecided(case, project.id)
        outcomes = self._deciding.outcomes(session, project, case)
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
            self.settle(case, draft, made, row, now)
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
        return answer(rows, project.name, replayed=False)

    @staticmethod
    def settle(case: Case, draft: Draft, outcome: Outcome, row: reviews.Row, now: datetime) -> None:
        """Put a draft's outcome into its row."""
        reviews.settle(
            row,
            outcome,
            draft.judgement,
            note=_note(case, draft),
            updatable=can_update(case.request.store),
            now=now,
        )
        row["cache_key"] = draft.cache_key if row["facts"] else None

    def proposal(self, case: Case, draft: Draft, row: reviews.Row, now: datetime) -> entries.Proposal | None:
        """The entry that an approved text becomes; None where nobody judged, at level `gate` or at the cap.

        Nothing of that kind is indexed before it is stored.
        """
        facts = draft.facts
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
            expires_at=now + self._pending,
        )

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
        proposal = self.proposal(case, draft, row, now)
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
            self._index.neighbourhood.add(session, project.id, made)
        return outcome


def hold_open(session: Session, call: Call, now: datetime) -> list[ReviewOut]:
    """Hold what a call left without a verdict when its process ended, and close it."""
    rows = [row for row in reviews.of_call(session, call.id) if row["verdict"] is None]
    for row in rows:
        reviews.settle(row, Outcome.held(Fault.INTERRUPTED), now=now)
    reviews.save(session, rows)
    if not call.dry_run:
        reviews.wait(session, rows, now)
    reviews.close_call(session, call.id)
    return [reviews.out(row, "") for row in rows]


def repeated(session: Session, call: reviews.KnownCall) -> CallOut | None:
    """The answer that a call got when it was first made; None while it is still being judged."""
    if call.open:
        return None
    rows = reviews.of_call(session, call.id)
    return answer(rows, projects.name_of(session, call.project_id), replayed=True)


def answer(rows: list[reviews.Row], project: str, *, replayed: bool) -> CallOut:
    """What a call is told of its reviews."""
    outs = [reviews.out(row, project) for row in rows]
    verdict = policy.combine([out.verdict for out in outs])
    return CallOut(verdict=verdict, reviews=outs, context=messages.context(verdict, outs), replayed=replayed)


def _note(case: Case, draft: Draft) -> str | None:
    """What is to be said of who judged, where the model did not."""
    judgement = draft.judgement
    if judgement is not None and judgement.shortcut is Shortcut.CASCADE:
        return NOTE_SURE
    told = draft.unreviewed or (judgement is not None and judgement.reviewer == "offline")
    return case.note if told else None
