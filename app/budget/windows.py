"""Which budgets cover a call, and their windows: the spans of time that each limit holds for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Integer,
    String,
    and_,
    bindparam,
    case,
    cast,
    insert,
    literal,
    null,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.engine import Row
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app.db import UtcDateTime, new_id
from app.models import BUDGET, BUDGET_WINDOW
from app.schemas.vocabulary import AtCap, BudgetScope, Period
from app.settings import Settings

FOR_EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Start of the one window of a budget without a period."""
SETTING_WARN_PERCENT = 80

ADJECTIVES = {Period.DAY: "daily", Period.WEEK: "weekly", Period.MONTH: "monthly", Period.TOTAL: "total"}


@dataclass(frozen=True)
class Setting:
    """The budget that a setting makes: the team's month, where none is set by API; 0 micro-dollars for none."""

    limit: int = 0
    at_cap: AtCap = AtCap.OFFLINE

    @classmethod
    def of(cls, settings: Settings) -> "Setting":
        """The one of these settings."""
        return cls(settings.budget_microdollars, settings.at_cap)


@dataclass(frozen=True)
class Payer:
    """Whose budgets a call draws on, besides the team's; a caller of this machine has no key."""

    project: str
    key_id: str | None = None


@dataclass(frozen=True)
class Cover:
    """An enabled budget that covers a call, with its current window; None for one that nothing was spent in."""

    scope: BudgetScope
    subject: str
    period: Period
    limit: int
    warn_percent: int
    at_cap: AtCap
    starts_at: datetime
    window_id: str | None

    @property
    def name(self) -> str:
        """What people call it: ``the team's monthly budget``."""
        return f"the {self.scope.value}'s {ADJECTIVES[self.period]} budget"


def window_start(period: Period, now: datetime) -> datetime:
    """First moment of the period's window (UTC) that ``now`` lies in."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case Period.DAY:
            return midnight
        case Period.WEEK:
            return midnight - timedelta(days=midnight.weekday())
        case Period.MONTH:
            return midnight.replace(day=1)
        case Period.TOTAL:
            return FOR_EVER


def window_end(period: Period, starts_at: datetime) -> datetime | None:
    """First moment after the window that starts then; None if it never ends."""
    match period:
        case Period.DAY:
            return starts_at + timedelta(days=1)
        case Period.WEEK:
            return starts_at + timedelta(days=7)
        case Period.MONTH:
            return window_start(Period.MONTH, starts_at + timedelta(days=31))
        case Period.TOTAL:
            return None


def strictest(covers: Sequence[Cover]) -> AtCap:
    """What happens at the cap where several budgets have a say: hold before offline before allow."""
    return min((cover.at_cap for cover in covers), key=(AtCap.HOLD, AtCap.OFFLINE, AtCap.ALLOW).index)


# --- statements, built once -----------------------------------------------------------------------------------------

_THE_TEAMS_MONTH = and_(BUDGET.c.scope == BudgetScope.TEAM.value, BUDGET.c.period == Period.MONTH.value)
_NAMES = ("id", "scope", "subject", "period", "limit_microdollars", "warn_percent", "at_cap", "enabled")
# The setting counts as the team's month budget where there is no such row.
_ALL = union_all(
    select(*(BUDGET.c[name] for name in _NAMES)),
    select(
        cast(null(), String),
        literal(BudgetScope.TEAM.value, String),
        literal("", String),
        literal(Period.MONTH.value, String),
        bindparam("setting_limit", type_=BigInteger),
        literal(SETTING_WARN_PERCENT, Integer),
        bindparam("setting_at_cap", type_=String),
        cast(true(), Boolean),
    ).where(bindparam("setting_limit", type_=BigInteger) > 0, ~select(BUDGET.c.id).where(_THE_TEAMS_MONTH).exists()),
).subquery("all_budgets")
_STARTS_AT = case(*((_ALL.c.period == period.value, bindparam(period.value, type_=UtcDateTime())) for period in Period))
_CURRENT = select(
    _ALL,
    _STARTS_AT.label("starts_at"),
    BUDGET_WINDOW.c.id.label("window_id"),
    *(BUDGET_WINDOW.c[name] for name in ("spent", "reserved", "refused", "wanted", "warned_at")),
).outerjoin(
    BUDGET_WINDOW,
    and_(
        BUDGET_WINDOW.c.scope == _ALL.c.scope,
        BUDGET_WINDOW.c.subject == _ALL.c.subject,
        BUDGET_WINDOW.c.period == _ALL.c.period,
        BUDGET_WINDOW.c.starts_at == _STARTS_AT,
    ),
)
_ORDER = (_ALL.c.scope.desc(), _ALL.c.subject, _ALL.c.period)
_COVERING = _CURRENT.where(
    _ALL.c.enabled,
    or_(
        _ALL.c.scope == BudgetScope.TEAM.value,
        and_(_ALL.c.scope == BudgetScope.PROJECT.value, _ALL.c.subject == bindparam("project")),
        and_(_ALL.c.scope == BudgetScope.KEY.value, _ALL.c.subject == bindparam("key_id", type_=String)),
    ),
).order_by(*_ORDER)
_EVERY_ONE = _CURRENT.order_by(*_ORDER)

_WINDOW = select(BUDGET_WINDOW.c.id).where(
    BUDGET_WINDOW.c.scope == bindparam("scope"),
    BUDGET_WINDOW.c.subject == bindparam("subject"),
    BUDGET_WINDOW.c.period == bindparam("period"),
    BUDGET_WINDOW.c.starts_at == bindparam("starts_at"),
)
_OPEN_WINDOW = insert(BUDGET_WINDOW)


def covering(session: Session, setting: Setting, payer: Payer, now: datetime) -> list[Cover]:
    """The enabled budgets that the payer's calls draw on, with their current windows."""
    parameters = {"project": payer.project, "key_id": payer.key_id, **_parameters(setting, now)}
    return [cover_in(row) for row in session.execute(_COVERING, parameters)]


def every_one(session: Session, setting: Setting, now: datetime) -> Sequence[Row[Any]]:
    """All budgets, each in a row with its current window."""
    return session.execute(_EVERY_ONE, _parameters(setting, now)).all()


def cover_in(row: Row[Any]) -> Cover:
    """The cover in a row of a budget."""
    return Cover(
        scope=BudgetScope(row.scope),
        subject=row.subject,
        period=Period(row.period),
        limit=row.limit_microdollars,
        warn_percent=row.warn_percent,
        at_cap=AtCap(row.at_cap),
        starts_at=row.starts_at,
        window_id=row.window_id,
    )


def with_window(session: Session, cover: Cover) -> Cover:
    """The cover with its window, opened if nobody has."""
    if cover.window_id is not None:
        return cover
    same = {
        "scope": cover.scope.value,
        "subject": cover.subject,
        "period": cover.period.value,
        "starts_at": cover.starts_at,
    }
    known = session.execute(_WINDOW, same).scalar_one_or_none()
    if known is None:
        try:
            with session.begin_nested():
                session.execute(
                    _OPEN_WINDOW,
                    {"id": new_id(), **same, "spent": 0, "reserved": 0, "refused": 0, "wanted": 0, "warned_at": None},
                )
        except IntegrityError:
            pass  # another process opened it at the same moment
        known = session.execute(_WINDOW, same).scalar_one()
    return replace(cover, window_id=known)


def _parameters(setting: Setting, now: datetime) -> dict[str, Any]:
    starts = {period.value: window_start(period, now) for period in Period}
    return {"setting_limit": setting.limit, "setting_at_cap": setting.at_cap.value, **starts}
