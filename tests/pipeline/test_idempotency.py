"""The same call is judged once and charged once, however often it is sent."""

import asyncio

import pytest

from app.callers import LOCAL
from app.errors import Conflict, Unavailable
from app.schemas.vocabulary import Verdict
from tests.support.pipelines import COST, GOOD, SLOP, Bench, ScriptedReviewer


async def test_the_same_call_again_gets_the_same_review(bench: Bench) -> None:
    request = bench.request(GOOD[0], SLOP, call="c1")
    first = await bench.pipeline.review(LOCAL, request)
    bench.clock.pass_(hours=1)
    again = await bench.pipeline.review(LOCAL, request)
    assert (first.replayed, again.replayed) == (False, True)
    assert (again.verdict, again.reviews) == (first.verdict, first.reviews)
    assert len(bench.rows("SELECT id FROM review")) == 2


async def test_a_repeated_call_is_approved_again_though_its_entry_is_there(bench: Bench) -> None:
    request = bench.request(GOOD[0], call="c1")
    await bench.pipeline.review(LOCAL, request)
    again = await bench.pipeline.review(LOCAL, request)
    assert (again.verdict, again.replayed, len(bench.entries())) == (Verdict.APPROVE, True, 1)
    assert again.context is not None


async def test_another_content_under_a_used_call_id_is_a_conflict(bench: Bench) -> None:
    await bench.review(GOOD[0], call="c1")
    for change in ({"store": "engram"}, {"project": "elsewhere"}, {"dry_run": True}):
        with pytest.raises(Conflict):
            await bench.review(GOOD[0], call="c1", **change)
    with pytest.raises(Conflict):
        await bench.review(GOOD[1], call="c1")


async def test_how_long_the_caller_waits_is_no_part_of_the_content(bench: Bench) -> None:
    await bench.review(GOOD[0], call="c1", deadline_seconds=7)
    assert (await bench.review(GOOD[0], call="c1", deadline_seconds=3)).replayed


async def test_call_ids_belong_to_their_session(bench: Bench) -> None:
    first = await bench.review(GOOD[0], call="c1", session="s1")
    other = await bench.review(GOOD[1], call="c1", session="s2")
    assert first.reviews[0].id != other.reviews[0].id


async def test_a_repeated_call_is_charged_once(paid: Bench, model: ScriptedReviewer) -> None:
    request = paid.request(GOOD[0], call="c1")
    first = await paid.pipeline.review(LOCAL, request)
    again = await paid.pipeline.review(LOCAL, request)
    assert first.reviews == again.reviews
    assert len(model.briefs) == 1
    assert paid.money() == {"spent": COST, "reserved": 0, "settled": COST, "open": 0}


async def test_a_retry_while_the_model_is_thinking_waits_for_the_same_review(
    paid: Bench, model: ScriptedReviewer
) -> None:
    model.hold()
    request = paid.request(GOOD[0], call="c1")
    first = asyncio.create_task(paid.pipeline.review(LOCAL, request))
    await model.asked()
    retry = asyncio.create_task(paid.pipeline.review(LOCAL, request))
    done, _ = await asyncio.wait({retry}, timeout=0.2)
    assert not done
    model.release()
    one, two = await asyncio.gather(first, retry)
    assert one.reviews == two.reviews
    assert (one.replayed, two.replayed) == (False, True)
    assert len(model.briefs) == 1
    assert paid.money()["spent"] == COST


async def test_a_retry_that_can_wait_no_longer_is_told_to_ask_again(paid: Bench, model: ScriptedReviewer) -> None:
    model.hold()
    first = asyncio.create_task(paid.review(GOOD[0], call="c1"))
    await model.asked()
    with pytest.raises(Unavailable, match="still being judged"):
        await paid.review(GOOD[0], call="c1", deadline_seconds=0.1)
    model.release()
    assert (await first).verdict is Verdict.APPROVE


async def test_the_same_call_sent_at_once_by_several_is_written_once(bench: Bench) -> None:
    request = bench.request(GOOD[0], call="c1")
    answers = await asyncio.gather(*(bench.pipeline.review(LOCAL, request) for _ in range(8)))
    assert len({answer.reviews[0].id for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1
    assert len(bench.rows("SELECT id FROM call")) == 1


async def test_the_same_paid_call_sent_at_once_by_several_is_charged_once(paid: Bench, model: ScriptedReviewer) -> None:
    request = paid.request(GOOD[0], call="c1")
    answers = await asyncio.gather(*(paid.pipeline.review(LOCAL, request) for _ in range(8)))
    assert len({answer.reviews[0].id for answer in answers}) == 1
    assert len(model.briefs) == 1
    assert paid.money() == {"spent": COST, "reserved": 0, "settled": COST, "open": 0}
