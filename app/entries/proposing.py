"""Approved texts on their way to the store: new entries, and next versions of entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, select, update
from sqlmodel import Session, col

from app.callers import Caller
from app.db import new_id
from app.models import ENTRY, Entry, EntryVersion
from app.projects import next_revision
from app.schemas.entries import EntryIn
from app.schemas.vocabulary import Category, EntryStatus

_ADD = insert(ENTRY)


@dataclass(frozen=True)
class Proposal:
    """An approved text on its way to the store, with its provenance."""

    category: Category
    text: str
    text_hash: str
    store: str
    key: str | None
    store_id: str | None
    review_id: str
    key_id: str
    session_id: str
    agent: str
    expires_at: datetime


def add(session: Session, project_id: str, proposal: Proposal, now: datetime) -> tuple[str, int]:
    """Make a pending entry; its id, and the project's revision that it makes."""
    return add_all(session, project_id, [proposal], now)[0]


def add_all(session: Session, project_id: str, proposals: Sequence[Proposal], now: datetime) -> list[tuple[str, int]]:
    """Make pending entries in their order; the id of each, and the project's revision that it makes."""
    if not proposals:
        return []
    first = next_revision(session, project_id, len(proposals)) - len(proposals) + 1
    made = [(new_id(), revision) for revision in range(first, first + len(proposals))]
    rows = [
        {
            "id": entry_id,
            "project_id": project_id,
            "category": proposal.category.value,
            "status": EntryStatus.PENDING.value,
            "version": 1,
            "text": proposal.text,
            "text_hash": proposal.text_hash,
            "key": proposal.key,
            "store": proposal.store,
            "store_id": proposal.store_id,
            "review_id": proposal.review_id,
            "key_id": proposal.key_id,
            "session_id": proposal.session_id,
            "agent": proposal.agent,
            "revision": revision,
            "created_at": now,
            "updated_at": now,
            "expires_at": proposal.expires_at,
        }
        for proposal, (entry_id, revision) in zip(proposals, made, strict=True)
    ]
    session.execute(_ADD, rows)
    return made


def add_stored(
    session: Session, caller: Caller, project_id: str, given: EntryIn, text_hash: str, now: datetime
) -> Entry:
    """An entry for a memory that is in its store already.

    Raises:
        IntegrityError: an equal text or, for STATE, another STATE is live.
    """
    entry = Entry(
        **given.model_dump(exclude={"project", "category"}),
        project_id=project_id,
        category=given.category.value,
        status=EntryStatus.STORED.value,
        text_hash=text_hash,
        key_id=caller.key_id,
        revision=next_revision(session, project_id),
        created_at=now,
        updated_at=now,
    )
    session.add(entry)
    session.flush()
    return entry


def renew(session: Session, entry: Entry, proposal: Proposal, now: datetime) -> None:
    """Offer again an entry that is pending or was never confirmed; it is the newer review's from now on."""
    entry.status = EntryStatus.PENDING.value
    entry.category, entry.text = proposal.category.value, proposal.text
    entry.review_id = proposal.review_id
    entry.key_id = proposal.key_id
    entry.session_id = proposal.session_id
    entry.agent = proposal.agent
    entry.store, entry.key, entry.store_id = proposal.store, proposal.key, proposal.store_id
    entry.expires_at = proposal.expires_at
    entry.updated_at = now
    entry.revision = next_revision(session, entry.project_id)
    session.flush()


def propose_version(session: Session, entry: Entry, proposal: Proposal, now: datetime) -> EntryVersion:
    """A pending next version of an entry; its text changes when the store reports the update."""
    session.execute(
        update(EntryVersion)
        .where(
            col(EntryVersion.entry_id) == entry.id,
            col(EntryVersion.session_id) == proposal.session_id,
            col(EntryVersion.key_id) == proposal.key_id,
            col(EntryVersion.status) == EntryStatus.PENDING.value,
        )
        .values(status=EntryStatus.UNCONFIRMED.value)
        .execution_options(synchronize_session=False)
    )
    highest = session.execute(
        select(EntryVersion.version)  # type: ignore[call-overload]
        .where(col(EntryVersion.entry_id) == entry.id)
        .order_by(col(EntryVersion.version).desc())
        .limit(1)
    ).scalar()
    version = EntryVersion(
        entry_id=entry.id,
        version=max(entry.version, highest or 0) + 1,
        status=EntryStatus.PENDING.value,
        text=proposal.text,
        category=proposal.category.value,
        key=proposal.key,
        store_id=proposal.store_id,
        review_id=proposal.review_id,
        key_id=proposal.key_id,
        session_id=proposal.session_id,
        created_at=now,
        expires_at=proposal.expires_at,
    )
    session.add(version)
    session.flush()
    return version
