"""Entries that leave: deleted from their store, or withdrawn by a person."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from sqlalchemy import Select, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, or_

from app import gate
from app.entries.finding import KNOWN
from app.entries.settling import keep_current
from app.errors import NotFound
from app.models import REVIEW, Entry, EntryVersion
from app.projects import next_revision
from app.schemas.reviews import Removal
from app.schemas.vocabulary import EntryStatus


def mark_deleted(
    session: Session,
    project_id: str,
    store: str,
    *,
    store_ids: Sequence[str],
    keys: Sequence[str],
    text_hashes: Sequence[str],
    now: datetime,
) -> list[str]:
    """Entries that the store has deleted, named by its ids, by keys (all texts under each), or by texts; their ids."""
    named = [
        col(column).in_(values)
        for column, values in ((Entry.store_id, store_ids), (Entry.key, keys), (Entry.text_hash, text_hashes))
        if values
    ]
    if not named:
        return []
    ids = list(
        session.execute(
            select(col(Entry.id)).where(
                col(Entry.project_id) == project_id,
                col(Entry.store) == store,
                col(Entry.status).in_(KNOWN),
                or_(*named),
            )
        ).scalars()
    )
    for entry_id in ids:
        delete(session, entry_id, now)
    return ids


def delete(session: Session, entry_id: str, now: datetime) -> None:
    """Mark an entry deleted; its text and history stay.

    Raises:
        NotFound: there is no such entry.
    """
    entry = session.get(Entry, entry_id)
    if entry is None:
        raise NotFound("There is no entry with this id.")
    entry.status = EntryStatus.DELETED.value
    entry.updated_at = now
    entry.expires_at = None
    entry.revision = next_revision(session, entry.project_id)
    session.flush()


def withdraw(session: Session, of: Select[str], now: datetime) -> tuple[list[Removal], list[Entry]]:
    """Withdraw what reviews of one project have let in: entries, and newer texts of entries, which get the former back.

    Args:
        session: a session that has the project's lock.
        of: selects the reviews' ids.
        now: the moment.

    Returns:
        What should leave the store, also if it was withdrawn before; and the entries that changed by it now.
    """
    removals: list[Removal] = []
    changed: list[Entry] = []
    stored = set(session.execute(of.where(REVIEW.c.stored_at.is_not(None))).scalars())
    for version in (
        session.execute(
            select(EntryVersion).where(
                col(EntryVersion.review_id).in_(of),
                col(EntryVersion.status).in_((EntryStatus.PENDING, EntryStatus.UNCONFIRMED, EntryStatus.WITHDRAWN)),
            )
        )
        .scalars()
        .all()
    ):
        entry = session.get_one(Entry, version.entry_id)
        removals.append(_removal(entry, version, entry.text, stored))
        if version.status != EntryStatus.WITHDRAWN:
            version.status, version.expires_at = EntryStatus.WITHDRAWN.value, None
            changed.append(entry)
    known = (*KNOWN, EntryStatus.WITHDRAWN)
    current = select(Entry).where(col(Entry.review_id).in_(of), col(Entry.status).in_(known))
    for entry in session.execute(current).scalars().all():
        before = _version_before(session, entry, of)
        removals.append(_removal(entry, entry, before.text if before else None, stored))
        if entry.status != EntryStatus.WITHDRAWN:
            _take_back(session, entry, before, now)
            changed.append(entry)
    session.flush()
    return removals, changed


def _removal(entry: Entry, text_of: Entry | EntryVersion, restore: str | None, stored: set[str]) -> Removal:
    return Removal(
        entry_id=entry.id,
        store=entry.store,
        store_id=text_of.store_id or entry.store_id,
        key=text_of.key or entry.key,
        text=text_of.text,
        restore=restore,
        confirmed=text_of.review_id in stored,
    )


def _version_before(session: Session, entry: Entry, of: Select[str]) -> EntryVersion | None:
    """The newest earlier text of the entry that the store had and that is not withdrawn as well."""
    return session.execute(
        select(EntryVersion)
        .where(
            col(EntryVersion.entry_id) == entry.id,
            col(EntryVersion.version) < entry.version,
            col(EntryVersion.status) == EntryStatus.SUPERSEDED.value,
            or_(col(EntryVersion.review_id).is_(None), col(EntryVersion.review_id).not_in(of)),
        )
        .order_by(col(EntryVersion.version).desc())
        .limit(1)
    ).scalar_one_or_none()


def _take_back(session: Session, entry: Entry, before: EntryVersion | None, now: datetime) -> None:
    values: dict[str, object] = {
        "status": EntryStatus.WITHDRAWN.value,
        "expires_at": None,
        "updated_at": now,
        "revision": next_revision(session, entry.project_id),
    }
    if before is not None:
        keep_current(session, entry, EntryStatus.WITHDRAWN)
        restored = values | {
            "status": EntryStatus.STORED.value,
            "text": before.text,
            "text_hash": gate.text_hash(before.text),
            "category": before.category,
            "key": before.key,
            "store_id": before.store_id or entry.store_id,
            "review_id": before.review_id,
            "key_id": before.key_id,
            "session_id": before.session_id,
            "version": entry.version + 1,
        }
        # Unless an equal text, or another STATE, has taken the former text's place meanwhile.
        with suppress(IntegrityError), session.begin_nested():
            session.execute(update(Entry).where(col(Entry.id) == entry.id).values(**restored))
            values = restored
    session.execute(update(Entry).where(col(Entry.id) == entry.id).values(**values))
    session.refresh(entry)
