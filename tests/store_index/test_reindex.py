"""Going over to another embedder: nothing is lost, nothing is mixed, and what was interrupted is taken up."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from sqlmodel import Session

from app import projects
from app.callers import LOCAL
from app.db import Database, Vector
from app.documents import Documents
from app.errors import ConfigurationError, Conflict, Unavailable
from app.index import Index
from app.reindex import MOST_WHILE_OTHERS_WAIT, Reindexed, reindex
from app.schemas.entries import EntryIn
from app.schemas.vocabulary import Category
from tests.support.documents import document
from tests.support.pipelines import GOOD, PROJECT, Bench, embedder

README = "Migrations run before the workers start, since the workers read the new columns."


class OtherEmbedder:
    """Another model, with vectors of another length; something may happen each time that it is asked."""

    model = "other"

    def __init__(self, dimension: int = 64, happening: Callable[[Sequence[str]], object] = lambda _: None) -> None:
        self.dimension = dimension
        self.asked = 0
        self._happening = happening

    def embed(self, texts: Sequence[str]) -> Vector:
        """The first dimensions of the usual vectors, as unit vectors."""
        self.asked += len(texts)
        self._happening(texts)
        vectors = embedder().embed(texts)[:, : self.dimension]
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def keep(index: Index, text: str, project: str = PROJECT) -> str:
    """Index a stored memory; its entry's id."""
    return index.add_entry(LOCAL, EntryIn(project=project, category=Category.RULE, text=text)).id


def found(database: Database, embedder_: OtherEmbedder, text: str) -> list[tuple[str, float]]:
    """What a service with the embedder finds: texts with their similarities."""
    return [
        (hit.entry.text, round(hit.similarity, 4)) for hit in Index(database, embedder_).search(LOCAL, PROJECT, text, 8)
    ]


def passages(database: Database, embedder_: OtherEmbedder, text: str) -> list[str]:
    """Texts of the passages that a service with the embedder finds."""
    documents = Documents(embedder_, lambda text_: text_)
    with database.read() as session:
        project = projects.find(session, LOCAL, PROJECT)
        assert project is not None
        return [p.text for p in documents.shortlist(session, project, embedder_.embed([text])[0], 4)]


@pytest.fixture
def filled(bench: Bench) -> Bench:
    for text in GOOD:
        keep(bench.pipeline.index, text)
    bench.index.put_documents(PROJECT, [document("README.md", README)])
    return bench


async def test_all_entries_and_passages_get_the_new_vectors(filled: Bench) -> None:
    other = OtherEmbedder()
    done = reindex(filled.database, other)
    assert done == Reindexed(model="other", dimension=64, entries=4, passages=1, embedded=5)
    assert found(filled.database, other, GOOD[0])[0] == (GOOD[0], 1.0)
    assert len(found(filled.database, other, GOOD[0])) == 4
    assert passages(filled.database, other, "workers and migrations") == [README]
    assert filled.rows("SELECT * FROM staged_vector") == []
    assert filled.rows("SELECT id, model, dimension FROM embedding_space") == [
        {"id": 1, "model": "other", "dimension": 64}
    ]


async def test_again_there_is_nothing_to_do(filled: Bench) -> None:
    assert reindex(filled.database, embedder()).embedded == 0
    other = OtherEmbedder()
    reindex(filled.database, other)
    asked = other.asked
    assert reindex(filled.database, other).embedded == 0
    assert other.asked == asked


async def test_a_database_that_nobody_has_used_takes_the_embedder(tmp_path: Path, database_url: str) -> None:
    database = Database(database_url)
    database.migrate()
    assert reindex(database, OtherEmbedder()).entries == 0
    with pytest.raises(ConfigurationError, match="reindex"):
        Index(database, embedder())
    database.close()


async def test_the_progress_counts_to_the_end(filled: Bench) -> None:
    told: list[tuple[int, int]] = []
    reindex(filled.database, OtherEmbedder(), lambda done, total: told.append((done, total)))
    assert told[0] == (0, 5)
    assert told[-1] == (5, 5)


