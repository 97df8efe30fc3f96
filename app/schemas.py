"""Every shape that crosses a boundary: facts, decisions, requests and responses.

The words are those of docs/architecture.md. Money is integer micro-dollars, time is timezone-aware UTC, and ids
are opaque strings.
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, StringConstraints, model_validator


class Category(StrEnum):
    """What kind of memory a text is; exactly one, NONE for a text that is no memory."""

    STATE = "STATE"
    DECISION = "DECISION"
    RULE = "RULE"
    DISCOVERY = "DISCOVERY"
    QUIRK = "QUIRK"
    NONE = "NONE"


MemoryCategory = Literal[Category.STATE, Category.DECISION, Category.RULE, Category.DISCOVERY, Category.QUIRK]


class Verdict(StrEnum):
    """What follows from the facts. ``held`` means that nobody could judge; it is neither approval nor refusal.

    What was held and then decided by nobody in time is ``expired``: not stored, not refused for any fault of its own.
    """

    APPROVE = "approve"
    REWRITE = "rewrite"
    UPDATE = "update"
    DUPLICATE = "duplicate"
    REJECT = "reject"
    HELD = "held"
    EXPIRED = "expired"


class Scope(StrEnum):
    """How far a text reaches: one resource, a pattern worth keeping, or so far that it says nothing.

    Asked of every RULE and DISCOVERY; a QUIRK may be marked as one resource's, and other categories have none.
    """

    RESOURCE = "resource"
    PATTERN = "pattern"
    PLATITUDE = "platitude"


class Reason(StrEnum):
    """Stable machine word for each reason; texts for people are in the hook's ``REASONS`` table."""

    SESSION_SUMMARY = "session_summary"
    TOO_SHORT = "too_short"
    NOT_SELF_CONTAINED = "not_self_contained"
    TOO_SPECIFIC = "too_specific"
    TOO_GENERIC = "too_generic"
    EPHEMERAL = "ephemeral"
    NO_WHY = "no_why"
    SEVERAL_FACTS = "several_facts"
    RESTATES_DOCUMENT = "restates_document"
    DUPLICATE = "duplicate"
    SECOND_STATE = "second_state"
    SECRET = "secret"  # noqa: S105 - the name of a reason, not a password
    INJECTION = "injection"
    TOO_LONG = "too_long"


class Level(StrEnum):
    """How far a project's candidates go. ``model`` is the opt-in to the paid second model."""

    GATE = "gate"
    OFFLINE = "offline"
    MODEL = "model"


class Role(StrEnum):
    """What the bearer of a key may do: propose and read; also decide; also administer."""

    MEMBER = "member"
    REVIEWER = "reviewer"
    ADMIN = "admin"


class AtCap(StrEnum):
    """What happens to a text when a budget has no room for its review.

    ``offline``: the offline reviewer answers; ``hold``: nobody does; ``allow``: it passes unreviewed, and says so.
    """

    OFFLINE = "offline"
    HOLD = "hold"
    ALLOW = "allow"


class BudgetScope(StrEnum):
    """Whose reviews a budget pays for: all of them, those of one project, those of one key."""

    TEAM = "team"
    PROJECT = "project"
    KEY = "key"


class Period(StrEnum):
    """How long a budget's window lasts (UTC): calendar day, week from Monday (ISO 8601), calendar month, for ever."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TOTAL = "total"


class Operation(StrEnum):
    """What the agent's tool call does to the store."""

    WRITE = "write"
    UPDATE = "update"
    DELETE = "delete"


class EntryStatus(StrEnum):
    """Where an approved memory stands between the review and the store."""

    PENDING = "pending"
    STORED = "stored"
    UNCONFIRMED = "unconfirmed"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    WITHDRAWN = "withdrawn"


class Model(BaseModel):
    """Base of all shapes: immutable, and strangers among the fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- what a reviewer is given and what it finds -----------------------------------------------------------------


class Neighbour(Model):
    """A stored entry near the candidate, under the label that the reviewer may name it by (``E1``, ``E2``, …)."""

    label: str
    entry_id: str
    category: Category
    text: str
    version: int
    key: str | None
    store_id: str | None
    status: EntryStatus
    similarity: float = Field(description="Cosine of the embeddings, -1 to 1.")

    @property
    def is_live_state(self) -> bool:
        """Whether this is the project's one STATE entry, and not one that may never have been stored."""
        return self.category is Category.STATE and self.status in (EntryStatus.PENDING, EntryStatus.STORED)


