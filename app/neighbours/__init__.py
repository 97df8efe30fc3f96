"""The stored entries near a candidate: shortlisted by vector and by words, for a reviewer to compare.

No similarity decides here: real rewordings and different facts overlap in every measure (see docs/architecture.md).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, text, union_all
from sqlmodel import Session

from app import space
from app.db import Database, Vector
from app.embeddings import Embedder
from app.models import ENTRY, ENTRY_VECTOR, LIVE_STATE, STAGED_VECTOR
from app.neighbours import in_postgres
from app.neighbours.fusion import DEPTH, fused
from app.neighbours.in_memory import InMemory, Newcomer, Vicinity
from app.neighbours.search import Indexed, Search
from app.projects import ProjectRow
from app.schemas.judging import Brief, Neighbour
from app.schemas.vocabulary import Category, EntryStatus

__all__ = ["Indexed", "Neighbourhood", "Newcomer", "Vicinity", "open_neighbourhood", "use_staged_vectors"]

RELATED_SIMILARITY = 0.6

_OF_PROJECT = ENTRY.c.project_id == bindparam("project_id")
_CHANGED = select(ENTRY.c.id, ENTRY.c.category).where(_OF_PROJECT, ENTRY.c.revision > bindparam("since"))
_COLUMNS = select(
    ENTRY.c.id,
    ENTRY.c.category,
    ENTRY.c.text,
    ENTRY.c.version,
    ENTRY.c.key,
    ENTRY.c.store_id,
    ENTRY.c.status,
).where(_OF_PROJECT)
# Two questions in one, since a single one with OR would read every entry of the project; and the index of the one STATE
# entry is found only by its own literal condition.
_STATE_AND_CHOSEN = union_all(
    _COLUMNS.where(text(LIVE_STATE)),
    _COLUMNS.where(
        ENTRY.c.id.in_(bindparam("ids", expanding=True)), text("status IN ('pending', 'stored', 'unconfirmed')")
    ),
)


def open_neighbourhood(database: Database, embedder: Embedder) -> "Neighbourhood":
    """The neighbourhood that fits the database: PostgreSQL searches itself if it can, else this process does.

    Raises:
        ConfigurationError: the stored vectors are another model's.
    """
    with database.write() as session:
        space.check(session, embedder)
    if database.kind != "postgresql":
        return Neighbourhood(InMemory(embedder))
    if (reason := in_postgres.prepare(database, embedder)) is not None:
        return Neighbourhood(InMemory(embedder), why_in_memory=reason)
    return Neighbourhood(in_postgres.InPostgres(embedder))


def use_staged_vectors(session: Session) -> None:
    """Give every entry the vector that is staged for it; under the lock of all projects, and with room to take long.

    PostgreSQL's own search is made again from them by the next `open_neighbourhood`.
    """
    session.execute(delete(ENTRY_VECTOR))
    staged = select(STAGED_VECTOR.c.item_id, STAGED_VECTOR.c.vector).join(ENTRY, ENTRY.c.id == STAGED_VECTOR.c.item_id)
    session.execute(insert(ENTRY_VECTOR).from_select(["entry_id", "vector"], staged))
    if session.get_bind().dialect.name == "postgresql":
        in_postgres.forget(session)


class Neighbourhood:
    """Finds a candidate's neighbours."""

    def __init__(self, search: Search, *, why_in_memory: str | None = None) -> None:
        """Neighbours are found by the search; ``why_in_memory`` tells why not by the database, where that could be."""
        self._search = search
        self.why_in_memory = why_in_memory

    def shortlist(
        self,
        session: Session,
        project: ProjectRow,
        text: str,
        vector: Vector,
        count: int,
        *,
        leave_out: frozenset[str] = frozenset(),
    ) -> tuple[Neighbour, ...]:
        """The entries nearest by vector and by words, and the project's STATE; labelled ``E1`` and on.

        Args:
            session: a session for reading.
            project: whose entries.
            text: the candidate.
            vector: its unit vector (dimension).
            count: most neighbours by similarity; the STATE entry may come on top.
            leave_out: ids of entries that the candidate may equal without being a duplicate.
        """
        rankings = self.rankings(session, project, text, vector, DEPTH * count + len(leave_out))
        chosen = fused(*([item for item in ranking if item not in leave_out] for ranking in rankings))[:count]
        rows = self._rows(session, project.id, chosen)
        listed = [item for item in chosen if item in rows]
        listed += [item for item in rows if item not in chosen and item not in leave_out]  # the STATE
        similarities = self._search.similarities(session, project, listed, vector)
        return _labelled(listed, rows, similarities)

    @property
    def sees_many(self) -> bool:
        """Whether it finds the neighbours of several candidates at once in less time than one after another."""
        return isinstance(self._search, InMemory)

    def shortlists(
        self, session: Session, project: ProjectRow, asked: Sequence[tuple[str, Vector]], count: int
    ) -> list[tuple[tuple[Neighbour, ...], Vicinity]]:
        """The shortlists of several candidates, given by text and vector; each with what it would take to change it."""
        assert isinstance(self._search, InMemory)  # noqa: S101 - see `sees_many`
        found = self._search.vicinities(session, project, asked, count)
        chosen = [near.taken() for near in found]
        rows = self._rows(session, project.id, sorted({item for items in chosen for item in items}))
        state = [item for item, row in rows.items() if _is_live_state(row)]
        shortlists: list[tuple[tuple[Neighbour, ...], Vicinity]] = []
        for items, near in zip(chosen, found, strict=True):
            listed = list(dict.fromkeys([*(item for item in items if item in rows), *state]))
            similarities = self._search.similarities(session, project, listed, near.vector)
            shortlists.append((_labelled(listed, rows, similarities), near))
        return shortlists

    def rankings(
        self, session: Session, project: ProjectRow, text: str, vector: Vector, count: int
    ) -> tuple[list[str], list[str]]:
        """Ids of the entries nearest by vector, and of those nearest by words, best first."""
        by_vector = self._search.by_vector(session, project, vector, count)
        return by_vector, self._search.by_words(session, project, text, count)

    def amended(
        self,
        session: Session,
        project: ProjectRow,
        brief: Brief,
        vector: Vector,
        *,
        since: int,
        leave_out: frozenset[str],
    ) -> Brief:
        """The brief with the entries that changed after revision ``since`` and matter to it.

        Neighbours keep their labels, so that facts found with the earlier brief stay true; newcomers get the next.
        """
        changed = session.execute(_CHANGED, {"project_id": project.id, "since": since}).all()
        shown = {n.entry_id for n in brief.neighbours}
        asked = sorted(shown.union(entry_id for entry_id, _ in changed))
        similarities = self._search.similarities(session, project, asked, vector)
        near = {
            entry_id
            for entry_id, category in changed
            if entry_id in shown or category == Category.STATE or similarities.get(entry_id, 0) >= RELATED_SIMILARITY
        }
        if not near and not shown & leave_out:
            return brief
        fresh = self._rows(session, project.id, sorted(near))
        gone = (near - fresh.keys()) | leave_out
        kept = [
            _neighbour(n.label, fresh[n.entry_id], similarities) if n.entry_id in fresh else n
            for n in brief.neighbours
            if n.entry_id not in gone
        ]
        newcomers = [row for entry_id, row in fresh.items() if entry_id not in shown | leave_out]
        labelled = [
            _neighbour(f"E{place}", row, similarities)
            for place, row in enumerate(newcomers, start=len(brief.neighbours) + 1)
        ]
        return brief.model_copy(update={"neighbours": (*kept, *labelled)})

    def add(self, session: Session, project_id: str, entry: Indexed) -> None:
        """Index an entry's text; within the transaction that writes it, as the change that made its revision."""
        self._search.add(session, project_id, [entry])

    def add_all(self, session: Session, project_id: str, entries: Sequence[Indexed]) -> None:
        """Index texts of entries in the order of their revisions; within the transaction that writes them."""
        if entries:
            self._search.add(session, project_id, entries)

    def replace(self, session: Session, entry_id: str, text: str, vector: Vector) -> None:
        """Index an entry's newer text; within the transaction that writes it."""
        self._search.replace(session, entry_id, text, vector)

    def _rows(self, session: Session, project_id: str, ids: Sequence[str]) -> dict[str, Sequence[Any]]:
        """The chosen entries that are there, and the project's STATE, by their ids."""
        rows = session.execute(_STATE_AND_CHOSEN, {"project_id": project_id, "ids": ids})
        return {row[0]: row for row in rows}


def _labelled(
    listed: Sequence[str], rows: Mapping[str, Sequence[Any]], similarities: Mapping[str, float]
) -> tuple[Neighbour, ...]:
    return tuple(_neighbour(f"E{place}", rows[item], similarities) for place, item in enumerate(listed, start=1))


def _is_live_state(row: Sequence[Any]) -> bool:
    return row[1] == Category.STATE and row[6] in (EntryStatus.PENDING, EntryStatus.STORED)


def _neighbour(label: str, row: Sequence[Any], similarities: Mapping[str, float]) -> Neighbour:
    entry_id, category, text_, version, key, store_id, status = row
    return Neighbour(
        label=label,
        entry_id=entry_id,
        category=category,
        text=text_,
        version=version,
        key=key,
        store_id=store_id,
        status=status,
        similarity=similarities.get(entry_id, 0.0),
    )
