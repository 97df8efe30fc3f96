"""The spend cap: reserve before a paid call, settle to the true cost after it. Money is integer micro-dollars.

A reservation is one conditional UPDATE, so the sum of what is spent and reserved cannot pass the limit however many
threads, processes or replicas try at once. What a crash leaves reserved is freed when the reservation expires.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from app.db import new_id
from app.models import BudgetWindow, LedgerLine

SCOPE = "global"
PERIOD = "month"


@dataclass(frozen=True)
class Spending:
    """The current window of the cap, in micro-dollars."""

    limit: int
    spent: int
    reserved: int
    starts_at: datetime


def window_start(now: datetime) -> datetime:
    """First moment of the calendar month (UTC) that ``now`` lies in."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def reserve(session: Session, *, call_id: str, amount: int, limit: int, now: datetime, expires_at: datetime) -> bool:
    """Set ``amount`` aside for a call if the cap allows it; whether it did."""
    window = _window(session, now)
    granted = session.execute(
        update(BudgetWindow)
        .where(
            col(BudgetWindow.id) == window,
            col(BudgetWindow.spent) + col(BudgetWindow.reserved) + amount <= limit,
        )
        .values(reserved=col(BudgetWindow.reserved) + amount)
        .returning(col(BudgetWindow.id))
        .execution_options(synchronize_session=False)
    ).scalar_one_or_none()
    if granted is None:
        return False
    session.execute(
        insert(LedgerLine).values(
            id=new_id(), window_id=window, call_id=call_id, reserved=amount, created_at=now, expires_at=expires_at
        )
    )
    return True


def settle(session: Session, *, call_id: str, cost: int, now: datetime) -> None:
    """Replace a call's open reservation by what the call truly cost; 0 releases it.

    A cost that arrives after its reservation has expired is still counted: the money is gone.
    """
    line = session.execute(
        select(col(LedgerLine.id), col(LedgerLine.window_id), col(LedgerLine.reserved), col(LedgerLine.settled))
        .where(col(LedgerLine.call_id) == call_id)
        .order_by(col(LedgerLine.id).desc())
        .limit(1)
        .with_for_update()  # or it might lapse between this look and the update
    ).first()
    if line is None:
        return
    line_id, window_id, reserved, settled = line
    freed = reserved if settled is None else 0
    session.execute(
        update(LedgerLine).where(col(LedgerLine.id) == line_id).values(settled=(settled or 0) + cost, settled_at=now)
    )
    session.execute(
        update(BudgetWindow)
        .where(col(BudgetWindow.id) == window_id)
        .values(reserved=col(BudgetWindow.reserved) - freed, spent=col(BudgetWindow.spent) + cost)
        .execution_options(synchronize_session=False)
    )


def expire(session: Session, now: datetime) -> int:
    """Release the reservations that nobody settled in time; how many there were."""
    lapsed = session.execute(
        select(col(LedgerLine.id), col(LedgerLine.window_id), col(LedgerLine.reserved)).where(
            col(LedgerLine.settled).is_(None), col(LedgerLine.expires_at) < now
        )
    ).all()
    for line_id, window_id, reserved in lapsed:
        freed = session.execute(
            update(LedgerLine)
            .where(col(LedgerLine.id) == line_id, col(LedgerLine.settled).is_(None))
            .values(settled=0, settled_at=now)
            .returning(col(LedgerLine.id))
        ).scalar_one_or_none()
        if freed is not None:
            session.execute(
                update(BudgetWindow)
                .where(col(BudgetWindow.id) == window_id)
                .values(reserved=col(BudgetWindow.reserved) - reserved)
                .execution_options(synchronize_session=False)
            )
    return len(lapsed)


def spending(session: Session, *, limit: int, now: datetime) -> Spending:
    """What the current window has spent and reserved."""
    row = session.execute(
        select(col(BudgetWindow.spent), col(BudgetWindow.reserved)).where(
            col(BudgetWindow.scope) == SCOPE,
            col(BudgetWindow.period) == PERIOD,
            col(BudgetWindow.starts_at) == window_start(now),
        )
    ).first()
    return Spending(limit, row[0] if row else 0, row[1] if row else 0, window_start(now))


def _window(session: Session, now: datetime) -> str:
    starts_at = window_start(now)
    query = select(col(BudgetWindow.id)).where(
        col(BudgetWindow.scope) == SCOPE, col(BudgetWindow.period) == PERIOD, col(BudgetWindow.starts_at) == starts_at
    )
    known: str | None = session.execute(query).scalar_one_or_none()
    if known is not None:
        return known
    try:
        with session.begin_nested():
            session.execute(
                insert(BudgetWindow).values(
                    id=new_id(), scope=SCOPE, period=PERIOD, starts_at=starts_at, spent=0, reserved=0
                )
            )
    except IntegrityError:
        pass  # another process opened the window at the same moment
    opened: str = session.execute(query).scalar_one()
    return opened
