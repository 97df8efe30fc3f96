"""The stored entries near a candidate: shortlisted by vector and by words, for a reviewer to compare.

No similarity decides here: real rewordings and different facts overlap in every measure (see docs/architecture.md).
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import insert, select, text
from sqlmodel import Session, col

from app.db import Vector
from app.embeddings import Embedder, Matrix
from app.errors import ConfigurationError
from app.models import LIVE_STATE, EmbeddingSpace, Entry, EntryVector
from app.projects import ProjectRow
from app.schemas import Brief, Category, EntryStatus, Neighbour
from app.words import words

VISIBLE = (EntryStatus.PENDING.value, EntryStatus.STORED.value, EntryStatus.UNCONFIRMED.value)
RAREST_WORDS = 8
RELATED_SIMILARITY = 0.6
# A word in more entries than both of these takes long to look up and tells little.
COMMON_SHARE = 0.2
FEW_ENTRIES = 1_000


@dataclass
class _ProjectIndex:
    matrix: Matrix
    revision: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Neighbourhood:
    """Finds a candidate's neighbours. Keeps one matrix a project in memory, brought up to date by its revision."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._indexes: dict[str, _ProjectIndex] = {}
        self._lock = threading.Lock()

    def check_space(self, session: Session) -> None:
        """Refuse to mix the vectors of two models.

        Raises:
            ConfigurationError: the stored vectors are another model's.
        """
        known = session.execute(select(col(EmbeddingSpace.model), col(EmbeddingSpace.dimension))).first()
        mine = (self._embedder.model, self._embedder.dimension)
        if known is None:
            session.execute(insert(EmbeddingSpace).values(id=1, model=mine[0], dimension=mine[1]))
        elif (known[0], known[1]) != mine:
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
        index = self._refreshed(session, project)
        ranked = _interleave(*self.rankings(session, project, text, vector, count + len(leave_out)))
        rows = self._rows(session, project.id, ranked, vector, index.matrix)
        chosen = [rows[item] for item in ranked if item in rows and item not in leave_out][:count]
        chosen += [n for n in rows.values() if n.is_live_state and n not in chosen and n.entry_id not in leave_out]
        return tuple(n.model_copy(update={"label": f"E{place}"}) for place, n in enumerate(chosen, start=1))

    def rankings(
        self, session: Session, project: ProjectRow, text: str, vector: Vector, count: int
    ) -> tuple[list[str], list[str]]:
        """Ids of the entries nearest by vector, and of those nearest by words, best first."""
        index = self._refreshed(session, project)
        by_vector = [item for item, _ in index.matrix.nearest(vector, count)]
        return by_vector, self._by_words(session, project.id, text, len(index.matrix), count)

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
        changed = session.execute(
            select(col(Entry.id), col(Entry.category)).where(
                col(Entry.project_id) == project.id, col(Entry.revision) > since
            )
        ).all()
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
        fresh = self._rows(session, project.id, sorted(near), vector, index.matrix)
        gone = (near - fresh.keys()) | leave_out
        kept = [
            fresh[n.entry_id].model_copy(update={"label": n.label}) if n.entry_id in fresh else n
            for n in brief.neighbours
            if n.entry_id not in gone
        ]
        newcomers = [n for entry_id, n in fresh.items() if entry_id not in shown | leave_out]
        labelled = [
            n.model_copy(update={"label": f"E{place}"})
            for place, n in enumerate(newcomers, start=len(brief.neighbours) + 1)
        ]
        return brief.model_copy(update={"neighbours": (*kept, *labelled)})

    def put(self, session: Session, project_id: str, entry_id: str, text_: str, vector: Vector) -> None:
        """Index an entry's text; within the transaction that writes the entry."""
        known = session.execute(select(col(EntryVector.entry_id)).where(col(EntryVector.entry_id) == entry_id)).first()
        if known is None:
            session.execute(insert(EntryVector).values(entry_id=entry_id, vector=vector))
        else:
            session.execute(
                EntryVector.__table__.update()  # type: ignore[attr-defined]
                .where(col(EntryVector.entry_id) == entry_id)
                .values(vector=vector)
            )
        session.execute(
            text("INSERT INTO entry_words (project, entry_id, words) VALUES (:project, :entry, :words)"),
            {"project": project_id, "entry": entry_id, "words": " ".join(words(text_))},
        )

    def _refreshed(self, session: Session, project: ProjectRow) -> _ProjectIndex:
        with self._lock:
            index = self._indexes.setdefault(project.id, _ProjectIndex(Matrix(self._embedder.dimension)))
        if index.revision == project.revision:
            return index
        with index.lock:
            changed = session.execute(
                select(col(Entry.id), col(Entry.status), col(Entry.revision), col(EntryVector.vector))
                .join(EntryVector, col(EntryVector.entry_id) == col(Entry.id))
                .where(col(Entry.project_id) == project.id, col(Entry.revision) > index.revision)
            ).all()
            for entry_id, status, _, vector in changed:
                if status in VISIBLE:
                    index.matrix.put(entry_id, vector)
                else:
                    index.matrix.drop(entry_id)
            index.revision = max([index.revision, *(row[2] for row in changed)])
        return index

    def _by_words(self, session: Session, project_id: str, text_: str, size: int, count: int) -> list[str]:
        asked = list(dict.fromkeys(words(text_)))[:64]
        if not asked or size == 0:
            return []
        frequency = dict(
            session.execute(
                text(
                    "SELECT term, doc FROM entry_words_vocabulary WHERE term IN (SELECT value FROM json_each(:terms))"
                ),
                {"terms": json.dumps(asked)},
            ).all()
        )
        known = sorted((word for word in asked if word in frequency), key=lambda word: int(frequency[word]))
        # Rows are never taken out, so the last one's number is how many there are, in all projects.
        everything: int = session.execute(text("SELECT coalesce(max(rowid), 0) FROM entry_words")).scalar_one()
        rare = [word for word in known if int(frequency[word]) <= max(FEW_ENTRIES, COMMON_SHARE * everything)][
            :RAREST_WORDS
        ]
        if not rare:
            return []
        terms = " OR ".join(f'"{word}"' for word in rare)
        return list(
            session.execute(
                text("SELECT entry_id FROM entry_words WHERE entry_words MATCH :query ORDER BY rank LIMIT :count"),
                {"query": f'project : "{project_id}" AND words : ({terms})', "count": count},
            ).scalars()
        )

    def _rows(
        self, session: Session, project_id: str, ids: Sequence[str], vector: Vector, matrix: Matrix
    ) -> dict[str, Neighbour]:
        chosen = select(
            col(Entry.id),
            col(Entry.category),
            col(Entry.text),
            col(Entry.version),
            col(Entry.key),
            col(Entry.store_id),
            col(Entry.status),
        ).where(col(Entry.project_id) == project_id)
        # Two questions, since one with OR would read every entry of the project; and the index of the one STATE entry
        # is found only by its own literal condition.
        rows = [
            *session.execute(chosen.where(text(LIVE_STATE))),
            *session.execute(chosen.where(col(Entry.id).in_(ids), col(Entry.status).in_(VISIBLE))),
        ]
        return {
            row[0]: Neighbour(
                label="E0",
                entry_id=row[0],
                category=Category(row[1]),
                text=row[2],
                version=row[3],
                key=row[4],
                store_id=row[5],
                status=EntryStatus(row[6]),
                similarity=matrix.similarity(row[0], vector),
            )
            for row in rows
        }


def _interleave(first: Sequence[str], second: Sequence[str]) -> list[str]:
    ranked: dict[str, None] = {}
    for place in range(max(len(first), len(second))):
        for ranking in (first, second):
            if place < len(ranking):
                ranked.setdefault(ranking[place])
    return list(ranked)
