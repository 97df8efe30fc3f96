"""What there is to know about a candidate before anybody judges it: gate, twin, neighbours, earlier refusals."""

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlmodel import Session

from app import decisions, entries, gate, policy, reviews
from app.callers import Caller
from app.cases import Case, Draft
from app.db import new_id
from app.embeddings import Embedder, KeptVectors
from app.index import Index
from app.neighbours import Vicinity
from app.projects import ProjectRow
from app.reviews import SentBack
from app.schemas.judging import Brief, Facts, Fault, Judgement
from app.schemas.reviews import ReviewRequest
from app.schemas.vocabulary import Level, Operation, Reason
from app.settings import Settings
from app.stores import can_update
from app.words import overlap

NEAR_SIMILARITY = 0.8
NEAR_WORDS = 0.6


class Looking:
    """Makes cases of calls, on a snapshot of the database; it decides nothing and writes nothing."""

    def __init__(self, index: Index, settings: Settings, embedder: Embedder, now: Callable[[], datetime]) -> None:
        self._index = index
        self._settings = settings
        self._refused_vectors = KeptVectors(embedder)
        self._now = now

    def drafts(self, *requests: ReviewRequest) -> list[Draft]:
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
        for (request, candidate, reasons), text, vector in zip(checked, texts, self._index.embed(texts), strict=True):
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

    def around(
        self,
        session: Session,
        project: ProjectRow | None,
        caller: Caller,
        request: ReviewRequest,
        drafts: list[Draft],
    ) -> Case:
        """The case of a call, with what the project knows about its drafts; a project that is None knows nothing."""
        case = Case(caller, request, new_id(), self._level(project), drafts, self._now())
        if project is None or case.level is Level.GATE:
            return case
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
        return case

    def around_all(
        self, session: Session, project: ProjectRow, caller: Caller, drafted: list[tuple[ReviewRequest, Draft]]
    ) -> list[tuple[Case, Vicinity]]:
        """What `around` finds, of calls with one text each, for those about whose texts nothing is known yet."""
        level = self._level(project)
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
        shortlists = self._index.neighbourhood.shortlists(
            session, project, [(draft.text, draft.vector) for _, draft in new], self._settings.neighbours
        )
        cases: list[tuple[Case, Vicinity]] = []
        for (request, draft), (near, vicinity) in zip(new, shortlists, strict=True):
            case = Case(caller, request, new_id(), level, [draft], self._now(), revision=project.revision)
            passages = self._index.documents.shortlist(session, project, draft.vector, self._settings.passages)
            draft.brief = draft.brief.model_copy(update={"neighbours": near, "passages": passages})
            if not can_update(request.store):
                case.told = sent_back[request.session_id].told
            self._recall(draft, sent_back[request.session_id])
            cases.append((case, vicinity))
        return cases

    def passed(self, session: Session, project: ProjectRow, draft: Draft) -> Facts | None:
        """What the candidate is, if somebody decided that this very text may be stored; None otherwise."""
        told_after = self._now() - timedelta(days=self._settings.held_days)
        return decisions.open_pass(session, project.id, draft.text_hash, told_after)

    def _level(self, project: ProjectRow | None) -> Level:
        return (project.level if project else None) or self._settings.level

    def _take_decision(self, session: Session, project: ProjectRow, draft: Draft) -> None:
        """Let pass without another judgement what was decided to be stored, word for word, save a secret."""
        if Reason.SECRET in draft.gate or (facts := self.passed(session, project, draft)) is None:
            return
        draft.passed, draft.gate = True, ()
        draft.judgement = Judgement(reviewer="decision", facts=facts)

    def _meet_neighbours(self, session: Session, project: ProjectRow, case: Case, draft: Draft) -> None:
        request = case.request
        if request.operation is Operation.UPDATE:
            named = entries.named(session, project.id, request.store, draft.candidate.store_id, draft.candidate.key)
            draft.updates = frozenset(entry.id for entry in named)
            draft.replaces = named[0].id if len(named) == 1 else None
        draft.twin = entries.twin(session, project.id, draft.text_hash)
        if draft.twin is not None and not case.repeats(draft):
            draft.retries = draft.twin.entry.id
        near = self._index.neighbourhood.shortlist(
            session, project, draft.text, draft.vector, self._settings.neighbours, leave_out=draft.own
        )
        edited = draft.candidate.key if request.operation is Operation.UPDATE else None
        passages = self._index.documents.shortlist(
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
