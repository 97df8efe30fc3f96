"""Engine, sessions and column types. The same code serves SQLite and PostgreSQL."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import structlog
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import DateTime, Dialect, ExceptionContext, LargeBinary, MetaData, TypeDecorator, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlmodel import Session
from uuid_utils import uuid7

from alembic import command
from app.dialects import KINDS
from app.errors import ConfigurationError, Invalid, Unavailable
from app.settings import Settings, resource

Vector = npt.NDArray[np.float32]

log = structlog.get_logger(__name__)

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


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # `from None`: the cause repeats the URL, which may hold a password.
        raise ConfigurationError("MEMORY_BOUNCER_DATABASE_URL is no database URL.") from None
    # The driver that is installed, where the URL names none; and the spelling that many hosts hand out.
    if parsed.drivername in {"postgres", "postgresql"}:
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


class Database:
    """Short transactions on one database: `read` sees a snapshot, `write` commits or leaves no trace."""

    def __init__(self, url: str, *, busy_timeout_seconds: float = 5.0) -> None:
        """Open nothing yet; a wait for a lock, a connection or a turn to write ends after the timeout.

        Raises:
            ConfigurationError: the URL names no database that we can speak to.
        """
        parsed = _parsed(url)
        kind = KINDS.get(parsed.get_backend_name())
        if kind is None:
            raise ConfigurationError(f"{parsed.drivername} is not spoken here; use SQLite or PostgreSQL.")
        self._kind = kind
        try:
            self.engine = kind.open(parsed, busy_timeout_seconds)
        except ImportError as exc:
            raise ConfigurationError("The driver is missing: install memory-bouncer[postgres].") from exc
        self._writing = self.engine.execution_options(writing=True)
        self._migrating = self._writing.execution_options(**kind.migrating)
        self._reading = self.engine.execution_options(**kind.reading)
        # Where one writer is let in at a time, the others poll; queueing here in order is faster and fairer.
        self._turn = threading.Lock() if kind.one_writer else None
        self._patience = busy_timeout_seconds

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for reading.

        Raises:
            Unavailable: the database does not answer.
        """
        with _translated(), Session(self._reading) as session:
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
            for action in session.info.get(_AFTER_COMMIT, ()):
                action()

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
        config = Config()
        config.set_main_option("script_location", str(resource("alembic")))
        try:
            with self._migrating.connect() as connection:
                connection.detach()  # whatever it was told for the change of the schema ends with it
                self._kind.take_turn_to_migrate(connection)
                config.attributes["connection"] = connection
                before = MigrationContext.configure(connection).get_current_revision()
                command.upgrade(config, revision)
                after = MigrationContext.configure(connection).get_current_revision()
                connection.commit()
        except CommandError as exc:
            raise ConfigurationError(
                f"The database {self.shown_url} has a schema that this version does not know ({exc}); "
                "it was made by a newer one: upgrade."
            ) from exc
        except DBAPIError as exc:
            raise ConfigurationError(
                f"Cannot open the database {self.shown_url}: {exc.orig}. {self._kind.if_it_does_not_open}"
            ) from exc
        if before != after:
            log.info("database.migrated", before=before, after=after)

    def take_turn_to_migrate(self, session: Session) -> None:
        """Wait, in a session for writing, until no other process changes the schema; it may take long then."""
        if not self._kind.one_writer:  # which has its turn already
            self._kind.take_turn_to_migrate(session.connection())

    @property
    def kind(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self.engine.dialect.name

    @property
    def one_writer(self) -> bool:
        """Whether it lets one writer in at a time, so that the others wait."""
        return self._kind.one_writer

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    def ping(self) -> None:
        """Have the database write something, so that a full disk or a read-only file is noticed.

        Raises:
            Unavailable: it cannot.
        """
        try:
            with self.write() as session:
                session.execute(text("UPDATE embedding_space SET id = id"))
        except ProgrammingError as exc:
            raise Unavailable(NO_ANSWER) from exc  # it answers, but is not ours (any more)

    def on_error(self, told: Callable[[str], None]) -> None:
        """Tell of each statement that fails, by the driver's class of errors; not of rows that others wrote first."""

        @event.listens_for(self.engine, "handle_error")
        def _tell(context: ExceptionContext) -> None:
            error = context.sqlalchemy_exception
            if error is not None and not isinstance(error, IntegrityError):
                told(type(error).__name__)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def after_commit(session: Session, action: Callable[[], None]) -> None:
    """Do something once what the session writes is committed, and never if it is not; it must not fail."""
    session.info.setdefault(_AFTER_COMMIT, []).append(action)


_AFTER_COMMIT = "after_commit"

NO_ANSWER = "The database does not answer, is locked, full or damaged; try again."
# These are about what was asked of the database; all its other errors are about the database.
_ABOUT_THE_QUESTION = (IntegrityError, NotSupportedError, ProgrammingError)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except DataError as exc:
        raise Invalid("The request holds a value that the database cannot keep.") from exc
    except _ABOUT_THE_QUESTION:
        raise
    except (DBAPIError, PoolTimeoutError) as exc:
        raise Unavailable(NO_ANSWER) from exc


def open_database(settings: Settings) -> Database:
    """The configured database, with its schema brought up to date.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    database = Database(settings.resolved_database_url, busy_timeout_seconds=settings.busy_timeout_seconds)
    database.migrate()
    return database
