"""A tool call on its way through the pipeline: its texts as drafts, and the outcome of each."""

from dataclasses import dataclass, field
from datetime import datetime

from app.budget import Cover, NoRoom, Payer, Reservation
from app.callers import Caller
from app.db import Vector
from app.models import LOCAL_KEY
from app.schemas.judging import Brief, Decision, Facts, Fault, Judgement
from app.schemas.reviews import Candidate, EntryRef, PassageRef, ReviewRequest
from app.schemas.vocabulary import AtCap, EntryStatus, Level, Reason, Verdict


@dataclass(frozen=True)
class Twin:
    """The entry whose text equals the candidate's, the key and session that offered it, and whether it was reviewed."""

    entry: EntryRef
    key_id: str
    session_id: str | None
    unreviewed: bool


@dataclass
class Draft:
    """One candidate on its way, with what has been found about it so far."""

    candidate: Candidate
    text: str
    text_hash: str
    gate: tuple[Reason, ...]
    vector: Vector
    brief: Brief
    updates: frozenset[str] = frozenset()
    twin: Twin | None = None
    replaces: str | None = None
    retries: str | None = None
    judgement: Judgement | None = None
    passed: bool = False
    cache_key: str | None = None
    unreviewed: bool = False

    @property
    def own(self) -> frozenset[str]:
        """Entries that the candidate may equal: the one that it replaces, and its own from an earlier try."""
        return frozenset(entry_id for entry_id in (self.replaces, self.retries) if entry_id is not None)

    @property
    def facts(self) -> Facts | None:
        """What a reviewer found, if one judged it."""
        return self.judgement.facts if self.judgement else None

    @property
    def undecided(self) -> bool:
        """Whether a reviewer is still to be asked."""
        return not self.gate and self.judgement is None


@dataclass
class Case:
    """One memory tool call on its way.

    ``at_cap`` is what happens if the model may not be asked, ``worst`` what asking it may cost in micro-dollars.
    """

    caller: Caller
    request: ReviewRequest
    call_id: str
    level: Level
    drafts: list[Draft]
    created_at: datetime
    revision: int = 0
    note: str | None = None
    asks_model: bool = False
    at_cap: AtCap = AtCap.OFFLINE
    worst: int = 0
    reservation: Reservation | None = None
    no_room: NoRoom | None = None
    warned: list[Cover] = field(default_factory=list)
    opened: bool = False
    told: frozenset[str] = field(default_factory=frozenset)

    @property
    def payer(self) -> Payer:
        """Whose budgets pay for the model."""
        key_id = self.caller.key_id
        return Payer(project=self.request.project, key_id=None if key_id == LOCAL_KEY else key_id)

    def repeats(self, draft: Draft) -> bool:
        """Whether an entry of equal text makes the candidate a duplicate rather than a retry or an update."""
        known = draft.twin
        if known is None or known.entry.status is EntryStatus.UNCONFIRMED or known.entry.id == draft.replaces:
            return False
        own = (known.key_id, known.session_id) == (self.caller.key_id, self.request.session_id)
        # The own session offers again what is on its way, or has reviewed what it was let store unreviewed.
        return not (own and (known.entry.status is EntryStatus.PENDING or known.unreviewed))


@dataclass(frozen=True)
class Outcome:
    """A decision with the things that it points to, as they were when it was made."""

    decision: Decision
    entry: EntryRef | None = None
    passage: PassageRef | None = None
    possible_duplicate: EntryRef | None = None
    supersedes: str | None = None
    fault: Fault | None = None

    @classmethod
    def held(cls, fault: Fault) -> "Outcome":
        """A person is to decide."""
        return cls(Decision(verdict=Verdict.HELD), fault=fault)
