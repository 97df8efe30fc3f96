"""A model reviewer against a scripted server."""

from collections.abc import AsyncIterator, Iterator

import pytest
from pydantic import SecretStr

from app.reviewers.anthropic import AnthropicReviewer
from app.settings import Settings
from tests.support.messages_api import MessagesApi, messages_api

KEY = "test-" + "key-" * 4


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with messages_api() as server:
        yield server


@pytest.fixture
def settings(api: MessagesApi) -> Settings:
    return Settings(anthropic_base_url=api.url, anthropic_api_key=SecretStr(KEY))


@pytest.fixture
async def reviewer(settings: Settings) -> AsyncIterator[AnthropicReviewer]:
    reviewer = AnthropicReviewer(settings)
    yield reviewer
    await reviewer.aclose()
