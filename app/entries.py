"""Entries: the index of approved memories, from `pending` through `stored` to `superseded`, `deleted` or `withdrawn`.

Functions that write want the project's lock (`projects.lock`) held by the surrounding transaction.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, bindparam, exists, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, or_

from app import gate
from app.callers import Caller
from app.cases import Twin
from app.db import new_id
from app.errors import NotFound
from app.models import ENTRY, LIVE_STATE, REVIEW, Entry, EntryVersion, Project
from app.projects import next_revision
from app.schemas.entries import EntryIn, EntryOut
from app.schemas.reviews import EntryRef, Removal
from app.schemas.vocabulary import Category, EntryStatus

LIVE = (EntryStatus.PENDING.value, EntryStatus.STORED.value)
KNOWN = (*LIVE, EntryStatus.UNCONFIRMED.value)

_TWINS = select(
    *(ENTRY.c[name] for name in EntryRef.model_fields), ENTRY.c.key_id, ENTRY.c.session_id, ENTRY.c.unreviewed
).where(
    ENTRY.c.project_id == bindparam("project_id"),
    ENTRY.c.text_hash == bindparam("text_hash"),
    text("status IN ('pending', 'stored', 'unconfirmed')"),
)
_HASHES_OF_TWINS = select(ENTRY.c.text_hash).where(
    ENTRY.c.project_id == bindparam("project_id"),
    ENTRY.c.text_hash.in_(bindparam("text_hashes", expanding=True)),
    text("status IN ('pending', 'stored', 'unconfirmed')"),
)
_ADD = insert(ENTRY)
# By the expiry alone, which few entries have: an index on the project would lead through all of its entries.
_LATE_ENTRIES = select(Entry).where(ENTRY.c.expires_at < bindparam("now"))
_LATE_VERSIONS = select(EntryVersion).where(col(EntryVersion.expires_at) < bindparam("now"))


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


def count_by_status(session: Session) -> dict[str, int]:
    """How many entries stand where, in all projects together."""
    query = select(col(Entry.status), func.count()).group_by(col(Entry.status))
    found: dict[str, int] = {status: number for status, number in session.execute(query)}  # noqa: C416 - typed rows
    return {status.value: found.get(status.value, 0) for status in EntryStatus}


def reference(entry: Entry) -> EntryRef:
    """The entry as a verdict points to it."""
    return EntryRef(
        id=entry.id,
        key=entry.key,
        store_id=entry.store_id,
        category=Category(entry.category),
        text=entry.text,
        version=entry.version,
        status=EntryStatus(entry.status),
    )


def twin(session: Session, project_id: str, text_hash: str) -> Twin | None:
    """The entry with the same normalised text: a live one first, else one that was never confirmed."""
    found = session.execute(_TWINS, {"project_id": project_id, "text_hash": text_hash}).mappings().all()
    row = min(found, key=lambda row: bool(row["status"] == EntryStatus.UNCONFIRMED), default=None)
    if row is None:
        return None
    named = {name: row[name] for name in EntryRef.model_fields}
    return Twin(EntryRef(**named), row["key_id"], row["session_id"], row["unreviewed"])


def with_twin(session: Session, project_id: str, text_hashes: Sequence[str]) -> set[str]:
    """Those of the hashes whose text, normalised, is an entry's that is live or was never confirmed."""
    return set(session.execute(_HASHES_OF_TWINS, {"project_id": project_id, "text_hashes": text_hashes}).scalars())


def live_state(session: Session, project_id: str) -> Entry | None:
    """The project's one STATE entry that is stored or on its way, if there is one."""
    return session.execute(
        select(Entry).where(col(Entry.project_id) == project_id, text(LIVE_STATE))
    ).scalar_one_or_none()


def named(session: Session, project_id: str, store: str, store_id: str | None, key: str | None) -> list[Entry]:
    """The known entries that an update call names by the store's id, or else by its key (many may lie under one)."""
    for column, value in ((Entry.store_id, store_id), (Entry.key, key)):
        if value is None:
            continue
        found = session.execute(
            select(Entry).where(
                col(Entry.project_id) == project_id,
                col(Entry.store) == store,
                col(column) == value,
                col(Entry.status).in_(KNOWN),
            )
        ).scalars()
        if entries := list(found):
            return entries
    return []