class Passage(Model):
    """A passage of the project's documents near the candidate, labelled ``P1`` and on."""

    label: str
    path: str
    heading: str
    text: str
    similarity: float


class Brief(Model):
    """All that a reviewer may know of one candidate."""

    text: str
    project: str
    operation: Operation
    key: str | None
    neighbours: tuple[Neighbour, ...]
    passages: tuple[Passage, ...]

    @property
    def state(self) -> Neighbour | None:
        """The project's one STATE entry among the neighbours, if there is one."""
        return next((n for n in self.neighbours if n.is_live_state), None)


# PostgreSQL stores no NUL, and no encoding knows half a surrogate pair, though JSON can spell both.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: object) -> object:
    """The text with a replacement character for each that no database takes; anything but a text as it is."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value


Written = Annotated[str, BeforeValidator(storable)]


def number(value: object) -> object:
    """The value, unless pydantic would take what is no number in JSON for one: ``true`` and ``"1"``, but not 1.0."""
    if isinstance(value, (bool, str)):
        raise ValueError("not a number")  # noqa: TRY004 - what pydantic reports as a fault of the value
    return value


# Its bounds belong before the validator: those of the field would not be in the description.
WHOLE = BeforeValidator(number)
Real = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]


class Restatement(Model):
    """A claim that the candidate only says what a passage says, with the passage's exact words as evidence."""

    passage: str = Field(description="Label of a given passage.")
    quote: Written = Field(description="Words copied exactly from that passage.")


class Facts(Model):
    """What a reviewer found. No decision: `app.policy.decide` turns facts into a verdict."""

    category: Category
    durable: bool
    self_contained: bool
    scope: Scope | None
    gives_why: bool | None
    single_fact: bool
    duplicate_of: str | None
    supersedes: str | None
    restates: Restatement | None
    addresses_reader: bool
    suggested_text: Written | None
    reason: Written
    confidence: float = Field(ge=0, le=1)


class Fault(StrEnum):
    """Why a reviewer could not give facts."""

    NOT_JSON = "not_json"
    SCHEMA_VIOLATION = "schema_violation"
    UNKNOWN_LABEL = "unknown_label"
    QUOTE_NOT_FOUND = "quote_not_found"
    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    BAD_REQUEST = "bad_request"
    UNAUTHORIZED = "unauthorized"
    MODEL_NOT_FOUND = "model_not_found"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    UPSTREAM_ERROR = "upstream_error"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    BUDGET_EXHAUSTED = "budget_exhausted"
    TOO_MANY_CALLS = "too_many_calls"
    CIRCUIT_OPEN = "circuit_open"
    INTERRUPTED = "interrupted"
    REPEATED_REFUSALS = "repeated_refusals"
    SUSPICIOUS = "suspicious"


# Faults after which only a person may let the text in, whatever the failure policy says.
FOR_A_PERSON = frozenset({Fault.REPEATED_REFUSALS, Fault.SUSPICIOUS})
# Faults that lie in the text, the model or the request to it: asking again by itself would most likely fail again.
LASTING = FOR_A_PERSON | {
    Fault.NOT_JSON,
    Fault.SCHEMA_VIOLATION,
    Fault.UNKNOWN_LABEL,
    Fault.QUOTE_NOT_FOUND,
    Fault.REFUSAL,
    Fault.TRUNCATED,
    Fault.BAD_REQUEST,
}


class Usage(Model):
    """What one judgement took: tokens by price class, cost in micro-dollars, wall time in milliseconds."""

    model: str | None = None
    prompt_hash: str | None = None
    input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    cost_microdollars: int = 0
    latency_ms: int = 0
    attempts: int = 0


class Shortcut(StrEnum):
    """Why a text of a project at level ``model`` was decided without a question to the model."""

    CACHE = "cache"
    CASCADE = "cascade"


