"""Engine, sessions and column types. The same code serves SQLite and PostgreSQL."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from alembic.config import Config
from sqlalchemy import DateTime, Dialect, Engine, LargeBinary, MetaData, TypeDecorator, create_engine, event, text
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlmodel import Session
from uuid_utils import uuid7

from alembic import command
from app.errors import ConfigurationError, Unavailable
from app.settings import Settings, resource

Vector = npt.NDArray[np.float32]

# Constraints need names for migrations to find them again on both databases.
NAMING = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)


def new_id() -> str:
    """A fresh id; opaque to callers, and sorting as the rows were made (UUIDv7, RFC 9562)."""
    return uuid7().hex


def utc_now() -> datetime:
    """The present moment, timezone-aware."""
    return datetime.now(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no zone, so it is put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Refuse naive moments; store UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Give UTC back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class VectorBytes(TypeDecorator[Vector]):
    """An embedding as its float32 bytes."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Vector | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        """Bytes of the vector."""
        return None if value is None else value.astype("<f4").tobytes()

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Vector | None:  # noqa: ARG002
        """Vector of the bytes."""
        return None if value is None else np.frombuffer(value, dtype="<f4")


def _prepare_sqlite(engine: Engine, busy_timeout_seconds: float) -> None:
    @event.listens_for(engine, "connect")
    def _connect(dbapi_connection: Any, _record: object) -> None:
        # Transactions are begun by us, below: the driver's own habit is to start them late and never IMMEDIATE.
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(busy_timeout_seconds * 1000)}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


class Database:
    """Short transactions on one database: `read` sees a snapshot, `write` commits or leaves no trace."""

    def __init__(self, url: str, *, busy_timeout_seconds: float = 5.0) -> None:
        parsed = make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self._make_folder(parsed.database)
            arguments: dict[str, Any] = {"connect_args": {"check_same_thread": False}}
        else:
            arguments = {"pool_pre_ping": True, "connect_args": {"connect_timeout": int(busy_timeout_seconds) or 1}}
        self.engine = create_engine(url, pool_size=20, max_overflow=44, pool_timeout=busy_timeout_seconds, **arguments)
        if self.is_sqlite:
            _prepare_sqlite(self.engine, busy_timeout_seconds)
        self._writing = self.engine.execution_options(writing=True)
        # SQLite lets one writer in at a time and makes the others poll; queueing here in order is faster and fairer.
        self._turn = threading.Lock() if self.is_sqlite else None
        self._patience = busy_timeout_seconds

    @staticmethod
    def _make_folder(database: str | None) -> None:
        if not database or database == ":memory:":
            raise ConfigurationError("An SQLite database needs a file: sqlite:///path/to/bouncer.db")
        try:
            Path(database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as exc:
            raise ConfigurationError(
                f"Cannot make the folder {Path(database).parent} ({exc.strerror}); "
                "set MEMORY_BOUNCER_DATA_DIR to a folder that you may write to."
            ) from exc

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for reading.

        Raises:
            Unavailable: the database does not answer.
        """
        with _translated(), Session(self.engine) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session in a write transaction; committed at the end, rolled back on any error.

        Raises:
            Unavailable: the database does not answer, is locked or full.
        """
        with _translated(), self._in_turn(), Session(self._writing, expire_on_commit=False) as session:
            yield session
            session.commit()

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if self._turn is None:
            yield
            return
        if not self._turn.acquire(timeout=self._patience):
            raise Unavailable(NO_ANSWER)
        try:
            yield
        finally:
            self._turn.release()

    def migrate(self, revision: str = "head") -> None:
        """Bring the schema to a revision.

        Raises:
            ConfigurationError: the database cannot be opened or written.
        """
        logging.getLogger("alembic").setLevel(logging.WARNING)
        config = Config()
        config.set_main_option("script_location", str(resource("alembic")))
        try:
            with self._writing.connect() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, revision)
                connection.commit()
        except DBAPIError as exc:
            raise ConfigurationError(f"Cannot open the database {self.shown_url}: {exc.orig}") from exc

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    def ping(self) -> None:
        """Ask the database for an answer.

        Raises:
            Unavailable: there is none.
        """
        with self.read() as session:
            session.execute(text("SELECT 1 FROM project LIMIT 1"))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


NO_ANSWER = "The database does not answer, is locked, full or damaged; try again."
# These are about what was asked of the database; all its other errors are about the database.
_ABOUT_THE_QUESTION = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except _ABOUT_THE_QUESTION:
        raise
    except (DatabaseError, PoolTimeoutError) as exc:
        raise Unavailable(NO_ANSWER) from exc


def open_database(settings: Settings) -> Database:
    """The configured database, with its schema brought up to date.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    database = Database(settings.resolved_database_url, busy_timeout_seconds=settings.busy_timeout_seconds)
    database.migrate()
    return database
