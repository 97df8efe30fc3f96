"""A project's one STATE, and every other text that takes an older one's place."""

from collections.abc import Callable

from app.schemas.judging import Brief, Judgement
from app.schemas.reviews import Candidate, ReviewOut
from app.schemas.vocabulary import Category, Operation, Reason, Verdict
from tests.support.pipelines import GOOD, PROJECT, Bench, ScriptedReviewer, found

STATES = (
    "The importer is half done: parsing works, the retry queue is next, and the schema is still open.",
    "The importer parses and retries now; what is left is the schema, which waits for the data team.",
    "The importer is finished but for its schema, and the data team has promised that for the spring.",
)
ENGRAM = {"store": "engram", "tool": "mem_update", "operation": Operation.UPDATE}
STATE = found(Category.STATE)


def superseding(text: str) -> Callable[[Brief], Judgement]:
    """The model says that the candidate supersedes the entry with this text, if it is shown."""
    return lambda brief: found(supersedes=next((n.label for n in brief.neighbours if n.text == text), None))


async def only(bench: Bench, *texts: str | Candidate, **more: object) -> ReviewOut:
    """The one review of a call."""
    (review,) = (await bench.review(*texts, **more)).reviews
    return review


# --- one STATE a project ------------------------------------------------------------------------------------------


async def test_a_second_state_is_an_update_of_the_first(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE)
    first = await paid.store(STATES[0], "s-1")
    review = await only(paid, STATES[1], session="s2")
    assert (review.verdict, review.reasons, review.entry_id) == (Verdict.UPDATE, [Reason.SECOND_STATE], first)
    assert STATES[0] in review.message


async def test_the_state_is_shown_however_far_away_it_lies(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE)
    state = await paid.store(STATES[0])
    for number in range(12):
        await paid.store(f"Always keep shelf number {number} of the pantry free, because the milk crates need it.")
    assert state in {n.entry_id for n in model.briefs[-1].neighbours}


async def test_a_state_that_was_never_confirmed_stands_in_nobodys_way(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE, STATE)
    await paid.review(STATES[0], session="s1")
    paid.clock.pass_(minutes=11)
    assert (await only(paid, STATES[1], session="s2")).verdict is Verdict.APPROVE
    assert (await only(paid, STATES[2], session="s3")).verdict is Verdict.UPDATE
    assert [entry["status"] for entry in paid.entries()] == ["unconfirmed", "pending"]


async def test_two_states_in_one_call_are_one_too_many(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE)
    answer = await paid.review(*STATES[:2])
    assert [review.verdict for review in answer.reviews] == [Verdict.APPROVE, Verdict.REWRITE]
    assert answer.reviews[1].reasons == [Reason.SECOND_STATE]
    assert paid.entries() == []


async def test_a_session_may_offer_its_own_pending_state_again(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE)
    assert (await only(paid, STATES[0])).verdict is Verdict.APPROVE
    assert (await only(paid, STATES[0])).verdict is Verdict.APPROVE
    assert len(paid.entries()) == 1


async def test_a_state_that_is_reported_late_leaves_the_newer_one_alone(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE)
    late = await only(paid, STATES[0], session="s1")
    paid.clock.pass_(minutes=11)
    await paid.store(STATES[1], session="s2")
    paid.index.report_stored(late.id, "item-1")
    assert [(entry["status"], entry["store_id"]) for entry in paid.entries()] == [
        ("superseded", "item-1"),
        ("stored", None),
    ]


# --- a store that cannot update -----------------------------------------------------------------------------------


async def test_after_the_advice_the_next_state_supersedes_the_older_one(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE, STATE)
    entry_id = await paid.store(STATES[0], "item-1", session="s1")
    advice = await only(paid, STATES[1], session="s2")
    assert "cannot update in place" in advice.message

    approved = await only(paid, STATES[2], session="s2")
    assert (approved.verdict, approved.entry_id) == (Verdict.APPROVE, entry_id)
    assert "remove the older item" in approved.message
    assert "item-1" in approved.message
    assert paid.entry(entry_id)["text"] == STATES[0], "the index changes when the store has the text, not before"

    paid.index.report_stored(approved.id, "item-2")
    entry = paid.entry(entry_id)
    assert (entry["text"], entry["version"], entry["store_id"], entry["status"]) == (STATES[2], 2, "item-2", "stored")
    versions = paid.rows("SELECT version, text, status, store_id FROM entryversion ORDER BY version")
    assert [tuple(row.values()) for row in versions] == [
        (1, STATES[0], "superseded", "item-1"),
        (2, STATES[2], "stored", None),
    ]


