"""Memories in files: many may lie under one key, the file, and an edit of it is an update in place."""

from app.schemas.reviews import Candidate
from app.schemas.vocabulary import Category, Operation, Reason, Verdict
from tests.support.pipelines import GOOD, Bench, ScriptedReviewer, found

FILE = "MEMORY.md"
STATE = "Where things stand: the import is half done, the parser is finished, the queue is open."
NEWER = "Where things stand: the import is done, and the queue is being rewritten for retries."


def in_file(text: str) -> Candidate:
    return Candidate(text=text, key=FILE)


async def test_a_second_state_in_a_file_is_sent_to_the_first(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(found(Category.STATE), found(Category.STATE))
    await paid.store(STATE, FILE, store="files", tool="Write")
    answer = await paid.review(in_file(NEWER), store="files", tool="Edit")
    assert (answer.verdict, answer.reviews[0].reasons) == (Verdict.UPDATE, [Reason.SECOND_STATE])
    assert "Update that item in place" in answer.reviews[0].message


async def test_an_edit_that_replaces_the_state_among_others_in_its_file_is_its_next_version(
    paid: Bench, model: ScriptedReviewer
) -> None:
    model.script(found(), found(Category.STATE), found(Category.STATE))
    for text in (GOOD[0], STATE):
        answer = await paid.review(in_file(text), store="files", tool="Edit")
        paid.index.report_stored(answer.reviews[0].id, FILE)
    state = answer.reviews[0].entry_id
    answer = await paid.review(in_file(NEWER), store="files", tool="Edit", operation=Operation.UPDATE)
    paid.index.report_stored(answer.reviews[0].id, FILE)
    assert answer.verdict is Verdict.APPROVE
    entry = paid.entry(state)
    assert (entry["text"], entry["version"], entry["status"]) == (NEWER, 2, "stored")
    assert [row["text"] for row in paid.entries()] == [GOOD[0], NEWER]
