"""Reviews: one call with its texts, what became of each, and what was decided later."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from app.schemas.fields import MAX_CANDIDATES, WHOLE, Flag, Key, Model, Name, Real, Text
from app.schemas.judging import Fault, Shortcut, Usage
from app.schemas.vocabulary import Category, EntryStatus, Operation, Reason, Verdict


class Candidate(Model):
    """One text that an agent wants to store."""

    text: Text
    key: Name | None = Field(default=None, description="The store's own name for the item: entity, file, topic key.")
    store_id: Name | None = Field(default=None, description="Id of the stored item that an update replaces.")
    expected_version: Annotated[int, Field(ge=1), WHOLE] | None = Field(
        default=None, description="Version that an update was written against."
    )


class ReviewRequest(Model):
    """One memory tool call with all the texts that it carries."""

    tool_call_id: Key = Field(description="Idempotency key: the same session's same call is reviewed once.")
    session_id: Key
    project: Name
    agent: Name = "unknown"
    agent_id: Name | None = Field(default=None, description="Set when a subagent makes the call.")
    store: Name = Field(default="unknown", description="Which memory store the tool belongs to.")
    tool: Name = "unknown"
    operation: Operation = Operation.WRITE
    candidates: list[Candidate] = Field(min_length=1, max_length=MAX_CANDIDATES)
    hygiene_read: Flag = Field(default=False, description="Whether the hygiene skill ran earlier in the session.")
    reminder: Flag = Field(default=True, description="Whether this session was shown the hygiene reminder.")
    deadline_seconds: Real = Field(default=7.0, gt=0, le=120, description="Time the caller will wait.")
    dry_run: Flag = Field(
        default=False, description="Judge only: nothing becomes an entry, and only what was paid for is on record."
    )


class EntryRef(Model):
    """A stored entry as a verdict points to it: enough to update it in its store."""

    id: str
    key: str | None
    store_id: str | None
    category: Category
    text: str
    version: int
    status: EntryStatus


class PassageRef(Model):
    """A passage of a document as a verdict points to it."""

    path: str
    heading: str
    quote: str


class DecidedBy(StrEnum):
    """Who decided after the review: a person, the reviewer that was back, or the rule that ends waiting."""

    PERSON = "person"
    REVIEWER = "reviewer"
    RULE = "rule"


class Telling(StrEnum):
    """Whether the agent has been told of a decision: it will be, it was, or there is nothing left to tell."""

    DUE = "due"
    TOLD = "told"
    MOOT = "moot"


class Removal(Model):
    """What a person or an agent should remove from a store, or put back there, since its entry was withdrawn."""

    entry_id: str
    store: str
    store_id: str | None
    key: str | None
    text: str = Field(description="The text to remove.")
    restore: str | None = Field(description="The text that stood there before it, and should stand there again.")
    confirmed: bool = Field(description="Whether the store reported that it holds the text; else it may not be there.")


class Earlier(Model):
    """What held before a decision."""

    verdict: Verdict | None = Field(description="None while the reviewer was still thinking.")
    reasons: list[Reason] = Field(default=[])
    fault: Fault | None = None
    reviewer: str = ""
    suggested_text: str | None = None
    category: Category | None = None


class DecisionOut(Model):
    """A decision about a text after its review; the newest one holds."""

    id: str
    review_id: str
    verdict: Verdict
    reasons: list[Reason]
    reason: str
    suggested_text: str | None
    by: DecidedBy
    key_id: str | None = Field(description="The key of the person who decided; None if no person did.")
    earlier: Earlier
    removals: list[Removal]
    telling: Telling
    created_at: datetime
    told_at: datetime | None


class ReviewOut(Model):
    """One judged candidate."""

    id: str
    tool_call_id: str
    key_id: str = Field(description="Id of the key that proposed it; `local` where none was needed.")
    session_id: str
    project: str
    agent: str
    agent_id: str | None
    store: str
    tool: str
    operation: Operation
    position: int = Field(description="Place of the candidate in its call, from 0.")
    key: str | None
    text: str
    verdict: Verdict
    category: Category | None
    reasons: list[Reason]
    message: str = Field(description="What the agent is told, ready to show.")
    suggested_text: str | None
    entry_id: str | None = Field(description="Id of the entry that the review made, changes or is about.")
    entry: EntryRef | None = Field(
        description="The entry that the verdict is about, as it was then; for an approval, an older item to remove."
    )
    passage: PassageRef | None
    possible_duplicate: EntryRef | None
    reviewer: str
    fault: Fault | None
    usage: Usage
    confidence: float | None
    note: str | None = Field(description="Why the offline reviewer, or nobody, answered where the model was asked for.")
    shortcut: Shortcut | None = Field(
        description="What spared the model a question: its own earlier answer to the same one (cache), or an offline "
        "reviewer that was sure enough (cascade)."
    )
    created_at: datetime
    decided_at: datetime
    stored_at: datetime | None
    decisions: list[DecisionOut] = Field(
        default=[], description="Later decisions about it, oldest first; its other fields say what holds now."
    )


class CallOut(Model):
    """The answer to one memory tool call: its overall verdict and one review for each text."""

    verdict: Verdict = Field(description="approve only if every review is approved.")
    reviews: list[ReviewOut]
    context: str | None = Field(description="A short note for the agent when the write goes ahead.")
    replayed: bool = Field(description="True when this call had been reviewed before.")


class ReviewPage(Model):
    """Reviews, newest first; ``next`` is the cursor of the following page."""

    items: list[ReviewOut]
    next: str | None


class StoredReport(Model):
    """What the agent's tool reported after the write."""

    store_id: Name | None = Field(default=None, description="The store's own id of the item.")
