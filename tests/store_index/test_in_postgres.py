"""Neighbours searched in PostgreSQL itself, where pgvector is; and in memory, with a word about it, where it is not."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from app import entries, projects
from app.callers import LOCAL
from app.db import Database
from app.errors import ConfigurationError
from app.neighbours import Indexed, in_postgres, open_neighbourhood
from app.neighbours.in_memory import InMemory
from app.schemas.entries import EntryIn
from app.schemas.vocabulary import Category
from tests.support.pipelines import GOOD, PROJECT, Bench, embedder
from tests.support.postgres import Postgres
from tests.support.service import running_service

pytestmark = pytest.mark.postgres
TEXTS = [f"Always {verb} the {thing} logs first." for verb in ("read", "keep") for thing in ("modem", "ferry", "quay")]


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """A database without a row, on a server with pgvector."""
    database = Database(postgres_url)
    yield database
    database.close()


@pytest.fixture
def plain_url(postgres: Postgres) -> Iterator[str]:
    """A database whose owner may make tables in it and nothing else."""
    with postgres.database() as url:
        engine = create_engine(url)
        name = engine.url.database
        with engine.begin() as connection:
            connection.execute(text(f"CREATE ROLE plain_{name} LOGIN"))
            connection.execute(text(f"ALTER DATABASE {name} OWNER TO plain_{name}"))
        engine.dispose()
        yield url.replace("postgres@", f"plain_{name}@")


@pytest.fixture
def bench(tmp_path: Path, postgres_url: str) -> Bench:
    return Bench(tmp_path, database_url=postgres_url)


def rankings(bench: Bench, asked: str, count: int, project: str = PROJECT) -> tuple[list[str], list[str]]:
    """Ids of the nearest entries by vector and by words."""
    with bench.database.read() as session:
        found = projects.find(session, LOCAL, project)
        assert found is not None
        by_vector, by_words = bench.index.neighbourhood.rankings(
            session, found, asked, embedder().embed([asked])[0], count
        )
    return by_vector, by_words


def keep(bench: Bench, text_: str, project: str = PROJECT) -> str:
    """Index a stored memory; its entry's id."""
    return str(bench.index.add_entry(EntryIn(project=project, category=Category.RULE, text=text_)).id)


async def test_the_service_keeps_nothing_in_memory(bench: Bench) -> None:
    assert bench.index.neighbourhood.why_in_memory is None
    assert isinstance(bench.index.neighbourhood._search, in_postgres.InPostgres)
    assert bench.rows("SELECT count(*) AS n FROM entry_vector") == [{"n": 0}]
    await bench.close()


@pytest.mark.parametrize("most_read_whole", [0, 20_000], ids=["large", "small"])
async def test_only_visible_entries_of_the_own_project_are_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, most_read_whole: int
) -> None:
    monkeypatch.setattr(in_postgres, "MOST_READ_WHOLE", most_read_whole)
    ids = [keep(bench, text_) for text_ in TEXTS]
    for text_ in TEXTS:
        keep(bench, text_, project="another")
    bench.index.delete_entry(ids[0])
    by_vector, by_words = rankings(bench, TEXTS[0], 8)
    assert set(by_vector) == set(by_words) == set(ids[1:])
    await bench.close()


async def test_a_large_project_is_searched_as_truly_as_a_small_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        keep(bench, f"{TEXTS[number % 6]} It was so in the year {1900 + number}, when {number} of them broke.")
    small, _ = rankings(bench, TEXTS[0], 8)
    monkeypatch.setattr(in_postgres, "MOST_READ_WHOLE", 0)
    large, _ = rankings(bench, TEXTS[0], 8)
    assert large == small
    await bench.close()


async def test_what_the_transaction_has_written_itself_is_found(bench: Bench) -> None:
    with bench.database.write() as session:
        project = projects.locked(session, LOCAL, PROJECT, bench.clock())
        given = EntryIn(project=PROJECT, category=Category.RULE, text=GOOD[1])
        made = entries.add_stored(session, LOCAL, project.id, given, "hash", bench.clock())
        vector = embedder().embed([GOOD[1]])[0]
        bench.index.neighbourhood.add(session, project.id, Indexed(made.id, GOOD[1], vector, made.revision))
        found = bench.index.neighbourhood.rankings(session, project, GOOD[1], vector, 8)
    assert found == ([made.id], [made.id])
    await bench.close()


