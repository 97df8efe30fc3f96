"""Vectors and words of each project in the process's memory, searched exactly, kept in step by the project's revision.

The way of SQLite, where one process serves, and of a PostgreSQL without pgvector, where each service keeps its own.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import bindparam, insert, select, update
from sqlmodel import Session

from app import space
from app.db import Vector, after_commit
from app.embeddings import Embedder, Matrix
from app.models import ENTRY, ENTRY_VECTOR
from app.neighbours.fusion import DEPTH, fused
from app.neighbours.search import VISIBLE, Indexed
from app.neighbours.word_index import Ranked, WordIndex
from app.projects import ProjectRow
from app.words import runs

_CHANGED_TEXTS = (
    select(ENTRY.c.id, ENTRY.c.status, ENTRY.c.text, ENTRY_VECTOR.c.vector)
    .join(ENTRY_VECTOR, ENTRY_VECTOR.c.entry_id == ENTRY.c.id)
    .where(
        ENTRY.c.project_id == bindparam("project_id"),
        ENTRY.c.revision > bindparam("since"),
        ENTRY.c.revision <= bindparam("until"),
    )
)
_ADD_VECTOR = insert(ENTRY_VECTOR)
_REPLACE_VECTOR = update(ENTRY_VECTOR).where(ENTRY_VECTOR.c.entry_id == bindparam("of_entry"))


@dataclass(frozen=True)
class Newcomer:
    """A text that is about to be an entry, by its vector and its different words."""

    vector: Vector
    words: set[str]

    @classmethod
    def of(cls, text: str, vector: Vector) -> "Newcomer":
        """The newcomer with this text and unit vector."""
        return cls(vector, set(runs(text)))


@dataclass
class _ProjectIndex:
    matrix: Matrix
    words: WordIndex = field(default_factory=WordIndex)
    revision: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, entry_id: str, text: str, vector: Vector) -> None:
        """Add an entry, or replace it."""
        self.matrix.put(entry_id, vector)
        self.words.put(entry_id, runs(text))


@dataclass(frozen=True)
class Vicinity:
    """What is nearest to a candidate by vector and by words, of which so many are taken."""

    count: int
    vector: Vector
    by_vector: list[tuple[str, float]]
    by_words: Ranked

    def taken(self) -> list[str]:
        """Ids of those that are taken, best first."""
        return fused([item for item, _ in self.by_vector], self.by_words.ids)[: self.count]

    def may_change(self, newcomer: Newcomer) -> bool:
        """Whether other entries might be taken if a further one were there: it would stand in either ranking."""
        similarity = float(newcomer.vector @ self.vector)
        first = sum(other > similarity for _, other in self.by_vector)
        second = self.by_words.place(newcomer.words)
        depth = DEPTH * self.count
        return first < depth or (second is not None and second < depth)


class InMemory:
    """Searches in memory; what other processes write is read when the project's revision tells of it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._indexes: dict[str, _ProjectIndex] = {}
        self._lock = threading.Lock()

    def by_vector(self, session: Session, project: ProjectRow, vector: Vector, count: int) -> list[str]:
        """Ids of the entries nearest to a unit vector, best first."""
        return [item for item, _ in self._refreshed(session, project).matrix.nearest(vector, count)]

    def by_words(self, session: Session, project: ProjectRow, text: str, count: int) -> list[str]:
        """Ids of the entries that share the rarest words, or parts of them, with a text, best first."""
        return self._refreshed(session, project).words.nearest(runs(text), count)

    def similarities(
        self, session: Session, project: ProjectRow, ids: Sequence[str], vector: Vector
    ) -> dict[str, float]:
        """Cosine similarity of each of these entries to a unit vector; 0 for those that are not visible."""
        matrix = self._refreshed(session, project).matrix
        return {item: matrix.similarity(item, vector) for item in ids}

    def vicinities(
        self, session: Session, project: ProjectRow, asked: Sequence[tuple[str, Vector]], count: int
    ) -> list[Vicinity]:
        """What is nearest to each of several candidates, given by text and vector, to take so many of each."""
        index = self._refreshed(session, project)
        depth = DEPTH * count
        near = index.matrix.nearest_of_each(np.array([vector for _, vector in asked]), depth)
        return [
            Vicinity(count, vector, by_vector, index.words.ranked(runs(text), depth))
            for (text, vector), by_vector in zip(asked, near, strict=True)
        ]

    def add(self, session: Session, project_id: str, entries: Sequence[Indexed]) -> None:
        """Index entries, as the changes that made their revisions."""
        space.confirm(session, self._embedder)
        session.execute(_ADD_VECTOR, [{"entry_id": entry.id, "vector": entry.vector} for entry in entries])
        after_commit(session, lambda: self._take_in(project_id, entries))

    def replace(self, session: Session, entry_id: str, text: str, vector: Vector) -> None:  # noqa: ARG002
        """Index an entry's newer text, which is read again since its revision has changed."""
        space.confirm(session, self._embedder)
        session.execute(_REPLACE_VECTOR, {"of_entry": entry_id, "vector": vector})

    def _refreshed(self, session: Session, project: ProjectRow) -> _ProjectIndex:
        index = self._index(project.id)
        if index.revision == project.revision:
            return index
        space.confirm(session, self._embedder)
        with index.lock:
            # As the project was when it was read: what this transaction writes itself may yet be taken back.
            changed = session.execute(
                _CHANGED_TEXTS, {"project_id": project.id, "since": index.revision, "until": project.revision}
            ).all()
            for entry_id, status, text, vector in changed:
                if status in VISIBLE:
                    index.put(entry_id, text, vector)
                else:
                    index.matrix.drop(entry_id)
                    index.words.drop(entry_id)
            index.revision = max(index.revision, project.revision)
        return index

    def _take_in(self, project_id: str, entries: Sequence[Indexed]) -> None:
        """Spare the next look the reading of what this process has just written, if nothing else changed meanwhile."""
        index = self._index(project_id)
        with index.lock:
            for entry in entries:
                if index.revision == entry.revision - 1:
                    index.put(entry.id, entry.text, entry.vector)
                    index.revision = entry.revision

    def _index(self, project_id: str) -> _ProjectIndex:
        with self._lock:
            return self._indexes.setdefault(project_id, _ProjectIndex(Matrix(self._embedder.dimension)))
