"""Who may decide, who is told, and whose memories are withdrawn, where a service has keys."""

import pytest

from app.callers import LOCAL, Caller
from app.errors import Forbidden, NotFound
from app.queue import Queue
from app.schemas.judging import Fault
from app.schemas.queue import DecisionIn, WithdrawalIn
from app.schemas.vocabulary import Role, Verdict
from tests.support.pipelines import GOOD, PROJECT, Bench, ScriptedReviewer, failed, found

ANN, BEN = (Caller(name, Role.MEMBER, frozenset({PROJECT})) for name in ("ann", "ben"))
CHIEF = Caller("chief", Role.ADMIN)
APPROVE = DecisionIn(verdict=Verdict.APPROVE, reason="It holds.")
AGENT = "claude-code"


async def held_by(bench: Bench, model: ScriptedReviewer, caller: Caller, text: str = GOOD[0]) -> str:
    model.script(failed(Fault.TIMEOUT))
    return (await bench.review_for(caller, text)).reviews[0].id


async def test_whoever_proposed_a_text_cannot_decide_about_it(
    bench: Bench, queue: Queue, model: ScriptedReviewer
) -> None:
    review_id = await held_by(bench, model, CHIEF)
    with pytest.raises(Forbidden):
        queue.decide(CHIEF, review_id, APPROVE)
    other = Caller("other", Role.REVIEWER, frozenset({PROJECT}))
    (decision,) = queue.decide(other, review_id, APPROVE).decisions
    assert decision.key_id == "other"


async def test_a_foreign_text_is_not_there(bench: Bench, queue: Queue, model: ScriptedReviewer) -> None:
    review_id = await held_by(bench, model, ANN)
    with pytest.raises(NotFound):
        queue.decide(Caller("other", Role.REVIEWER, frozenset({"elsewhere"})), review_id, APPROVE)


async def test_each_member_is_told_of_the_own_texts(bench: Bench, queue: Queue, model: ScriptedReviewer) -> None:
    queue.decide(CHIEF, await held_by(bench, model, ANN), APPROVE)
    assert queue.news(BEN, PROJECT, AGENT).items == []
    (item,) = queue.news(ANN, PROJECT, AGENT).items
    queue.told(BEN, [item.decision_id])
    assert queue.news(ANN, PROJECT, AGENT).items == [item], "another's word for it does not count"
    queue.told(ANN, [item.decision_id])
    assert queue.news(ANN, PROJECT, AGENT).items == []


async def test_what_was_held_before_there_were_keys_is_told_to_whoever_comes(
    bench: Bench, queue: Queue, model: ScriptedReviewer
) -> None:
    queue.decide(CHIEF, await held_by(bench, model, LOCAL), APPROVE)
    assert len(queue.news(BEN, PROJECT, AGENT).items) == 1


async def test_the_reviewer_judges_again_in_the_name_of_who_proposed(
    bench: Bench, queue: Queue, model: ScriptedReviewer
) -> None:
    await held_by(bench, model, ANN)
    bench.clock.pass_(minutes=2)
    assert await queue.reconsider() == 1
    assert {row["key_id"] for row in bench.rows("SELECT key_id FROM review")} == {"ann"}


async def test_the_memories_of_a_key_are_withdrawn_and_noted(
    bench: Bench, queue: Queue, model: ScriptedReviewer
) -> None:
    model.script(found(), found())
    for caller, text in ((ANN, GOOD[0]), (BEN, GOOD[1])):
        review = (await bench.review_for(caller, text)).reviews[0]
        bench.pipeline.index.report_stored(caller, review.id, caller.key_id)
    done = queue.withdraw(CHIEF, WithdrawalIn(key_id="ann"))
    assert [item.store_id for item in done.items] == ["ann"]
    assert [entry["status"] for entry in bench.entries()] == ["withdrawn", "stored"]
    queue.withdraw(CHIEF, WithdrawalIn(key_id="ann"))
    (line,) = bench.rows("SELECT * FROM audit_event WHERE key_id = 'chief'")
    assert (line["action"], line["key_id"]) == ("memories.withdrawn", "chief")


async def test_decisions_are_in_the_audit_log(bench: Bench, queue: Queue, model: ScriptedReviewer) -> None:
    review_id = await held_by(bench, model, ANN)
    queue.decide(CHIEF, review_id, APPROVE)
    (line,) = bench.rows("SELECT * FROM audit_event WHERE key_id = 'chief'")
    assert (line["action"], line["subject"], line["key_id"]) == ("review.decided", review_id, "chief")
    assert GOOD[0] not in str(line)
