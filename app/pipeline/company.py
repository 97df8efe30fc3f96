"""Several calls in one transaction: what they share is done once, and each answer is what it would be alone."""

from collections.abc import Callable
from datetime import datetime

import structlog
from sqlmodel import Session

from app import entries, projects, reviews
from app.callers import Caller
from app.cases import Case, Draft, Outcome
from app.errors import Unavailable
from app.index import Index
from app.neighbours import Indexed, Newcomer, Vicinity
from app.pipeline.deciding import Deciding
from app.pipeline.judging import OfflineJudging
from app.pipeline.looking import Looking
from app.pipeline.recording import Recording, answer
from app.projects import ProjectRow
from app.schemas.reviews import CallOut, ReviewRequest
from app.schemas.vocabulary import Category, Operation, Verdict

# In a project with fewer changes, nearly every new entry is a neighbour of the next one.
FEWEST_IN_COMPANY = 1_000

log = structlog.get_logger(__name__)


class Company:
    """Judges calls of one caller and project together, where no second model has to be waited for."""

    def __init__(
        self,
        index: Index,
        looking: Looking,
        offline: OfflineJudging,
        deciding: Deciding,
        recording: Recording,
        now: Callable[[], datetime],
    ) -> None:
        self._index = index
        self._looking = looking
        self._offline = offline
        self._deciding = deciding
        self._recording = recording
        self._now = now

    def answers(self, requests: list[ReviewRequest], caller: Caller) -> dict[str, CallOut]:
        """Answers by session; none at all if one of the calls fails, so that it fails alone.

        Raises:
            Unavailable: the database does not answer.
        """
        simple = [request for request in requests if _is_simple(request)]
        if len(simple) < 2:
            return {}
        try:
            drafted = list(zip(simple, self._looking.drafts(*simple), strict=True))
            with self._index.database.write() as session:
                project = projects.locked(session, caller, requests[0].project, self._now())
                if project.revision < FEWEST_IN_COMPANY:
                    return {}
                cases = self._looking.around_all(session, project, caller, drafted)
                return self._write_all_down(session, project, cases)
        except Unavailable:
            raise
        except Exception:
            log.warning("round.failed", exc_info=True)
            return {}

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
            self._offline.judge(case)
            (outcome,) = self._deciding.outcomes(session, project, case)
            if outcome.supersedes is not None:
                continue
            (row,) = reviews.undecided(case, project.id)
            decided.append((case, draft, outcome, row))
            if outcome.decision.verdict is Verdict.APPROVE and (
                proposal := self._recording.proposal(case, draft, row, now)
            ):
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
        self._index.neighbourhood.add_all(session, project.id, indexed)
        for case, draft, outcome, row in decided:
            self._recording.settle(case, draft, outcome, row, now)
        rows = [row for _, _, _, row in decided]
        reviews.add(session, rows)
        reviews.wait(session, rows, now)
        return {row["session_id"]: answer([row], project.name, replayed=False) for row in rows}


def _is_simple(request: ReviewRequest) -> bool:
    """Whether a call only writes one text, as nearly all do."""
    return request.operation is Operation.WRITE and len(request.candidates) == 1 and not request.dry_run
