"""A person's word holds for any review: it lets texts in, keeps them out, and takes them back."""

import asyncio

import pytest

from app.callers import LOCAL
from app.errors import Invalid, NotFound
from app.queue import Queue
from app.schemas.judging import Fault
from app.schemas.queue import DecisionIn
from app.schemas.reviews import Candidate, Telling
from app.schemas.vocabulary import Category, Verdict
from tests.queue.conftest import Hold
from tests.support.pipelines import GOOD, PROJECT, SLOP, Bench, ScriptedReviewer, failed, found

AGENT = "claude-code"


def approve(queue: Queue, review_id: str, **more: object) -> None:
    queue.decide(LOCAL, review_id, DecisionIn.model_validate({"verdict": "approve", "reason": "It holds.", **more}))


def reject(queue: Queue, review_id: str, reason: str = "Not here.") -> None:
    queue.decide(LOCAL, review_id, DecisionIn(verdict=Verdict.REJECT, reason=reason))


async def refused(bench: Bench, model: ScriptedReviewer, text: str = GOOD[0], **more: object) -> str:
    """The id of a review that the model refuses."""
    model.script(found(self_contained=False))
    answer = await bench.review(text, **more)
    assert answer.verdict is Verdict.REWRITE
    return answer.reviews[0].id


# --- letting in -----------------------------------------------------------------------------------------------------


