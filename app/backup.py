"""Copy the SQLite database to a file while services use it, and put such a copy in its place.

PostgreSQL has tools of its own for this; see docs/operations.md.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy.engine import make_url

from app.db import Database, utc_now
from app.errors import Conflict, Invalid, NotFound, Unavailable
from app.models import Table
from app.settings import Settings

MAGIC = b"SQLite format 3\0"
PAGES_AT_ONCE = 2_000
WAIT_SECONDS = 30.0
# Made at every start; says nothing about whether anybody has used the database.
FURNITURE = frozenset({"embedding_space"})

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Copied:
    """A database that was copied: its file, its size in bytes, what it holds, and what lay in its place before."""

    path: Path
    size: int
    projects: int
    entries: int
    reviews: int
    replaced: Path | None = None


def backup(settings: Settings, target: Path, *, force: bool = False, progress: Progress = lambda *_: None) -> Copied:
    """Copy the database as it is at this moment, whoever writes meanwhile; the copy is checked before it gets its name.

    Args:
        settings: name the database.
        target: the file to write, which only its owner can read.
        force: whether a file that is there is replaced.
        progress: told of pages copied and pages in all.

    Raises:
        Invalid: the database is PostgreSQL's, or damaged.
        NotFound: there is no database.
        Conflict: the file is there.
        Unavailable: the database cannot be read, or the copy not be written.
    """
    source = _file(settings)
    if not source.is_file():
        raise NotFound(f"There is no database at {source}.")
    if target.exists() and (source.samefile(target) or not force):
        raise Conflict(f"{target} is there already; choose another name, or --force to replace it.")
    partial = target.with_name(target.name + ".partial")
    with _reported(), _discarded(partial):
        _copy(source, partial, progress)
        copied = _checked(partial)
        partial.replace(target)
        _settle(target.parent)
    return Copied(target, target.stat().st_size, *copied)


def restore(settings: Settings, source: Path, *, force: bool = False, progress: Progress = lambda *_: None) -> Copied:
    """Put a backup in the place of the database, brought up to date and checked beforehand; no service may use it.

    Args:
        settings: name the database.
        source: the backup.
        force: whether a database that holds something is replaced; it is kept beside, under a name with the time.
        progress: told of pages copied and pages in all.

    Raises:
        Invalid: the database is PostgreSQL's, or the backup is none, or damaged.
        ConfigurationError: the backup was made by a newer version.
        NotFound: there is no such file.
        Conflict: the database holds something, or a service uses it.
        Unavailable: a file cannot be read or written.
    """
    target = _file(settings)
    if not source.is_file():
        raise NotFound(f"There is no file {source}.")
    if target.exists() and source.samefile(target):
        raise Conflict(f"{source} is the database itself.")
    with source.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise Invalid(f"{source} is no backup of a database.")
    staged = target.with_name(target.name + ".restoring")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _reported(), _discarded(staged):
        _copy(source, staged, progress)
        _checked(staged)
        fresh = Database(f"sqlite:///{staged}")
        fresh.migrate()
        fresh.close()
        _into_one_file(staged)
        copied = _checked(staged)
        with _alone(target) as holds_something:
            if holds_something and not force:
                raise Conflict(
                    f"The database {target} holds something; --force replaces it, and keeps it under another name."
                )
            replaced = _put_aside(target, utc_now()) if holds_something else None
            for leftover in _companions(target):
                leftover.unlink(missing_ok=True)
            staged.replace(target)
        _settle(target.parent)
    return Copied(target, target.stat().st_size, *copied, replaced)


def _file(settings: Settings) -> Path:
    url = make_url(settings.resolved_database_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise Invalid("This database is no SQLite file: use pg_dump and pg_restore, as docs/operations.md shows.")
    return Path(url.database)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as exc:
        raise Unavailable(f"The database cannot be copied: {exc}.") from exc
    except sqlite3.DatabaseError as exc:
        raise Invalid(f"What is to be copied is damaged: {exc}.") from exc
    except OSError as exc:
        raise Unavailable(f"Cannot write {exc.filename}: {exc.strerror}.") from exc


@contextlib.contextmanager
def _discarded(unfinished: Path) -> Iterator[None]:
    """No file of this name before, and none after."""
    for path in (unfinished, *_companions(unfinished)):
        path.unlink(missing_ok=True)
    try:
        yield
    finally:
        for path in (unfinished, *_companions(unfinished)):
            path.unlink(missing_ok=True)


def _companions(file: Path) -> list[Path]:
    """What SQLite may keep beside a database. Of one database, beside another, it would destroy that."""
    return [file.with_name(file.name + ending) for ending in ("-wal", "-shm", "-journal")]


def _copy(source: Path, target: Path, progress: Progress) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with contextlib.closing(_opened(source)) as whence, contextlib.closing(_opened(target)) as whither:
        # A snapshot held open: what others write meanwhile neither gets in nor makes the copy begin again.
        whence.execute("BEGIN")
        whence.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        whence.backup(
            whither, pages=PAGES_AT_ONCE, progress=lambda _, left, total: progress(total - left, total), sleep=0
        )
    _into_one_file(target)


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, timeout=WAIT_SECONDS)


def _into_one_file(file: Path) -> None:
    with contextlib.closing(_opened(file)) as database:
        database.execute("PRAGMA journal_mode=DELETE")


def _checked(file: Path) -> tuple[int, int, int]:
    """How many projects, entries and reviews it holds."""
    try:
        with contextlib.closing(_opened(file)) as database:
            faults = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
            orphans = database.execute("PRAGMA foreign_key_check").fetchone()
            if faults != ["ok"] or orphans is not None:
                raise Invalid("The copy is damaged: its contents contradict one another.")
            database.execute("SELECT version_num FROM alembic_version").fetchone()
            projects, entries, reviews = (
                database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - names of ours
                for table in ("project", "entry", "review")
            )
    except sqlite3.DatabaseError as exc:
        raise Invalid(f"This is no database of Memory Bouncer, or it is damaged ({exc}).") from exc
    return projects, entries, reviews


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[bool]:
    """The database kept from everybody else; whether it holds something.

    Raises:
        Conflict: somebody uses it.
    """
    if not target.exists() or target.stat().st_size == 0:
        yield False
        return
    with contextlib.closing(sqlite3.connect(target, isolation_level=None, timeout=1.0)) as database:
        try:
            # To leave the write-ahead log a connection must be the only one, and this file tells of any other.
            database.execute("PRAGMA journal_mode=DELETE")
            database.execute("BEGIN EXCLUSIVE")
            holds_something = _holds_something(database)
        except sqlite3.OperationalError as exc:
            raise Conflict(f"The database {target} is in use: stop the service first.") from exc
        except sqlite3.DatabaseError:
            holds_something = True  # whatever it is, it is no database of ours
        yield holds_something


def _holds_something(database: sqlite3.Connection) -> bool:
    known = {row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    ours = set(Table.metadata.tables) - FURNITURE
    return any(
        database.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone()  # noqa: S608 - names of ours
        for table in sorted(ours & known)
    )


def _put_aside(target: Path, now: datetime) -> Path:
    aside = target.with_name(f"{target.name}.before-{now:%Y%m%dT%H%M%S}")
    for path, other in zip((target, *_companions(target)), (aside, *_companions(aside)), strict=True):
        if path.exists():
            path.replace(other)
    return aside


def _settle(folder: Path) -> None:
    """Have the names of the folder's files survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
