"""The tables, and nothing else. Each has one owner module, named in its docstring."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy import Table as SqlTable
from sqlmodel import Field, SQLModel

from app.db import UtcDateTime, Vector, VectorBytes, metadata, new_id

LIVE = "status IN ('pending', 'stored')"
LIVE_STATE = f"category = 'STATE' AND {LIVE}"

# Stands where the id of a key would, for who needs none: whoever sits at the machine of a service without keys.
LOCAL_KEY = "local"


class Table(SQLModel):
    """Base of all tables."""

    metadata = metadata


class Project(Table, table=True):
    """A project (owner: `projects`). ``revision`` counts the changes to its entries."""

    id: str = Field(default_factory=new_id, primary_key=True)
    name: str = Field(unique=True)
    level: str | None = None
    revision: int = 0
    documents_revision: int = 0
    created_at: datetime = Field(sa_type=UtcDateTime)


class Call(Table, table=True):
    """A memory tool call, the unit of idempotency (owner: `reviews`). Open while its model is being asked."""

    __table_args__ = (UniqueConstraint("key_id", "session_id", "tool_call_id"),)

    id: str = Field(default_factory=new_id, primary_key=True)
    project_id: str = Field(foreign_key="project.id", index=True)
    key_id: str = LOCAL_KEY
    session_id: str
    tool_call_id: str
    request_hash: str
    dry_run: bool = False
    open_until: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)
    created_at: datetime = Field(sa_type=UtcDateTime)


class Review(Table, table=True):
    """One judgement of one candidate (owner: `reviews`)."""

    __table_args__ = (
        Index("ix_review_project_id_id", "project_id", "id"),
        Index("ix_review_cache_key", "cache_key"),
        Index("ix_review_session_id_verdict", "session_id", "verdict"),
    )

    id: str = Field(default_factory=new_id, primary_key=True)
    call_id: str = Field(foreign_key="call.id", index=True)
    project_id: str = Field(foreign_key="project.id")
    key_id: str = LOCAL_KEY
    session_id: str
    tool_call_id: str
    position: int
    agent: str
    agent_id: str | None = None
    store: str
    tool: str
    operation: str
    key: str | None = None
    store_id: str | None = None
    text: str = Field(sa_type=Text)
    text_hash: str
    hygiene_read: bool = False
    reminder: bool = True

    verdict: str | None = None
    reasons: list[str] = Field(default_factory=list, sa_type=JSON)
    message: str = Field(default="", sa_type=Text)
    suggested_text: str | None = Field(default=None, sa_type=Text)
    facts: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    evidence: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    entry_id: str | None = Field(default=None, foreign_key="entry.id", index=True)

    level: str
    reviewer: str = ""
    fault: str | None = None
    fault_detail: str | None = None
    model: str | None = None
    prompt_hash: str | None = None
    cache_key: str | None = None
    input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    attempts: int = 0
    cost_microdollars: int = Field(default=0, sa_type=BigInteger)
    latency_ms: int = 0

    created_at: datetime = Field(sa_type=UtcDateTime)
    decided_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    stored_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class HeldItem(Table, table=True):
    """A held review, for as long as nobody has decided about it (owner: `held`).

    ``retry_at`` is when the reviewer may next be asked, or when another process may ask it if the one that took the
    item does not come back; None where only a person may decide.
    """

    __tablename__ = "held"
    __table_args__ = (Index("ix_held_fault_since", "fault", "since"),)

    review_id: str = Field(foreign_key="review.id", primary_key=True)
    project_id: str = Field(foreign_key="project.id", index=True)
    fault: str
    since: datetime = Field(sa_type=UtcDateTime)
    retry_at: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)
    tries: int = 0


class DecisionRow(Table, table=True):
    """A decision about a review after it was made (owner: `decisions`). Added, never changed, but for its telling.

    ``pass_hash`` is the hash of a text that may be stored without another judgement, until it is or `used_at` is set.
    """

    __tablename__ = "decision"
    __table_args__ = (
        Index(
            "ix_decision_due",
            "project_id",
            sqlite_where=text("telling = 'due'"),
            postgresql_where=text("telling = 'due'"),
        ),
        Index(
            "ix_decision_pass",
            "project_id",
            "pass_hash",
            sqlite_where=text("pass_hash IS NOT NULL"),
            postgresql_where=text("pass_hash IS NOT NULL"),
        ),
    )

    id: str = Field(default_factory=new_id, primary_key=True)
    review_id: str = Field(foreign_key="review.id", index=True)
    project_id: str = Field(foreign_key="project.id")
    decided_by: str
    key_id: str | None = None
    verdict: str
    reasons: list[str] = Field(default_factory=list, sa_type=JSON)
    reason: str = Field(sa_type=Text)
    suggested_text: str | None = Field(default=None, sa_type=Text)
    facts: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    earlier: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
    removals: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSON)
    pass_hash: str | None = None
    telling: str
    created_at: datetime = Field(sa_type=UtcDateTime)
    told_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class Entry(Table, table=True):
    """An approved memory (owner: `entries`).

    The two partial unique indexes make it impossible, whatever happens at once in however many processes, that
    equal texts are both live or that a project has two STATE entries.
    """

    __table_args__ = (
        Index("ix_entry_project_id_revision", "project_id", "revision"),
        Index("ix_entry_project_id_id", "project_id", "id"),
        Index("ix_entry_store_store_id", "project_id", "store", "store_id"),
        Index("ix_entry_text_hash", "project_id", "text_hash"),
        Index(
            "uq_entry_live_text",
            "project_id",
            "text_hash",
            unique=True,
            sqlite_where=text(LIVE),
            postgresql_where=text(LIVE),
        ),
        Index(
            "uq_entry_one_state",
            "project_id",
            unique=True,
            sqlite_where=text(LIVE_STATE),
            postgresql_where=text(LIVE_STATE),
        ),
    )

    id: str = Field(default_factory=new_id, primary_key=True)
    project_id: str = Field(foreign_key="project.id")
    category: str
    status: str
    version: int = 1
    text: str = Field(sa_type=Text)
    text_hash: str
    key: str | None = None
    store: str
    store_id: str | None = None
    review_id: str | None = Field(default=None, index=True)
    key_id: str = LOCAL_KEY
    session_id: str | None = None
    agent: str | None = None
    unreviewed: bool = False
    revision: int
    created_at: datetime = Field(sa_type=UtcDateTime)
    updated_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)


class EntryVersion(Table, table=True):
    """A next or earlier text of an entry (owner: `entries`). ``pending`` until the store reports the update."""

    __table_args__ = (UniqueConstraint("entry_id", "version"),)

    id: str = Field(default_factory=new_id, primary_key=True)
    entry_id: str = Field(foreign_key="entry.id", index=True)
    version: int
    status: str
    text: str = Field(sa_type=Text)
    category: str
    key: str | None = None
    store_id: str | None = None
    review_id: str | None = Field(default=None, index=True)
    key_id: str = LOCAL_KEY
    session_id: str | None = None
    created_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)


class ApiKey(Table, table=True):
    """A member's key (owner: `keys`): what it may do, and a keyed hash of its secret. A row is never removed.

    ``former_hash`` is that of the secret before the last rotation, good until ``former_until``. ``pepper`` tells under
    which server secret the hashes were made.
    """

    __tablename__ = "api_key"

    id: str = Field(default_factory=new_id, primary_key=True)
    name: str
    role: str
    projects: list[str] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    secret_hash: str = Field(repr=False)
    former_hash: str | None = Field(default=None, repr=False)
    former_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    pepper: str
    created_by: str
    created_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class AuditEvent(Table, table=True):
    """An administrative change (owner: `audit_log`). Triggers keep a line as it was written."""

    __tablename__ = "audit_event"

    id: str = Field(default_factory=new_id, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    key_id: str
    action: str
    subject: str
    before: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    after: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))


class EntryVector(Table, table=True):
    """Embedding of an entry's text (owner: `neighbours`)."""

    __tablename__ = "entry_vector"

    entry_id: str = Field(sa_column=Column(ForeignKey("entry.id", ondelete="CASCADE"), primary_key=True))
    vector: Vector = Field(sa_type=VectorBytes)

    model_config = {"arbitrary_types_allowed": True}


