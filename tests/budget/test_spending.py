"""Money is set aside, settled and freed to the micro-dollar, in every budget that covers a call or in none."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event

from app.budget import NoRoom, Payer, strictest
from app.db import Database
from app.schemas.vocabulary import AtCap, Period
from tests.support.purse import HERE, LEASE, Purse

ALICE = Payer(project="p", key_id="alice")
ELSEWHERE = Payer(project="q", key_id="bob")


def test_a_reservation_is_granted_up_to_the_limit_and_not_beyond(purse: Purse) -> None:
    purse.put(1_000)
    purse.granted(600)
    purse.refused(401)
    purse.granted(400)
    assert purse.sums() == (0, 1_000)


def test_settling_frees_the_rest_of_a_reservation(purse: Purse) -> None:
    purse.put(1_000)
    reservation = purse.granted(600)
    purse.settle(reservation, 150)
    assert purse.sums() == (150, 0)
    purse.granted(850)


def test_settling_with_nothing_releases_a_reservation(purse: Purse) -> None:
    purse.put(1_000)
    purse.settle(purse.granted(600), 0)
    assert purse.sums() == (0, 0)


def test_settling_twice_charges_once(purse: Purse) -> None:
    """An answer of the database that was lost makes the service say it again."""
    purse.put(1_000)
    reservation = purse.granted(600)
    for _ in range(2):
        purse.settle(reservation, 150)
    assert purse.sums() == (150, 0)


# --- several budgets ----------------------------------------------------------------------------------------------


def test_every_budget_that_covers_a_call_is_charged_and_no_other(purse: Purse) -> None:
    purse.put(1_000)
    purse.put(1_000, Period.DAY)
    purse.put(1_000, project="p")
    purse.put(1_000, project="q")
    purse.put(1_000, key="alice")
    purse.put(1_000, key="bob")
    purse.settle(purse.granted(500, ALICE), 200)
    charged = {(out.period, out.subject) for out in purse.all() if out.spent_microdollars == 200}
    assert charged == {(Period.MONTH, None), (Period.DAY, None), (Period.MONTH, "p"), (Period.MONTH, "alice")}
    assert sum(out.spent_microdollars for out in purse.all()) == 4 * 200


def test_all_or_none(purse: Purse) -> None:
    """Whichever of them has no room, the others are as they were."""
    small = {"key": {"key": "alice"}, "project": {"project": "p"}, "team": {}}
    for name in small:
        for other, scope in small.items():
            purse.put(100 if other == name else 1_000, **scope)  # type: ignore[arg-type]
        no_room = purse.refused(101, ALICE)
        assert [cover.scope for cover in no_room.covers] == [name]
        assert {out.reserved_microdollars for out in purse.all()} == {0}


def test_a_caller_without_a_key_draws_on_no_keys_budget(purse: Purse) -> None:
    purse.put(0, key="alice")
    assert purse.refused(1, HERE).covers == []
    purse.put(10)
    purse.granted(1, HERE)
    purse.refused(1, ALICE)


def test_without_a_budget_that_covers_it_a_call_finds_no_room(purse: Purse) -> None:
    purse.put(1_000, project="q")
    assert purse.refused(1, HERE).covers == []
    purse.granted(1, ELSEWHERE)


def test_what_costs_nothing_needs_no_budget(purse: Purse) -> None:
    purse.settle(purse.granted(0), 0)
    purse.put(0)
    purse.granted(0)


@pytest.mark.parametrize(
    ("team", "project", "then"),
    [
        (AtCap.HOLD, AtCap.ALLOW, AtCap.HOLD),
        (AtCap.ALLOW, AtCap.HOLD, AtCap.HOLD),
        (AtCap.ALLOW, AtCap.OFFLINE, AtCap.OFFLINE),
        (AtCap.ALLOW, AtCap.ALLOW, AtCap.ALLOW),
    ],
)
def test_the_strictest_of_those_without_room_decides_what_happens_then(
    purse: Purse, team: AtCap, project: AtCap, then: AtCap
) -> None:

    purse.put(10, at_cap=team)
    purse.put(10, project="p", at_cap=project)
    purse.put(1_000, Period.DAY, at_cap=AtCap.HOLD)
    assert strictest(purse.refused(11).covers) is then


def test_a_refusal_tells_the_numbers_that_prove_it(purse: Purse) -> None:
    purse.put(1_000)
    purse.settle(purse.granted(500), 300)
    purse.granted(400)
    no_room = purse.refused(301)
    (shortage,) = no_room.shortages
    assert (shortage.taken, shortage.cover.limit, no_room.wanted) == (700, 1_000, 301)
    assert "700 of 1000" in str(no_room)


# --- windows ------------------------------------------------------------------------------------------------------


def test_a_new_window_begins_and_the_old_one_is_settled_where_it_was_reserved(purse: Purse) -> None:
    purse.put(1_000)
    late = purse.granted(1_000)
    purse.refused(1)
    purse.pass_(minutes=1)
    purse.granted(1_000)
    purse.settle(late, 700)
    assert purse.sums() == (0, 1_000)
    purse.now -= timedelta(minutes=1)
    assert purse.sums() == (700, 0)


@pytest.mark.parametrize(
    ("period", "last", "first"),
    [
        (Period.DAY, datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)),
        (Period.WEEK, datetime(2026, 4, 5, 23, 59, 59, tzinfo=UTC), datetime(2026, 4, 6, tzinfo=UTC)),
        (Period.WEEK, datetime(2027, 1, 3, 23, 59, 59, tzinfo=UTC), datetime(2027, 1, 4, tzinfo=UTC)),
        (Period.MONTH, datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)),
        (Period.MONTH, datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_window_ends_with_the_calendars_period(purse: Purse, period: Period, last: datetime, first: datetime) -> None:
    purse.now = last
    purse.put(10, period)
    purse.granted(10)
    purse.refused(1)
    assert purse.the(period).ends_at == first
    purse.now = first
    purse.granted(10)
    assert purse.the(period).starts_at == first


def test_a_total_never_begins_anew(purse: Purse) -> None:
    purse.put(10, Period.TOTAL)
    purse.settle(purse.granted(10), 10)
    purse.pass_(days=4_000)
    purse.refused(1)
    assert (purse.the(Period.TOTAL).starts_at, purse.the(Period.TOTAL).ends_at) == (None, None)


# --- lapsed reservations ------------------------------------------------------------------------------------------


def test_what_nobody_settled_lapses_once(purse: Purse) -> None:
    purse.put(1_000)
    purse.put(1_000, project="p")
    purse.granted(600)
    purse.now += LEASE
    assert purse.expire() == 0
    purse.pass_(seconds=1)
    assert (purse.expire(), purse.expire()) == (1, 0)
    assert purse.sums() == purse.sums(subject="p") == (0, 0)


def test_a_cost_that_arrives_after_the_lapse_is_counted_once(purse: Purse) -> None:
    purse.put(1_000)
    reservation = purse.granted(600)
    purse.now += 2 * LEASE
    purse.expire()
    for _ in range(2):
        purse.settle(reservation, 150)
    assert [window.spent_microdollars for window in purse.report().windows] == [150]
    assert purse.report().reserved_microdollars == 0


def test_a_lapse_does_not_touch_what_was_settled(purse: Purse) -> None:
    purse.put(1_000)
    purse.settle(purse.granted(600), 600)
    purse.now += 2 * LEASE
    assert purse.expire() == 0


# --- warnings -----------------------------------------------------------------------------------------------------


def test_a_budget_warns_once_a_window(purse: Purse) -> None:
    purse.put(1_000, Period.DAY)
    purse.put(10_000)
    told = [purse.settle(purse.granted(200), 200) for _ in range(5)]
    assert told == [[], [], [], ["the team's daily budget"], []]
    assert (purse.the(Period.DAY).state, purse.the().state) == ("warned", "ok")
    purse.pass_(minutes=1)
    told = [purse.settle(purse.granted(400), 400) for _ in range(2)]
    assert told == [[], ["the team's daily budget"]]


def test_the_share_that_warns_can_be_chosen(purse: Purse) -> None:
    purse.put(1_000, warn_percent=10)
    assert purse.settle(purse.granted(200), 99) == []
    assert purse.settle(purse.granted(200), 1) == ["the team's monthly budget"]


def test_being_at_the_cap_is_told_until_there_is_room_again(purse: Purse) -> None:
    purse.put(1_000)
    purse.settle(purse.granted(700), 700)
    assert purse.the().state == "ok"
    purse.refused(400)
    purse.refused(400)
    assert (purse.the().state, purse.the().refused, purse.the().left_microdollars) == ("at_cap", 2, 300)
    purse.put(2_000)
    assert (purse.the().state, purse.the().refused) == ("ok", 2)


def test_a_refusal_in_a_window_without_spending_is_told_too(purse: Purse) -> None:
    purse.put(100)
    purse.refused(101)
    assert (purse.the().state, purse.the().refused) == ("at_cap", 1)


# --- few statements -----------------------------------------------------------------------------------------------


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """The statements that are sent within the block."""
    sent: list[str] = []

    def note(*about: object) -> None:
        sent.append(str(about[2]))

    event.listen(database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("scopes", [1, 3])
def test_reserving_and_settling_take_few_statements(purse: Purse, scopes: int) -> None:
    for whose in ({}, {"project": "p"}, {"key": "alice"})[:scopes]:
        purse.put(1_000_000, **whose)  # type: ignore[arg-type]
    purse.settle(purse.granted(10, ALICE), 10)  # opens the windows
    with statements(purse.database) as sent:
        reservation = purse.granted(10, ALICE)
        reserving = [s for s in sent if "INTO call" not in s and not s.startswith("BEGIN")]
    assert len(reserving) <= 2 + scopes, reserving
    with statements(purse.database) as sent:
        purse.settle(reservation, 10)
        settling = [s for s in sent if not s.startswith("BEGIN")]
    assert len(settling) <= 1 + scopes, settling
    assert not isinstance(purse.reserve(1, ALICE), NoRoom)
