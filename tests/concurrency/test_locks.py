"""What PostgreSQL lets writers do at once, and SQLite does not: each waits where it must, and not for ever."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from app import budget, entries, projects
from app.budget import Payer, Reservation
from app.callers import LOCAL
from app.models import Call
from app.schemas.entries import EntryIn
from app.schemas.vocabulary import Category, Period
from tests.support.http_service import call, http_service
from tests.support.pipelines import GOOD, PROJECT, Bench
from tests.support.purse import LEASE, Purse

pytestmark = pytest.mark.postgres
PATIENCE = 20.0


@pytest.fixture
def bench(tmp_path: Path, postgres_url: str) -> Iterator[Bench]:
    bench = Bench(tmp_path, database_url=postgres_url)
    yield bench
    bench.database.close()


def until_somebody_waits(bench: Bench) -> None:
    """Return when a transaction waits for another one's lock."""
    give_up = time.monotonic() + PATIENCE
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not bench.rows(waiting):
        assert time.monotonic() < give_up, "nobody waits"
        time.sleep(0.01)


@pytest.fixture
def purse(postgres_url: str) -> Iterator[Purse]:
    purse = Purse(postgres_url)
    purse.put(1_000)
    yield purse
    purse.database.close()


def test_a_reservation_that_lapses_while_it_is_settled_is_freed_once(bench: Bench, purse: Purse) -> None:
    reservation = purse.granted(900)
    with ThreadPoolExecutor(1) as pool:
        with purse.database.write() as session:
            assert budget.expire(session, purse.now + 2 * LEASE) == 1
            settled = pool.submit(purse.settle, reservation, 150)
            until_somebody_waits(bench)
        settled.result(PATIENCE)
    assert bench.money() == {"spent": 150, "reserved": 0, "settled": 150, "open": 0}


def test_what_is_being_settled_is_passed_over_by_those_who_look_for_lapsed_reservations(
    bench: Bench, purse: Purse
) -> None:
    reservation, forgotten = purse.granted(400), purse.granted(500)
    with purse.database.write() as session:
        budget.settle(session, reservation, cost=150, now=purse.now)
        with ThreadPoolExecutor(1) as pool:
            purse.now += 2 * LEASE
            expired = pool.submit(purse.expire)
            until_somebody_waits(bench)  # for the window, not for the ledger's line
            session.commit()
            assert expired.result(PATIENCE) == 1
    assert purse.settle(forgotten, 0) == []
    assert bench.money() == {"spent": 150, "reserved": 0, "settled": 150, "open": 0}


def test_a_refusal_is_right_even_if_room_comes_while_it_is_found(bench: Bench, purse: Purse) -> None:
    """Who finds no room waits for whoever is changing the window, and takes the room that comes of it."""
    reservation = purse.granted(900)
    with ThreadPoolExecutor(1) as pool:
        with purse.database.write() as session:
            budget.settle(session, reservation, cost=150, now=purse.now)
            asked = pool.submit(purse.reserve, 800)
            until_somebody_waits(bench)
        assert isinstance(asked.result(PATIENCE), Reservation)
    assert purse.sums() == (150, 800)


def test_deleting_an_entry_waits_its_turn_instead_of_blocking_who_holds_the_project(bench: Bench) -> None:
    entry = bench.index.add_entry(EntryIn(project=PROJECT, category=Category.RULE, text=GOOD[0]))
    with ThreadPoolExecutor(1) as pool:
        with bench.database.write() as session:
            project = projects.locked(session, LOCAL, PROJECT, bench.clock())
            deleted = pool.submit(bench.index.delete_entry, entry.id)
            until_somebody_waits(bench)
            entries.delete(session, entry.id, bench.clock())
        deleted.result(PATIENCE)
    assert [row["status"] for row in bench.entries()] == ["deleted"]
    assert project.revision == 1
    assert [row["revision"] for row in bench.rows("SELECT revision FROM project")] == [2]


def test_a_call_can_be_written_down_while_its_project_is_locked(bench: Bench) -> None:
    """A reference to the project is no change of its entries."""
    now = bench.clock()
    with bench.database.write() as session:
        project = projects.ensure(session, LOCAL, PROJECT, now)
    with bench.database.write() as holder:
        projects.lock(holder, project.id)
        with bench.database.write() as session:
            session.add(
                Call(id="c", project_id=project.id, session_id="s", tool_call_id="c", request_hash="", created_at=now)
            )
    assert len(bench.rows("SELECT id FROM call")) == 1


def test_a_reader_keeps_its_snapshot(bench: Bench) -> None:
    with bench.database.write() as session:
        project = projects.ensure(session, LOCAL, PROJECT, bench.clock())
    with bench.database.read() as session:
        before = projects.get(session, project.id)
        bench.index.add_entry(EntryIn(project=PROJECT, category=Category.RULE, text=GOOD[0]))
        assert projects.get(session, project.id) == before
        assert entries.page(session, LOCAL, project_id=None, category=None, status=None, before=None, count=9) == []


def test_a_project_that_stays_locked_is_told_and_others_go_on(tmp_path: Path, postgres_url: str) -> None:
    body = call(GOOD[0], project="p", deadline_seconds=1)
    with http_service(tmp_path, database_url=postgres_url, busy_timeout_seconds=0.3) as client:
        client.put("/v1/projects/p", json={"level": "offline"}).raise_for_status()
        with psycopg.connect(postgres_url.replace("+psycopg", "")) as holder:
            holder.execute("SELECT id FROM project WHERE name = 'p' FOR UPDATE")
            assert client.post("/v1/reviews", json=body).status_code == 503
            assert client.post("/v1/reviews", json=call(GOOD[1], project="other")).json()["verdict"] == "approve"
            assert client.get("/v1/entries").status_code == 200
        assert client.post("/v1/reviews", json=body).json()["verdict"] == "approve"


def test_payers_of_crossing_budgets_never_wait_in_a_circle(purse: Purse) -> None:
    """Each call holds several windows at once, opens new ones, and settles while others lapse and limits change."""
    for period in (Period.DAY, Period.TOTAL):
        for subject in ({}, {"project": "p"}, {"project": "q"}, {"key": "a"}, {"key": "b"}):
            purse.put(10**9, period, **subject)
    payers = [Payer(project, key) for project in ("p", "q") for key in ("a", "b", None)]

    def spend(place: int) -> int:
        cost = 0
        for number in range(12):
            reservation = purse.granted(500, payers[(place + number) % len(payers)])
            if number % 4 == 3:
                purse.pass_(hours=5)  # into new windows, and past what others have reserved
                purse.expire()
                purse.put(10**9 + number, Period.DAY)
            purse.settle(reservation, number)
            cost += number
        return cost

    purse.put(10**9)
    with ThreadPoolExecutor(6) as pool:
        costs = sum(pool.map(spend, range(6)))
    report = purse.report()
    assert [d for d in report.differences if d.what != "call"] == []
    assert report.reserved_microdollars == 0
    ever = [w for w in report.windows if (w.scope, w.period) == ("team", "total")]
    assert [window.spent_microdollars for window in ever] == [costs]