class EmbeddingSpace(Table, table=True):
    """The one embedding model whose vectors are stored, and the one that a reindex goes over to (owner: `space`)."""

    __tablename__ = "embedding_space"

    id: int = Field(default=1, primary_key=True)
    model: str
    dimension: int


class StagedVector(Table, table=True):
    """Vector of an entry or a passage in the space that is being made (owner: `reindex`); empty otherwise."""

    __tablename__ = "staged_vector"

    item_id: str = Field(primary_key=True)
    text_hash: str
    vector: Vector = Field(sa_type=VectorBytes)

    model_config = {"arbitrary_types_allowed": True}


class Document(Table, table=True):
    """A document of a project (owner: `documents`); retired, it is kept for a while in case it comes back."""

    __table_args__ = (
        Index(
            "uq_document_current_path",
            "project_id",
            "path",
            unique=True,
            sqlite_where=text("retired_at IS NULL"),
            postgresql_where=text("retired_at IS NULL"),
        ),
        Index("ix_document_project_id_retired_at", "project_id", "retired_at"),
    )

    id: str = Field(default_factory=new_id, primary_key=True)
    project_id: str = Field(foreign_key="project.id")
    path: str
    sha256: str
    updated_at: datetime = Field(sa_type=UtcDateTime)
    retired_at: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)


