"""What is held waits with its age and reason, and ends by a decision or by the rule."""

import asyncio

import pytest

from app import held
from app.callers import LOCAL
from app.queue import Queue
from app.schemas.judging import Fault
from app.schemas.queue import DecisionIn, HeldOut
from app.schemas.vocabulary import AtCap, Verdict
from tests.queue.conftest import Hold
from tests.support.pipelines import COST, GOOD, PROJECT, Bench, ScriptedReviewer, failed, found

APPROVE = DecisionIn(verdict=Verdict.APPROVE, reason="It holds.")


def waiting(bench: Bench) -> list[HeldOut]:
    with bench.database.read() as session:
        return held.page(session, LOCAL, after=None, count=50)


async def test_a_held_text_is_listed_with_its_age_and_reason(bench: Bench, hold: Hold) -> None:
    first = await hold(GOOD[0], Fault.TIMEOUT)
    bench.clock.pass_(hours=2)
    second = await hold(GOOD[1], Fault.REFUSAL)

    one, two = waiting(bench)
    assert (one.review_id, two.review_id) == (first, second)
    assert (one.fault, two.fault, one.text) == (Fault.TIMEOUT, Fault.REFUSAL, GOOD[0])
    assert (two.since - one.since).total_seconds() == 7200
    with bench.database.read() as session:
        counts = {each.fault: (each.count, each.oldest) for each in held.counts(session, LOCAL)}
    assert counts == {Fault.TIMEOUT: (1, one.since), Fault.REFUSAL: (1, two.since)}


async def test_what_was_only_tried_is_not_kept(bench: Bench, model: ScriptedReviewer) -> None:
    model.script(failed(Fault.TIMEOUT))
    assert (await bench.review(GOOD[0], dry_run=True)).verdict is Verdict.HELD
    assert waiting(bench) == []


async def test_a_call_that_was_cut_off_is_held(bench: Bench, model: ScriptedReviewer) -> None:
    bench.execute("UPDATE call SET open_until = NULL")
    model.script(found())
    await bench.review(GOOD[0])
    bench.execute("UPDATE review SET verdict = NULL")
    bench.execute("UPDATE call SET open_until = '2026-01-01 00:00:00+00:00'")
    bench.pipeline.sweep()
    assert [item.fault for item in waiting(bench)] == [Fault.INTERRUPTED]


# --- the reviewer is back -------------------------------------------------------------------------------------------


async def test_when_the_reviewer_is_back_it_decides(bench: Bench, queue: Queue, hold: Hold) -> None:
    review_id = await hold()
    bench.clock.pass_(minutes=2)

    assert await queue.reconsider() == 1

    assert waiting(bench) == []
    (item,) = queue.news(LOCAL, PROJECT, "claude-code").items
    assert (item.review_id, item.verdict, item.text) == (review_id, Verdict.APPROVE, GOOD[0])
    assert item.text is not None
    assert item.text in item.message
    assert bench.money() == {"spent": COST, "reserved": 0, "settled": COST, "open": 0}
    (total,) = bench.rows("SELECT sum(cost_microdollars) AS cost FROM review")
    assert total["cost"] == COST