class Judgement(Model):
    """A reviewer's answer: facts, or the fault that kept it from giving any; the usage is known either way."""

    reviewer: Literal["gate", "offline", "anthropic", "decision"]
    facts: Facts | None
    fault: Fault | None = None
    fault_detail: Written | None = None
    usage: Usage = Usage()
    possible_duplicate: str | None = Field(default=None, description="Label of an entry that may say the same.")
    sure: bool = Field(default=False, description="The offline reviewer is nearly always right where it is so sure.")
    shortcut: Shortcut | None = None


class Decision(Model):
    """What the policy made of the facts: a verdict, its reason codes and the entry or passage it points to."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    entry: str | None = Field(default=None, description="Label of the neighbour that the verdict is about.")
    passage: str | None = Field(default=None, description="Label of the passage that the verdict is about.")


# --- API: reviews -----------------------------------------------------------------------------------------------

MAX_TEXT = 32_768
MAX_CANDIDATES = 64

Text = Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1, max_length=MAX_TEXT)]
Name = Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1, max_length=512)]
Key = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]


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
    reasons: list[Reason] = []
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


# --- API: what was held, and decisions about it ------------------------------------------------------------------


class DecisionIn(Model):
    """What a person decides about a text, whatever the verdict was."""

    verdict: Literal[Verdict.APPROVE, Verdict.REWRITE, Verdict.REJECT]
    reason: Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1, max_length=2000, pattern=r"\S")]
    suggested_text: Text | None = Field(
        default=None, description="For `rewrite`: a text that will pass as it is, if the agent stores it."
    )
    category: MemoryCategory | None = Field(default=None, description="What it is; by default what a reviewer says.")
    reasons: list[Reason] = Field(default=[], max_length=len(Reason), description="Reason codes, for a refusal.")


class HeldOut(Model):
    """A text that waits for a decision."""

    review_id: str
    project: str
    key_id: str
    agent: str
    session_id: str
    store: str
    tool: str
    key: str | None
    text: str
    fault: Fault
    since: datetime
    retry_at: datetime | None = Field(description="When the reviewer is asked again; None if only a person decides.")
    tries: int
    stored: bool = Field(description="Whether the failure policy let it into the store meanwhile.")


class HeldCount(Model):
    """How many texts are held for a fault, and since when the oldest of them."""

    fault: Fault
    count: int
    oldest: datetime


class HeldPage(Model):
    """Held texts, oldest first; ``next`` is the cursor of the following page."""

    items: list[HeldOut]
    counts: list[HeldCount] = Field(description="All that is held, of the project if one was named.")
    next: str | None


class NewsItem(Model):
    """A decision that the agent has not been told of yet."""

    decision_id: str
    review_id: str
    verdict: Verdict
    text: str | None = Field(description="The text to store, exactly as it is; None where there is none.")
    removals: list[Removal]
    message: str = Field(description="What the agent is told, ready to show.")


class News(Model):
    """Decisions that an agent has not been told of, oldest first; ``more`` are left for another time."""

    items: list[NewsItem]
    more: int


class ToldIn(Model):
    """Decisions that the agent has been told of."""

    decisions: list[Key] = Field(max_length=200)


class Override(Model):
    """A text under the verdict that a person gave it: a labelled text, as `bouncer eval` reads it."""

    id: str
    project: str
    text: str
    category: Category
    verdict: Verdict
    reasons: list[Reason]
    case: Literal["override"] = "override"
    lang: str = "und"
    note: str = Field(description="The person's reason.")


class OverridePage(Model):
    """Overrides, oldest first; ``next`` is the cursor of the following page."""

    items: list[Override]
    next: str | None


class WithdrawalIn(Model):
    """Whose memories to withdraw: a key's, a session's, or those of one session under one key."""

    key_id: Key | None = Field(default=None, description="The key that proposed them; `local` stands for none.")
    session_id: Key | None = None
    project: Name | None = Field(default=None, description="Only in this project.")
    reason: Annotated[str, BeforeValidator(storable), StringConstraints(max_length=2000)] = ""
    dry_run: Flag = Field(default=False, description="Only list what would be withdrawn.")

    @model_validator(mode="after")
    def _names_a_source(self) -> "WithdrawalIn":
        if self.key_id is None and self.session_id is None:
            raise ValueError("name a key or a session")
        return self


class WithdrawalOut(Model):
    """What is withdrawn, and so has to leave its store."""

    items: list[Removal]
    changed: int = Field(description="How many entries this request withdrew; 0 if all were withdrawn before.")


# --- API: entries, policy, projects -----------------------------------------------------------------------------


class EntryOut(Model):
    """An approved memory in the index."""

    id: str
    project: str
    category: Category
    text: str
    key: str | None
    store: str
    store_id: str | None
    status: EntryStatus
    version: int
    review_id: str | None
    key_id: str = Field(description="Id of the key that proposed it; `local` where none was needed.")
    session_id: str | None
    agent: str | None
    agent_id: str | None = Field(default=None, description="The subagent that offered it, if it was one.")
    tool: str | None = Field(default=None, description="The tool that it was offered with.")
    unreviewed: bool = Field(description="It was let into the store while nobody could judge it.")
    created_at: datetime
    updated_at: datetime


class EntryPage(Model):
    """Entries, newest first; ``next`` is the cursor of the following page."""

    items: list[EntryOut]
    next: str | None


class EntryIn(Model):
    """A memory that is already in a store, to be indexed without a review."""

    project: Name
    category: MemoryCategory
    text: Text
    key: Name | None = None
    store: Name = "unknown"
    store_id: Name | None = None


class EntryHit(Model):
    """An entry found by a search, with its cosine similarity to the query."""

    entry: EntryOut
    similarity: float


class DeletedReport(Model):
    """Items that the agent's delete tool removed from a store, named in whichever ways the tool names them."""

    project: Name
    store: Name
    store_ids: list[Name] = Field(default=[], max_length=MAX_CANDIDATES)
    keys: list[Name] = Field(default=[], max_length=MAX_CANDIDATES)
    texts: list[Text] = Field(default=[], max_length=MAX_CANDIDATES)


