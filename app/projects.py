"""Projects: found by name, made when first seen, locked while their entries change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app.callers import Caller
from app.db import new_id
from app.models import PROJECT
from app.schemas.vocabulary import Level


@dataclass(frozen=True)
class ProjectRow:
    """A project as the stages see it. ``revision`` counts the changes to its entries."""

    id: str
    name: str
    level: Level | None
    revision: int
    documents_revision: int
    created_at: datetime


_COLUMNS = select(
    PROJECT.c.id,
    PROJECT.c.name,
    PROJECT.c.level,
    PROJECT.c.revision,
    PROJECT.c.documents_revision,
    PROJECT.c.created_at,
)
_NAMED = _COLUMNS.where(PROJECT.c.name == bindparam("project_name"))
# Against other writers of the project's entries, not against rows that only refer to the project.
_NAMED_AND_LOCKED = _NAMED.with_for_update(key_share=True)
_WITH_ID = _COLUMNS.where(PROJECT.c.id == bindparam("project_id"))
_ID_LOCKED = select(PROJECT.c.id).where(PROJECT.c.id == bindparam("project_id")).with_for_update(key_share=True)
_COUNT_CHANGE = (
    update(PROJECT)
    .where(PROJECT.c.id == bindparam("project_id"))
    .values(revision=PROJECT.c.revision + bindparam("changes"))
    .returning(PROJECT.c.revision)
)
_COUNT_DOCUMENTS_CHANGE = (
    update(PROJECT)
    .where(PROJECT.c.id == bindparam("project_id"))
    .values(documents_revision=PROJECT.c.documents_revision + 1)
)


def find(session: Session, caller: Caller, name: str) -> ProjectRow | None:
    """The project of that name, or None if the caller sees none."""
    if not caller.sees(name):
        return None
    row = session.execute(_NAMED, {"project_name": name}).first()
    return None if row is None else _row(row)


def ensure(session: Session, caller: Caller, name: str, now: datetime) -> ProjectRow:
    """The project of that name, made if it is new.

    Raises:
        NotFound: it is none of the caller's.
    """
    caller.check(name)
    if (known := find(session, caller, name)) is not None:
        return known
    try:
        with session.begin_nested():
            session.execute(
                insert(PROJECT).values(
                    id=new_id(), name=name, level=None, revision=0, documents_revision=0, created_at=now
                )
            )
    except IntegrityError:
        pass  # another process made it at the same moment
    made = find(session, caller, name)
    assert made is not None  # noqa: S101 - it was inserted above, by us or by another
    return made


def name_of(session: Session, project_id: str) -> str:
    """The name of a known project."""
    return get(session, project_id).name


def get(session: Session, project_id: str) -> ProjectRow:
    """A known project as it is now."""
    return _row(session.execute(_WITH_ID, {"project_id": project_id}).one())


def locked(session: Session, caller: Caller, name: str, now: datetime) -> ProjectRow:
    """The project of that name, made if it is new, and locked.

    Raises:
        NotFound: it is none of the caller's.
    """
    caller.check(name)
    row = session.execute(_NAMED_AND_LOCKED, {"project_name": name}).first()
    if row is None:
        ensure(session, caller, name, now)
        row = session.execute(_NAMED_AND_LOCKED, {"project_name": name}).one()
    return _row(row)


def lock(session: Session, project_id: str) -> None:
    """Keep every other writer away from the project's entries until the transaction ends."""
    session.execute(_ID_LOCKED, {"project_id": project_id})


def revisions(session: Session) -> dict[str, tuple[int, int]]:
    """How often each project's entries and its documents have changed."""
    rows = session.execute(select(PROJECT.c.id, PROJECT.c.revision, PROJECT.c.documents_revision))
    return {row[0]: (row[1], row[2]) for row in rows}


def lock_all(session: Session) -> None:
    """Keep every other writer away from all projects, also from making one, until the transaction ends."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("LOCK TABLE project IN EXCLUSIVE MODE"))


def count_change_of_all(session: Session) -> None:
    """Count a change to the entries and the documents of every project."""
    session.execute(
        update(PROJECT).values(revision=PROJECT.c.revision + 1, documents_revision=PROJECT.c.documents_revision + 1)
    )


def next_revision(session: Session, project_id: str, changes: int = 1) -> int:
    """Count a change to the project's entries, or several; the new revision."""
    revision: int = session.execute(_COUNT_CHANGE, {"project_id": project_id, "changes": changes}).scalar_one()
    return revision


def count_documents_change(session: Session, project_id: str) -> None:
    """Count a change to the project's documents."""
    session.execute(_COUNT_DOCUMENTS_CHANGE, {"project_id": project_id})


def set_level(session: Session, project_id: str, level: Level) -> None:
    """Set how far the project's candidates go."""
    session.execute(update(PROJECT).where(PROJECT.c.id == project_id).values(level=level.value))


def _row(row: Sequence[Any]) -> ProjectRow:
    return ProjectRow(row[0], row[1], Level(row[2]) if row[2] else None, row[3], row[4], row[5])