async def test_the_approval_tells_in_its_context_which_item_to_remove(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE, STATE)
    await paid.store(STATES[0], "item-1", session="s1")
    await paid.review(STATES[1], session="s2")
    context = (await paid.review(STATES[2], session="s2")).context
    assert context is not None
    assert "item-1" in context


async def test_advice_to_one_session_is_no_leave_for_another(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE, STATE)
    await paid.store(STATES[0], session="s1")
    await paid.review(STATES[1], session="s2")
    assert (await only(paid, STATES[2], session="s3")).verdict is Verdict.UPDATE


async def test_an_older_value_is_superseded_in_the_same_way(paid: Bench, model: ScriptedReviewer) -> None:
    entry_id = await paid.store(GOOD[0])
    newer = "Retry a payment twice at most, always with its idempotency key, since the provider counts attempts."
    model.script(superseding(GOOD[0]), superseding(GOOD[0]))
    assert (await only(paid, newer)).verdict is Verdict.UPDATE
    approved = await only(paid, newer)
    paid.index.report_stored(approved.id, None)
    assert (paid.entry(entry_id)["text"], paid.entry(entry_id)["version"]) == (newer, 2)


async def test_the_newer_text_is_what_later_candidates_meet(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE, STATE)
    await paid.store(STATES[0])
    await paid.review(STATES[1])
    paid.index.report_stored((await only(paid, STATES[2])).id, None)
    assert (await only(paid, STATES[2], session="s9")).verdict is Verdict.DUPLICATE
    (hit,) = paid.index.search(PROJECT, STATES[2], 1)
    assert hit.entry.text == STATES[2]
    assert hit.similarity > 0.99


# --- the store's own update tool ----------------------------------------------------------------------------------


async def test_an_update_call_on_a_known_entry_makes_its_next_version(paid: Bench, model: ScriptedReviewer) -> None:
    entry_id = await paid.store(GOOD[0], "mem-1", store="engram")
    model.script(superseding(GOOD[0]))
    newer = Candidate(text="Retry a payment twice at most, with its idempotency key, as they count.", store_id="mem-1")
    review = await only(paid, newer, **ENGRAM)
    assert (review.verdict, review.entry_id, review.entry) == (Verdict.APPROVE, entry_id, None)
    assert "remove" not in review.message
    paid.index.report_stored(review.id, None)
    entry = paid.entry(entry_id)
    assert (entry["text"], entry["version"], entry["store_id"]) == (newer.text, 2, "mem-1")


async def test_a_state_is_updated_by_its_key(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE)
    first = await paid.review(Candidate(text=STATES[0], key="state"), store="engram")
    paid.index.report_stored(first.reviews[0].id, None)
    review = await only(paid, Candidate(text=STATES[1], key="state"), session="s2", **ENGRAM)
    assert (review.verdict, review.entry_id) == (Verdict.APPROVE, first.reviews[0].entry_id)


async def test_a_key_that_several_entries_share_names_none_of_them(paid: Bench, model: ScriptedReviewer) -> None:
    for text in GOOD[:2]:
        answer = await paid.review(Candidate(text=text, key="topic"), store="engram")
        paid.index.report_stored(answer.reviews[0].id, None)
    review = await only(paid, Candidate(text=GOOD[2], key="topic"), **ENGRAM)
    assert review.verdict is Verdict.APPROVE
    assert len(paid.entries()) == 3


async def test_an_update_that_changes_nothing_is_no_duplicate_of_itself(bench: Bench) -> None:
    await bench.store(GOOD[0], "mem-1", store="engram")
    review = await only(bench, Candidate(text=GOOD[0].upper(), store_id="mem-1"), **ENGRAM)
    assert review.verdict is Verdict.APPROVE


async def test_an_update_must_be_a_good_memory_too(paid: Bench, model: ScriptedReviewer) -> None:
    await paid.store(GOOD[0], "mem-1", store="engram")
    model.script(found(Category.NONE))
    review = await only(paid, Candidate(text=GOOD[1], store_id="mem-1"), **ENGRAM)
    assert review.verdict is Verdict.REJECT


async def test_an_update_to_a_text_that_another_entry_has_is_a_duplicate(bench: Bench) -> None:
    await bench.store(GOOD[0], "mem-1", store="engram")
    other = await bench.store(GOOD[1], "mem-2", store="engram")
    review = await only(bench, Candidate(text=GOOD[1], store_id="mem-1"), **ENGRAM)
    assert (review.verdict, review.entry_id) == (Verdict.DUPLICATE, other)