async def test_an_update_replaces_the_words_and_the_vector(bench: Bench) -> None:
    entry_id = keep(bench, GOOD[0])
    with bench.database.write() as session:
        bench.index.neighbourhood.replace(session, entry_id, GOOD[1], embedder().embed([GOOD[1]])[0])
    assert rankings(bench, "idempotency", 8)[1] == []
    assert rankings(bench, "auditors", 8)[1] == [entry_id]
    await bench.close()


async def test_words_that_stand_everywhere_are_not_looked_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [keep(bench, text_) for text_ in TEXTS]
    monkeypatch.setattr(in_postgres, "MOST_PLACES", 2)
    assert rankings(bench, "Always read the logs", 8)[1] == []
    assert set(rankings(bench, "Always read the modem logs", 8)[1]) == {ids[0], ids[3]}
    await bench.close()


# --- from one way to the other ------------------------------------------------------------------------------------


async def test_without_the_right_to_pgvector_it_searches_in_memory_and_says_what_to_do(
    tmp_path: Path, plain_url: str
) -> None:
    bench = Bench(tmp_path, database_url=plain_url)
    assert isinstance(bench.index.neighbourhood._search, InMemory)
    assert "CREATE EXTENSION vector" in (bench.index.neighbourhood.why_in_memory or "")
    kept = keep(bench, GOOD[0])
    assert rankings(bench, GOOD[0], 8) == ([kept], [kept])
    await bench.close()


async def test_once_pgvector_is_there_what_was_kept_without_it_is_taken_over(tmp_path: Path, plain_url: str) -> None:
    before = Bench(tmp_path, database_url=plain_url)
    ids = {keep(before, text_) for text_ in GOOD}
    await before.close()
    administrator = create_engine(plain_url.partition("plain_")[0] + "postgres@" + plain_url.partition("@")[2])
    with administrator.begin() as connection:
        connection.execute(text("CREATE EXTENSION vector"))
    administrator.dispose()
    after = Bench(tmp_path, database_url=plain_url)
    assert after.index.neighbourhood.why_in_memory is None
    assert set(rankings(after, GOOD[0], 8)[0]) == ids
    assert len(rankings(after, "idempotency", 8)[1]) == 1
    assert after.rows("SELECT count(*) AS n FROM entry_vector") == [{"n": 0}]
    await after.close()


def test_an_older_pgvector_is_not_used(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_postgres, "OLDEST_PGVECTOR", (99, 0))
    assert "too old" in (open_neighbourhood(database, embedder()).why_in_memory or "")


def test_services_that_start_at_once_make_the_tables_once(postgres: Postgres) -> None:
    with postgres.database() as url:
        databases = [Database(url) for _ in range(4)]
        databases[0].migrate()
        with ThreadPoolExecutor(4) as pool:
            opened = list(pool.map(lambda one: open_neighbourhood(one, embedder()), databases))
        assert [one.why_in_memory for one in opened] == [None] * 4
        for one in databases:
            one.close()


async def test_vectors_of_another_length_are_never_taken_for_the_own_ones(bench: Bench) -> None:
    keep(bench, GOOD[0])
    bench.execute("UPDATE embedding_space SET dimension = 3, model = 'short'")

    class Short:
        model, dimension = "short", 3
        embed = embedder().embed

    with pytest.raises(ConfigurationError, match="256 dimensions"):
        open_neighbourhood(bench.database, Short())
    await bench.close()


async def test_vectors_survive_the_way_back_exactly(bench: Bench) -> None:
    keep(bench, GOOD[0])
    (row,) = bench.rows("SELECT vector::text AS vector FROM entry_search")
    assert json.loads(row["vector"]) == pytest.approx(embedder().embed([GOOD[0]])[0].tolist(), abs=0, rel=1e-7)
    await bench.close()


def test_the_log_says_why_neighbours_are_searched_in_memory(plain_url: str, tmp_path: Path) -> None:
    with running_service(tmp_path, {"MEMORY_BOUNCER_DATABASE_URL": plain_url}) as service:
        assert "neighbours.in_memory" in service.log
        assert "CREATE EXTENSION vector" in service.log
