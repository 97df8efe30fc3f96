"""What differs between the two databases: how each is opened, how readers keep a snapshot, how replicas take turns."""

from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, Connection

from app.errors import ConfigurationError

# The advisory lock that replicas take in turn to bring the schema up to date; any number that nobody else uses.
MIGRATION_LOCK = 0x626F756E636572


class DatabaseKind(Protocol):
    """A kind of database."""

    one_writer: bool
    """Whether it lets one writer in at a time."""
    migrating: dict[str, Any]
    """Execution options of what changes the schema."""
    reading: dict[str, Any]
    """Execution options under which a transaction sees one snapshot."""
    if_it_does_not_open: str
    """What to look at then."""

    def open(self, url: URL, patience: float) -> Engine:
        """An engine whose waits for a lock or a connection end after ``patience`` seconds; nothing is connected yet.

        Raises:
            ConfigurationError: the URL cannot work.
            ImportError: the driver is missing.
        """
        ...

    def take_turn_to_migrate(self, connection: Connection) -> None:
        """Wait, in a transaction for writing, until no other process changes the schema."""
        ...


class Sqlite:
    """A file beside the service."""

    one_writer = True
    migrating: dict[str, Any] = {"checks_references": False}  # noqa: RUF012
    reading: dict[str, Any] = {}  # noqa: RUF012 - the interface has it; every transaction sees a snapshot
    if_it_does_not_open = (
        "It has to be a file of SQLite's, in a folder, both of which you may write to;"
        " MEMORY_BOUNCER_DATA_DIR or MEMORY_BOUNCER_DATABASE_URL names another."
    )

    def open(self, url: URL, patience: float) -> Engine:
        """An engine on the file, whose folder is made for its owner alone."""
        if not url.database or url.database == ":memory:":
            raise ConfigurationError("An SQLite database needs a file: sqlite:///path/to/bouncer.db")
        self._make_folder(Path(url.database).parent)
        engine = create_engine(
            url,
            pool_size=20,
            max_overflow=44,
            pool_timeout=patience,
            hide_parameters=True,  # in messages of errors: they are texts of memories
            connect_args={"check_same_thread": False},
        )

        @event.listens_for(engine, "connect")
        def _connect(dbapi_connection: Any, _record: object) -> None:
            # Transactions are begun by us, below: the driver's own habit is to start them late and never IMMEDIATE.
            dbapi_connection.isolation_level = None
            cursor = dbapi_connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout={int(patience * 1000)}")
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=NORMAL")
            cursor.execute("PRAGMA foreign_keys=ON")
            cursor.close()

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            options = connection.get_execution_options()
            writing = options.get("writing", False)
            if not options.get("checks_references", True):
                connection.exec_driver_sql("PRAGMA foreign_keys=OFF")  # heeded outside of a transaction only
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

        return engine

    def take_turn_to_migrate(self, connection: Connection) -> None:
        """Wait until the transaction has locked the file; a change of the schema may take longer than a review may."""
        raw: Any = connection.connection.dbapi_connection
        (patience,) = raw.execute("PRAGMA busy_timeout").fetchone()
        raw.execute("PRAGMA busy_timeout=60000")
        connection.begin()
        raw.execute(f"PRAGMA busy_timeout={patience}")

    @staticmethod
    def _make_folder(folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as exc:
            raise ConfigurationError(
                f"Cannot make the folder {folder} ({exc.strerror}); "
                "set MEMORY_BOUNCER_DATA_DIR to a folder that you may write to."
            ) from exc


class Postgresql:
    """A server that replicas share. What writes is READ COMMITTED, and locks the project before it looks."""

    one_writer = False
    migrating: dict[str, Any] = {}  # noqa: RUF012
    reading: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}  # noqa: RUF012
    if_it_does_not_open = "See that the server runs, and that MEMORY_BOUNCER_DATABASE_URL names it and a user of it."

    def open(self, url: URL, patience: float) -> Engine:
        """An engine on the server."""
        milliseconds = int(patience * 1000)
        limits = {
            "lock_timeout": milliseconds,
            "statement_timeout": 2 * milliseconds,
            # Whoever froze or went away in the middle must not keep a project locked.
            "idle_in_transaction_session_timeout": 12 * milliseconds,
        }
        ours = [f"-c {name}={value}" for name, value in limits.items()]
        given = url.query.get("options", ())
        theirs = (given,) if isinstance(given, str) else given
        return create_engine(
            url,
            # A server takes 100 connections unless told otherwise: room for four replicas and an administrator.
            pool_size=10,
            max_overflow=10,
            pool_timeout=patience,
            pool_pre_ping=True,
            hide_parameters=True,  # in messages of errors: they are texts of memories
            connect_args={
                "connect_timeout": max(2, int(patience)),  # seconds; the client library takes no fewer
                "options": " ".join((*ours, *theirs)),
                # A server that vanished without a word is noticed.
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 4 * milliseconds,
            },
        )

    def take_turn_to_migrate(self, connection: Connection) -> None:
        """Wait for the advisory lock; a change of the schema may take longer than a review may."""
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL lock_timeout = '60s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})


KINDS: dict[str, DatabaseKind] = {"sqlite": Sqlite(), "postgresql": Postgresql()}
