"""What becomes of an approved text: the store has it, did not take it, or nobody ever said."""

from contextlib import suppress
from datetime import datetime

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from app.db import new_id
from app.entries.finding import KNOWN
from app.models import ENTRY, Entry, EntryVersion
from app.projects import next_revision
from app.schemas.vocabulary import Category, EntryStatus

# By the expiry alone, which few entries have: an index on the project would lead through all of its entries.
_LATE_ENTRIES = select(Entry).where(ENTRY.c.expires_at < bindparam("now"))
_LATE_VERSIONS = select(EntryVersion).where(col(EntryVersion.expires_at) < bindparam("now"))


def confirm(session: Session, review_id: str, text_hash: str, store_id: str | None, now: datetime) -> Entry | None:
    """The store has the review's text: its entry, or the entry's next version, becomes `stored`.

    Returns the changed entry, or None if there is nothing left to confirm (already confirmed, or withdrawn).
    """
    version = session.execute(
        select(EntryVersion).where(
            col(EntryVersion.review_id) == review_id,
            col(EntryVersion.status).in_((EntryStatus.PENDING.value, EntryStatus.UNCONFIRMED.value)),
        )
    ).scalar_one_or_none()
    if version is not None:
        return _apply(session, version, text_hash, store_id, now)
    entry = session.execute(
        select(Entry).where(
            col(Entry.review_id) == review_id,
            col(Entry.status).in_((EntryStatus.PENDING.value, EntryStatus.UNCONFIRMED.value)),
        )
    ).scalar_one_or_none()
    if entry is None:
        return None
    return _store(session, entry, now, store_id=store_id or entry.store_id)


def _store(session: Session, entry: Entry, now: datetime, **changes: object) -> Entry:
    values = {
        "status": EntryStatus.STORED.value,
        "expires_at": None,
        "updated_at": now,
        "revision": next_revision(session, entry.project_id),
        **changes,
    }
    try:
        with session.begin_nested():
            session.execute(update(Entry).where(col(Entry.id) == entry.id).values(**values))
    except IntegrityError:
        # An equal text, or another STATE, took its place before the report came.
        session.execute(
            update(Entry).where(col(Entry.id) == entry.id).values(**values | {"status": EntryStatus.SUPERSEDED.value})
        )
    session.refresh(entry)
    return entry


def _apply(
    session: Session, version: EntryVersion, text_hash: str, store_id: str | None, now: datetime
) -> Entry | None:
    entry = session.get_one(Entry, version.entry_id)
    version.expires_at = None
    if version.version < entry.version:
        version.status = EntryStatus.SUPERSEDED.value  # a newer text was reported before this one
        return None
    version.status = EntryStatus.STORED.value
    keep_current(session, entry)
    return _store(
        session,
        entry,
        now,
        text=version.text,
        text_hash=text_hash,
        category=version.category,
        version=version.version,
        key=version.key or entry.key,
        store_id=store_id or version.store_id or entry.store_id,
        review_id=version.review_id,
        key_id=version.key_id,
        session_id=version.session_id,
    )


def keep_current(session: Session, entry: Entry, status: EntryStatus = EntryStatus.SUPERSEDED) -> None:
    """Put the entry's text among its earlier versions, before another one takes its place."""
    kept = session.execute(
        select(col(EntryVersion.id)).where(
            col(EntryVersion.entry_id) == entry.id, col(EntryVersion.version) == entry.version
        )
    ).scalar()
    if kept is None:
        session.execute(
            insert(EntryVersion).values(
                id=new_id(),
                entry_id=entry.id,
                version=entry.version,
                status=status.value,
                text=entry.text,
                category=entry.category,
                key=entry.key,
                store_id=entry.store_id,
                review_id=entry.review_id,
                key_id=entry.key_id,
                session_id=entry.session_id,
                created_at=entry.updated_at,
            )
        )
    else:
        session.execute(update(EntryVersion).where(col(EntryVersion.id) == kept).values(status=status.value))


def let_go(session: Session, review_id: str, now: datetime) -> None:
    """The store did not take the review's text: what was pending for it refuses nobody from now on."""
    session.execute(
        update(EntryVersion)
        .where(col(EntryVersion.review_id) == review_id, col(EntryVersion.status) == EntryStatus.PENDING.value)
        .values(status=EntryStatus.UNCONFIRMED.value, expires_at=None)
    )
    pending = select(Entry).where(col(Entry.review_id) == review_id, col(Entry.status) == EntryStatus.PENDING.value)
    for entry in session.execute(pending).scalars().all():
        _let_lapse(session, entry, now)


def mark_reviewed(session: Session, review_id: str, category: Category, now: datetime) -> None:
    """What was let into the store unreviewed has been approved after all."""
    for entry in session.execute(
        select(Entry).where(col(Entry.review_id) == review_id, col(Entry.unreviewed), col(Entry.status).in_(KNOWN))
    ).scalars():
        entry.unreviewed = False
        entry.updated_at = now
        entry.revision = next_revision(session, entry.project_id)
        session.flush()
        # A second STATE stays what it is called by nobody, rather than to break the rule of the one.
        with suppress(IntegrityError), session.begin_nested():
            session.execute(update(Entry).where(col(Entry.id) == entry.id).values(category=category.value))


def lapsed_projects(session: Session, now: datetime) -> list[str]:
    """Ids of the projects that have something to `expire`."""
    of_entries = select(ENTRY.c.project_id).where(ENTRY.c.expires_at < now)
    of_versions = (
        select(ENTRY.c.project_id)
        .join(EntryVersion, col(EntryVersion.entry_id) == ENTRY.c.id)
        .where(col(EntryVersion.expires_at) < now)
    )
    return sorted(session.execute(of_entries.union(of_versions)).scalars())


def expire(session: Session, project_id: str, now: datetime) -> None:
    """What was approved in the project and never reported as stored becomes `unconfirmed`."""
    for entry in session.execute(_LATE_ENTRIES, {"now": now}).scalars().all():
        if entry.project_id == project_id:
            _let_lapse(session, entry, now)
    for version in session.execute(_LATE_VERSIONS, {"now": now}).scalars().all():
        if session.get_one(Entry, version.entry_id).project_id == project_id:
            version.status = EntryStatus.UNCONFIRMED.value
            version.expires_at = None
    session.flush()


def _let_lapse(session: Session, entry: Entry, now: datetime) -> None:
    entry.status = EntryStatus.UNCONFIRMED.value
    entry.expires_at = None
    entry.updated_at = now
    entry.revision = next_revision(session, entry.project_id)
    session.flush()
