"""Budgets and what was spent; money is integer micro-dollars."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from app.schemas.fields import WHOLE, Flag, Model, Name
from app.schemas.vocabulary import AtCap, BudgetScope, Period

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
