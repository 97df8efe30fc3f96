"""The spend cap: exact for every sequence of reservations, settlements and lapses."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import budget
from app.db import Database
from app.models import Call, Project
from tests.support.pipelines import Bench

NOW = datetime(2026, 3, 31, 23, 59, tzinfo=UTC)
NEXT_MONTH = datetime(2026, 4, 1, tzinfo=UTC)


def reserve(database: Database, call: str, amount: int, limit: int = 1_000, now: datetime = NOW) -> bool:
    """Set an amount aside for a call, which is written down first."""
    with database.write() as session:
        if session.get(Project, "p") is None:
            session.add(Project(id="p", name="p", created_at=now))
            session.flush()
        session.add(Call(id=call, project_id="p", session_id="s", tool_call_id=call, request_hash="", created_at=now))
        session.flush()
        return budget.reserve(
            session, call_id=call, amount=amount, limit=limit, now=now, expires_at=now + timedelta(minutes=1)
        )


def settle(database: Database, call: str, cost: int, now: datetime = NOW) -> None:
    """Settle a call."""
    with database.write() as session:
        budget.settle(session, call_id=call, cost=cost, now=now)


def expire(database: Database, now: datetime) -> int:
    """Release what nobody settled in time."""
    with database.write() as session:
        return budget.expire(session, now)


def spending(database: Database, now: datetime = NOW) -> tuple[int, int]:
    """What is spent and reserved in the window of a moment."""
    with database.read() as session:
        found = budget.spending(session, limit=1_000, now=now)
    assert found.starts_at == budget.window_start(now)
    return found.spent, found.reserved


async def test_a_reservation_is_granted_up_to_the_limit_and_not_beyond(bench: Bench) -> None:
    assert reserve(bench.database, "a", 600)
    assert not reserve(bench.database, "b", 401)
    assert reserve(bench.database, "c", 400)
    assert spending(bench.database) == (0, 1_000)


async def test_settling_frees_the_rest_of_a_reservation(bench: Bench) -> None:
    reserve(bench.database, "a", 600)
    settle(bench.database, "a", 150)
    assert spending(bench.database) == (150, 0)
    assert reserve(bench.database, "b", 850)


async def test_settling_with_nothing_releases_it_and_settling_the_unknown_is_no_error(bench: Bench) -> None:
    reserve(bench.database, "a", 600)
    settle(bench.database, "a", 0)
    settle(bench.database, "nobody", 50)
    assert spending(bench.database) == (0, 0)


async def test_a_new_window_begins_with_the_month_and_the_old_one_is_settled_where_it_was_reserved(
    bench: Bench,
) -> None:
    assert reserve(bench.database, "a", 1_000)
    assert not reserve(bench.database, "b", 1)
    assert reserve(bench.database, "c", 1_000, now=NEXT_MONTH)
    settle(bench.database, "a", 700, now=NEXT_MONTH)
    assert spending(bench.database) == (700, 0)
    assert spending(bench.database, NEXT_MONTH) == (0, 1_000)


async def test_before_the_first_call_of_a_window_nothing_is_spent(bench: Bench) -> None:
    assert spending(bench.database) == (0, 0)


async def test_what_nobody_settled_lapses_once(bench: Bench) -> None:
    reserve(bench.database, "a", 600)
    assert expire(bench.database, NOW + timedelta(seconds=59)) == 0
    assert expire(bench.database, NOW + timedelta(seconds=61)) == 1
    assert expire(bench.database, NOW + timedelta(seconds=61)) == 0
    assert spending(bench.database) == (0, 0)


async def test_a_cost_that_arrives_after_the_lapse_is_counted(bench: Bench) -> None:
    reserve(bench.database, "a", 600)
    expire(bench.database, NOW + timedelta(minutes=2))
    settle(bench.database, "a", 150)
    assert spending(bench.database) == (150, 0)
    assert bench.money() == {"spent": 150, "reserved": 0, "settled": 150, "open": 0}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 400)),
        st.tuples(st.just("settle"), st.integers(0, 400)),
        st.tuples(st.just("wait"), st.integers(0, 90)),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(steps=steps)
def test_the_windows_are_the_sum_of_the_ledger_and_promises_never_pass_the_limit(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As long as no call costs more than was set aside for it, spending never passes the limit."""
    bench = Bench(tmp_path_factory.mktemp("budget"))
    now, open_ = NOW, dict[str, int]()
    for number, (step, value) in enumerate(steps):
        if step == "reserve" and reserve(bench.database, f"c{number}", value, now=now):
            open_[f"c{number}"] = value
        elif step == "settle" and open_:
            call, reserved = open_.popitem()
            settle(bench.database, call, min(value, reserved), now)
        elif step == "wait":
            now += timedelta(seconds=value)
            if expire(bench.database, now):
                open_.clear()
        money = bench.money()
        assert (money["spent"], money["reserved"]) == (money["settled"], money["open"])
        for window in bench.rows("SELECT spent, reserved FROM budget_window"):
            assert min(window.values()) >= 0
            assert sum(window.values()) <= 1_000
    bench.database.close()
