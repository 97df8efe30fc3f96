"""Decisions about reviews after they were made: kept whole, told to the agent once, followed by its store.

The review itself says what holds now; here stands who decided it, why, and what held before.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, exists, func, insert, or_, select, update
from sqlalchemy.engine import RowMapping
from sqlmodel import Session

from app.callers import Caller
from app.models import DECISION, LOCAL_KEY, PROJECT, REVIEW
from app.schemas.judging import Facts
from app.schemas.reviews import DecidedBy, DecisionOut, Telling

_ADD = insert(DECISION)
# A text told to be stored may come at any time until it was told, and for a while after that.
_PASS = (
    select(DECISION.c.facts)
    .where(
        DECISION.c.project_id == bindparam("project_id"),
        DECISION.c.pass_hash == bindparam("text_hash"),
        DECISION.c.pass_hash.is_not(None),
        DECISION.c.used_at.is_(None),
        or_(DECISION.c.told_at.is_(None), DECISION.c.told_at > bindparam("told_after")),
    )
    .order_by(DECISION.c.id.desc())
    .limit(1)
)
_HASHES_PASSED = select(DECISION.c.pass_hash).where(
    DECISION.c.project_id == bindparam("project_id"),
    DECISION.c.pass_hash.in_(bindparam("text_hashes", expanding=True)),
    DECISION.c.pass_hash.is_not(None),
)
_SPEND = (
    update(DECISION)
    .where(
        DECISION.c.project_id == bindparam("of_project"),
        DECISION.c.pass_hash == bindparam("text_hash"),
        DECISION.c.pass_hash.is_not(None),
        DECISION.c.used_at.is_(None),
    )
    .values(used_at=bindparam("now"))
)
_SHOWN = [DECISION.c[name] for name in DecisionOut.model_fields if name in DECISION.c]


def add(
    session: Session,
    *,
    review_id: str,
    project_id: str,
    decision_id: str,
    by: DecidedBy,
    now: datetime,
    **fields: Any,
) -> None:
    """Write a decision down; what was to be told of an earlier one of the same review is moot."""
    session.execute(
        update(DECISION)
        .where(DECISION.c.review_id == review_id, DECISION.c.telling == Telling.DUE.value)
        .values(telling=Telling.MOOT.value)
    )
    session.execute(
        update(DECISION)
        .where(DECISION.c.review_id == review_id, DECISION.c.pass_hash.is_not(None))
        .values(pass_hash=None)
    )
    session.execute(
        _ADD,
        {
            "id": decision_id,
            "review_id": review_id,
            "project_id": project_id,
            "decided_by": by.value,
            "created_at": now,
            "told_at": None,
            "used_at": None,
            **fields,
        },
    )


def open_pass(session: Session, project_id: str, text_hash: str, told_after: datetime) -> Facts | None:
    """What is known of a text that was decided to be stored, and may be without another judgement; None if it may not.

    Args:
        session: a session for reading.
        project_id: whose text.
        text_hash: the text's.
        told_after: a decision that was told before this moment has lapsed.
    """
    parameters = {"project_id": project_id, "text_hash": text_hash, "told_after": told_after}
    facts = session.execute(_PASS, parameters).scalar()
    return Facts.model_validate(facts) if facts is not None else None


def with_pass(session: Session, project_id: str, text_hashes: Sequence[str]) -> set[str]:
    """Those of the hashes whose text was decided to be stored, whether it still may be or not."""
    return set(session.execute(_HASHES_PASSED, {"project_id": project_id, "text_hashes": text_hashes}).scalars())


def spend_pass(session: Session, project_id: str, text_hash: str, now: datetime) -> None:
    """The text is in its store: it needs no telling any more, and another such text is judged like any other."""
    parameters = {"of_project": project_id, "text_hash": text_hash, "now": now}
    spent = session.execute(_SPEND.returning(DECISION.c.id), parameters).scalars().all()
    if spent:
        session.execute(
            update(DECISION)
            .where(DECISION.c.id.in_(spent), DECISION.c.telling == Telling.DUE.value)
            .values(telling=Telling.MOOT.value)
        )


def of_reviews(session: Session, review_ids: Sequence[str]) -> dict[str, list[DecisionOut]]:
    """The decisions about reviews, oldest first, by the review's id."""
    found: dict[str, list[DecisionOut]] = {}
    query = select(*_SHOWN, DECISION.c.decided_by.label("by"))
    for row in session.execute(query.where(DECISION.c.review_id.in_(review_ids)).order_by(DECISION.c.id)).mappings():
        found.setdefault(row["review_id"], []).append(DecisionOut.model_validate(dict(row)))
    return found


