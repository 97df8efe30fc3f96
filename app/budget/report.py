"""Whether ledger, windows and reviews tell of the same money; a look at everything that is on record."""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import BigInteger, Select, cast, func, select
from sqlmodel import Session

from app.budget.windows import FOR_EVER
from app.models import BUDGET_WINDOW, LEDGER, REVIEW
from app.schemas.budgets import BudgetReport, Difference, SpendingWindow
from app.schemas.vocabulary import BudgetScope, Period

MOST_DIFFERENCES = 100

_OPEN = LEDGER.c.open_until.is_not(None)
_IN_WINDOW = (
    select(
        LEDGER.c.window_id,
        func.sum(func.coalesce(LEDGER.c.settled, 0)).label("settled"),
        func.sum(LEDGER.c.reserved).filter(_OPEN).label("open"),
    )
    .group_by(LEDGER.c.window_id)
    .subquery()
)
_WINDOWS = (
    select(BUDGET_WINDOW, _IN_WINDOW.c.settled, _IN_WINDOW.c.open)
    .outerjoin(_IN_WINDOW, _IN_WINDOW.c.window_id == BUDGET_WINDOW.c.id)
    .order_by(BUDGET_WINDOW.c.starts_at.desc(), BUDGET_WINDOW.c.scope, BUDGET_WINDOW.c.subject, BUDGET_WINDOW.c.period)
)
# Every window is charged the whole cost, so that a reservation has it on each of its lines.
_RESERVATIONS = (
    select(
        LEDGER.c.reservation_id,
        func.min(LEDGER.c.call_id).label("call_id"),
        func.min(func.coalesce(LEDGER.c.settled, 0)).label("least"),
        func.max(func.coalesce(LEDGER.c.settled, 0)).label("most"),
        func.count(LEDGER.c.open_until).label("open"),
    )
    .group_by(LEDGER.c.reservation_id)
    .subquery()
)
_UNEVEN = select(_RESERVATIONS).where(_RESERVATIONS.c.least != _RESERVATIONS.c.most, _RESERVATIONS.c.open == 0)
_PAID_BY_CALL = (
    select(
        _RESERVATIONS.c.call_id,
        func.sum(_RESERVATIONS.c.most).label("paid"),
        func.sum(_RESERVATIONS.c.open).label("open"),
    )
    .group_by(_RESERVATIONS.c.call_id)
    .subquery()
)
_COST_BY_CALL = (
    select(REVIEW.c.call_id, func.sum(REVIEW.c.cost_microdollars).label("cost")).group_by(REVIEW.c.call_id).subquery()
)
_COST = func.coalesce(_COST_BY_CALL.c.cost, 0)
_PAID = func.coalesce(_PAID_BY_CALL.c.paid, 0)
_CALLS: Select[Any] = (
    select(_COST_BY_CALL.c.call_id, cast(_PAID, BigInteger).label("paid"), cast(_COST, BigInteger).label("cost"))
    .outerjoin(_PAID_BY_CALL, _PAID_BY_CALL.c.call_id == _COST_BY_CALL.c.call_id)
    .where(func.coalesce(_PAID_BY_CALL.c.open, 0) == 0)
)
_ALL_COST = select(
    func.count(func.distinct(REVIEW.c.call_id)), func.coalesce(func.sum(REVIEW.c.cost_microdollars), 0)
).where(REVIEW.c.cost_microdollars > 0)


def report(session: Session) -> BudgetReport:
    """Compare the three; of very many differences only the first are told."""
    windows = session.execute(_WINDOWS).all()
    found = [*_of_windows(windows), *_of_reservations(session), *_of_calls(session)]
    calls, cost = session.execute(_ALL_COST).one()
    return BudgetReport(
        consistent=not found,
        calls=calls,
        cost_microdollars=int(cost),
        reserved_microdollars=sum(window.reserved for window in windows),
        windows=[
            SpendingWindow(
                scope=BudgetScope(window.scope),
                subject=window.subject or None,
                period=Period(window.period),
                starts_at=None if window.starts_at == FOR_EVER else window.starts_at,
                spent_microdollars=window.spent,
                reserved_microdollars=window.reserved,
                refused=window.refused,
            )
            for window in windows
        ],
        differences=found[:MOST_DIFFERENCES],
    )


def _of_windows(windows: Iterable[Any]) -> Iterator[Difference]:
    for window in windows:
        settled, open_ = int(window.settled or 0), int(window.open or 0)
        if settled != window.spent:
            yield Difference(
                what="window_spent", id=window.id, ledger_microdollars=settled, other_microdollars=window.spent
            )
        if open_ != window.reserved:
            yield Difference(
                what="window_reserved", id=window.id, ledger_microdollars=open_, other_microdollars=window.reserved
            )


def _of_reservations(session: Session) -> Iterator[Difference]:
    for uneven in session.execute(_UNEVEN.limit(MOST_DIFFERENCES)):
        yield Difference(
            what="reservation",
            id=uneven.reservation_id,
            ledger_microdollars=uneven.most,
            other_microdollars=uneven.least,
        )


def _of_calls(session: Session) -> Iterator[Difference]:
    for call in session.execute(_CALLS.where(_PAID != _COST).limit(MOST_DIFFERENCES)):
        yield Difference(what="call", id=call.call_id, ledger_microdollars=call.paid, other_microdollars=call.cost)
