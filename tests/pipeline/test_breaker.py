"""The breaker by itself: how often callers may ask, and when a failing service is left alone."""

from datetime import UTC, datetime, timedelta

import pytest

from app.breaker import OUTAGES, Breaker
from app.schemas.judging import Fault
from tests.support.pipelines import Clock

COOL_DOWN = timedelta(seconds=30)
ME = ("key k", "project p")


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 3, 14, 9, 30, tzinfo=UTC))


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(clock, calls_per_minute=10, failures=3, cool_down=COOL_DOWN)


def test_each_key_and_each_project_has_its_own_count(breaker: Breaker) -> None:
    assert breaker.admit(("key a", "project p"), 6) is None
    assert breaker.admit(("key b", "project p"), 5) is Fault.TOO_MANY_CALLS
    assert breaker.admit(("key b", "project q"), 5) is None
    assert breaker.admit(("key a", "project q"), 4) is None
    assert breaker.admit(("key a", "project r"), 1) is Fault.TOO_MANY_CALLS


def test_a_new_minute_begins_with_nothing(breaker: Breaker, clock: Clock) -> None:
    assert breaker.admit(ME, 10) is None
    clock.pass_(seconds=59)
    assert breaker.admit(ME, 1) is Fault.TOO_MANY_CALLS
    clock.pass_(seconds=1)
    assert breaker.admit(ME, 10) is None


def test_what_is_given_back_can_be_used(breaker: Breaker) -> None:
    assert breaker.admit(ME, 10) is None
    breaker.give_back(ME, 10)
    assert breaker.admit(ME, 10) is None


def test_a_call_with_more_texts_than_the_limit_passes_alone(breaker: Breaker) -> None:
    assert breaker.admit(ME, 64) is None
    assert breaker.admit(ME, 1) is Fault.TOO_MANY_CALLS


def test_no_limit_is_none(clock: Clock) -> None:
    breaker = Breaker(clock)
    assert {breaker.admit(ME, 64) for _ in range(1_000)} == {None}


def test_failures_in_a_row_open_the_circuit_and_one_call_tries_after_the_cool_down(
    breaker: Breaker, clock: Clock
) -> None:
    for _ in range(3):
        assert breaker.admit(ME, 1) is None
        breaker.learn(Fault.OVERLOADED)
    assert (breaker.state, breaker.admit(ME, 1)) == ("open", Fault.CIRCUIT_OPEN)
    clock.at += COOL_DOWN
    assert breaker.state == "half_open"
    assert [breaker.admit(ME, 1) for _ in range(3)] == [None, Fault.CIRCUIT_OPEN, Fault.CIRCUIT_OPEN]
    breaker.learn(None)
    assert (breaker.state, breaker.admit(ME, 1)) == ("closed", None)


def test_a_call_that_tried_and_never_came_back_does_not_keep_it_open(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        breaker.learn(Fault.CONNECTION)
    for _ in range(3):
        clock.at += COOL_DOWN
        assert breaker.admit(ME, 1) is None


def test_a_call_that_was_let_through_and_not_made_lets_another_try(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        breaker.learn(Fault.CONNECTION)
    clock.at += COOL_DOWN
    assert breaker.admit(ME, 1) is None
    breaker.give_back(ME, 1)
    assert breaker.admit(ME, 1) is None


def test_failures_far_apart_open_nothing(breaker: Breaker, clock: Clock) -> None:
    for _ in range(9):
        breaker.learn(Fault.OVERLOADED)
        clock.pass_(seconds=31)
    assert breaker.state == "closed"


@pytest.mark.parametrize("fault", sorted({None, *Fault} - OUTAGES, key=str))
def test_what_is_no_outage_opens_nothing(breaker: Breaker, fault: Fault | None) -> None:
    for _ in range(9):
        breaker.learn(fault)
    assert breaker.state == "closed"


def test_a_clock_that_is_set_back_keeps_nothing_open(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        breaker.learn(Fault.OVERLOADED)
    clock.pass_(days=-1)
    assert breaker.admit(ME, 1) is None
