"""The project's documents in passages, so that a memory that only restates them is noticed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlmodel import Session, col

from app import space
from app.db import Vector, new_id
from app.embeddings import Embedder, Matrix
from app.errors import Unavailable
from app.models import PASSAGE, STAGED_VECTOR, Document, PassageRow
from app.passages import Cut, passages
from app.projects import ProjectRow, count_documents_change
from app.schemas.fields import storable
from app.schemas.judging import Passage
from app.schemas.projects import DocumentHeld, DocumentIn

MOST_PASSAGES = 1_000
PORTION = 64
PATIENCE_SECONDS = 2.0
# Branches are switched between within days; what is gone for good is erased soon after.
RETIRED_DAYS = 7
MOST_RETIRED = 200


@dataclass(frozen=True)
class Known:
    """A document as it is kept: current, or retired and kept for a while in case it comes back."""

    id: str
    path: str
    sha256: str
    retired: bool


@dataclass
class Comparison:
    """How the project's documents differ from those that it is said to have."""

    gone: list[Known] = field(default_factory=list)
    back: list[tuple[Known, str]] = field(default_factory=list)
    lacking: list[DocumentIn] = field(default_factory=list)


@dataclass
class _Shelf:
    """The current passages of a project in memory. A document's passages never change under its id."""

    matrix: Matrix
    paths: dict[str, str] = field(default_factory=dict)
    passages: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    revision: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Documents:
    """Keeps documents and finds the passages near a candidate."""

    def __init__(self, embedder: Embedder, redact: Callable[[str], str]) -> None:
        """Keep texts with the embedder's vectors, after ``redact`` has taken the secrets out."""
        self._embedder = embedder
        self._redact = redact
        self._shelves: dict[str, _Shelf] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    @staticmethod
    def compare(session: Session, project_id: str, sent: list[DocumentIn]) -> Comparison:
        """What would have to change for the project's documents to be those sent, by their hashes alone.

        A text that was there before, under whatever path, is ``back``: switching between branches and renaming files
        needs no text and no vectors.
        """
        columns = (col(Document.id), col(Document.path), col(Document.sha256), col(Document.retired_at).is_not(None))
        rows = session.execute(
            select(*columns).where(col(Document.project_id) == project_id).order_by(col(Document.retired_at))
        )
        known = [Known(*row) for row in rows]
        current = {row.path: row for row in known if not row.retired}
        listed = {document.path for document in sent}
        gone = {row.id: row for row in current.values() if row.path not in listed}
        free: dict[str, list[Known]] = {}
        for row in (*(row for row in known if row.retired), *gone.values()):
            free.setdefault(row.sha256, []).append(row)
        found = Comparison()
        for document in sent:
            held = current.get(document.path)
            if held is not None and held.sha256 == document.sha256:
                continue
            if again := free.get(document.sha256):
                row = again.pop()
                gone.pop(row.id, None)
                found.back.append((row, document.path))
            else:
                found.lacking.append(document)
        found.gone = list(gone.values())
        return found

    def follow(self, session: Session, project: ProjectRow, sent: list[DocumentIn], now: datetime) -> None:
        """Retire the documents that are not among those sent, and take back those that were there before."""
        found = self.compare(session, project.id, sent)
        returning = {path for _, path in found.back}
        moving = [row.id for row, _ in found.back if not row.retired]
        _retire(session, project.id, now, col(Document.id).in_([*moving, *(row.id for row in found.gone)]))
        _retire(session, project.id, now, col(Document.path).in_(returning))
        for row, path in found.back:
            values = {"path": path, "retired_at": None, "updated_at": now}
            session.execute(update(Document).where(col(Document.id) == row.id).values(values))
        if found.gone or found.back:
            count_documents_change(session, project.id)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One text at a time in a process, so that documents leave computing time to the reviews.

        Raises:
            Unavailable: others had their turn for too long.
        """
        if not self._turn.acquire(timeout=PATIENCE_SECONDS):
            raise Unavailable("Other documents are being read just now; try again.")
        try:
            yield
        finally:
            self._turn.release()

    def cut(self, text: str) -> list[tuple[Cut, Vector]]:
        """A text's passages without its secrets, at most ``MOST_PASSAGES``, each with its vector.

        Raises:
            Unavailable: the embeddings server does not answer.
        """
        cuts = list(islice(passages(self._redact(str(storable(text)))), MOST_PASSAGES))
        vectors: list[Vector] = []
        for start in range(0, len(cuts), PORTION):
            portion = [_embedded(cut.heading, cut.text) for cut in cuts[start : start + PORTION]]
            vectors.extend(self._embedder.embed(portion))
        return list(zip(cuts, vectors, strict=True))

    def keep(
        self, session: Session, project: ProjectRow, document: DocumentIn, cuts: list[tuple[Cut, Vector]], now: datetime
    ) -> None:
        """Put a document with these passages in the place of what its path held, unless it holds that text already.

        Raises:
            Unavailable: the stored vectors are another embedder's since a reindex.
        """
        space.confirm(session, self._embedder)
        same_path = (col(Document.project_id) == project.id, col(Document.path) == document.path)
        held = select(col(Document.sha256)).where(*same_path, col(Document.retired_at).is_(None))
        if session.execute(held).scalar() == document.sha256:
            return
        _retire(session, project.id, now, col(Document.path) == document.path)
        document_id = new_id()
        session.execute(
            insert(Document).values(
                id=document_id, project_id=project.id, path=document.path, sha256=document.sha256, updated_at=now
            )
        )
        rows = [
            {
                "id": new_id(),
                "document_id": document_id,
                "position": position,
                "heading": cut.heading,
                "text": cut.text,
                "vector": vector,
            }
            for position, (cut, vector) in enumerate(cuts)
        ]
        if rows:
            session.execute(insert(PassageRow), rows)
        count_documents_change(session, project.id)

    @staticmethod
    def erase_retired(session: Session, now: datetime) -> None:
        """Erase what was retired ``RETIRED_DAYS`` ago."""
        session.execute(delete(Document).where(col(Document.retired_at) < now - timedelta(days=RETIRED_DAYS)))

    def count(self, session: Session, project_id: str) -> int:
        """How many passages the project's documents have."""
        return sum(document.passages for document in self.held(session, project_id))

    @staticmethod
    def held(session: Session, project_id: str) -> list[DocumentHeld]:
        """The project's documents, by path."""
        rows = session.execute(
            select(col(Document.path), col(Document.sha256), func.count(col(PassageRow.id)), col(Document.updated_at))
            .join(PassageRow, col(Document.id) == col(PassageRow.document_id), isouter=True)
            .where(col(Document.project_id) == project_id, col(Document.retired_at).is_(None))
            .group_by(col(Document.id))
            .order_by(col(Document.path))
        )
        return [
            DocumentHeld(path=path, sha256=digest, passages=number, updated_at=updated_at)
            for path, digest, number, updated_at in rows
        ]

    def shortlist(
        self, session: Session, project: ProjectRow, vector: Vector, count: int, *, leave_out: str | None = None
    ) -> tuple[Passage, ...]:
        """The passages nearest to the candidate's unit vector, labelled ``P1`` and on.

        Args:
            session: a session for reading.
            project: whose documents.
            vector: the candidate's unit vector (dimension).
            count: most passages.
            leave_out: path of the document that the candidate edits, and may therefore repeat.
        """
        if project.documents_revision == 0:
            return ()
        with self._lock:
            shelf = self._shelves.setdefault(project.id, _Shelf(Matrix(self._embedder.dimension)))
        with shelf.lock:
            if shelf.revision < project.documents_revision:
                space.confirm(session, self._embedder)
                _refresh(session, project.id, shelf)
                shelf.revision = project.documents_revision
        edited = {document_id for document_id, path in shelf.paths.items() if path == leave_out}
        everything = shelf.passages.copy() if edited else {}
        skipped = {item for item, (document_id, _, _) in everything.items() if document_id in edited}
        near = shelf.matrix.nearest(vector, count + len(skipped) if count else 0)
        found = [
            (shelf.paths[known[0]], *known[1:], similarity)
            for item, similarity in near
            if item not in skipped and (known := shelf.passages.get(item)) and known[0] in shelf.paths
        ]
        return tuple(
            Passage(label=f"P{place}", path=path, heading=heading, text=text, similarity=similarity)
            for place, (path, heading, text, similarity) in enumerate(found[:count], start=1)
        )


def texts_after(session: Session, after: str, count: int) -> list[tuple[str, str]]:
    """Ids of passages that follow the one with the id ``after``, each with the text that is embedded."""
    asked = select(PASSAGE.c.id, PASSAGE.c.heading, PASSAGE.c.text).where(PASSAGE.c.id > after)
    rows = session.execute(asked.order_by(PASSAGE.c.id).limit(count))
    return [(row[0], _embedded(row[1], row[2])) for row in rows]


def unstaged_texts(session: Session, project_id: str) -> list[tuple[str, str]]:
    """The same of a project's passages that have no staged vector."""
    asked = (
        select(PASSAGE.c.id, PASSAGE.c.heading, PASSAGE.c.text)
        .join(Document, col(Document.id) == PASSAGE.c.document_id)
        .where(
            col(Document.project_id) == project_id,
            ~select(STAGED_VECTOR.c.item_id).where(STAGED_VECTOR.c.item_id == PASSAGE.c.id).exists(),
        )
    )
    return [(row[0], _embedded(row[1], row[2])) for row in session.execute(asked)]


def use_staged_vectors(session: Session) -> None:
    """Give every passage the vector that is staged for it; under the lock of all projects."""
    staged = select(STAGED_VECTOR.c.vector).where(STAGED_VECTOR.c.item_id == PASSAGE.c.id).scalar_subquery()
    session.execute(update(PASSAGE).values(vector=staged))


def _embedded(heading: str, text: str) -> str:
    return f"{heading}\n{text}"


def _retire(session: Session, project_id: str, now: datetime, which: ColumnElement[bool]) -> None:
    """Take current documents out of judging, and keep no more than ``MOST_RETIRED`` such."""
    current = (col(Document.project_id) == project_id, col(Document.retired_at).is_(None))
    session.execute(update(Document).where(*current, which).values(retired_at=now))
    older = (
        select(col(Document.id))
        .where(col(Document.project_id) == project_id, col(Document.retired_at).is_not(None))
        .order_by(col(Document.retired_at).desc(), col(Document.id).desc())
        .offset(MOST_RETIRED)
    )
    too_many = session.execute(older).scalars().all()
    if too_many:
        session.execute(delete(Document).where(col(Document.id).in_(too_many)))


def _refresh(session: Session, project_id: str, shelf: _Shelf) -> None:
    """Bring a shelf to what the database holds; only documents that are new to it are read."""
    current = select(col(Document.id), col(Document.path)).where(
        col(Document.project_id) == project_id, col(Document.retired_at).is_(None)
    )
    paths = {row[0]: row[1] for row in session.execute(current)}
    for item, (document_id, _, _) in list(shelf.passages.items()):
        if document_id not in paths:
            shelf.matrix.drop(item)
            del shelf.passages[item]
    new = list(paths.keys() - shelf.paths.keys())
    shelf.paths = paths
    for row in session.execute(select(PassageRow).where(col(PassageRow.document_id).in_(new))).scalars():
        shelf.passages[row.id] = (row.document_id, row.heading, row.text)
        shelf.matrix.put(row.id, row.vector)
