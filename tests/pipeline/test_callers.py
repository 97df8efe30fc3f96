"""Sessions belong to their key: retries, updates and refusals of another's session of the same id count for nothing."""

from app.callers import Caller
from app.schemas.reviews import Candidate
from app.schemas.vocabulary import Operation, Role, Verdict
from tests.support.pipelines import GOOD, Bench, ScriptedReviewer, found

ANN, BEN = Caller("ann", Role.MEMBER), Caller("ben", Role.MEMBER)
NEAR = tuple(f"{GOOD[0]} Seen {number} times so far." for number in range(5))


async def test_what_another_key_has_pending_is_no_retry(bench: Bench) -> None:
    assert (await bench.review_for(ANN, GOOD[0])).verdict is Verdict.APPROVE
    assert (await bench.review_for(BEN, GOOD[0])).verdict is Verdict.DUPLICATE
    assert (await bench.review_for(ANN, GOOD[0])).verdict is Verdict.APPROVE


async def test_the_entry_and_each_of_its_versions_name_the_key_that_proposed_them(bench: Bench) -> None:
    first = (await bench.review_for(ANN, GOOD[0], store="engram")).reviews[0]
    bench.index.report_stored(first.id, "mem-1")
    update = Candidate(text=GOOD[1], store_id="mem-1")
    second = (await bench.review_for(BEN, update, store="engram", operation=Operation.UPDATE)).reviews[0]
    assert second.verdict is Verdict.APPROVE
    bench.index.report_stored(second.id, "mem-1")
    (entry,) = bench.entries()
    assert (entry["text"], entry["key_id"]) == (GOOD[1], "ben")
    versions = bench.rows("SELECT version, key_id FROM entryversion ORDER BY version")
    assert [(row["version"], row["key_id"]) for row in versions] == [(1, "ann"), (2, "ben")]
    assert [row["key_id"] for row in bench.rows("SELECT key_id FROM review ORDER BY id")] == ["ann", "ben"]


async def test_a_pending_update_of_another_key_goes_first(bench: Bench) -> None:
    await bench.store(GOOD[0], "mem-1", store="engram")
    more = {"store": "engram", "operation": Operation.UPDATE}
    assert (await bench.review_for(ANN, Candidate(text=GOOD[1], store_id="mem-1"), **more)).verdict is Verdict.APPROVE
    late = await bench.review_for(BEN, Candidate(text=GOOD[2], store_id="mem-1"), **more)
    assert late.verdict is Verdict.UPDATE


async def test_the_refusals_of_another_key_wear_nobody_out(paid: Bench, model: ScriptedReviewer) -> None:
    refusal = found(self_contained=False)
    model.script(refusal, refusal, refusal, refusal)
    for text in NEAR[:3]:
        assert (await paid.review_for(ANN, text)).verdict is Verdict.REWRITE
    assert (await paid.review_for(BEN, NEAR[3])).verdict is Verdict.REWRITE
    assert (await paid.review_for(ANN, NEAR[4])).verdict is Verdict.HELD


async def test_the_same_call_id_under_another_key_is_another_call(bench: Bench) -> None:
    request = bench.request(GOOD[0], call="c1")
    first = await bench.pipeline.review(ANN, request)
    second = await bench.pipeline.review(BEN, request)
    assert (first.replayed, second.replayed, second.verdict) == (False, False, Verdict.DUPLICATE)
    assert (await bench.pipeline.review(ANN, request)).reviews == first.reviews
