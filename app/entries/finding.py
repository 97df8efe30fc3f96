"""Finding entries: by their text, by the names that a store gives them, by id, page by page."""

from collections.abc import Sequence

from sqlalchemy import Select, bindparam, exists, func, select, text
from sqlmodel import Session, col, or_

from app.callers import Caller
from app.cases import Twin
from app.errors import NotFound
from app.models import ENTRY, LIVE_STATE, REVIEW, Entry, EntryVersion, Project
from app.schemas.entries import EntryOut
from app.schemas.reviews import EntryRef
from app.schemas.vocabulary import Category, EntryStatus

KNOWN = (EntryStatus.PENDING.value, EntryStatus.STORED.value, EntryStatus.UNCONFIRMED.value)
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


def is_known(session: Session, review_id: str) -> bool:
    """Whether the review has made an entry, or an entry's version, at any time."""
    of_review = select(
        exists().where(col(Entry.review_id) == review_id) | exists().where(col(EntryVersion.review_id) == review_id)
    )
    return bool(session.execute(of_review).scalar_one())


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


def texts_after(session: Session, after: str, count: int) -> list[tuple[str, str]]:
    """Ids and texts of the entries that follow the one with the id ``after``, whatever became of them."""
    asked = select(ENTRY.c.id, ENTRY.c.text).where(ENTRY.c.id > after).order_by(ENTRY.c.id).limit(count)
    return [(row[0], row[1]) for row in session.execute(asked)]


def texts_since(session: Session, project_id: str, revision: int) -> list[tuple[str, str]]:
    """Ids and texts of the project's entries that changed after a revision."""
    asked = select(ENTRY.c.id, ENTRY.c.text).where(ENTRY.c.project_id == project_id, ENTRY.c.revision > revision)
    return [(row[0], row[1]) for row in session.execute(asked)]


def get(session: Session, caller: Caller, entry_id: str) -> EntryOut:
    """An entry by its id.

    Raises:
        NotFound: there is none that the caller sees.
    """
    row = session.execute(_with_project(caller).where(col(Entry.id) == entry_id)).first()
    if row is None:
        raise NotFound("There is no entry with this id.")
    return out(*row)


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