async def test_following_the_advice_succeeds_even_if_the_index_cannot_tell_which_item_is_meant(
    paid: Bench, model: ScriptedReviewer
) -> None:
    model.script(STATE, STATE, STATE)
    entry_id = await paid.store(STATES[0], store="engram")  # the store's id never became known
    advice = await only(paid, STATES[1], session="s2", store="engram")
    assert "update tool" in advice.message
    review = await only(paid, Candidate(text=STATES[2], store_id="mem-77"), session="s2", **ENGRAM)
    assert (review.verdict, review.entry_id, review.entry) == (Verdict.APPROVE, entry_id, None)
    paid.index.report_stored(review.id, None)
    assert (paid.entry(entry_id)["text"], paid.entry(entry_id)["store_id"]) == (STATES[2], "mem-77")


async def test_a_new_item_is_no_update_in_a_store_that_can_update(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(STATE, STATE, STATE)
    await paid.store(STATES[0], store="engram")
    for text in STATES[1:]:
        assert (await only(paid, text, session="s2", store="engram")).verdict is Verdict.UPDATE


# --- two agents, one entry ----------------------------------------------------------------------------------------


async def test_an_update_written_against_an_older_version_is_turned_back(paid: Bench, model: ScriptedReviewer) -> None:
    entry_id = await paid.store(GOOD[0], "mem-1", store="engram")
    for text, version, verdict in (
        (GOOD[1], 1, Verdict.APPROVE),
        (GOOD[2], 1, Verdict.UPDATE),
        (GOOD[2], 2, Verdict.APPROVE),
    ):
        candidate = Candidate(text=text, store_id="mem-1", expected_version=version)
        review = await only(paid, candidate, **ENGRAM)
        assert review.verdict is verdict
        if verdict is Verdict.APPROVE:
            paid.index.report_stored(review.id, None)
        else:
            assert review.entry is not None
            assert (review.entry.version, review.entry.text) == (2, GOOD[1])
    assert paid.entry(entry_id)["version"] == 3


async def test_another_sessions_pending_update_goes_first(paid: Bench) -> None:
    entry_id = await paid.store(GOOD[0], "mem-1", store="engram")
    mine = await only(paid, Candidate(text=GOOD[1], store_id="mem-1"), session="s1", **ENGRAM)
    theirs = await only(paid, Candidate(text=GOOD[2], store_id="mem-1"), session="s2", **ENGRAM)
    assert (mine.verdict, theirs.verdict, theirs.entry_id) == (Verdict.APPROVE, Verdict.UPDATE, entry_id)
    paid.clock.pass_(minutes=11)
    theirs = await only(paid, Candidate(text=GOOD[2], store_id="mem-1"), session="s2", **ENGRAM)
    assert theirs.verdict is Verdict.APPROVE


async def test_a_session_may_change_its_mind_about_its_own_update(paid: Bench) -> None:
    entry_id = await paid.store(GOOD[0], "mem-1", store="engram")
    first = await only(paid, Candidate(text=GOOD[1], store_id="mem-1"), **ENGRAM)
    second = await only(paid, Candidate(text=GOOD[2], store_id="mem-1"), **ENGRAM)
    assert second.verdict is Verdict.APPROVE
    paid.index.report_stored(second.id, None)
    assert paid.entry(entry_id)["text"] == GOOD[2]
    paid.index.report_stored(first.id, None)
    entry = paid.entry(entry_id)
    assert (entry["text"], entry["version"]) == (GOOD[2], 3), "a late report of an older text changes nothing"


async def test_a_text_that_was_stored_elsewhere_meanwhile_leaves_one_live_entry(paid: Bench) -> None:
    """The update was approved, another session stored the same text as an item of its own, then the report came."""
    updated = await paid.store(GOOD[0], "mem-1", store="engram")
    update = await only(paid, Candidate(text=GOOD[1], store_id="mem-1"), session="s1", **ENGRAM)
    other = await paid.store(GOOD[1], "mem-2", store="engram", session="s2")
    paid.index.report_stored(update.id, None)
    assert (paid.entry(updated)["status"], paid.entry(updated)["text"]) == ("superseded", GOOD[1])
    assert paid.entry(other)["status"] == "stored"
    assert (await only(paid, GOOD[1], session="s3")).entry_id == other
