"""The queue of held reviews: what waits, why and since when, and who may try it next (table `held`)."""

from datetime import datetime, timedelta

from sqlalchemy import Select, delete, func, insert, select, update
from sqlmodel import Session, col

from app.callers import Caller
from app.models import HELD, PROJECT, REVIEW, Review
from app.schemas.judging import LASTING, Fault
from app.schemas.queue import HeldCount, HeldOut

# How long the reviewer is left alone after it could not judge an item: doubled each time, up to the longest.
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)

_ADD = insert(HELD)
_SHOWN: Select[tuple[object, ...]] = (
    select(
        HELD.c.review_id,
        HELD.c.fault,
        HELD.c.since,
        HELD.c.retry_at,
        HELD.c.tries,
        REVIEW.c.key_id,
        REVIEW.c.agent,
        REVIEW.c.session_id,
        REVIEW.c.store,
        REVIEW.c.tool,
        REVIEW.c.key,
        REVIEW.c.text,
        REVIEW.c.stored_at,
        PROJECT.c.name.label("project"),
    )
    .join(REVIEW, REVIEW.c.id == HELD.c.review_id)
    .join(PROJECT, PROJECT.c.id == HELD.c.project_id)
)


def add(session: Session, review_id: str, project_id: str, fault: Fault | None, now: datetime) -> None:
    """Let a review wait for a decision."""
    known = fault or Fault.INTERRUPTED
    session.execute(
        _ADD,
        {
            "review_id": review_id,
            "project_id": project_id,
            "fault": known.value,
            "since": now,
            "retry_at": None if known in LASTING else now + FIRST_PAUSE,
            "tries": 0,
        },
    )


def remove(session: Session, review_id: str) -> None:
    """The review is decided."""
    session.execute(delete(HELD).where(HELD.c.review_id == review_id))


def take(session: Session, now: datetime, lease: timedelta, count: int) -> list[tuple[int, Review, str]]:
    """The oldest items that the reviewer may judge by now, for this process alone until the lease ends.

    Each comes with how often it has been tried, and with its project's name.
    The lease only saves work: that one decision is made is ensured where it is written down.
    """
    ready = (
        select(HELD.c.review_id)
        .where(HELD.c.retry_at <= now)
        .order_by(HELD.c.since, HELD.c.review_id)
        .limit(count)
        .with_for_update(skip_locked=True)
    )
    taken = list(session.execute(ready).scalars())
    if not taken:
        return []
    session.execute(
        update(HELD).where(HELD.c.review_id.in_(taken)).values(retry_at=now + lease, tries=HELD.c.tries + 1)
    )
    rows = session.execute(
        select(HELD.c.tries, Review, PROJECT.c.name)
        .join(Review, col(Review.id) == HELD.c.review_id)
        .join(PROJECT, PROJECT.c.id == HELD.c.project_id)
        .where(HELD.c.review_id.in_(taken))
        .order_by(HELD.c.since, HELD.c.review_id)
    )
    return [(tries, review, project) for tries, review, project in rows]


def put_back(session: Session, review_id: str, fault: Fault | None, tries: int, now: datetime) -> None:
    """The reviewer could not judge the item again: it waits longer, or for a person if the fault is a lasting one."""
    known = fault or Fault.INTERRUPTED
    pause = min(FIRST_PAUSE * 2 ** min(tries, 10), LONGEST_PAUSE)
    session.execute(
        update(HELD)
        .where(HELD.c.review_id == review_id)
        .values(fault=known.value, retry_at=None if known in LASTING else now + pause)
    )


def older_than(session: Session, since: datetime) -> list[tuple[str, str]]:
    """Review and project ids of what has waited since before that moment, oldest first."""
    rows = session.execute(
        select(HELD.c.review_id, HELD.c.project_id).where(HELD.c.since < since).order_by(HELD.c.since)
    )
    return [(review_id, project_id) for review_id, project_id in rows]


def of_reviews(session: Session, of: Select[str]) -> list[Review]:
    """Those of the reviews that are held."""
    query = select(Review).join(HELD, HELD.c.review_id == col(Review.id)).where(HELD.c.review_id.in_(of))
    return list(session.execute(query).scalars())


def equal_texts(session: Session, project_id: str, text_hash: str) -> list[str]:
    """Ids of the project's held reviews of a text, oldest first."""
    rows = session.execute(
        select(HELD.c.review_id)
        .join(REVIEW, REVIEW.c.id == HELD.c.review_id)
        .where(HELD.c.project_id == project_id, REVIEW.c.text_hash == text_hash)
        .order_by(HELD.c.review_id)
    )
    return list(rows.scalars())


def counts(session: Session, caller: Caller, project_id: str | None = None) -> list[HeldCount]:
    """How much is held for each fault, and since when; of all that the caller sees if no project is given."""
    query = select(HELD.c.fault, func.count(), func.min(HELD.c.since)).group_by(HELD.c.fault).order_by(HELD.c.fault)
    if caller.projects is not None:
        query = query.join(PROJECT, PROJECT.c.id == HELD.c.project_id).where(caller.scope())
    if project_id is not None:
        query = query.where(HELD.c.project_id == project_id)
    return [HeldCount(fault=fault, count=count, oldest=oldest) for fault, count, oldest in session.execute(query)]


def page(
    session: Session,
    caller: Caller,
    *,
    project_id: str | None = None,
    fault: Fault | None = None,
    after: str | None,
    count: int,
) -> list[HeldOut]:
    """Held items that the caller sees, made after the review with the id ``after``, oldest first."""
    query = _SHOWN.where(caller.scope()).order_by(HELD.c.review_id).limit(count)
    for column, value in ((HELD.c.project_id, project_id), (HELD.c.fault, fault)):
        if value is not None:
            query = query.where(column == str(value))
    if after is not None:
        query = query.where(HELD.c.review_id > after)
    return [
        HeldOut.model_validate({name: value for name, value in row.items() if name != "stored_at"} | {"stored": stored})
        for row in session.execute(query).mappings()
        for stored in [row["stored_at"] is not None]
    ]
