"""What becomes of a judged case, decided under the project's lock."""

from dataclasses import replace

from sqlmodel import Session

from app import entries, policy
from app.cases import Case, Draft, Outcome
from app.index import Index
from app.models import Entry
from app.pipeline.looking import Looking
from app.projects import ProjectRow
from app.reviewers.offline import OfflineReviewer
from app.schemas.judging import Brief, Decision, Facts, Fault, Judgement, Neighbour
from app.schemas.reviews import EntryRef, PassageRef
from app.schemas.vocabulary import Category, Level, Reason, Verdict


class Deciding:
    """Turns judgements into outcomes; what was written to the project since it was looked at is taken in first."""

    def __init__(self, looking: Looking, index: Index, offline: OfflineReviewer) -> None:
        self._looking = looking
        self._index = index
        self._offline = offline

    def outcomes(self, session: Session, project: ProjectRow, case: Case) -> list[Outcome]:
        """The outcome of each draft, also in view of those before it in the same call."""
        outcomes: list[Outcome] = []
        seen: set[str] = set()
        states = 0
        for draft in case.drafts:
            outcome = self._decide(session, project, case, draft)
            if outcome.decision.verdict is Verdict.APPROVE and case.level is not Level.GATE:
                is_state = draft.facts is not None and draft.facts.category is Category.STATE
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
        if known is not None and case.repeats(draft):
            decision = Decision(verdict=Verdict.DUPLICATE, reasons=(Reason.DUPLICATE,))
            return Outcome(decision, entry=known.entry)
        draft.retries = known.entry.id if known is not None else None
        if draft.judgement is None or (draft.passed and self._looking.passed(session, project, draft) is None):
            return Outcome.held(Fault.INTERRUPTED)  # nobody judged it; or what let it pass was just taken back
        self._recheck(session, project, case, draft)
        return self._weigh(session, case, draft, draft.judgement)

    def _weigh(self, session: Session, case: Case, draft: Draft, judgement: Judgement) -> Outcome:
        """What the policy makes of a judgement that holds for the project as it is now."""
        facts = judgement.facts
        if facts is None:
            verdict = Verdict.APPROVE if draft.unreviewed else Verdict.HELD
            return Outcome(Decision(verdict=verdict), fault=judgement.fault)
        if draft.passed:
            decision = _as_decided(facts, draft.brief)
        else:
            may = case.told | draft.updates
            decision = policy.decide(facts, draft.brief, replaces=draft.replaces, may_supersede=may)
        if decision.verdict is Verdict.APPROVE and judgement.fault is Fault.SUSPICIOUS:
            return Outcome.held(Fault.SUSPICIOUS)
        return self._point(session, case, draft, judgement, decision)

    def _recheck(self, session: Session, project: ProjectRow, case: Case, draft: Draft) -> None:
        """Take in what was written to the project after the candidate's neighbours were looked up."""
        if project.revision == case.revision or draft.judgement is None:
            return
        amended = self._index.neighbourhood.amended(
            session, project, draft.brief, draft.vector, since=case.revision, leave_out=draft.own
        )
        if amended == draft.brief:
            return
        shown = {n.entry_id for n in draft.brief.neighbours}
        newcomers = tuple(n for n in amended.neighbours if n.entry_id not in shown)
        draft.brief = amended
        draft.cache_key = None
        if draft.judgement.reviewer == "offline":
            shortcut = draft.judgement.shortcut
            draft.judgement = self._offline.judge(amended).model_copy(update={"shortcut": shortcut})
            return
        again = self._offline.judge(amended.model_copy(update={"neighbours": newcomers}))
        if draft.judgement.facts is not None and again.facts is not None and again.facts.duplicate_of:
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


def _as_decided(facts: Facts, brief: Brief) -> Decision:
    """Approval; a STATE takes the place of the one that the project has."""
    state = brief.state if facts.category is Category.STATE else None
    return Decision(verdict=Verdict.APPROVE, entry=state.label if state else None)


def _reference(neighbour: Neighbour | None) -> EntryRef | None:
    if neighbour is None:
        return None
    shown = neighbour.model_dump(include=EntryRef.model_fields.keys() - {"id"})
    return EntryRef(id=neighbour.entry_id, **shown)