async def test_what_was_interrupted_is_taken_up(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.reindex.PORTION", 2)

    def fail_at_the_third(texts: Sequence[str]) -> None:
        if GOOD[2] in texts:
            raise Unavailable("The embeddings server is away.")

    with pytest.raises(Unavailable):
        reindex(filled.database, OtherEmbedder(happening=fail_at_the_third))
    assert len(filled.index.search("github.com/acme/payments", GOOD[0], 8)) == 4, "the service goes on meanwhile"
    assert reindex(filled.database, OtherEmbedder()).embedded == 3


async def test_what_was_staged_for_another_embedder_is_not_used(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.reindex.PORTION", 2)

    def fail_at_the_third(texts: Sequence[str]) -> None:
        if GOOD[2] in texts:
            raise Unavailable("The embeddings server is away.")

    with pytest.raises(Unavailable):
        reindex(filled.database, OtherEmbedder(happening=fail_at_the_third))
    assert reindex(filled.database, OtherEmbedder(dimension=32)).embedded == 5


@pytest.mark.parametrize("number", [1, 2 * MOST_WHILE_OTHERS_WAIT], ids=["few", "many"])
async def test_what_is_written_meanwhile_is_indexed_as_well(filled: Bench, number: int) -> None:
    new = [f"Always count the {number} ropes of pier {pier} before a storm comes up." for pier in range(number)]
    written = iter([new])

    def write(_: Sequence[str]) -> None:
        for text in next(written, []):
            keep(filled.pipeline.index, text)
        if number > 1 and not filled.rows("SELECT * FROM document WHERE path = 'b.md'"):
            documents = [document("README.md", README), document("b.md", "Ropes rot in the sun.")]
            filled.index.put_documents(PROJECT, documents)

    other = OtherEmbedder(happening=write)
    done = reindex(filled.database, other)
    assert (done.entries, done.passages) == (4 + number, 1 if number == 1 else 2)
    for text in (new[0], new[-1]):
        assert found(filled.database, other, text)[0] == (text, 1.0)


async def test_an_entry_that_is_updated_meanwhile_has_the_vector_of_its_newer_text(filled: Bench) -> None:
    newer = "Never retry a refund without its ticket, since the bank pays a second time."

    def write(texts: Sequence[str]) -> None:
        if README in texts[0]:
            with filled.database.write() as session:
                _update(filled, session, newer)

    other = OtherEmbedder(happening=write)
    reindex(filled.database, other)
    assert found(filled.database, other, newer)[0] == (newer, 1.0)


def _update(bench: Bench, session: Session, newer: str) -> None:
    project = projects.locked(session, LOCAL, PROJECT, bench.clock())
    entry_id = next(row["id"] for row in bench.entries() if row["text"] == GOOD[0])
    revision = projects.next_revision(session, project.id)
    session.connection().exec_driver_sql(
        f"UPDATE entry SET text = '{newer}', revision = {revision} WHERE id = '{entry_id}'"
    )
    bench.index.neighbourhood.replace(session, entry_id, newer, embedder().embed([newer])[0])


async def test_afterwards_a_service_of_the_former_embedder_mixes_nothing(filled: Bench) -> None:
    """Neither what it would write nor what it would find; not even for a project that it has not met."""
    filled.index.search(PROJECT, GOOD[0], 8)
    reindex(filled.database, OtherEmbedder(dimension=256))
    before = filled.entries()
    for refused in (
        lambda: keep(filled.pipeline.index, "Always count the ropes of the pier before a storm."),
        lambda: keep(filled.pipeline.index, "Always count the ropes of the pier before a storm.", "another"),
        lambda: filled.index.search(PROJECT, GOOD[0], 8),
        lambda: filled.index.put_documents(PROJECT, [document("README.md", "Ropes rot in the sun.")]),
    ):
        with pytest.raises(Unavailable, match="restart"):
            refused()
    assert filled.entries() == before
    with pytest.raises(Unavailable, match="restart"):
        await filled.review("Always count the ropes of the pier before a storm, because it breaks them.")


async def test_two_reindexes_at_once_do_not_mix(filled: Bench) -> None:
    def overtake(_: Sequence[str]) -> None:
        reindex(filled.database, OtherEmbedder(dimension=32))

    with pytest.raises(Conflict):
        reindex(filled.database, OtherEmbedder(happening=overtake))
    other = OtherEmbedder(dimension=32)
    assert found(filled.database, other, GOOD[0])[0] == (GOOD[0], 1.0)