class DeletedOut(Model):
    """Ids of the entries that a delete marked."""

    entries: list[str]


class PolicyOut(Model):
    """What a hook needs to know of a project's policy."""

    project: str
    level: Level
    minimum_words: int
    maximum_characters: int
    reasons: dict[str, str]


class ProjectIn(Model):
    """Settings of a project."""

    level: Level


class ProjectOut(Model):
    """A project and how far its candidates go."""

    name: str
    level: Level
    created_at: datetime


class DocumentIn(Model):
    """A document of the project: its path, the hash of its text, and the text when the service lacks it."""

    path: Name
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    text: Annotated[str, StringConstraints(max_length=1_000_000)] | None = None


class DocumentsIn(Model):
    """All documents of a project; those not listed are forgotten."""

    documents: list[DocumentIn] = Field(max_length=500)


class DocumentsOut(Model):
    """Paths whose text the service lacks and wants sent."""

    wanted: list[str]
    passages: int


class DocumentHeld(Model):
    """A document that the service compares candidates with."""

    path: str
    sha256: str
    passages: int
    updated_at: datetime


class DocumentsHeld(Model):
    """All documents of a project, by path."""

    documents: list[DocumentHeld]


# --- API: budgets -----------------------------------------------------------------------------------------------

Money = Annotated[int, Field(ge=0, le=10**15, description="Micro-dollars."), WHOLE]


class BudgetIn(Model):
    """A budget: how much the reviews of a scope may cost in a period."""

    scope: BudgetScope
    subject: Name | None = Field(
        default=None, description="The project's name or the key's id; none for the team's budget."
    )
    period: Period
    limit_microdollars: Money
    warn_percent: Annotated[int, Field(ge=1, le=100), WHOLE] = Field(
        default=80, description="Share of the limit at which people are warned."
    )
    at_cap: AtCap = AtCap.OFFLINE
    enabled: Flag = Field(default=True, description="A budget that is switched off covers and limits nothing.")


