"""Each way that a server can answer gives the right facts or the right fault, and what it cost."""

import json

import pytest

from app.reviewers.anthropic import AnthropicReviewer
from app.schemas.judging import Fault, Restatement
from app.schemas.vocabulary import Category
from tests.support.briefs import brief
from tests.support.messages_api import (
    MessagesApi,
    Step,
    Tokens,
    drop,
    error,
    facts,
    junk,
    refusal,
    reply,
    truncated,
)

LONG = 30.0


async def test_a_good_reply_gives_its_facts_and_its_cost(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    used = Tokens(input=700, cache_write=2_600, cache_read=0, output=150)
    api.script(reply(category="DECISION", supersedes="E1", suggested_text="Kiosks poll every 90 s.", tokens=used))

    judgement = await reviewer.review(brief(), LONG)

    assert judgement.fault is None
    assert judgement.facts is not None
    assert judgement.facts.category is Category.DECISION
    assert judgement.facts.supersedes == "E1"
    assert judgement.reviewer == "anthropic"
    usage = judgement.usage
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_read_tokens, usage.output_tokens) == (
        700,
        2_600,
        0,
        150,
    )
    assert usage.cost_microdollars == used.microdollars == api.usage_total_microdollars == 470
    assert usage.attempts == 1
    assert usage.model == "claude-haiku-5-5"
    assert usage.prompt_hash
    assert usage.latency_ms >= 0


@pytest.mark.parametrize(
    "step",
    [
        reply(thinking=True),
        reply(fenced=True),
        reply(fenced=True, thinking=True),
        reply(text=json.dumps(facts()) + "\nNote: {not json} and {}"),
        reply(stop_reason="stop_sequence"),
    ],
    ids=["thinking first", "fenced", "both", "braces after it", "stop sequence"],
)
async def test_the_facts_are_found_whatever_surrounds_them(
    api: MessagesApi, reviewer: AnthropicReviewer, step: Step
) -> None:
    api.script(step)
    judgement = await reviewer.review(brief(), LONG)
    assert judgement.facts is not None
    assert judgement.facts.model_dump(mode="json") == facts()


