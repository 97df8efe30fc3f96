"""`bouncer backup` and `bouncer restore`, with real processes that go on writing."""

import json
import os
import sqlite3
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.backup import backup, restore
from app.callers import LOCAL
from app.db import Database
from app.errors import BouncerError, ConfigurationError, Conflict, Invalid, NotFound
from app.main import build_pipeline
from app.schemas.entries import EntryIn
from app.schemas.vocabulary import Category
from app.settings import Settings
from tests.support.http_service import call
from tests.support.pipelines import GOOD, Bench
from tests.support.service import BOUNCER, Service, running_service

THINGS = ("lamp", "lens", "mirror", "shutter", "stair", "rail", "bell", "buoy", "chart", "flag", "rope", "mast")
PLACES = ("reef", "quay", "pier", "mole")


def bouncer(*arguments: str | Path) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run(
        [*BOUNCER, *map(str, arguments), "--json"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def filled(tmp_path: Path) -> Settings:
    """Settings whose database has an entry, and nobody using it."""
    bench = Bench(tmp_path / "data")
    _add(bench.pipeline, GOOD[0])
    bench.database.close()
    return bench.settings


def _add(pipeline: Any, text: str) -> None:
    pipeline.index.add_entry(LOCAL, EntryIn(project="p", category=Category.RULE, text=text))


def texts(settings: Settings) -> set[str]:
    """What the database holds, through the service's own code."""
    pipeline = build_pipeline(settings)
    try:
        return {hit.entry.text for hit in pipeline.index.search(LOCAL, "p", "payment migrations", 8)}
    finally:
        pipeline.index.database.close()


def test_a_backup_made_under_load_holds_all_that_was_answered_before_it(tmp_path: Path) -> None:
    answered: list[str] = []
    halfway = threading.Semaphore(0)

    def write(service: Service, place: str) -> None:
        with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as client:
            for thing in THINGS:
                text = f"Always polish the {thing} at {place} light before dusk, because salt blinds it overnight."
                review = client.post("/v1/reviews", json=call(text, project="p", session=place)).json()["reviews"][0]
                answered.append(review["id"])
                halfway.release()

    with running_service(tmp_path / "data") as service, ThreadPoolExecutor(len(PLACES)) as pool:
        writing = [pool.submit(write, service, place) for place in PLACES]
        for _ in range(len(PLACES) * len(THINGS) // 3):
            assert halfway.acquire(timeout=120)
        before = set(answered)
        made = bouncer("backup", tmp_path / "copy.db", "--data-dir", tmp_path / "data")
        for future in writing:
            future.result()
    assert made["reviews"] >= len(before)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("copy.db.")]

    put_back = bouncer("restore", tmp_path / "copy.db", "--data-dir", tmp_path / "other")
    assert (put_back["reviews"], put_back["replaced"]) == (made["reviews"], None)
    with running_service(tmp_path / "other") as service:
        kept = {row[0] for row in service.rows("SELECT id FROM review WHERE verdict IS NOT NULL")}
        assert before <= kept
        again = httpx.post(f"{service.url}/v1/reviews", json=call(GOOD[0], project="p"), trust_env=False, timeout=60)
        assert again.json()["verdict"] == "approve"


def test_a_running_service_keeps_its_database(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        service.get("/v1/entries")
        bouncer("backup", tmp_path / "copy.db", "--data-dir", tmp_path / "data")
        with pytest.raises(Conflict, match="stop the service"):
            restore(Settings(data_dir=tmp_path / "data"), tmp_path / "copy.db", force=True)
        assert service.get("/v1/entries")["items"] == []
        assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 200


def test_a_copy_is_for_its_owner_alone_and_replaces_nothing_unasked(filled: Settings, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert backup(filled, target).entries == 1
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(Conflict):
        backup(filled, target)
    assert backup(filled, target, force=True).entries == 1
    with pytest.raises(Conflict):
        backup(filled, filled.data_dir / "bouncer.db", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "data"]


def test_a_database_that_holds_something_is_replaced_only_by_force_and_kept(filled: Settings, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    backup(filled, copy)
    pipeline = build_pipeline(filled)
    _add(pipeline, GOOD[1])
    pipeline.index.database.close()
    with pytest.raises(Conflict, match="--force"):
        restore(filled, copy)
    assert texts(filled) == {GOOD[0], GOOD[1]}
    replaced = restore(filled, copy, force=True).replaced
    assert replaced is not None
    assert texts(filled) == {GOOD[0]}
    assert texts(Settings(database_url=f"sqlite:///{replaced}")) == {GOOD[0], GOOD[1]}


def test_an_empty_database_needs_no_force(filled: Settings, tmp_path: Path) -> None:
    backup(filled, tmp_path / "copy.db")
    other = Settings(data_dir=tmp_path / "other")
    build_pipeline(other).index.database.close()
    restore(other, tmp_path / "copy.db")
    assert texts(other) == {GOOD[0]}


def test_an_older_backup_is_brought_up_to_date(tmp_path: Path) -> None:
    old = Database(f"sqlite:///{tmp_path / 'old.db'}")
    old.migrate("0001")
    old.close()
    settings = Settings(data_dir=tmp_path / "data")
    restore(settings, tmp_path / "old.db")
    assert texts(settings) == set()
    with sqlite3.connect(tmp_path / "old.db") as untouched:
        assert untouched.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
    untouched.close()


def damaged(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(size // 4))


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE somebody (elses TEXT)")
    database.close()


def text_file(path: Path) -> None:
    path.write_text("certainly no database " * 1_000, encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (damaged, Invalid),
        (newer, ConfigurationError),
        (foreign, Invalid),
        (text_file, Invalid),
        (Path.unlink, NotFound),
    ],
)
def test_what_is_no_sound_backup_is_refused_and_nothing_touched(
    filled: Settings, tmp_path: Path, spoil: Any, error: type[BouncerError]
) -> None:
    copy = tmp_path / "copy.db"
    backup(filled, copy)
    spoil(copy)
    with pytest.raises(error):
        restore(filled, copy, force=True)
    assert texts(filled) == {GOOD[0]}
    assert [path.name for path in filled.data_dir.iterdir() if "restoring" in path.name] == []


def test_a_damaged_database_can_be_replaced(filled: Settings, tmp_path: Path) -> None:
    backup(filled, tmp_path / "copy.db")
    text_file(filled.data_dir / "bouncer.db")
    with pytest.raises(Conflict, match="--force"):
        restore(filled, tmp_path / "copy.db")
    restore(filled, tmp_path / "copy.db", force=True)
    assert texts(filled) == {GOOD[0]}


def test_a_log_left_by_a_crash_never_gets_into_the_restored_database(filled: Settings, tmp_path: Path) -> None:
    """The service was killed: its write-ahead log lies there, and belongs to the database that goes."""
    copy = tmp_path / "copy.db"
    backup(filled, copy)
    with running_service(filled.data_dir) as service:
        httpx.post(f"{service.url}/v1/reviews", json=call(GOOD[1], project="p"), trust_env=False, timeout=60)
        service.kill()
    assert (filled.data_dir / "bouncer.db-wal").exists()
    replaced = restore(filled, copy, force=True).replaced
    assert replaced is not None
    assert texts(filled) == {GOOD[0]}
    assert texts(Settings(database_url=f"sqlite:///{replaced}")) == {GOOD[0], GOOD[1]}


def test_postgresql_has_its_own_tools(tmp_path: Path) -> None:
    settings = Settings(database_url="postgresql://bouncer:hunter2@db.internal/bouncer")
    with pytest.raises(Invalid, match="pg_dump") as raised:
        backup(settings, tmp_path / "copy.db")
    assert "hunter2" not in raised.value.detail


def test_there_must_be_a_database_to_copy(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        backup(Settings(data_dir=tmp_path), tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []
