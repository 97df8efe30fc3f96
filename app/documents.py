"""The project's documents, cut into passages, so that a memory that only restates them is noticed."""

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from sqlalchemy import delete, func, insert, select
from sqlmodel import Session, col

from app.db import Vector, new_id
from app.embeddings import Embedder, Matrix
from app.errors import Invalid
from app.models import Document, PassageRow
from app.projects import ProjectRow, count_documents_change
from app.schemas import DocumentIn, Passage, storable

LONGEST = 900
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


@dataclass(frozen=True)
class Cut:
    """A passage as it is cut from a document."""

    heading: str
    text: str


@dataclass
class _Shelf:
    matrix: Matrix
    passages: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    revision: int = 0


class Documents:
    """Keeps documents and finds the passages near a candidate."""

    def __init__(self, embedder: Embedder, redact: Callable[[str], str]) -> None:
        """Keep texts with the embedder's vectors, after ``redact`` has taken the secrets out."""
        self._embedder = embedder
        self._redact = redact
        self._shelves: dict[str, _Shelf] = {}
        self._lock = threading.Lock()

    def replace_all(
        self, session: Session, project: ProjectRow, documents: list[DocumentIn], now: datetime
    ) -> list[str]:
        """Make the project's documents these; the paths whose text is new to us and was not sent.

        Raises:
            Invalid: a text does not have the hash that came with it, or a path stands twice.
        """
        if len({document.path for document in documents}) < len(documents):
            raise Invalid("A path stands twice among the documents.")
        known = {
            row.path: row
            for row in session.execute(select(Document).where(col(Document.project_id) == project.id)).scalars()
        }
        wanted: list[str] = []
        missing = known.keys() - {document.path for document in documents}
        changed = bool(missing)
        for path in missing:
            self._forget(session, known[path].id)
        for document in documents:
            held = known.get(document.path)
            if held is not None and held.sha256 == document.sha256:
                continue
            if document.text is None:
                wanted.append(document.path)
                continue
            if sha256(document.text.encode()).hexdigest() != document.sha256:
                raise Invalid(f"The text of {document.path} does not have the sha256 that came with it.")
            if held is not None:
                self._forget(session, held.id)
            self._keep(session, project.id, document.path, document.sha256, document.text, now)
            changed = True
        if changed:
            count_documents_change(session, project.id)
        return wanted

    def count(self, session: Session, project_id: str) -> int:
        """How many passages the project's documents have."""
        number: int = session.execute(
            select(func.count())
            .select_from(PassageRow)
            .join(Document, col(Document.id) == col(PassageRow.document_id))
            .where(col(Document.project_id) == project_id)
        ).scalar_one()
        return number

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
            shelf = self._shelves.get(project.id)
        if shelf is None or shelf.revision != project.documents_revision:
            shelf = self._load(session, project.id)
            shelf.revision = project.documents_revision
            with self._lock:
                self._shelves[project.id] = shelf
        edited = {item for item, (path, _, _) in shelf.passages.items() if path == leave_out} if leave_out else set()
        near = shelf.matrix.nearest(vector, count + len(edited) if count else 0)
        others = [(item, similarity) for item, similarity in near if item not in edited][:count]
        return tuple(
            Passage(label=f"P{place}", path=path, heading=heading, text=text, similarity=similarity)
            for place, (item, similarity) in enumerate(others, start=1)
            for path, heading, text in (shelf.passages[item],)
        )

    def _load(self, session: Session, project_id: str) -> _Shelf:
        shelf = _Shelf(Matrix(self._embedder.dimension))
        rows = session.execute(
            select(PassageRow, col(Document.path))
            .join(Document, col(Document.id) == col(PassageRow.document_id))
            .where(col(Document.project_id) == project_id)
        )
        for row, path in rows:
            shelf.matrix.put(row.id, row.vector)
            shelf.passages[row.id] = (path, row.heading, row.text)
        return shelf

    def _keep(self, session: Session, project_id: str, path: str, digest: str, text: str, now: datetime) -> None:
        document_id = new_id()
        session.execute(
            insert(Document).values(id=document_id, project_id=project_id, path=path, sha256=digest, updated_at=now)
        )
        cuts = list(passages(self._redact(str(storable(text)))))
        if not cuts:
            return
        vectors = self._embedder.embed([f"{cut.heading}\n{cut.text}" for cut in cuts])
        session.execute(
            insert(PassageRow),
            [
                {
                    "id": new_id(),
                    "document_id": document_id,
                    "position": position,
                    "heading": cut.heading,
                    "text": cut.text,
                    "vector": vector,
                }
                for position, (cut, vector) in enumerate(zip(cuts, vectors, strict=True))
            ],
        )

    @staticmethod
    def _forget(session: Session, document_id: str) -> None:
        session.execute(delete(PassageRow).where(col(PassageRow.document_id) == document_id))
        session.execute(delete(Document).where(col(Document.id) == document_id))


def passages(text: str) -> Iterator[Cut]:
    """Cut a Markdown text by headings and paragraphs, none much longer than LONGEST; fenced code is no heading."""
    heading, fenced = "", False
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if _FENCE.match(line):
            fenced = not fenced
        title = None if fenced else _HEADING.match(line)
        if title or (not line.strip() and not fenced):
            yield from _pieces(heading, block)
            block = []
            heading = title.group(2) if title else heading
        else:
            block.append(line)
    yield from _pieces(heading, block)


def _pieces(heading: str, block: list[str]) -> Iterator[Cut]:
    piece: list[str] = []
    for line in (part for whole in block for part in _short_lines(whole)):
        if piece and sum(map(len, piece)) + len(line) > LONGEST:
            yield Cut(heading, "\n".join(piece))
            piece = []
        piece.append(line)
    if piece and any(line.strip() for line in piece):
        yield Cut(heading, "\n".join(piece))


def _short_lines(line: str) -> Iterator[str]:
    while len(line) > LONGEST:
        end = line.rfind(" ", 1, LONGEST) + 1 or LONGEST
        yield line[:end].rstrip()
        line = line[end:]
    yield line