async def test_a_refusal_is_told_with_its_reason_and_the_suggested_text(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    await hold()
    model.script(found(self_contained=False, suggested_text=GOOD[1], reason="It names no system."))
    bench.clock.pass_(minutes=2)

    await queue.reconsider()

    (item,) = queue.news(LOCAL, PROJECT, "claude-code").items
    assert (item.verdict, item.text) == (Verdict.REWRITE, None)
    assert "[not_self_contained]" in item.message
    assert item.message.count(GOOD[1]) == 1


async def test_as_long_as_it_is_not_back_one_text_is_tried_and_all_wait_longer(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    for text in GOOD:
        await hold(text)
    asked = len(model.briefs)
    model.script(failed(Fault.CONNECTION))
    bench.clock.pass_(minutes=2)

    assert await queue.reconsider() == 0

    assert len(model.briefs) == asked + 1
    assert [item.fault for item in waiting(bench)] == [Fault.CONNECTION] + [Fault.OVERLOADED] * 3
    assert [item.tries for item in waiting(bench)] == [1, 0, 0, 0]
    assert await queue.reconsider() == 3, "the others are not kept back by the first"
    bench.clock.pass_(minutes=3)
    assert await queue.reconsider() == 1


@pytest.mark.parametrize("fault", [Fault.SUSPICIOUS, Fault.REPEATED_REFUSALS, Fault.REFUSAL, Fault.SCHEMA_VIOLATION])
async def test_what_is_for_people_is_left_to_them(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer, fault: Fault
) -> None:
    await hold(GOOD[0], fault)
    asked = len(model.briefs)
    bench.clock.pass_(days=3)
    assert await queue.reconsider() == 0
    assert len(model.briefs) == asked
    assert waiting(bench)[0].retry_at is None


@pytest.mark.parametrize("at_cap", [AtCap.OFFLINE, AtCap.ALLOW])
async def test_what_waits_for_the_model_is_not_let_in_or_judged_by_others_when_the_money_is_gone(
    bench: Bench, queue: Queue, hold: Hold, at_cap: AtCap
) -> None:
    await hold()
    bench.put_budget(1, at_cap=at_cap)
    bench.clock.pass_(minutes=5)
    assert await queue.reconsider() == 0
    assert [item.fault for item in waiting(bench)] == [Fault.OVERLOADED]
    bench.put_budget(10**9)
    bench.clock.pass_(hours=2)
    assert await queue.reconsider() == 1


async def test_without_budget_texts_wait_until_there_is_room(bench: Bench, queue: Queue, hold: Hold) -> None:
    await hold()
    bench.execute("UPDATE budget_window SET spent = 499999")
    bench.clock.pass_(minutes=2)
    assert await queue.reconsider() == 0
    assert [item.fault for item in waiting(bench)] == [Fault.BUDGET_EXHAUSTED]

    bench.clock.pass_(days=12)
    assert await queue.reconsider() == 0
    bench.clock.pass_(days=19)  # the next calendar month
    assert await queue.reconsider() == 1


async def test_a_text_that_was_stored_meanwhile_needs_no_telling(bench: Bench, queue: Queue, hold: Hold) -> None:
    await hold()
    await bench.store(GOOD[0])
    bench.clock.pass_(minutes=2)
    assert await queue.reconsider() == 1
    assert queue.news(LOCAL, PROJECT, "claude-code").items == []


async def test_a_person_who_decides_while_the_reviewer_thinks_again_is_right(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    review_id = await hold()
    model.hold()
    bench.clock.pass_(minutes=2)
    again = asyncio.create_task(queue.reconsider())
    await model.asked(2)
    queue.decide(LOCAL, review_id, DecisionIn(verdict=Verdict.REJECT, reason="Not here."))
    model.release()
    await again

    (review,) = [row for row in bench.rows("SELECT * FROM review") if row["id"] == review_id]
    assert (review["verdict"], review["reviewer"]) == ("reject", "person")
    assert len(bench.rows("SELECT * FROM decision")) == 1


# --- nobody decides -------------------------------------------------------------------------------------------------


async def test_after_two_weeks_it_expires_and_is_told_never_stored(bench: Bench, queue: Queue, hold: Hold) -> None:
    review_id = await hold(GOOD[0], Fault.REFUSAL)
    bench.clock.pass_(days=13)
    assert queue.expire() == 0
    bench.clock.pass_(days=2)
    assert queue.expire() == 1

    assert waiting(bench) == []
    (item,) = queue.news(LOCAL, PROJECT, "claude-code").items
    assert (item.review_id, item.verdict, item.text) == (review_id, Verdict.EXPIRED, None)
    (row,) = bench.rows("SELECT * FROM review")
    assert (row["verdict"], row["text"]) == ("expired", GOOD[0])
    assert bench.entries() == []
    assert queue.expire() == 0


async def test_what_expired_may_still_be_decided(bench: Bench, queue: Queue, hold: Hold) -> None:
    review_id = await hold(GOOD[0], Fault.REFUSAL)
    bench.clock.pass_(days=15)
    queue.expire()
    review = queue.decide(LOCAL, review_id, APPROVE)
    assert [decision.earlier.verdict for decision in review.decisions] == [Verdict.HELD, Verdict.EXPIRED]
    (item,) = queue.news(LOCAL, PROJECT, "claude-code").items
    assert item.verdict is Verdict.APPROVE
