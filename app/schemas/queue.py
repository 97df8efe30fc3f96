"""What was held, decisions about it, and memories that are withdrawn."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from app.schemas.fields import Flag, Key, Model, Name, Text, storable
from app.schemas.judging import Fault
from app.schemas.reviews import Removal
from app.schemas.vocabulary import Category, MemoryCategory, Reason, Verdict


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
