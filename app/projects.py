"""Projects: found by name, made when first seen, locked while their entries change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from app.db import new_id
from app.models import Project
from app.schemas import Level


@dataclass(frozen=True)
class ProjectRow:
    """A project as the stages see it. ``revision`` counts the changes to its entries."""

    id: str
    name: str
    level: Level | None
    revision: int
    documents_revision: int
    created_at: datetime


_COLUMNS = (
    col(Project.id),
    col(Project.name),
    col(Project.level),
    col(Project.revision),
    col(Project.documents_revision),
    col(Project.created_at),
)


def find(session: Session, name: str) -> ProjectRow | None:
    """The project of that name, or None."""
    row = session.execute(select(*_COLUMNS).where(col(Project.name) == name)).first()
    return None if row is None else _row(row)


def ensure(session: Session, name: str, now: datetime) -> ProjectRow:
    """The project of that name, made if it is new."""
    if (known := find(session, name)) is not None:
        return known
    try:
        with session.begin_nested():
            session.execute(
                insert(Project).values(
                    id=new_id(), name=name, level=None, revision=0, documents_revision=0, created_at=now
                )
            )
    except IntegrityError:
        pass  # another process made it at the same moment
    made = find(session, name)
    assert made is not None  # noqa: S101 - it was inserted above, by us or by another
    return made


def name_of(session: Session, project_id: str) -> str:
    """The name of a known project."""
    name: str = session.execute(select(col(Project.name)).where(col(Project.id) == project_id)).scalar_one()
    return name


def get(session: Session, project_id: str) -> ProjectRow:
    """A known project as it is now."""
    return _row(session.execute(select(*_COLUMNS).where(col(Project.id) == project_id)).one())


def locked(session: Session, project: ProjectRow) -> ProjectRow:
    """The project, locked and as it is now."""
    lock(session, project.id)
    return get(session, project.id)


def lock(session: Session, project_id: str) -> None:
    """Keep every other writer away from the project's entries until the transaction ends."""
    session.execute(select(col(Project.id)).where(col(Project.id) == project_id).with_for_update())


def next_revision(session: Session, project_id: str) -> int:
    """Count a change to the project's entries; the new revision."""
    revision: int = session.execute(
        update(Project)
        .where(col(Project.id) == project_id)
        .values(revision=col(Project.revision) + 1)
        .returning(col(Project.revision))
        .execution_options(synchronize_session=False)
    ).scalar_one()
    return revision


def next_documents_revision(session: Session, project_id: str) -> int:
    """Count a change to the project's documents; the new revision."""
    revision: int = session.execute(
        update(Project)
        .where(col(Project.id) == project_id)
        .values(documents_revision=col(Project.documents_revision) + 1)
        .returning(col(Project.documents_revision))
        .execution_options(synchronize_session=False)
    ).scalar_one()
    return revision


def set_level(session: Session, project_id: str, level: Level) -> None:
    """Set how far the project's candidates go."""
    session.execute(update(Project).where(col(Project.id) == project_id).values(level=level.value))


def _row(row: Sequence[Any]) -> ProjectRow:
    return ProjectRow(row[0], row[1], Level(row[2]) if row[2] else None, row[3], row[4], row[5])