async def test_a_restated_passage_is_named_with_its_words(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    quote = "Raw pages are\n stored first"
    api.script(reply(restates={"passage": "P1", "quote": quote}))
    judgement = await reviewer.review(brief(), LONG)
    assert judgement.facts is not None
    assert judgement.facts.restates == Restatement(passage="P1", quote=quote)


UNUSABLE: dict[str, tuple[Step, Fault]] = {
    "prose": (reply(text="This looks like a good memory to me."), Fault.NOT_JSON),
    "half an object": (reply(text='{"category": "RULE", "durable": tr'), Fault.NOT_JSON),
    "a list": (reply(text="[1, 2]"), Fault.NOT_JSON),
    "no text at all": (reply(text=""), Fault.NOT_JSON),
    "endless nesting": (reply(text='{"a":' * 5_000), Fault.NOT_JSON),
    "unknown category": (reply(category="LESSON"), Fault.SCHEMA_VIOLATION),
    "category in lower case": (reply(category="rule"), Fault.SCHEMA_VIOLATION),
    "confidence too high": (reply(confidence=1.2), Fault.SCHEMA_VIOLATION),
    "confidence not a number": (reply(confidence=float("nan")), Fault.SCHEMA_VIOLATION),
    "a word for a truth value": (reply(durable="true"), Fault.SCHEMA_VIOLATION),
    "a field too many": (reply(verdict="approve"), Fault.SCHEMA_VIOLATION),
    "a field missing": (reply(text='{"category": "RULE"}'), Fault.SCHEMA_VIOLATION),
    "rule without scope": (reply(scope=None), Fault.SCHEMA_VIOLATION),
    "decision without gives_why": (reply(category="DECISION", gives_why=None), Fault.SCHEMA_VIOLATION),
    "repeats and supersedes": (reply(duplicate_of="E1", supersedes="E1"), Fault.SCHEMA_VIOLATION),
    "two answers that differ": (
        reply(text=json.dumps(facts()) + "no, rather " + json.dumps(facts(category="NONE"))),
        Fault.SCHEMA_VIOLATION,
    ),
    "half a surrogate": (reply(text=json.dumps(facts(reason="\ud800"))), Fault.SCHEMA_VIOLATION),
    "unknown duplicate": (reply(duplicate_of="E7"), Fault.UNKNOWN_LABEL),
    "empty label": (reply(duplicate_of=""), Fault.UNKNOWN_LABEL),
    "passage as entry": (reply(supersedes="P1"), Fault.UNKNOWN_LABEL),
    "unknown passage": (reply(restates={"passage": "P4", "quote": "Raw pages are stored first"}), Fault.UNKNOWN_LABEL),
    "invented quote": (reply(restates={"passage": "P1", "quote": "Raw pages are stored last"}), Fault.QUOTE_NOT_FOUND),
    "one word": (reply(restates={"passage": "P1", "quote": "replayed"}), Fault.QUOTE_NOT_FOUND),
    "empty quote": (reply(restates={"passage": "P1", "quote": " "}), Fault.QUOTE_NOT_FOUND),
    "refusal": (refusal(), Fault.REFUSAL),
    "truncated": (truncated(), Fault.TRUNCATED),
    "truncated though whole": (reply(stop_reason="max_tokens"), Fault.TRUNCATED),
    "refused though answered": (reply(stop_reason="refusal"), Fault.REFUSAL),
    "context window exceeded": (reply(stop_reason="model_context_window_exceeded"), Fault.TRUNCATED),
}


@pytest.mark.parametrize(("step", "fault"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_unusable_answer_is_a_fault_that_still_costs(
    api: MessagesApi, reviewer: AnthropicReviewer, step: Step, fault: Fault
) -> None:
    api.script(step)
    judgement = await reviewer.review(brief(), LONG)
    assert (judgement.facts, judgement.fault) == (None, fault)
    assert judgement.fault_detail
    assert judgement.usage.attempts == len(api.requests) == 1
    assert judgement.usage.cost_microdollars == api.usage_total_microdollars > 0


async def test_a_refusal_is_told_with_its_kind(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    api.script(refusal("bio"))
    assert "bio" in ((await reviewer.review(brief(), LONG)).fault_detail or "")


FINAL: dict[str, tuple[Step, Fault]] = {
    "bad request": (error(400, kind="invalid_request_error", message="thinking: unsupported"), Fault.BAD_REQUEST),
    "unprocessable": (error(422), Fault.BAD_REQUEST),
    "too large": (error(413), Fault.BAD_REQUEST),
    "wrong key": (error(401, kind="authentication_error"), Fault.UNAUTHORIZED),
    "unpaid": (error(402), Fault.UNAUTHORIZED),
    "spend limit": (error(429, code="enforced_spend_limit_reached"), Fault.UNAUTHORIZED),
    "forbidden": (error(403), Fault.UNAUTHORIZED),
    "no such model": (error(404, kind="not_found_error"), Fault.MODEL_NOT_FOUND),
    "odd status": (error(418), Fault.UPSTREAM_ERROR),
    "sent elsewhere": (error(307, headers={"location": "/elsewhere"}), Fault.UPSTREAM_ERROR),
    "told not to retry": (error(429, headers={"x-should-retry": "false"}), Fault.RATE_LIMITED),
    "a web page": (junk(), Fault.UPSTREAM_ERROR),
    "a web page called json": (junk(content_type="application/json"), Fault.UPSTREAM_ERROR),
    "a json list": (junk(b"[]", content_type="application/json"), Fault.UPSTREAM_ERROR),
    "no content": (junk(b'{"content": null}', content_type="application/json"), Fault.UPSTREAM_ERROR),
    "nothing": (junk(b""), Fault.UPSTREAM_ERROR),
}


@pytest.mark.parametrize(("step", "fault"), FINAL.values(), ids=FINAL.keys())
async def test_an_error_that_asking_again_cannot_help_is_final(
    api: MessagesApi, reviewer: AnthropicReviewer, step: Step, fault: Fault
) -> None:
    api.script(step)
    judgement = await reviewer.review(brief(), LONG)
    assert (judgement.facts, judgement.fault) == (None, fault)
    assert judgement.usage.attempts == len(api.requests) == 1
    assert judgement.usage.cost_microdollars == 0


PASSING: dict[str, tuple[Step, Fault]] = {
    "rate limited": (error(429, kind="rate_limit_error", retry_after=0), Fault.RATE_LIMITED),
    "overloaded": (error(529, kind="overloaded_error", retry_after=0), Fault.OVERLOADED),
    "internal": (error(500, headers={"retry-after-ms": "1"}), Fault.UPSTREAM_ERROR),
    "unavailable": (error(503, retry_after=0), Fault.UPSTREAM_ERROR),
    "gateway timeout": (error(504, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), Fault.UPSTREAM_ERROR),
    "dropped": (drop(), Fault.CONNECTION),
    "dropped mid body": (drop(mid_body=True), Fault.CONNECTION),
}


@pytest.mark.parametrize(("step", "fault"), PASSING.values(), ids=PASSING.keys())
async def test_a_passing_error_is_retried_once(
    api: MessagesApi, reviewer: AnthropicReviewer, step: Step, fault: Fault
) -> None:
    api.script(step, reply())
    judgement = await reviewer.review(brief(), LONG)
    assert judgement.facts is not None
    assert judgement.usage.attempts == len(api.requests) == 2
    assert judgement.usage.cost_microdollars == api.usage_total_microdollars
    assert api.requests[0].body == api.requests[1].body


@pytest.mark.parametrize(("step", "fault"), PASSING.values(), ids=PASSING.keys())
async def test_a_passing_error_that_comes_twice_is_a_fault(
    api: MessagesApi, reviewer: AnthropicReviewer, step: Step, fault: Fault
) -> None:
    api.script(step, step)
    judgement = await reviewer.review(brief(), LONG)
    assert (judgement.facts, judgement.fault) == (None, fault)
    assert judgement.usage.attempts == len(api.requests) == 2
    assert judgement.usage.cost_microdollars == 0