def due(session: Session, caller: Caller, project_id: str, agent: str, count: int) -> tuple[list[RowMapping], int]:
    """What the caller's agent is still to be told about the project, oldest first, and how much there is in all."""
    mine = (
        DECISION.c.project_id == project_id,
        DECISION.c.telling == Telling.DUE.value,
        REVIEW.c.agent == agent,
        _proposed_by(caller),
    )
    joined = DECISION.join(REVIEW, REVIEW.c.id == DECISION.c.review_id)
    total = session.execute(select(func.count()).select_from(joined).where(*mine)).scalar_one()
    query = (
        select(DECISION, REVIEW.c.text, REVIEW.c.tool, REVIEW.c.key, REVIEW.c.operation)
        .select_from(joined)
        .where(*mine)
        .order_by(DECISION.c.id)
        .limit(count)
    )
    return list(session.execute(query).mappings()), total


def mark_told(session: Session, caller: Caller, decision_ids: Iterable[str], now: datetime) -> None:
    """The caller's agent has been told; saying so twice changes nothing, nor does saying it of another's."""
    session.execute(
        update(DECISION)
        .where(
            DECISION.c.id.in_(list(decision_ids)),
            DECISION.c.telling == Telling.DUE.value,
            DECISION.c.review_id.in_(select(REVIEW.c.id).where(_proposed_by(caller))),
        )
        .values(telling=Telling.TOLD.value, told_at=now)
    )


def _proposed_by(caller: Caller) -> ColumnElement[bool]:
    """Whose texts: the caller's, and those from before there were keys."""
    return REVIEW.c.key_id.in_((caller.key_id, LOCAL_KEY))


def take_back(session: Session, of: Select[str]) -> None:
    """Nothing that was decided of these reviews lets a text pass, or is to be told, any more."""
    session.execute(update(DECISION).where(DECISION.c.review_id.in_(of)).values(pass_hash=None))
    session.execute(
        update(DECISION)
        .where(DECISION.c.review_id.in_(of), DECISION.c.telling == Telling.DUE.value)
        .values(telling=Telling.MOOT.value)
    )


def by_people(
    session: Session, caller: Caller, project_id: str | None, after: str | None, count: int
) -> list[RowMapping]:
    """People's last decision on each text that the caller sees, made after the one with the id ``after``."""
    later = DECISION.alias("later")
    query = (
        select(
            DECISION.c.id,
            DECISION.c.verdict,
            DECISION.c.reasons,
            DECISION.c.reason,
            DECISION.c.facts,
            REVIEW.c.facts.label("found"),
            REVIEW.c.text,
            PROJECT.c.name.label("project"),
        )
        .join(REVIEW, REVIEW.c.id == DECISION.c.review_id)
        .join(PROJECT, PROJECT.c.id == DECISION.c.project_id)
        .where(
            caller.scope(),
            DECISION.c.decided_by == DecidedBy.PERSON.value,
            ~exists().where(
                later.c.review_id == DECISION.c.review_id,
                later.c.decided_by == DecidedBy.PERSON.value,
                later.c.id > DECISION.c.id,
            ),
        )
        .order_by(DECISION.c.id)
        .limit(count)
    )
    if project_id is not None:
        query = query.where(DECISION.c.project_id == project_id)
    if after is not None:
        query = query.where(DECISION.c.id > after)
    return list(session.execute(query).mappings())
