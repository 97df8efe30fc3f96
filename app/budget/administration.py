"""Budgets as people see and set them."""

from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, insert, update
from sqlalchemy.engine import Row
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app import audit_log
from app.budget.windows import Setting, cover_in, every_one, window_end
from app.callers import Caller
from app.db import new_id
from app.errors import Invalid, NotFound
from app.models import BUDGET
from app.schemas.budgets import BudgetIn, BudgetOut
from app.schemas.vocabulary import BudgetScope, Period


def overview(session: Session, setting: Setting, now: datetime) -> list[BudgetOut]:
    """All budgets with their current windows."""
    return [_out(row) for row in every_one(session, setting, now)]


def put(session: Session, caller: Caller, setting: Setting, budget: BudgetIn, now: datetime) -> BudgetOut:
    """Set the budget of a scope and period, in force for every call from now on.

    Raises:
        Invalid: a project's or key's budget names none, or the team's names one.
    """
    if (budget.scope is BudgetScope.TEAM) == (budget.subject is not None):
        raise Invalid("`subject` names the project or the key of a budget; the team's budget has none.")
    scope, subject, period = budget.scope.value, budget.subject or "", budget.period.value
    values = {
        "limit_microdollars": budget.limit_microdollars,
        "warn_percent": budget.warn_percent,
        "at_cap": budget.at_cap.value,
        "enabled": budget.enabled,
        "updated_at": now,
    }
    before = _found(session, setting, budget, now)
    same = and_(BUDGET.c.scope == scope, BUDGET.c.subject == subject, BUDGET.c.period == period)
    change = update(BUDGET).where(same).values(**values).returning(BUDGET.c.id)
    if session.execute(change).scalar_one_or_none() is None:
        try:
            with session.begin_nested():
                session.execute(
                    insert(BUDGET).values(id=new_id(), scope=scope, subject=subject, period=period, **values)
                )
        except IntegrityError:
            session.execute(change)  # somebody set it at the same moment
    made = _found(session, setting, budget, now)
    assert made is not None  # noqa: S101 - it was set above
    audit_log.note(
        session, caller, "budget.set", made.id or "", now=now, before=_settings(before), after=_settings(made)
    )
    return made


def remove(session: Session, caller: Caller, setting: Setting, budget_id: str, now: datetime) -> BudgetOut:
    """Forget a budget, as it stood; its windows stay, and count again should it be set anew.

    Raises:
        NotFound: there is none with this id.
    """
    found = next((out for out in overview(session, setting, now) if out.id == budget_id), None)
    if found is None:
        raise NotFound("There is no budget with this id.")
    session.execute(delete(BUDGET).where(BUDGET.c.id == budget_id))
    audit_log.note(session, caller, "budget.removed", budget_id, now=now, before=_settings(found))
    return found


def _found(session: Session, setting: Setting, budget: BudgetIn, now: datetime) -> BudgetOut | None:
    """The budget of the same scope, subject and period, if there is one."""
    name = (budget.scope, budget.subject, budget.period)
    return next((out for out in overview(session, setting, now) if (out.scope, out.subject, out.period) == name), None)


def _settings(out: BudgetOut | None) -> dict[str, Any] | None:
    """What people set of a budget, without what was spent."""
    return None if out is None else out.model_dump(mode="json", include=set(BudgetIn.model_fields))


def _out(row: Row[Any]) -> BudgetOut:
    cover = cover_in(row)
    spent, reserved = row.spent or 0, row.reserved or 0
    left = cover.limit - spent - reserved
    if row.refused and left < row.wanted:
        state = "at_cap"
    else:
        state = "warned" if spent and spent * 100 >= cover.limit * cover.warn_percent else "ok"
    endless = cover.period is Period.TOTAL
    return BudgetOut.model_validate(
        {
            "id": row.id,
            "source": "setting" if row.id is None else "api",
            "scope": cover.scope,
            "subject": cover.subject or None,
            "period": cover.period,
            "limit_microdollars": cover.limit,
            "warn_percent": cover.warn_percent,
            "at_cap": cover.at_cap,
            "enabled": row.enabled,
            "starts_at": None if endless else cover.starts_at,
            "ends_at": window_end(cover.period, cover.starts_at),
            "spent_microdollars": spent,
            "reserved_microdollars": reserved,
            "left_microdollars": max(left, 0),
            "refused": row.refused or 0,
            "state": state,
        }
    )
