"""The closed sets of words: kinds of memories, verdicts, reasons, and what may be set."""

from enum import StrEnum
from typing import Literal


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
