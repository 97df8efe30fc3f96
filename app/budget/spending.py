"""Reserve, settle, release, expire: the way of the money. See the package for the rules."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import bindparam, insert, select, update
from sqlmodel import Session

from app.budget.windows import Cover, Payer, Setting, covering, with_window
from app.db import new_id
from app.models import BUDGET_WINDOW, LEDGER

MOST_LAPSED_AT_ONCE = 500


@dataclass(frozen=True)
class Reservation:
    """An amount that is set aside in a window of each of the covers."""

    id: str
    amount: int
    covers: tuple[Cover, ...]


@dataclass(frozen=True)
class Shortage:
    """A budget without room for a call, as it stood when the call was refused."""

    cover: Cover
    taken: int
    """Spent or reserved, in micro-dollars."""


class NoRoom(Exception):
    """The budgets do not allow a call; without shortages, because none covers it.

    Attributes:
        wanted: what the call might have cost, in micro-dollars.
        shortages: the budgets that had no room for it.
    """

    def __init__(self, wanted: int, shortages: tuple[Shortage, ...] = ()) -> None:
        self.wanted = wanted
        self.shortages = shortages
        super().__init__(
            "; ".join(f"{s.cover.name}: {s.taken} of {s.cover.limit} taken, {wanted} wanted" for s in shortages)
        )

    @property
    def covers(self) -> list[Cover]:
        """The budgets that had no room."""
        return [shortage.cover for shortage in self.shortages]


_THIS_WINDOW = BUDGET_WINDOW.c.id == bindparam("window_id")
_SET_ASIDE = (
    update(BUDGET_WINDOW)
    .where(_THIS_WINDOW, BUDGET_WINDOW.c.spent + BUDGET_WINDOW.c.reserved + bindparam("amount") <= bindparam("limit"))
    .values(reserved=BUDGET_WINDOW.c.reserved + bindparam("amount"))
    .returning(BUDGET_WINDOW.c.id)
)
_COMMITTED = select(BUDGET_WINDOW.c.spent + BUDGET_WINDOW.c.reserved).where(_THIS_WINDOW).with_for_update()
_SPEND = (
    update(BUDGET_WINDOW)
    .where(_THIS_WINDOW)
    .values(spent=BUDGET_WINDOW.c.spent + bindparam("cost"), reserved=BUDGET_WINDOW.c.reserved - bindparam("freed"))
    .returning(BUDGET_WINDOW.c.spent, BUDGET_WINDOW.c.warned_at)
)
_WARN = update(BUDGET_WINDOW).where(_THIS_WINDOW).values(warned_at=bindparam("now"))
_REFUSE = (
    update(BUDGET_WINDOW).where(_THIS_WINDOW).values(refused=BUDGET_WINDOW.c.refused + 1, wanted=bindparam("amount"))
)
_ADD_LINES = insert(LEDGER)
_SETTLE = (
    update(LEDGER)
    .where(LEDGER.c.reservation_id == bindparam("reservation"))
    .values(settled=bindparam("cost"), settled_at=bindparam("now"), open_until=None)
    .returning(LEDGER.c.window_id)
)
_SETTLE_OPEN = _SETTLE.where(LEDGER.c.open_until.is_not(None))
_SETTLE_LAPSED = _SETTLE.where(LEDGER.c.settled.is_(None))


def reserve(
    session: Session,
    setting: Setting,
    *,
    call_id: str,
    payer: Payer,
    amount: int,
    now: datetime,
    open_until: datetime,
) -> Reservation:
    """Set an amount aside for a call, which is written down already, in every budget that covers it.

    What costs nothing needs no budget.

    Raises:
        NoRoom: no budget covers the call, or one has no room for it. Roll the transaction back.
    """
    if amount == 0:
        return Reservation(new_id(), 0, ())
    covers = covering(session, setting, payer, now)
    if not covers:
        raise NoRoom(amount)
    in_order = sorted((with_window(session, cover) for cover in covers), key=_place)
    for place, cover in enumerate(in_order):
        if not _set_aside(session, cover, amount):
            if shortages := _shortages(session, in_order[place:], amount):
                raise NoRoom(amount, shortages)
            _set_aside(session, cover, amount)  # room came while we looked, and now the row is ours
    reservation = Reservation(new_id(), amount, tuple(in_order))
    session.execute(
        _ADD_LINES,
        [
            {
                "id": new_id(),
                "reservation_id": reservation.id,
                "window_id": cover.window_id,
                "call_id": call_id,
                "reserved": amount,
                "settled": None,
                "created_at": now,
                "open_until": open_until,
                "settled_at": None,
            }
            for cover in in_order
        ],
    )
    return reservation


def settle(session: Session, reservation: Reservation, *, cost: int, now: datetime) -> list[Cover]:
    """Replace a reservation by what the call truly cost; 0 releases it. Saying it twice changes nothing.

    A cost that arrives after its reservation has lapsed is still counted: the money is gone.

    Returns:
        The budgets that have come to their warning by this, each once a window.
    """
    about = {"reservation": reservation.id, "cost": cost, "now": now}
    open_ = set(session.execute(_SETTLE_OPEN, about).scalars()) if reservation.covers else set()
    settled = set(open_)
    if len(open_) < len(reservation.covers):
        settled |= set(session.execute(_SETTLE_LAPSED, about).scalars())
    warned = []
    for cover in reservation.covers:
        if cover.window_id not in settled:
            continue
        freed = reservation.amount if cover.window_id in open_ else 0
        spent, warned_at = session.execute(_SPEND, {"window_id": cover.window_id, "cost": cost, "freed": freed}).one()
        if warned_at is None and cost and spent * 100 >= cover.limit * cover.warn_percent:
            session.execute(_WARN, {"window_id": cover.window_id, "now": now})
            warned.append(cover)
    return warned


def note_refusal(session: Session, refusal: NoRoom) -> None:
    """Count a refused call in the windows that had no room, for people to see."""
    # A window that was opened for the refused call alone is gone with its transaction.
    covers = [with_window(session, replace(cover, window_id=None)) for cover in refusal.covers]
    for cover in sorted(covers, key=_place):
        session.execute(_REFUSE, {"window_id": cover.window_id, "amount": refusal.wanted})


def expire(session: Session, now: datetime) -> int:
    """Free what nobody settled in time; how many reservations that were.

    Lines that are being settled at this moment are passed over, so that neither waits for the other.
    """
    late = session.execute(
        select(LEDGER.c.id, LEDGER.c.reservation_id, LEDGER.c.window_id, LEDGER.c.reserved)
        .where(LEDGER.c.open_until < now)
        .order_by(LEDGER.c.id)
        .limit(MOST_LAPSED_AT_ONCE)
        .with_for_update(skip_locked=True)
    ).all()
    if not late:
        return 0
    session.execute(update(LEDGER).where(LEDGER.c.id.in_([line.id for line in late])).values(open_until=None))
    freed: dict[str, int] = {}
    for line in late:
        freed[line.window_id] = freed.get(line.window_id, 0) + line.reserved
    for window_id in sorted(freed):
        session.execute(_SPEND, {"window_id": window_id, "cost": 0, "freed": freed[window_id]})
    return len({line.reservation_id for line in late})


def _place(cover: Cover) -> str:
    """The place of a cover's window in the order in which all take theirs."""
    assert cover.window_id is not None  # noqa: S101
    return cover.window_id


def _set_aside(session: Session, cover: Cover, amount: int) -> bool:
    granted = session.execute(_SET_ASIDE, {"window_id": cover.window_id, "amount": amount, "limit": cover.limit})
    return granted.scalar_one_or_none() is not None


def _shortages(session: Session, covers: Sequence[Cover], amount: int) -> tuple[Shortage, ...]:
    """Those of the covers that have no room, looked at while nobody else can change them."""
    committed = [(cover, session.execute(_COMMITTED, {"window_id": cover.window_id}).scalar_one()) for cover in covers]
    return tuple(Shortage(cover, taken) for cover, taken in committed if taken + amount > cover.limit)
