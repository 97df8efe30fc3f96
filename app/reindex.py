"""Go over to another embedder: every entry and passage is embedded anew while services go on with the former one.

The new vectors are staged beside the old ones, so an interrupted run is taken up where it stopped. What changes
meanwhile is embedded at the end, the last of it while all writers wait; then all vectors are exchanged in one
transaction. From that moment services with the former embedder answer that they are to be restarted.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import delete, func, insert, select
from sqlmodel import Session

from app import documents, entries, neighbours, projects, space
from app.db import Database
from app.embeddings import Embedder
from app.models import ENTRY, PASSAGE, STAGED_VECTOR

PORTION = 64  # texts embedded at once; what an interruption costs at most
MOST_WHILE_OTHERS_WAIT = 16  # texts

Progress = Callable[[int, int], None]
Text = tuple[str, str]
Seen = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Reindexed:
    """What a reindex came to; ``embedded`` counts the texts of this run, 0 if nothing was to be done."""

    model: str
    dimension: int
    entries: int
    passages: int
    embedded: int


def reindex(database: Database, embedder: Embedder, progress: Progress = lambda *_: None) -> Reindexed:
    """Give every entry and passage the embedder's vector.

    Args:
        database: with the schema of this version.
        embedder: the one that services are to use from then on.
        progress: told of texts done and texts in all.

    Raises:
        Conflict: another reindex came in between.
        Unavailable: the embedder or the database does not answer; what is staged is kept for the next run.
    """
    work = _Work(database, embedder, progress)
    with database.write() as session:
        if space.is_current(session, embedder):
            space.check(session, embedder)
            return _outcome(session, embedder, 0)
        if not space.begin_next(session, embedder):
            session.execute(delete(STAGED_VECTOR))
    work.stage_everything()
    while not work.switch():
        work.catch_up()
    neighbours.open_neighbourhood(database, embedder)  # makes PostgreSQL's own search, which services need not wait for
    with database.read() as session:
        return _outcome(session, embedder, work.embedded)


class _Work:
    def __init__(self, database: Database, embedder: Embedder, progress: Progress) -> None:
        self.embedded = 0
        self._database = database
        self._embedder = embedder
        self._progress = progress
        self._seen: Seen = {}

    def stage_everything(self) -> None:
        """Stage what is not staged yet."""
        with self._database.read() as session:
            self._seen = projects.revisions(session)
            total, done = sum(_counts(session)), 0
        for texts_after in (entries.texts_after, documents.texts_after):
            after = ""
            while True:
                self._progress(done, total)
                with self._database.read() as session:
                    some = texts_after(session, after, PORTION)
                if not some:
                    break
                self._stage(some)
                after = some[-1][0]
                done += len(some)

    def catch_up(self) -> None:
        """Stage what has changed since all was staged."""
        with self._database.read() as session:
            seen, late = projects.revisions(session), self._late(session)
        for start in range(0, len(late), PORTION):
            self._stage(late[start : start + PORTION])
        self._seen = seen

    def switch(self) -> bool:
        """Exchange all vectors; False, and nothing is done, if more has changed than others should wait for."""
        with self._database.write() as session:
            self._database.take_turn_to_migrate(session)
            projects.lock_all(session)
            late = self._late(session)
            if len(late) > MOST_WHILE_OTHERS_WAIT:
                return False
            self._put(session, late)
            neighbours.use_staged_vectors(session)
            documents.use_staged_vectors(session)
            session.execute(delete(STAGED_VECTOR))
            space.switch(session)
            # Services of the former embedder look again, and find that the vectors are no longer theirs.
            projects.count_change_of_all(session)
            return True

    def _late(self, session: Session) -> list[Text]:
        """What has changed since the staging began and is not staged as it is now."""
        late: list[Text] = []
        for project_id, (revision, documents_revision) in projects.revisions(session).items():
            seen = self._seen.get(project_id, (0, 0))
            if revision > seen[0]:
                late += entries.texts_since(session, project_id, seen[0])
            if documents_revision > seen[1]:
                late += documents.unstaged_texts(session, project_id)
        return _unstaged(session, late)

    def _stage(self, texts: Sequence[Text]) -> None:
        with self._database.read() as session:
            new = _unstaged(session, texts)
        if new:
            rows = self._rows(new)
            with self._database.write() as session:
                space.hold_next(session, self._embedder)
                _replace(session, rows)

    def _put(self, session: Session, texts: Sequence[Text]) -> None:
        space.hold_next(session, self._embedder)
        if texts:
            _replace(session, self._rows(texts))

    def _rows(self, texts: Sequence[Text]) -> list[dict[str, object]]:
        vectors = self._embedder.embed([text for _, text in texts])
        self.embedded += len(texts)
        return [
            {"item_id": item, "text_hash": _hash(text), "vector": vector}
            for (item, text), vector in zip(texts, vectors, strict=True)
        ]


def _unstaged(session: Session, texts: Iterable[Text]) -> list[Text]:
    """Those of the texts that are not staged as they are."""
    asked = dict(texts)
    staged: dict[str, str] = {}
    ids = list(asked)
    for start in range(0, len(ids), PORTION):
        known = select(STAGED_VECTOR.c.item_id, STAGED_VECTOR.c.text_hash).where(
            STAGED_VECTOR.c.item_id.in_(ids[start : start + PORTION])
        )
        staged.update((row[0], row[1]) for row in session.execute(known))
    return [(item, text) for item, text in asked.items() if staged.get(item) != _hash(text)]


def _replace(session: Session, rows: list[dict[str, object]]) -> None:
    session.execute(delete(STAGED_VECTOR).where(STAGED_VECTOR.c.item_id.in_([row["item_id"] for row in rows])))
    session.execute(insert(STAGED_VECTOR), rows)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _counts(session: Session) -> tuple[int, int]:
    entries_, passages = (
        session.execute(select(func.count()).select_from(table)).scalar_one() for table in (ENTRY, PASSAGE)
    )
    return entries_, passages


def _outcome(session: Session, embedder: Embedder, embedded: int) -> Reindexed:
    entries_, passages = _counts(session)
    return Reindexed(embedder.model, embedder.dimension, entries_, passages, embedded)
