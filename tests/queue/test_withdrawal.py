"""All that came from one place is withdrawn, and named for whoever cleans the store."""

from app.callers import LOCAL
from app.queue import Queue
from app.schemas.queue import DecisionIn, WithdrawalIn, WithdrawalOut
from app.schemas.reviews import Candidate
from app.schemas.vocabulary import Category, Verdict
from tests.queue.conftest import Hold
from tests.support.pipelines import GOOD, PROJECT, Bench, ScriptedReviewer, found

BAD = "bad-session"


def withdraw(queue: Queue, session: str = BAD, **more: object) -> WithdrawalOut:
    return queue.withdraw(LOCAL, WithdrawalIn.model_validate({"session_id": session, **more}))


async def stored(bench: Bench, text: str | Candidate, store_id: str, session: str = BAD, **more: object) -> str:
    review = (await bench.review(text, session=session, **more)).reviews[0]
    assert review.verdict is Verdict.APPROVE, review
    bench.index.report_stored(review.id, store_id)
    assert review.entry_id is not None
    return review.entry_id


async def test_entries_of_a_session_are_withdrawn_and_listed_and_no_others(bench: Bench, queue: Queue) -> None:
    mine, other = await stored(bench, GOOD[0], "1"), await stored(bench, GOOD[1], "2", "good-session")
    await bench.review(GOOD[2], session=BAD)

    done = withdraw(queue, reason="A stolen laptop.")

    assert done.changed == 2
    listed = {item.text: (item.store, item.store_id, item.confirmed) for item in done.items}
    assert listed == {GOOD[0]: ("memory", "1", True), GOOD[2]: ("memory", None, False)}
    assert (bench.entry(mine)["status"], bench.entry(other)["status"]) == ("withdrawn", "stored")
    assert bench.entry(mine)["text"] == GOOD[0], "nothing is destroyed"


async def test_saying_it_twice_changes_nothing_and_lists_the_same(bench: Bench, queue: Queue) -> None:
    await stored(bench, GOOD[0], "1")
    await stored(bench, GOOD[1], "2", "good-session")
    await stored(bench, Candidate(text=GOOD[2], store_id="2"), "2", operation="update")
    first = withdraw(queue)
    entries = bench.entries()
    second = withdraw(queue)
    assert (first.changed, second.changed) == (2, 0)
    assert sorted(first.items, key=lambda item: item.text) == sorted(second.items, key=lambda item: item.text)
    assert bench.entries() == entries


async def test_a_dry_run_lists_the_same_and_changes_nothing(bench: Bench, queue: Queue) -> None:
    await stored(bench, GOOD[0], "1")
    before = bench.entries()
    tried = withdraw(queue, dry_run=True)
    assert bench.entries() == before
    assert tried == withdraw(queue)


async def test_the_text_of_another_session_comes_back(bench: Bench, queue: Queue) -> None:
    entry_id = await stored(bench, GOOD[0], "1", "good-session")
    await stored(bench, Candidate(text=GOOD[1], store_id="1"), "1", operation="update")
    await stored(bench, Candidate(text=GOOD[2], store_id="1"), "1", operation="update")

    (item,) = withdraw(queue).items

    assert (item.text, item.restore) == (GOOD[2], GOOD[0])
    entry = bench.entry(entry_id)
    assert (entry["text"], entry["status"], entry["session_id"]) == (GOOD[0], "stored", "good-session")


async def test_an_update_of_a_good_entry_that_is_still_on_its_way_is_called_off(bench: Bench, queue: Queue) -> None:
    entry_id = await stored(bench, GOOD[0], "1", "good-session")
    update = await bench.review(Candidate(text=GOOD[1], store_id="1"), session=BAD, operation="update")
    withdraw(queue)
    bench.index.report_stored(update.reviews[0].id, "1")
    assert bench.entry(entry_id)["text"] == GOOD[0]


async def test_what_was_withdrawn_does_not_come_back_by_a_late_report(bench: Bench, queue: Queue) -> None:
    review = (await bench.review(GOOD[0], session=BAD)).reviews[0]
    withdraw(queue)
    bench.index.report_stored(review.id, "1")
    assert [entry["status"] for entry in bench.entries()] == ["withdrawn"]


async def test_a_withdrawn_state_makes_room_for_another(bench: Bench, queue: Queue, model: ScriptedReviewer) -> None:
    model.script(found(Category.STATE), found(Category.STATE))
    await stored(bench, GOOD[0], "1")
    withdraw(queue)
    assert (await bench.review(GOOD[1], session="s2")).verdict is Verdict.APPROVE


async def test_its_held_texts_and_open_approvals_are_turned_away(bench: Bench, queue: Queue, hold: Hold) -> None:
    await hold(GOOD[0], session=BAD)
    queue.decide(LOCAL, await hold(GOOD[1], session=BAD), DecisionIn(verdict=Verdict.APPROVE, reason="It holds."))
    withdraw(queue)
    assert bench.rows("SELECT * FROM held") == []
    assert queue.news(LOCAL, PROJECT, "claude-code").items == []
    assert (await bench.review(GOOD[1], session="s2")).reviews[0].reviewer == "anthropic"


async def test_only_the_named_project_is_touched(bench: Bench, queue: Queue) -> None:
    bench.use_model("other")
    here, there = await stored(bench, GOOD[0], "1"), await stored(bench, GOOD[0], "1", project="other")
    assert withdraw(queue, project="other").changed == 1
    assert (bench.entry(here)["status"], bench.entry(there)["status"]) == ("stored", "withdrawn")
    nothing = WithdrawalOut(items=[], changed=0)
    assert withdraw(queue, project="unheard of") == withdraw(queue, "unheard-of") == nothing