class PassageRow(Table, table=True):
    """A passage of a document with its embedding (owner: `documents`)."""

    __tablename__ = "passage"

    id: str = Field(default_factory=new_id, primary_key=True)
    document_id: str = Field(
        sa_column=Column(ForeignKey("document.id", ondelete="CASCADE"), index=True, nullable=False)
    )
    position: int
    heading: str
    text: str = Field(sa_type=Text)
    vector: Vector = Field(sa_type=VectorBytes)

    model_config = {"arbitrary_types_allowed": True}


class Budget(Table, table=True):
    """A limit for a scope and period, in micro-dollars (owner: `budget`). The team's ``subject`` is empty."""

    __table_args__ = (UniqueConstraint("scope", "subject", "period"),)

    id: str = Field(default_factory=new_id, primary_key=True)
    scope: str
    subject: str = ""
    period: str
    limit_microdollars: int = Field(sa_type=BigInteger)
    warn_percent: int
    at_cap: str
    enabled: bool
    updated_at: datetime = Field(sa_type=UtcDateTime)


class BudgetWindow(Table, table=True):
    """A span of a budget with its sums in micro-dollars (owner: `budget`). It outlives its budget.

    ``refused`` counts the calls that found no room, ``wanted`` is what the last of them asked for.
    """

    __tablename__ = "budget_window"
    __table_args__ = (UniqueConstraint("scope", "subject", "period", "starts_at"),)

    id: str = Field(default_factory=new_id, primary_key=True)
    scope: str
    subject: str = ""
    period: str
    starts_at: datetime = Field(sa_type=UtcDateTime)
    spent: int = Field(default=0, sa_type=BigInteger)
    reserved: int = Field(default=0, sa_type=BigInteger)
    refused: int = 0
    wanted: int = Field(default=0, sa_type=BigInteger)
    warned_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class LedgerLine(Table, table=True):
    """What a reservation set aside in one window, and what became of it, in micro-dollars (owner: `budget`).

    Open while ``open_until`` is set, settled once ``settled`` is; lapsed if neither. Settled once, never changed after.
    """

    __tablename__ = "ledger"

    id: str = Field(default_factory=new_id, primary_key=True)
    reservation_id: str = Field(index=True)
    window_id: str = Field(foreign_key="budget_window.id", index=True)
    call_id: str = Field(foreign_key="call.id", index=True)
    reserved: int = Field(sa_type=BigInteger)
    settled: int | None = Field(default=None, sa_type=BigInteger)
    created_at: datetime = Field(sa_type=UtcDateTime)
    open_until: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)
    settled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


# The tables themselves, for statements that are built once and run with every review: building a statement anew takes
# several times as long as running it.
BUDGET: SqlTable = metadata.tables["budget"]
BUDGET_WINDOW: SqlTable = metadata.tables["budget_window"]
CALL: SqlTable = metadata.tables["call"]
DECISION: SqlTable = metadata.tables["decision"]
EMBEDDING_SPACE: SqlTable = metadata.tables["embedding_space"]
ENTRY: SqlTable = metadata.tables["entry"]
ENTRY_VECTOR: SqlTable = metadata.tables["entry_vector"]
HELD: SqlTable = metadata.tables["held"]
LEDGER: SqlTable = metadata.tables["ledger"]
PASSAGE: SqlTable = metadata.tables["passage"]
PROJECT: SqlTable = metadata.tables["project"]
REVIEW: SqlTable = metadata.tables["review"]
STAGED_VECTOR: SqlTable = metadata.tables["staged_vector"]
