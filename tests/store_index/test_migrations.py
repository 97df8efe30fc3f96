"""The schema: up from nothing, down to nothing, and up again; always the one that the models describe."""

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, inspect, text
from sqlalchemy.exc import IntegrityError

from alembic import command
from app.callers import LOCAL, Caller
from app.db import Database, metadata
from app.errors import ConfigurationError
from app.schemas.vocabulary import Role, Verdict
from app.settings import Settings, resource
from tests.support.documents import document
from tests.support.pipelines import GOOD, PROJECT, Bench
from tests.support.postgres import Postgres
from tests.support.purse import LEASE, Purse

Command = Callable[..., None]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of each kind in which there is nothing at all."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'bouncer.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.database() as url:
        yield url


@contextmanager
def opened(url: str, *, checks_references: bool = True) -> Iterator[Engine]:
    """An engine of the test's own, under which SQLite checks references as it does for the service."""
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def _check_references(connection: object, _record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute(f"PRAGMA foreign_keys={checks_references:d}")

    try:
        yield engine
    finally:
        engine.dispose()


def run(url: str, command_: Command, *arguments: str) -> None:
    """Run an alembic command on a database as the service does, and see that no reference leads nowhere after it."""
    config = Config()
    config.set_main_option("script_location", str(resource("alembic")))
    with opened(url, checks_references=False) as engine, engine.connect() as connection:
        config.attributes["connection"] = connection
        command_(config, *arguments)
        if engine.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        connection.commit()


def tables(url: str) -> set[str]:
    """Names of the tables in a database."""
    with opened(url) as engine:
        return set(inspect(engine).get_table_names())


def test_an_empty_database_gets_the_schema_that_the_models_describe(empty_url: str) -> None:
    run(empty_url, command.upgrade, "head")
    assert set(metadata.tables) <= tables(empty_url)
    run(empty_url, command.check)


def test_a_difference_between_models_and_schema_would_be_noticed(empty_url: str) -> None:
    run(empty_url, command.upgrade, "head")
    with opened(empty_url) as engine, engine.begin() as connection:
        connection.execute(text("ALTER TABLE project ADD COLUMN colour TEXT"))
    with pytest.raises(Exception, match="colour"):
        run(empty_url, command.check)


async def test_a_filled_database_goes_down_to_nothing_and_up_again(tmp_path: Path, empty_url: str) -> None:
    bench = Bench(tmp_path, database_url=empty_url)
    for memory in GOOD:
        await bench.store(memory)
    bench.index.put_documents(PROJECT, [document("README.md", "Migrations run before the workers start.")])
    bench.index.put_documents(PROJECT, [])
    bench.index.put_documents(PROJECT, [document("docs/a.md", "Workers read columns that are there.")])
    await bench.close()

    run(empty_url, command.downgrade, "base")
    assert tables(empty_url) == {"alembic_version"}
    run(empty_url, command.upgrade, "head")
    run(empty_url, command.check)

    again = Bench(tmp_path, database_url=empty_url)
    assert again.entries() == []
    assert (await again.review(GOOD[0])).verdict is Verdict.APPROVE
    await again.close()


async def test_each_single_step_down_and_up_keeps_the_entries_and_their_words(tmp_path: Path, empty_url: str) -> None:
    bench = Bench(tmp_path, database_url=empty_url)
    rare = await bench.store(
        "The ferry's modem drops the first packet unless its QZX register is zero before an upload."
    )
    await bench.store(GOOD[0])
    bench.index.put_documents(PROJECT, [document("README.md", "Migrations run before the workers start.")])
    await bench.close()

    run(empty_url, command.downgrade, "-1")
    run(empty_url, command.upgrade, "head")

    again = Bench(tmp_path, database_url=empty_url)
    assert len(again.entries()) == 2
    assert again.by_words("QZX?") == [rare]
    await again.close()


def test_money_is_kept_on_the_way_down_and_up(empty_url: str) -> None:
    purse = Purse(empty_url)
    purse.put(1_000)
    purse.put(1_000, project="p")
    purse.settle(purse.granted(300), 200)
    purse.granted(400)
    purse.database.close()

    run(empty_url, command.downgrade, "0006")
    run(empty_url, command.upgrade, "head")

    again = Purse(empty_url)
    assert again.all() == [], "the version before knew no budgets"
    again.put(1_000)
    assert again.sums() == (200, 400)
    assert [d for d in again.report().differences if d.what != "call"] == []
    again.now += 2 * LEASE
    again.expire()
    assert [(w.spent_microdollars, w.reserved_microdollars) for w in again.report().windows] == [(200, 0)]
    again.database.close()


async def test_a_start_brings_a_filled_older_database_up_to_date(tmp_path: Path, empty_url: str) -> None:
    """Among it one from before there were keys, whose calls are then the local caller's."""
    bench = Bench(tmp_path, database_url=empty_url)
    request = bench.request(GOOD[0], call="c1")
    await bench.pipeline.review(LOCAL, request)
    await bench.close()
    run(empty_url, command.downgrade, "0003")

    again = Bench(tmp_path, database_url=empty_url)
    assert (await again.pipeline.review(LOCAL, request)).replayed
    assert (await again.pipeline.review(Caller("ann", Role.MEMBER), request)).verdict is Verdict.DUPLICATE
    with pytest.raises(IntegrityError), again.database.write() as session:
        session.connection().exec_driver_sql("DELETE FROM call")
    await again.close()

    run(empty_url, command.downgrade, "0003")
    once_more = Bench(tmp_path, database_url=empty_url)
    assert [row["key_id"] for row in once_more.rows("SELECT key_id FROM call")] == ["local"]
    await once_more.close()


async def test_starting_again_keeps_what_is_there(tmp_path: Path, empty_url: str) -> None:
    bench = Bench(tmp_path, database_url=empty_url)
    await bench.store(GOOD[0])
    await bench.close()
    again = Bench(tmp_path, database_url=empty_url)
    assert (await again.review(GOOD[0], session="s2")).verdict is Verdict.DUPLICATE
    await again.close()


def test_several_processes_may_start_on_one_new_database_at_once(empty_url: str) -> None:
    start = f"from app.db import Database; d = Database({empty_url!r}); d.migrate(); d.ping()"
    processes = [subprocess.Popen([sys.executable, "-c", start]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    run(empty_url, command.check)


@pytest.mark.parametrize("state", ["stored", "pending"])
def test_the_schema_itself_forbids_a_second_state_and_a_second_equal_text(database_url: str, state: str) -> None:
    database = Database(database_url)
    database.migrate()
    project = "INSERT INTO project VALUES ('p', 'p', NULL, 0, 0, '2026-01-01')"
    row = (
        "INSERT INTO entry (id, category, status, text_hash, project_id, version, text, store, revision, created_at,"
        " updated_at) VALUES ('{}', '{}', '{}', '{}', 'p', 1, 't', 's', 1, '2026-01-01', '2026-01-01')"
    )
    with database.write() as session:
        connection = session.connection()
        connection.exec_driver_sql(project)
        connection.exec_driver_sql(row.format("a", "STATE", state, "1"))
        connection.exec_driver_sql(row.format("b", "STATE", "superseded", "1"))
    for category, hash_ in (("STATE", "2"), ("RULE", "1")):
        with pytest.raises(IntegrityError), database.write() as session:
            session.connection().exec_driver_sql(row.format("c", category, "pending", hash_))
    database.close()


@pytest.mark.parametrize("name", ["no/such.db", ""])
def test_a_database_that_cannot_be_is_refused_at_start(tmp_path: Path, name: str) -> None:
    (tmp_path / "no").write_text("a file where the folder should be")
    with pytest.raises(ConfigurationError):
        Database(f"sqlite:///{tmp_path / name}" if name else "sqlite://").migrate()


def test_a_file_that_is_no_database_is_refused_at_start(tmp_path: Path) -> None:
    (tmp_path / "b.db").write_bytes(b"this is not a database " * 100)
    database = Database(f"sqlite:///{tmp_path / 'b.db'}")
    with pytest.raises(ConfigurationError, match=r"b\.db"):
        database.migrate()
    database.close()


@pytest.mark.parametrize("url", ["mysql://a:PA55@h/b", "not a url PA55", "postgresql://a:PA55@h:port/b"])
def test_a_url_that_names_no_database_of_ours_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Database(url)
    assert "PA55" not in str(refused.value)


def test_a_server_that_is_away_is_told_at_start_without_the_password(tmp_path: Path) -> None:
    database = Database(f"postgresql://a:PA55@/b?host={tmp_path}")
    with pytest.raises(ConfigurationError, match="Cannot open the database") as refused:
        database.migrate()
    assert "PA55" not in str(refused.value)
    assert "See that the server runs" in str(refused.value)


def test_a_file_that_cannot_be_opened_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Cannot open the database .* MEMORY_BOUNCER_DATA_DIR"):
        Database(f"sqlite:///{tmp_path}").migrate()


@pytest.mark.postgres
@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_a_postgresql_url_may_be_spelt_in_each_way_and_bring_options(postgres_url: str, scheme: str) -> None:
    url = f"{scheme}:{postgres_url.partition(':')[2]}&options=-c%20lock_timeout%3D77"
    database = Database(url, busy_timeout_seconds=3)
    with database.read() as session:
        assert session.execute(text("SHOW lock_timeout")).scalar() == "77ms"
        assert session.execute(text("SHOW statement_timeout")).scalar() == "6s"
    database.close()


@pytest.mark.postgres
def test_the_owner_of_a_database_needs_no_further_rights(postgres: Postgres) -> None:
    with postgres.database() as url:
        with opened(url) as engine, engine.begin() as connection:
            name = engine.url.database
            connection.execute(text(f"CREATE ROLE plain_{name} LOGIN"))
            connection.execute(text(f"ALTER DATABASE {name} OWNER TO plain_{name}"))
        database = Database(url.replace("postgres@", f"plain_{name}@"))
        database.migrate()
        database.close()


def test_the_data_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "new" / "folder")
    Database(settings.resolved_database_url).close()
    assert (tmp_path / "new" / "folder").stat().st_mode & 0o077 == 0


def test_migrating_leaves_the_logs_of_others_as_they_are(tmp_path: Path) -> None:
    before = logging.getLogger("sqlalchemy").level, logging.root.level, logging.root.handlers[:]
    database = Database(f"sqlite:///{tmp_path / 'b.db'}")
    database.migrate()
    database.close()
    assert (logging.getLogger("sqlalchemy").level, logging.root.level, logging.root.handlers[:]) == before
