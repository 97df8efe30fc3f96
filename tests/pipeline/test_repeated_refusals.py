"""Rephrasing until some wording happens to pass has a bound: then a person decides."""

from app.schemas.judging import Fault
from app.schemas.vocabulary import Scope, Verdict
from tests.support.pipelines import GOOD, Bench, ScriptedReviewer, found

TOO_SPECIFIC = found(scope=Scope.RESOURCE)
REPHRASED = (
    "Order 4711 was charged twice, so the retry job for order 4711 must never run again without its key.",
    "Because order 4711 was charged twice, never run the retry job for order 4711 again without its key.",
    "The retry job must never run for order 4711 again without its key, it was charged twice.",
    "Never run the retry job again without its key for order 4711, which was charged twice.",
)


async def test_after_three_near_same_refusals_the_next_one_is_held_unseen(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(TOO_SPECIFIC, TOO_SPECIFIC, TOO_SPECIFIC)
    verdicts = [(await paid.review(text)).verdict for text in REPHRASED[:3]]
    answer = await paid.review(REPHRASED[3])
    assert verdicts == [Verdict.REWRITE] * 3
    assert (answer.verdict, answer.reviews[0].fault) == (Verdict.HELD, Fault.REPEATED_REFUSALS)
    assert len(model.briefs) == 3


async def test_another_text_is_judged_as_ever(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(TOO_SPECIFIC, TOO_SPECIFIC, TOO_SPECIFIC)
    for text in REPHRASED[:3]:
        await paid.review(text)
    assert (await paid.review(GOOD[3])).verdict is Verdict.APPROVE


async def test_another_session_starts_afresh(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(TOO_SPECIFIC, TOO_SPECIFIC, TOO_SPECIFIC)
    for text in REPHRASED[:3]:
        await paid.review(text)
    assert (await paid.review(REPHRASED[3], session="s2")).verdict is Verdict.APPROVE


async def test_three_different_refused_texts_hold_nothing(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(TOO_SPECIFIC, TOO_SPECIFIC, TOO_SPECIFIC)
    for text in GOOD[:3]:
        await paid.review(text)
    assert (await paid.review(REPHRASED[0])).verdict is Verdict.APPROVE
