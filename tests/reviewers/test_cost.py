"""What a review may cost is known before and never exceeded; what it did cost is the sum over its attempts."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import SecretStr

from app.prices import load_prices
from app.prompts import draw_nonce
from app.reviewers.anthropic import ATTEMPTS, AnthropicReviewer
from app.schemas.judging import Brief
from app.settings import Settings
from tests.reviewers.conftest import KEY
from tests.support.briefs import brief, briefs
from tests.support.messages_api import MessagesApi, Tokens, drop, error, reply

LONG = 30.0


def reviewer_of(model: str = "claude-haiku-5-5", max_tokens: int = 1_024) -> AnthropicReviewer:
    return AnthropicReviewer(Settings(model=model, model_max_tokens=max_tokens, anthropic_api_key=SecretStr(KEY)))


REVIEWERS = {model: reviewer_of(model) for model in load_prices().models}


@st.composite
def splits(draw: st.DrawFn, most: int) -> tuple[int, int, int]:
    """Ways to bill at most that many prompt tokens: read anew, written to the cache, read from it."""
    total = draw(st.integers(0, most))
    first = draw(st.integers(0, total))
    second = draw(st.integers(0, total - first))
    return first, second, total - first - second


@examples(max_examples=60)
@given(st.data(), briefs(), st.sampled_from(sorted(REVIEWERS)))
def test_no_review_costs_more_than_its_worst_case(data: st.DataObject, shown: Brief, model: str) -> None:
    reviewer = REVIEWERS[model]
    price = load_prices().models[model]
    request = reviewer.request(shown, draw_nonce(shown))
    # The most that a tokenizer can make of the texts: a token for each byte, and what the server wraps around them.
    texts = [request["system"][0]["text"], request["messages"][0]["content"], json.dumps(request["output_config"])]
    most = sum(len(text.encode()) for text in texts) + 500
    cost = 0
    for _ in range(ATTEMPTS):
        read_anew, written, read_back = data.draw(splits(most))
        cost += price.cost_microdollars(
            input_tokens=read_anew,
            cache_write_tokens=written,
            cache_read_tokens=read_back,
            output_tokens=data.draw(st.integers(0, request["max_tokens"])),
        )
    assert cost <= reviewer.worst_case_microdollars(shown)


def test_a_prompt_that_may_be_long_is_reckoned_at_the_rates_of_long_ones() -> None:
    short = REVIEWERS["claude-haiku-5-5"].worst_case_microdollars(brief("x" * 10_000))
    long = REVIEWERS["claude-haiku-5-5"].worst_case_microdollars(brief("x" * 110_000))
    assert long > 5 * short


def test_a_character_that_a_tokenizer_may_spell_out_is_reckoned_so() -> None:
    reviewer = REVIEWERS["claude-haiku-5-5"]
    spelt_out = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 1_000
    assert reviewer.worst_case_microdollars(brief(spelt_out)) > reviewer.worst_case_microdollars(brief("xyz" * 1_000))


def test_the_worst_case_of_an_ordinary_review_is_a_fraction_of_a_cent() -> None:
    assert 0 < REVIEWERS["claude-haiku-5-5"].worst_case_microdollars(brief()) < 10_000


def test_more_output_costs_more() -> None:
    assert (
        reviewer_of(max_tokens=2_048).worst_case_microdollars(brief())
        == REVIEWERS["claude-haiku-5-5"].worst_case_microdollars(brief()) + ATTEMPTS * 512
    )


async def test_an_attempt_that_failed_but_reports_usage_is_counted(
    api: MessagesApi, reviewer: AnthropicReviewer
) -> None:
    first, second = Tokens(input=1_001, output=0), Tokens(input=333, cache_write=111, cache_read=77, output=55)
    api.script(error(503, retry_after=0, tokens=first), reply(tokens=second))

    usage = (await reviewer.review(brief(), LONG)).usage

    assert usage.attempts == 2
    assert usage.input_tokens == 1_334
    assert usage.cache_read_tokens == 2_677
    assert usage.cost_microdollars == first.microdollars + second.microdollars == api.usage_total_microdollars


@pytest.mark.parametrize("body", [b'{"usage": {"input_tokens": "many"}}', b'{"usage": 7}', b"oops", b"[]"])
async def test_an_error_with_senseless_usage_counts_nothing(
    api: MessagesApi, reviewer: AnthropicReviewer, body: bytes
) -> None:
    step = error(400)
    api.script(type(step)(status=400, body=body))
    assert (await reviewer.review(brief(), LONG)).usage.cost_microdollars == 0


async def test_each_attempt_is_billed_by_the_length_of_its_own_prompt(
    api: MessagesApi, reviewer: AnthropicReviewer
) -> None:
    halves = Tokens(input=60_000, cache_read=0, output=0)
    api.script(error(500, retry_after=0, tokens=halves), reply(tokens=halves))
    assert (await reviewer.review(brief(), LONG)).usage.cost_microdollars == 2 * 6_000


async def test_an_answer_that_never_arrived_costs_nothing_known(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    api.script(drop(), drop(mid_body=True))
    usage = (await reviewer.review(brief(), LONG)).usage
    assert (usage.attempts, usage.cost_microdollars) == (2, 0)


async def test_a_server_that_reports_no_usage_is_taken_for_free(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    api.script(reply(tokens=None))
    judgement = await reviewer.review(brief(), LONG)
    assert judgement.facts is not None
    assert judgement.usage.cost_microdollars == 0


def test_the_promised_attempts_are_those_made() -> None:
    assert ATTEMPTS == math.floor(ATTEMPTS) == 2
