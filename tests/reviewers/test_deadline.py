"""The deadline holds whatever the server does, and a cancelled review leaves nothing behind."""

import asyncio
import time

import pytest

from app.reviewers.anthropic import ATTEMPTS, AnthropicReviewer
from app.schemas.judging import Fault
from app.settings import Settings
from tests.support.briefs import brief
from tests.support.messages_api import MessagesApi, Step, drop, error, reply, slow

LONG = 30.0
# Far above every deadline used here and far below every wait of the server.
GENEROUS = 10.0


async def _until(condition: str, api: MessagesApi, value: int) -> None:
    async with asyncio.timeout(GENEROUS):
        while getattr(api, condition) != value:  # noqa: ASYNC110 - the server lives in another thread
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("step", [slow(reply(), before_headers=60), slow(reply(), in_body=60)], ids=["headers", "body"])
async def test_a_server_that_hangs_is_left_at_the_deadline(
    api: MessagesApi, reviewer: AnthropicReviewer, step: Step
) -> None:
    api.script(step)
    started = time.monotonic()
    judgement = await reviewer.review(brief(), 0.5)
    assert time.monotonic() - started < GENEROUS
    assert (judgement.facts, judgement.fault) == (None, Fault.TIMEOUT)
    assert judgement.usage.attempts == 1
    await _until("open_connections", api, 0)


async def test_the_settings_cap_the_deadline(api: MessagesApi, settings: Settings) -> None:
    reviewer = AnthropicReviewer(settings.model_copy(update={"model_timeout_seconds": 0.5}))
    api.script(slow(reply(), before_headers=60))
    started = time.monotonic()
    judgement = await reviewer.review(brief(), LONG)
    assert time.monotonic() - started < GENEROUS
    assert judgement.fault is Fault.TIMEOUT
    await reviewer.aclose()


async def test_a_deadline_that_has_passed_asks_nobody(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    await reviewer.review(brief(), LONG)
    judgement = await reviewer.review(brief(), -1.0)
    assert judgement.fault is Fault.TIMEOUT
    assert len(api.requests) == 1


@pytest.mark.parametrize("retry_after", [60, "Wed, 21 Oct 2499 07:28:00 GMT", "inf", "nan", "1e400"])
async def test_a_wait_that_does_not_fit_the_deadline_is_not_waited_for(
    api: MessagesApi, reviewer: AnthropicReviewer, retry_after: float | str
) -> None:
    api.script(error(429, retry_after=retry_after))
    started = time.monotonic()
    judgement = await reviewer.review(brief(), LONG)
    assert time.monotonic() - started < GENEROUS
    assert judgement.fault is Fault.RATE_LIMITED
    assert len(api.requests) == 1


async def test_a_wait_in_milliseconds_comes_before_one_in_seconds(
    api: MessagesApi, reviewer: AnthropicReviewer
) -> None:
    api.script(error(429, headers={"retry-after-ms": "60000"}, retry_after=0))
    assert (await reviewer.review(brief(), LONG)).fault is Fault.RATE_LIMITED
    assert len(api.requests) == 1


async def test_a_wait_must_fit_the_settings_deadline_too(api: MessagesApi, settings: Settings) -> None:
    reviewer = AnthropicReviewer(settings.model_copy(update={"model_timeout_seconds": 2.0}))
    api.script(error(429, retry_after=3))
    assert (await reviewer.review(brief(), LONG)).fault is Fault.RATE_LIMITED
    assert len(api.requests) == 1
    await reviewer.aclose()


async def test_a_wait_that_fits_is_waited_for(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    api.script(error(529, retry_after=0.3), reply())
    judgement = await reviewer.review(brief(), LONG)
    assert judgement.facts is not None
    assert judgement.usage.latency_ms >= 300


@pytest.mark.parametrize("retry_after", ["soon", "-5", "1 Jan 0 99:99"])
async def test_a_wait_that_makes_no_sense_is_replaced_by_our_own(
    api: MessagesApi, reviewer: AnthropicReviewer, retry_after: str
) -> None:
    api.script(error(500, retry_after=retry_after), reply())
    assert (await reviewer.review(brief(), LONG)).facts is not None


async def test_no_retry_is_begun_that_cannot_end_in_time(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    api.script(drop(), reply())
    judgement = await reviewer.review(brief(), 0.6)
    assert judgement.fault is Fault.CONNECTION
    assert len(api.requests) == 1


async def test_a_server_that_hangs_after_an_error_is_left_at_the_same_deadline(
    api: MessagesApi, reviewer: AnthropicReviewer
) -> None:
    api.script(error(500, retry_after=0), slow(reply(), before_headers=60))
    started = time.monotonic()
    judgement = await reviewer.review(brief(), 1.5)
    assert time.monotonic() - started < GENEROUS
    assert judgement.fault is Fault.TIMEOUT
    assert judgement.usage.attempts == ATTEMPTS


async def test_a_cancelled_review_is_cancelled_and_leaves_nothing(
    api: MessagesApi, reviewer: AnthropicReviewer
) -> None:
    before = asyncio.all_tasks()
    api.script(slow(reply(), before_headers=60))
    review = asyncio.create_task(reviewer.review(brief(), LONG))
    async with asyncio.timeout(GENEROUS):
        while not api.requests:  # noqa: ASYNC110 - the server lives in another thread
            await asyncio.sleep(0.01)

    review.cancel()
    with pytest.raises(asyncio.CancelledError):
        await review

    assert asyncio.all_tasks() == before
    await _until("open_connections", api, 0)
    assert (await reviewer.review(brief(), LONG)).facts is not None


async def test_reviews_run_side_by_side(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    judgements = await asyncio.gather(*(reviewer.review(brief(), LONG) for _ in range(32)))
    assert all(judgement.facts for judgement in judgements)
    assert sum(judgement.usage.cost_microdollars for judgement in judgements) == api.usage_total_microdollars


async def test_closing_ends_the_connections(api: MessagesApi, settings: Settings) -> None:
    reviewer = AnthropicReviewer(settings)
    await reviewer.review(brief(), LONG)
    await reviewer.aclose()
    await _until("open_connections", api, 0)
