"""What the store reports: stored, failed, deleted; late, twice or never."""

import pytest

from app.errors import NotFound
from app.schemas.entries import DeletedReport
from app.schemas.reviews import Candidate
from app.schemas.vocabulary import Operation, Verdict
from tests.support.pipelines import GOOD, PROJECT, SLOP, Bench


async def approved(bench: Bench, text: str = GOOD[0], session: str = "s1") -> str:
    """Id of an approved review."""
    answer = await bench.review(text, session=session)
    assert answer.verdict is Verdict.APPROVE
    return answer.reviews[0].id


async def test_a_report_turns_pending_into_stored_with_the_stores_id(bench: Bench) -> None:
    review = bench.index.report_stored(await approved(bench), "item-1")
    (entry,) = bench.entries()
    assert (entry["status"], entry["store_id"], entry["expires_at"]) == ("stored", "item-1", None)
    assert review.stored_at == bench.clock.at


async def test_a_stored_entry_does_not_expire(bench: Bench) -> None:
    bench.index.report_stored(await approved(bench), None)
    bench.clock.pass_(days=400)
    bench.pipeline.sweep()
    assert bench.entries()[0]["status"] == "stored"


async def test_the_second_report_changes_nothing(bench: Bench) -> None:
    review_id = await approved(bench)
    bench.index.report_stored(review_id, "item-1")
    before = bench.entries()
    bench.clock.pass_(minutes=1)
    again = bench.index.report_stored(review_id, "item-2")
    assert bench.entries() == before
    assert again.stored_at < bench.clock.at


async def test_without_a_report_the_entry_becomes_unconfirmed(bench: Bench) -> None:
    await approved(bench)
    bench.clock.pass_(minutes=10, seconds=1)
    bench.pipeline.sweep()
    (entry,) = bench.entries()
    assert (entry["status"], entry["expires_at"]) == ("unconfirmed", None)


async def test_a_late_report_still_counts(bench: Bench) -> None:
    review_id = await approved(bench)
    bench.clock.pass_(hours=3)
    bench.pipeline.sweep()
    bench.index.report_stored(review_id, "item-1")
    assert bench.entries()[0]["status"] == "stored"


async def test_a_failed_write_refuses_nobody(bench: Bench) -> None:
    review_id = await approved(bench, session="s1")
    bench.index.report_failed(review_id)
    assert bench.entries()[0]["status"] == "unconfirmed"
    assert (await bench.review(GOOD[0], session="s2")).verdict is Verdict.APPROVE


async def test_a_failure_reported_after_the_success_changes_nothing(bench: Bench) -> None:
    review_id = await approved(bench)
    bench.index.report_stored(review_id, None)
    bench.index.report_failed(review_id)
    assert bench.entries()[0]["status"] == "stored"


async def test_a_success_reported_after_the_failure_counts(bench: Bench) -> None:
    review_id = await approved(bench)
    bench.index.report_failed(review_id)
    bench.index.report_stored(review_id, None)
    assert bench.entries()[0]["status"] == "stored"


async def test_a_failed_update_leaves_the_entry_as_it_was(bench: Bench) -> None:
    entry_id = await bench.store(GOOD[0], "mem-1", store="engram")
    answer = await bench.review(
        Candidate(text=GOOD[1], store_id="mem-1"), store="engram", operation=Operation.UPDATE, session="s1"
    )
    bench.index.report_failed(answer.reviews[0].id)
    assert (bench.entry(entry_id)["text"], bench.entry(entry_id)["version"]) == (GOOD[0], 1)
    rival = await bench.review(
        Candidate(text=GOOD[2], store_id="mem-1"), store="engram", operation=Operation.UPDATE, session="s2"
    )
    assert rival.verdict is Verdict.APPROVE


async def test_a_report_about_a_refused_text_is_noted_and_makes_no_entry(bench: Bench) -> None:
    """The person may have let the write pass; the review says that it was stored."""
    (review,) = (await bench.review(SLOP)).reviews
    assert bench.index.report_stored(review.id, "item-1").stored_at == bench.clock.at
    assert bench.entries() == []


@pytest.mark.parametrize("report", ["report_failed", "report_stored"])
async def test_reports_about_unknown_reviews_are_refused(bench: Bench, report: str) -> None:
    arguments = ("nobody",) if report == "report_failed" else ("nobody", None)
    with pytest.raises(NotFound):
        getattr(bench.index, report)(*arguments)


# --- deletions ----------------------------------------------------------------------------------------------------


async def three(bench: Bench) -> list[str]:
    """Ids of three stored entries: two under one key."""
    ids = []
    for number, (text, key) in enumerate(zip(GOOD, ("tools", "tools", "queue"), strict=False), start=1):
        answer = await bench.review(Candidate(text=text, key=key))
        bench.index.report_stored(answer.reviews[0].id, f"item-{number}")
        ids.append(answer.reviews[0].entry_id or "")
    return ids


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        ({"store_ids": ["item-1", "item-3"]}, [0, 2]),
        ({"keys": ["tools"]}, [0, 1]),
        ({"texts": [GOOD[1].upper()]}, [1]),
        ({"store_ids": ["item-9"], "keys": ["nothing"], "texts": ["nothing at all"]}, []),
        ({}, []),
    ],
)
async def test_deleted_items_are_found_by_each_of_their_names(
    bench: Bench, names: dict[str, list[str]], gone: list[int]
) -> None:
    ids = await three(bench)
    report = DeletedReport.model_validate({"project": PROJECT, "store": "memory", **names})
    assert sorted(bench.index.report_deleted(report)) == sorted(ids[place] for place in gone)
    assert [entry["status"] == "deleted" for entry in bench.entries()] == [place in gone for place in range(3)]


@pytest.mark.parametrize("where", [{"project": "elsewhere"}, {"store": "engram"}])
async def test_a_deletion_reaches_only_its_own_project_and_store(bench: Bench, where: dict[str, str]) -> None:
    await three(bench)
    report = DeletedReport.model_validate({"project": PROJECT, "store": "memory", "keys": ["tools"], **where})
    assert bench.index.report_deleted(report) == []


async def test_a_deleted_entry_is_no_neighbour_any_more(bench: Bench) -> None:
    bench.index.delete_entry(await bench.store(GOOD[0]))
    assert bench.index.search(PROJECT, GOOD[0], 8) == []


async def test_deleting_twice_is_no_error_and_an_unknown_entry_is_one(bench: Bench) -> None:
    entry_id = await bench.store(GOOD[0])
    bench.index.delete_entry(entry_id)
    bench.index.delete_entry(entry_id)
    assert bench.entry(entry_id)["status"] == "deleted"
    with pytest.raises(NotFound):
        bench.index.delete_entry("nobody")
