"""Every error of the SDK is one of our faults, and none carries a text or a key out."""

import logging
from collections.abc import Iterator

import anthropic
import pytest
from pydantic import SecretStr

from app.errors import ConfigurationError
from app.reviewers import Reviewer
from app.reviewers.anthropic import FAULTS, AnthropicReviewer
from app.schemas.judging import Fault
from app.settings import Settings
from tests.reviewers.conftest import KEY
from tests.support.briefs import brief, neighbour
from tests.support.messages_api import MessagesApi, drop, error, reply

LONG = 30.0


def _below(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _below(below)


CATCH_ALL = {anthropic.AnthropicError, anthropic.APIError, anthropic.APIStatusError}


def test_every_public_error_of_the_sdk_has_a_row_or_a_kind_that_has() -> None:
    public = {thing for thing in vars(anthropic).values() if isinstance(thing, type)}
    kinds = {kind for kind in public if issubclass(kind, anthropic.AnthropicError)} - CATCH_ALL
    assert len(kinds) > 20
    assert {kind for kind in kinds if set(kind.__mro__).isdisjoint(FAULTS.keys() - CATCH_ALL)} == set()


def test_no_error_of_the_sdk_is_without_a_fault() -> None:
    assert all(not set(kind.__mro__).isdisjoint(FAULTS) for kind in _below(anthropic.AnthropicError))


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (anthropic.RateLimitError, Fault.RATE_LIMITED),
        (anthropic.OverloadedError, Fault.OVERLOADED),
        (anthropic.NotFoundError, Fault.MODEL_NOT_FOUND),
        (anthropic.APITimeoutError, Fault.TIMEOUT),
        (anthropic.APIConnectionError, Fault.CONNECTION),
        (anthropic.CredentialsError, Fault.UNAUTHORIZED),
    ],
)
def test_the_most_specific_error_decides(kind: type[anthropic.AnthropicError], fault: Fault) -> None:
    assert FAULTS[kind] is fault


async def test_the_detail_says_what_the_server_said(api: MessagesApi, reviewer: AnthropicReviewer) -> None:
    api.script(error(400, kind="invalid_request_error", message="thinking.type:\n disabled is not supported"))
    judgement = await reviewer.review(brief(), LONG)
    assert judgement.fault_detail == "HTTP 400 invalid_request_error req_1: thinking.type: disabled is not supported"


SECRET = "the launch code is " + "alpha-seven-zulu"


@pytest.mark.parametrize(
    "message",
    [f"Invalid: {SECRET}", f"Invalid: {SECRET[3:25]}…", "'\\u65e5\\u672c\\u8a9e\\u306e\\u6587'", KEY],
    ids=["whole", "a piece", "escaped", "key"],
)
async def test_the_detail_repeats_neither_texts_nor_the_key(
    api: MessagesApi, reviewer: AnthropicReviewer, message: str
) -> None:
    api.script(error(400, message=f"1 validation error: {message}"))
    hidden = brief(neighbours=(neighbour(text="日本語の文 " + SECRET),))
    judgement = await reviewer.review(hidden, LONG)
    assert judgement.fault_detail == "HTTP 400 api_error req_1"


@pytest.mark.parametrize("kind", [f"type: {SECRET}", "", "x" * 100])
async def test_only_plain_words_of_a_server_are_passed_on(
    api: MessagesApi, reviewer: AnthropicReviewer, kind: str
) -> None:
    api.script(error(400, kind=kind, message=""))
    assert (await reviewer.review(brief(), LONG)).fault_detail == "HTTP 400 req_1"


async def test_nothing_above_debug_tells_a_text_or_the_key(
    api: MessagesApi, reviewer: AnthropicReviewer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    api.script(reply(text=SECRET), error(400, message=SECRET), drop(), error(500, message=KEY, retry_after=0), reply())
    for _ in range(4):
        await reviewer.review(brief(SECRET), LONG)
    assert SECRET not in caplog.text
    assert KEY not in caplog.text


async def test_a_server_that_is_not_there_is_a_fault() -> None:
    reviewer: Reviewer = (
        settled := AnthropicReviewer(
            Settings(anthropic_base_url="http://127.0.0.1:9", anthropic_api_key=SecretStr(KEY))
        )
    )
    judgement = await reviewer.review(brief(), LONG)
    assert (judgement.facts, judgement.fault) == (None, Fault.CONNECTION)
    assert judgement.usage.attempts == 2
    await settled.aclose()


async def test_the_providers_own_server_is_not_asked_without_a_key() -> None:
    reviewer = AnthropicReviewer(Settings())
    judgement = await reviewer.review(brief(), LONG)
    assert judgement.fault is Fault.UNAUTHORIZED
    assert "MEMORY_BOUNCER_ANTHROPIC_API_KEY" in (judgement.fault_detail or "")
    assert judgement.usage.attempts == 0
    await reviewer.aclose()


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://127.0.0.1", "http://", "http://[::1"])
def test_an_address_that_is_none_is_refused_at_start(url: str) -> None:
    with pytest.raises(ConfigurationError, match="MEMORY_BOUNCER_ANTHROPIC_BASE_URL"):
        AnthropicReviewer(Settings(anthropic_base_url=url))


def test_a_model_without_a_price_is_refused_at_start() -> None:
    with pytest.raises(ConfigurationError, match="home-grown"):
        AnthropicReviewer(Settings(model="home-grown"))
