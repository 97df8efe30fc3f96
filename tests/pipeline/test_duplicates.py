"""Equal texts: refused across sessions, a retry within one, and never a trap for the agent."""

import pytest

from app.schemas.vocabulary import Reason, Verdict
from tests.support.pipelines import GOOD, SLOP, Bench


async def test_a_stored_text_is_a_duplicate_for_every_session(bench: Bench) -> None:
    entry_id = await bench.store(GOOD[0])
    for session in ("s1", "s2"):
        (review,) = (await bench.review(GOOD[0], session=session)).reviews
        assert (review.verdict, review.reasons, review.entry_id) == (Verdict.DUPLICATE, [Reason.DUPLICATE], entry_id)
    assert len(bench.entries()) == 1


@pytest.mark.parametrize(
    "variant",
    [
        GOOD[0].upper(),
        f"  - {GOOD[0].removesuffix('.')}  ",
        GOOD[0].replace(" ", "\n", 3),
        GOOD[0].replace("payment", "ｐａｙｍｅｎｔ"),
    ],
)
async def test_case_spaces_list_marks_and_unicode_forms_make_no_other_text(bench: Bench, variant: str) -> None:
    await bench.store(GOOD[0])
    assert (await bench.review(variant)).verdict is Verdict.DUPLICATE


async def test_the_same_session_may_offer_a_pending_text_again(bench: Bench) -> None:
    first = await bench.review(GOOD[0])
    again = await bench.review(GOOD[0])
    assert (first.verdict, again.verdict) == (Verdict.APPROVE, Verdict.APPROVE)
    assert first.reviews[0].id != again.reviews[0].id
    (entry,) = bench.entries()
    assert entry["review_id"] == again.reviews[0].id


async def test_a_pending_text_refuses_other_sessions_until_it_expires(bench: Bench) -> None:
    await bench.review(GOOD[0], session="s1")
    assert (await bench.review(GOOD[0], session="s2")).verdict is Verdict.DUPLICATE
    bench.clock.pass_(minutes=9, seconds=59)
    assert (await bench.review(GOOD[0], session="s2")).verdict is Verdict.DUPLICATE
    bench.clock.pass_(seconds=2)
    assert (await bench.review(GOOD[0], session="s2")).verdict is Verdict.APPROVE
    (entry,) = bench.entries()
    assert (entry["status"], entry["session_id"]) == ("pending", "s2")


async def test_how_long_a_text_stays_pending_can_be_set(tmp_path: object) -> None:
    bench = Bench(tmp_path, pending_minutes=1)  # type: ignore[arg-type]
    await bench.review(GOOD[0], session="s1")
    bench.clock.pass_(seconds=61)
    assert (await bench.review(GOOD[0], session="s2")).verdict is Verdict.APPROVE
    await bench.close()


async def test_an_unconfirmed_entry_refuses_nobody_and_comes_back_to_life(bench: Bench) -> None:
    first = await bench.review(GOOD[0], session="s1")
    bench.index.report_failed(first.reviews[0].id)
    assert bench.entries()[0]["status"] == "unconfirmed"
    second = await bench.review(GOOD[0], session="s2")
    assert second.verdict is Verdict.APPROVE
    (entry,) = bench.entries()
    assert (entry["status"], entry["review_id"]) == ("pending", second.reviews[0].id)


async def test_a_deleted_text_may_be_stored_again(bench: Bench) -> None:
    bench.index.delete_entry(await bench.store(GOOD[0]))
    assert (await bench.review(GOOD[0])).verdict is Verdict.APPROVE
    assert [entry["status"] for entry in bench.entries()] == ["deleted", "pending"]


# --- several texts in one call ------------------------------------------------------------------------------------


async def test_one_refused_text_keeps_the_whole_call_from_becoming_pending(bench: Bench) -> None:
    answer = await bench.review(GOOD[0], SLOP, GOOD[1])
    assert answer.verdict is Verdict.REJECT
    assert [review.verdict for review in answer.reviews] == [Verdict.APPROVE, Verdict.REJECT, Verdict.APPROVE]
    assert [review.position for review in answer.reviews] == [0, 1, 2]
    assert bench.entries() == []


async def test_the_good_texts_of_a_refused_call_pass_when_they_come_again(bench: Bench) -> None:
    await bench.review(GOOD[0], SLOP, session="s1")
    assert (await bench.review(GOOD[0], session="s1")).verdict is Verdict.APPROVE
    assert (await bench.review(GOOD[1], SLOP, session="s2")).verdict is Verdict.REJECT
    assert (await bench.review(GOOD[1], session="s1")).verdict is Verdict.APPROVE


async def test_an_approved_call_makes_an_entry_of_each_text(bench: Bench) -> None:
    answer = await bench.review(*GOOD[:3])
    assert answer.verdict is Verdict.APPROVE
    assert [(entry["text"], entry["status"]) for entry in bench.entries()] == [(text, "pending") for text in GOOD[:3]]
    assert [review.entry_id for review in answer.reviews] == [entry["id"] for entry in bench.entries()]


async def test_the_same_text_twice_in_one_call_is_a_duplicate_of_itself(bench: Bench) -> None:
    answer = await bench.review(GOOD[0], GOOD[0].upper())
    assert [review.verdict for review in answer.reviews] == [Verdict.APPROVE, Verdict.DUPLICATE]
    assert answer.reviews[1].entry is None
    assert "twice in this call" in answer.reviews[1].message
    assert bench.entries() == []
