"""The audit log: who changed what, when, from what to what. Lines are added and never changed (the schema sees to it).

It holds ids, names and settings, never the text of a memory or a key.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlmodel import Session, col

from app.callers import Caller
from app.db import new_id
from app.models import AuditEvent
from app.schemas.keys import AuditEventOut

Values = Mapping[str, Any]


def note(
    session: Session,
    caller: Caller,
    action: str,
    subject: str,
    *,
    now: datetime,
    before: Values | None = None,
    after: Values | None = None,
) -> None:
    """Write down an administrative change, in the transaction that makes it.

    Args:
        session: the transaction.
        caller: who makes the change.
        action: the thing and what is done to it: ``key.revoked``.
        subject: id or name of the thing.
        now: the moment.
        before: what is changed, as it was.
        after: what is changed, as it is from now on.
    """
    session.execute(
        insert(AuditEvent).values(
            id=new_id(),
            at=now,
            key_id=caller.key_id,
            action=action,
            subject=subject,
            before=None if before is None else dict(before),
            after=None if after is None else dict(after),
        )
    )


def page(session: Session, *, before: str | None = None, count: int = 50) -> list[AuditEventOut]:
    """Lines made before the one with the id ``before``, newest first."""
    query = select(AuditEvent).order_by(col(AuditEvent.id).desc()).limit(count)
    if before is not None:
        query = query.where(col(AuditEvent.id) < before)
    return [AuditEventOut.model_validate(event.model_dump()) for event in session.execute(query).scalars()]