class BudgetOut(Model):
    """A budget with its current window; money in micro-dollars."""

    id: str | None = Field(description="None for the one that a setting makes.")
    source: Literal["api", "setting"]
    scope: BudgetScope
    subject: str | None
    period: Period
    limit_microdollars: int
    warn_percent: int
    at_cap: AtCap
    enabled: bool
    starts_at: datetime | None = Field(description="First moment of the window; none for `total`.")
    ends_at: datetime | None = Field(description="First moment after the window; none for `total`.")
    spent_microdollars: int
    reserved_microdollars: int = Field(description="Set aside for reviews that the model is judging now.")
    left_microdollars: int
    refused: int = Field(description="Calls that found no room in this window.")
    state: Literal["ok", "warned", "at_cap"] = Field(
        description="at_cap: the last call that found no room would find none now."
    )


class BudgetList(Model):
    """All budgets."""

    items: list[BudgetOut]


class SpendingWindow(Model):
    """A window that money was spent in, also one of a budget that is gone."""

    scope: BudgetScope
    subject: str | None
    period: Period
    starts_at: datetime | None
    spent_microdollars: int
    reserved_microdollars: int
    refused: int


class Difference(Model):
    """A place where two records of the same money disagree, in micro-dollars."""

    what: Literal["window_spent", "window_reserved", "reservation", "call"]
    id: str = Field(description="Of the window, the reservation or the call.")
    ledger_microdollars: int
    other_microdollars: int


class BudgetReport(Model):
    """Whether ledger, windows and reviews tell of the same money."""

    consistent: bool
    calls: int = Field(description="Calls that cost something.")
    cost_microdollars: int = Field(description="What all reviews cost together.")
    reserved_microdollars: int = Field(description="Set aside, over all windows.")
    windows: list[SpendingWindow]
    differences: list[Difference]


# --- API: keys, audit log ---------------------------------------------------------------------------------------

LONGEST_LIFE_DAYS = 3650
LONGEST_OVERLAP_HOURS = 24 * 30


class KeyIn(Model):
    """A key to be made."""

    name: Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1, max_length=100)] = Field(
        description="Whose key it is, for people."
    )
    role: Role
    projects: Annotated[list[Name], Field(min_length=1, max_length=200)] | None = Field(
        description="Names of the projects that the key is bound to; null for all. An admin's key is bound to none."
    )
    expires_in_days: Annotated[int, Field(ge=1, le=LONGEST_LIFE_DAYS), WHOLE] | None = Field(
        default=None, description="Null for never."
    )


class KeyOut(Model):
    """A key without its secret, which nobody can show again."""

    id: str
    name: str
    role: Role
    projects: list[str] | None = Field(description="Names of the projects that it is bound to; null for all.")
    created_by: str = Field(description="Id of the key that made it; `local` for the command on the server's machine.")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    former_until: datetime | None = Field(description="Until when the secret before the last rotation is good as well.")
    used_at: datetime | None = Field(description="When it was last used, to the hour.")


class KeyMade(Model):
    """A new key, or a known one with its new secret. The only time that the secret is shown."""

    key: str = Field(repr=False, description="To be set as MEMORY_BOUNCER_KEY; nobody can show it again.")
    details: KeyOut


class RotationIn(Model):
    """How a key gets a new secret."""

    overlap_hours: Annotated[int, Field(ge=0, le=LONGEST_OVERLAP_HOURS), WHOLE] = Field(
        default=24, description="How long the former secret is good as well."
    )


class KeyPage(Model):
    """Keys, newest first; ``next`` is the cursor of the following page."""

    items: list[KeyOut]
    next: str | None


class AuditEventOut(Model):
    """An administrative change."""

    id: str
    at: datetime
    key_id: str = Field(description="Id of the key that did it; `local` where none was needed.")
    action: str = Field(description="The thing and what was done to it, such as `key.revoked`.")
    subject: str = Field(description="Id or name of the thing.")
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditPage(Model):
    """Lines of the audit log, newest first; ``next`` is the cursor of the following page."""

    items: list[AuditEventOut]
    next: str | None


# --- API: errors, health ----------------------------------------------------------------------------------------


class Problem(BaseModel):
    """An error (RFC 9457). ``type`` is stable; ``detail`` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


class Health(Model):
    """Whether the service lives, or is ready, and why not."""

    status: Literal["ok", "unavailable"]
    version: str
    checks: dict[str, str] = {}
