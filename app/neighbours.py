"""The stored entries near a candidate: shortlisted by vector and by words, for a reviewer to compare.

No similarity decides here: real rewordings and different facts overlap in every measure (see docs/architecture.md).
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, insert, select, text, union_all, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from app.db import Vector, after_commit
from app.embeddings import Embedder, Matrix
from app.errors import ConfigurationError
from app.models import ENTRY, ENTRY_VECTOR, LIVE_STATE, EmbeddingSpace
from app.projects import ProjectRow
from app.schemas import Brief, Category, EntryStatus, Neighbour
from app.word_index import WordIndex
from app.words import words

VISIBLE = (EntryStatus.PENDING.value, EntryStatus.STORED.value, EntryStatus.UNCONFIRMED.value)
RELATED_SIMILARITY = 0.6

_OF_PROJECT = ENTRY.c.project_id == bindparam("project_id")
_CHANGED = select(ENTRY.c.id, ENTRY.c.category).where(_OF_PROJECT, ENTRY.c.revision > bindparam("since"))
_CHANGED_TEXTS = (
    select(ENTRY.c.id, ENTRY.c.status, ENTRY.c.text, ENTRY_VECTOR.c.vector)
    .join(ENTRY_VECTOR, ENTRY_VECTOR.c.entry_id == ENTRY.c.id)
    .where(_OF_PROJECT, ENTRY.c.revision > bindparam("since"), ENTRY.c.revision <= bindparam("until"))
)
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
_ADD_VECTOR = insert(ENTRY_VECTOR)
_REPLACE_VECTOR = update(ENTRY_VECTOR).where(ENTRY_VECTOR.c.entry_id == bindparam("of_entry"))


@dataclass
class _ProjectIndex:
    matrix: Matrix
    words: WordIndex = field(default_factory=WordIndex)
    revision: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, entry_id: str, text_: str, vector: Vector) -> None:
        """Add an entry, or replace it."""
        self.matrix.put(entry_id, vector)
        self.words.put(entry_id, words(text_))


@dataclass(frozen=True)
class Indexed:
    """An entry's text with its unit vector, as of the project's revision that brought it."""

    id: str
    text: str
    vector: Vector
    revision: int


class Neighbourhood:
    """Finds a candidate's neighbours. Keeps each project's vectors and words in memory, up to date by its revision."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._indexes: dict[str, _ProjectIndex] = {}
        self._lock = threading.Lock()

    def check_space(self, session: Session) -> None:
        """Refuse to mix the vectors of two models.

        Raises:
            ConfigurationError: the stored vectors are another model's.
        """
        mine = (self._embedder.model, self._embedder.dimension)
        space = select(col(EmbeddingSpace.model), col(EmbeddingSpace.dimension))
        if session.execute(space).first() is None:
            with suppress(IntegrityError), session.begin_nested():  # a replica may start at the same moment
                session.execute(insert(EmbeddingSpace).values(id=1, model=mine[0], dimension=mine[1]))
        known = session.execute(space).one()
        if (known[0], known[1]) != mine:
            raise ConfigurationError(
                f"The stored vectors are of {known[0]} ({known[1]} dimensions), the configured embedder is {mine[0]} "
                f"({mine[1]}). Run `bouncer reindex`, or configure the former embedder."
            )

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
        ranked = _interleave(*self.rankings(session, project, text, vector, count + len(leave_out)))
        chosen = [item for item in ranked if item not in leave_out][:count]
        rows = self._rows(session, project.id, chosen)
        listed = [item for item in chosen if item in rows]
        listed += [item for item in rows if item not in chosen and item not in leave_out]  # the STATE
        matrix = self._indexes[project.id].matrix
        return tuple(_neighbour(f"E{place}", rows[item], vector, matrix) for place, item in enumerate(listed, start=1))

    def rankings(
        self, session: Session, project: ProjectRow, text: str, vector: Vector, count: int
    ) -> tuple[list[str], list[str]]:
        """Ids of the entries nearest by vector, and of those nearest by words, best first."""
        index = self._refreshed(session, project)
        return [item for item, _ in index.matrix.nearest(vector, count)], index.words.nearest(words(text), count)

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
        index = self._refreshed(session, project)
        changed = session.execute(_CHANGED, {"project_id": project.id, "since": since}).all()
        shown = {n.entry_id for n in brief.neighbours}
        near = {
            entry_id
            for entry_id, category in changed
            if entry_id in shown
            or category == Category.STATE
            or index.matrix.similarity(entry_id, vector) >= RELATED_SIMILARITY
        }
        if not near and not shown & leave_out:
            return brief
        fresh = self._rows(session, project.id, sorted(near))
        gone = (near - fresh.keys()) | leave_out
        kept = [
            _neighbour(n.label, fresh[n.entry_id], vector, index.matrix) if n.entry_id in fresh else n
            for n in brief.neighbours
            if n.entry_id not in gone
        ]
        newcomers = [row for entry_id, row in fresh.items() if entry_id not in shown | leave_out]
        labelled = [
            _neighbour(f"E{place}", row, vector, index.matrix)
            for place, row in enumerate(newcomers, start=len(brief.neighbours) + 1)
        ]
        return brief.model_copy(update={"neighbours": (*kept, *labelled)})

    def add(self, session: Session, project_id: str, entry: Indexed) -> None:
        """Index an entry's text; within the transaction that writes it, as the change that made its revision."""
        session.execute(_ADD_VECTOR, {"entry_id": entry.id, "vector": entry.vector})
        after_commit(session, lambda: self._take_in(project_id, entry))

    def replace(self, session: Session, entry_id: str, vector: Vector) -> None:
        """Index an entry's newer text; within the transaction that writes it."""
        session.execute(_REPLACE_VECTOR, {"of_entry": entry_id, "vector": vector})

    def _refreshed(self, session: Session, project: ProjectRow) -> _ProjectIndex:
        index = self._index(project.id)
        if index.revision == project.revision:
            return index
        with index.lock:
            # As the project was when it was read: what this transaction writes itself may yet be taken back.
            changed = session.execute(
                _CHANGED_TEXTS, {"project_id": project.id, "since": index.revision, "until": project.revision}
            ).all()
            for entry_id, status, text_, vector in changed:
                if status in VISIBLE:
                    index.put(entry_id, text_, vector)
                else:
                    index.matrix.drop(entry_id)
                    index.words.drop(entry_id)
            index.revision = max(index.revision, project.revision)
        return index

    def _take_in(self, project_id: str, entry: Indexed) -> None:
        """Spare the next look the reading of what this process has just written, if nothing else changed meanwhile."""
        index = self._index(project_id)
        with index.lock:
            if index.revision == entry.revision - 1:
                index.put(entry.id, entry.text, entry.vector)
                index.revision = entry.revision

    def _index(self, project_id: str) -> _ProjectIndex:
        with self._lock:
            return self._indexes.setdefault(project_id, _ProjectIndex(Matrix(self._embedder.dimension)))

    def _rows(self, session: Session, project_id: str, ids: Sequence[str]) -> dict[str, Sequence[Any]]:
        """The chosen entries that are there, and the project's STATE, by their ids."""
        rows = session.execute(_STATE_AND_CHOSEN, {"project_id": project_id, "ids": ids})
        return {row[0]: row for row in rows}


def _neighbour(label: str, row: Sequence[Any], vector: Vector, matrix: Matrix) -> Neighbour:
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
        similarity=matrix.similarity(entry_id, vector),
    )


def _interleave(first: Sequence[str], second: Sequence[str]) -> list[str]:
    ranked: dict[str, None] = {}
    for place in range(max(len(first), len(second))):
        for ranking in (first, second):
            if place < len(ranking):
                ranked.setdefault(ranking[place])
    return list(ranked)
