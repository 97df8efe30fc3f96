"""What a reviewer is given and what it finds."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from app.schemas.fields import Model, Written
from app.schemas.vocabulary import Category, EntryStatus, Operation, Reason, Scope, Verdict


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