async def test_an_approved_text_passes_once_without_another_judgement(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    approve(queue, await hold(), category="QUIRK")
    asked = len(model.briefs)

    answer = await bench.review(f"  {GOOD[0]} ", session="another")

    assert answer.verdict is Verdict.APPROVE
    assert (answer.reviews[0].category, answer.reviews[0].reviewer) == (Category.QUIRK, "decision")
    assert len(model.briefs) == asked
    bench.index.report_stored(answer.reviews[0].id, "7")
    entry = bench.entry(answer.reviews[0].entry_id)
    assert (entry["status"], entry["category"], entry["store_id"]) == ("stored", "QUIRK", "7")
    assert queue.news(LOCAL, PROJECT, AGENT).items == []

    bench.index.delete_entry(entry["id"])
    await bench.review(GOOD[0], session="third")
    assert len(model.briefs) == asked + 1, "it was stored, so the next such text is judged like any other"


async def test_another_text_does_not_pass(bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer) -> None:
    approve(queue, await hold())
    asked = len(model.briefs)
    await bench.review(GOOD[0] + " Twice.")
    assert len(model.briefs) == asked + 1


async def test_a_write_that_failed_may_come_again(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    approve(queue, await hold())
    asked = len(model.briefs)
    first = await bench.review(GOOD[0])
    bench.index.report_failed(first.reviews[0].id)
    again = await bench.review(GOOD[0])
    assert (again.verdict, len(model.briefs)) == (Verdict.APPROVE, asked)


async def test_a_told_approval_that_nobody_used_lapses(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    approve(queue, await hold())
    bench.clock.pass_(days=100)
    (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    queue.told(LOCAL, [item.decision_id])
    asked = len(model.briefs)
    assert (await bench.review(GOOD[0], dry_run=True)).reviews[0].reviewer == "decision"
    bench.clock.pass_(days=15)
    await bench.review(GOOD[0])
    assert len(model.briefs) == asked + 1


async def test_what_the_gate_or_a_reviewer_refused_is_let_in(
    bench: Bench, queue: Queue, model: ScriptedReviewer
) -> None:
    for review_id in ((await bench.review(SLOP)).reviews[0].id, await refused(bench, model)):
        approve(queue, review_id)
    for text in (SLOP, GOOD[0]):
        assert (await bench.review(text, session="s2")).verdict is Verdict.APPROVE


async def test_a_state_that_a_person_approves_takes_the_place_of_the_one(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    model.script(found(Category.STATE))
    state = await bench.store(GOOD[0])
    approve(queue, await hold(GOOD[1]), category="STATE")
    answer = await bench.review(GOOD[1], session="s2")
    assert (answer.verdict, answer.reviews[0].entry_id) == (Verdict.APPROVE, state)
    bench.index.report_stored(answer.reviews[0].id, None)
    (entry,) = bench.entries()
    assert (entry["text"], entry["category"], entry["version"]) == (GOOD[1], "STATE", 2)


async def test_a_text_in_place_of_the_refused_one_passes_as_it_is(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    review_id = await hold()
    decision = DecisionIn(verdict=Verdict.REWRITE, reason="Too vague.", suggested_text=GOOD[1])
    queue.decide(LOCAL, review_id, decision)
    (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    assert (item.verdict, item.text) == (Verdict.REWRITE, GOOD[1])
    assert (await bench.review(GOOD[1])).reviews[0].reviewer == "decision"
    assert (await bench.review(GOOD[0])).reviews[0].reviewer == "anthropic"


async def test_equal_texts_are_decided_together_and_told_once(bench: Bench, queue: Queue, hold: Hold) -> None:
    first, second = await hold(session="s1"), await hold(session="s2")
    approve(queue, second)
    verdicts = {row["id"]: row["verdict"] for row in bench.rows("SELECT id, verdict FROM review")}
    assert verdicts == {first: "approve", second: "approve"}
    assert len(queue.news(LOCAL, PROJECT, AGENT).items) == 1
    assert bench.rows("SELECT * FROM held") == []


async def test_no_secret_is_ever_let_in(bench: Bench, queue: Queue, hold: Hold) -> None:
    secret = "ghp_" + "7hQ2mXv9KpLw4RtZb8Nc" + "3JfYd6Gs1TaEuVxk"
    review_id = await hold()
    with pytest.raises(Invalid, match="secret"):
        queue.decide(
            LOCAL,
            review_id,
            DecisionIn(verdict=Verdict.REWRITE, reason="So.", suggested_text=f"{GOOD[0]} Use {secret}."),
        )
    held_secret = (await bench.review(f"{GOOD[0]} The key of the forge is {secret} here.")).reviews[0].id
    with pytest.raises(Invalid, match="secret"):
        approve(queue, held_secret)


def test_what_is_not_there_cannot_be_decided(queue: Queue) -> None:
    with pytest.raises(NotFound):
        approve(queue, "nothing")


# --- keeping out ----------------------------------------------------------------------------------------------------


async def test_overruling_an_approval_withdraws_the_entry_and_says_what_to_remove(bench: Bench, queue: Queue) -> None:
    answer = await bench.review(GOOD[0])
    review_id = answer.reviews[0].id
    bench.index.report_stored(review_id, "42")

    reject(queue, review_id, "It is wrong since the spring.")

    assert [entry["status"] for entry in bench.entries()] == ["withdrawn"]
    (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    (removal,) = item.removals
    assert (removal.store, removal.store_id, removal.text, removal.confirmed) == ("memory", "42", GOOD[0], True)
    assert "42" in item.message
    assert "wrong since the spring" in item.message
    again = queue.decide(LOCAL, review_id, DecisionIn(verdict=Verdict.REJECT, reason="Still."))
    assert [(decision.verdict, decision.earlier.verdict) for decision in again.decisions] == [
        ("reject", "approve"),
        ("reject", "reject"),
    ]


async def test_overruling_an_update_puts_the_former_text_back(bench: Bench, queue: Queue) -> None:
    entry_id = await bench.store(GOOD[0], "42")
    update = await bench.review(Candidate(text=GOOD[1], store_id="42"), operation="update", session="s2")
    bench.index.report_stored(update.reviews[0].id, "42")
    assert bench.entry(entry_id)["text"] == GOOD[1]

    reject(queue, update.reviews[0].id)

    entry = bench.entry(entry_id)
    assert (entry["text"], entry["status"], entry["version"]) == (GOOD[0], "stored", 3)
    (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    assert (item.removals[0].text, item.removals[0].restore) == (GOOD[1], GOOD[0])
    assert set(bench.by_words("idempotency")) == {entry_id}


async def test_a_withdrawn_state_makes_room(bench: Bench, queue: Queue, model: ScriptedReviewer) -> None:
    model.script(found(Category.STATE), found(Category.STATE))
    answer = await bench.review(GOOD[0])
    bench.index.report_stored(answer.reviews[0].id, None)
    reject(queue, answer.reviews[0].id)
    assert (await bench.review(GOOD[1], session="s2")).verdict is Verdict.APPROVE


async def test_the_last_word_holds_and_only_that_is_told(bench: Bench, queue: Queue, hold: Hold) -> None:
    review_id = await hold()
    approve(queue, review_id)
    reject(queue, review_id)
    (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    assert item.verdict is Verdict.REJECT
    assert (await bench.review(GOOD[0])).reviews[0].reviewer == "anthropic", "the pass is gone"


# --- against a reviewer that still thinks ---------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["approve", "reject"])
async def test_a_person_is_right_against_a_late_reply(
    bench: Bench, queue: Queue, model: ScriptedReviewer, word: str
) -> None:
    model.hold()
    model.script(found() if word == "reject" else found(self_contained=False))
    asking = asyncio.create_task(bench.review(GOOD[0]))
    await model.asked()
    (row,) = bench.rows("SELECT id FROM review")
    queue.decide(LOCAL, row["id"], DecisionIn.model_validate({"verdict": word, "reason": "I know it."}))
    model.release()
    answer = await asking

    assert answer.verdict == word
    assert queue.news(LOCAL, PROJECT, AGENT).items == [], "the answer to the call tells it"
    if word == "approve":
        bench.index.report_stored(row["id"], "1")
        assert [(entry["text"], entry["status"]) for entry in bench.entries()] == [(GOOD[0], "stored")]


# --- telling --------------------------------------------------------------------------------------------------------


async def test_it_is_told_until_the_agent_says_that_it_was(bench: Bench, queue: Queue, hold: Hold) -> None:
    approve(queue, await hold())
    for _ in range(2):
        (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    queue.told(LOCAL, [item.decision_id])
    queue.told(LOCAL, [item.decision_id, "nothing"])
    assert queue.news(LOCAL, PROJECT, AGENT).items == []
    (row,) = bench.rows("SELECT * FROM decision")
    assert row["telling"] == Telling.TOLD


async def test_each_agent_and_project_is_told_of_its_own(bench: Bench, queue: Queue, hold: Hold) -> None:
    bench.use_model("other")
    approve(queue, await hold(GOOD[0], agent="codex"))
    approve(queue, await hold(GOOD[1], project="other"))
    assert queue.news(LOCAL, PROJECT, AGENT).items == []
    assert [item.text for item in queue.news(LOCAL, PROJECT, "codex").items] == [GOOD[0]]
    assert [item.text for item in queue.news(LOCAL, "other", AGENT).items] == [GOOD[1]]
    assert queue.news(LOCAL, "unheard of", AGENT).items == []


async def test_there_may_be_more_than_is_asked_for(bench: Bench, queue: Queue, hold: Hold) -> None:
    for text in GOOD:
        approve(queue, await hold(text))
    news = queue.news(LOCAL, PROJECT, AGENT, 3)
    assert ([item.text for item in news.items], news.more) == (list(GOOD[:3]), 1)


async def test_what_may_be_an_attack_is_not_shown_again(bench: Bench, queue: Queue, hold: Hold) -> None:
    reject(queue, await hold(GOOD[0], Fault.SUSPICIOUS))
    (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    assert GOOD[0][:30] not in item.message


# --- let through unreviewed -----------------------------------------------------------------------------------------


async def test_what_was_held_and_stored_all_the_same_is_an_unreviewed_entry(
    bench: Bench, queue: Queue, hold: Hold
) -> None:
    review_id = await hold()
    bench.index.report_stored(review_id, "9")
    (entry,) = bench.entries()
    assert (entry["status"], entry["store_id"], bool(entry["unreviewed"])) == ("stored", "9", True)
    assert (await bench.review(GOOD[0], session="s2")).verdict is Verdict.DUPLICATE

    bench.clock.pass_(minutes=2)
    assert await queue.reconsider() == 1
    (entry,) = bench.entries()
    assert (entry["category"], bool(entry["unreviewed"])) == ("RULE", False)
    assert queue.news(LOCAL, PROJECT, AGENT).items == [], "it is in the store already"


async def test_if_it_is_refused_later_the_agent_is_told_to_remove_it(
    bench: Bench, queue: Queue, hold: Hold, model: ScriptedReviewer
) -> None:
    bench.index.report_stored(await hold(), "9")
    model.script(found(Category.NONE))
    bench.clock.pass_(minutes=2)
    await queue.reconsider()
    (item,) = queue.news(LOCAL, PROJECT, AGENT).items
    assert [removal.store_id for removal in item.removals] == ["9"]
    assert [entry["status"] for entry in bench.entries()] == ["withdrawn"]


async def test_good_texts_of_a_call_that_was_held_and_stored_are_entries(bench: Bench, model: ScriptedReviewer) -> None:
    model.script(found(), failed(Fault.TIMEOUT))
    answer = await bench.review(GOOD[0], GOOD[1])
    assert sorted(review.verdict for review in answer.reviews) == [Verdict.APPROVE, Verdict.HELD]
    assert bench.entries() == []
    for review in answer.reviews:
        bench.index.report_stored(review.id, None)
    good = next(review.text for review in answer.reviews if review.verdict is Verdict.APPROVE)
    entries = {entry["text"]: (entry["status"], bool(entry["unreviewed"])) for entry in bench.entries()}
    assert entries == {text: ("stored", text != good) for text in GOOD[:2]}
    for review in answer.reviews:
        bench.index.report_stored(review.id, None)
    assert len(bench.entries()) == 2