def rival(session: Session, caller: Caller, entry_id: str, session_id: str) -> EntryVersion | None:
    """Another session's, or another key's, next version of the entry, approved and not yet reported."""
    return session.execute(
        select(EntryVersion).where(
            col(EntryVersion.entry_id) == entry_id,
            col(EntryVersion.status) == EntryStatus.PENDING.value,
            or_(col(EntryVersion.session_id) != session_id, col(EntryVersion.key_id) != caller.key_id),
        )
    ).scalar_one_or_none()


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
    _keep_current(session, entry)
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


def _keep_current(session: Session, entry: Entry, status: EntryStatus = EntryStatus.SUPERSEDED) -> None:
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


def is_known(session: Session, review_id: str) -> bool:
    """Whether the review has made an entry, or an entry's version, at any time."""
    of_review = select(
        exists().where(col(Entry.review_id) == review_id) | exists().where(col(EntryVersion.review_id) == review_id)
    )
    return bool(session.execute(of_review).scalar_one())


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
        _keep_current(session, entry, EntryStatus.WITHDRAWN)
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


def project_of(session: Session, caller: Caller, entry_id: str) -> str:
    """Id of the entry's project.

    Raises:
        NotFound: there is no such entry that the caller sees.
    """
    project_id: str | None = session.execute(
        select(ENTRY.c.project_id)
        .join(Project, col(Project.id) == ENTRY.c.project_id)
        .where(ENTRY.c.id == entry_id, caller.scope())
    ).scalar()
    if project_id is None:
        raise NotFound("There is no entry with this id.")
    return project_id


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


def get(session: Session, caller: Caller, entry_id: str) -> EntryOut:
    """An entry by its id.

    Raises:
        NotFound: there is none that the caller sees.
    """
    row = session.execute(_with_project(caller).where(col(Entry.id) == entry_id)).first()
    if row is None:
        raise NotFound("There is no entry with this id.")
    return out(*row)


def texts_after(session: Session, after: str, count: int) -> list[tuple[str, str]]:
    """Ids and texts of the entries that follow the one with the id ``after``, whatever became of them."""
    asked = select(ENTRY.c.id, ENTRY.c.text).where(ENTRY.c.id > after).order_by(ENTRY.c.id).limit(count)
    return [(row[0], row[1]) for row in session.execute(asked)]


def texts_since(session: Session, project_id: str, revision: int) -> list[tuple[str, str]]:
    """Ids and texts of the project's entries that changed after a revision."""
    asked = select(ENTRY.c.id, ENTRY.c.text).where(ENTRY.c.project_id == project_id, ENTRY.c.revision > revision)
    return [(row[0], row[1]) for row in session.execute(asked)]


def page(
    session: Session,
    caller: Caller,
    *,
    project_id: str | None,
    category: Category | None,
    status: EntryStatus | None,
    before: str | None,
    count: int,
) -> list[EntryOut]:
    """Entries that the caller sees, made before the one with the id ``before``, newest first."""
    query = _with_project(caller).order_by(col(Entry.id).desc()).limit(count)
    for column, value in ((Entry.project_id, project_id), (Entry.category, category), (Entry.status, status)):
        if value is not None:
            query = query.where(col(column) == str(value))
    if before is not None:
        query = query.where(col(Entry.id) < before)
    return [out(*row) for row in session.execute(query)]


def out(entry: Entry, project: str, tool: str | None = None, agent_id: str | None = None) -> EntryOut:
    """The entry as the API shows it."""
    fields = entry.model_dump(include=set(EntryOut.model_fields))
    return EntryOut.model_validate(fields | {"project": project, "tool": tool, "agent_id": agent_id})


def _with_project(caller: Caller) -> Select[Entry, str, str, str]:
    return (
        select(Entry, col(Project.name), REVIEW.c.tool, REVIEW.c.agent_id)
        .join(Project, col(Project.id) == col(Entry.project_id))
        .outerjoin(REVIEW, REVIEW.c.id == col(Entry.review_id))
        .where(caller.scope())
    )
