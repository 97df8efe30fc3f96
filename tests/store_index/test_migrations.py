"""The schema: up from nothing, down to nothing, and up again; always the one that the models describe."""

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.config import Config
from sqlalchemy import create_engine, event, inspect
from sqlalchemy.exc import IntegrityError

from alembic import command
from app.db import Database, metadata
from app.errors import ConfigurationError
from app.schemas import Verdict
from app.settings import Settings, resource
from tests.support.pipelines import GOOD, PROJECT, Bench

Command = Callable[..., None]


def run(file: Path, command_: Command, *arguments: str) -> None:
    """Run an alembic command on a database file."""
    engine = create_engine(f"sqlite:///{file}")

    @event.listens_for(engine, "connect")
    def _check_references(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA foreign_keys=ON")

    config = Config()
    config.set_main_option("script_location", str(resource("alembic")))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command_(config, *arguments)
        connection.commit()
    engine.dispose()


def tables(file: Path) -> set[str]:
    """Names of the tables in a file."""
    engine = create_engine(f"sqlite:///{file}")
    names = set(inspect(engine).get_table_names())
    engine.dispose()
    return names


def test_an_empty_file_gets_the_schema_that_the_models_describe(tmp_path: Path) -> None:
    run(tmp_path / "b.db", command.upgrade, "head")
    assert set(metadata.tables) <= tables(tmp_path / "b.db")
    run(tmp_path / "b.db", command.check)


def test_a_difference_between_models_and_schema_would_be_noticed(tmp_path: Path) -> None:
    run(tmp_path / "b.db", command.upgrade, "head")
    connection = sqlite3.connect(tmp_path / "b.db")
    connection.execute("ALTER TABLE project ADD COLUMN colour TEXT")
    connection.close()
    with pytest.raises(Exception, match="colour"):
        run(tmp_path / "b.db", command.check)


async def test_a_filled_database_goes_down_to_nothing_and_up_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for text in GOOD:
        await bench.store(text)
    bench.index.put_documents(PROJECT, [])
    await bench.close()

    run(bench.file, command.downgrade, "base")
    assert tables(bench.file) == {"alembic_version"}
    run(bench.file, command.upgrade, "head")
    run(bench.file, command.check)

    again = Bench(tmp_path)
    assert again.entries() == []
    assert (await again.review(GOOD[0])).verdict is Verdict.APPROVE
    await again.close()


async def test_starting_again_keeps_what_is_there(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.store(GOOD[0])
    await bench.close()
    again = Bench(tmp_path)
    assert (await again.review(GOOD[0], session="s2")).verdict is Verdict.DUPLICATE
    await again.close()


def test_several_processes_may_start_on_one_new_file_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'b.db'}"
    start = f"from app.db import Database; d = Database({url!r}); d.migrate(); d.ping()"
    processes = [subprocess.Popen([sys.executable, "-c", start]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    run(tmp_path / "b.db", command.check)


@pytest.mark.parametrize("state", ["stored", "pending"])
def test_the_schema_itself_forbids_a_second_state_and_a_second_equal_text(tmp_path: Path, state: str) -> None:
    database = Database(f"sqlite:///{tmp_path / 'b.db'}")
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
