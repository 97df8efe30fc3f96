"""A client that lost the answer and asks again: the same review, paid once. Through HTTP and the real model client."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_service import call, http_service
from tests.support.messages_api import MessagesApi, messages_api, reply, slow
from tests.support.pipelines import GOOD


@pytest.fixture
def model() -> Iterator[MessagesApi]:
    with messages_api() as api:
        yield api


@pytest.fixture
def paid(tmp_path: Path, model: MessagesApi) -> Iterator[httpx.Client]:
    with http_service(
        tmp_path,
        anthropic_api_key="test-" + "key-" * 4,
        anthropic_base_url=model.url,
        budget_microdollars=10_000_000,
        level="model",
    ) as client:
        yield client


def cost(review: dict[str, Any]) -> int:
    """What a review cost, in micro-dollars."""
    return int(review["usage"]["cost_microdollars"])


def test_a_retry_after_a_lost_answer_gets_the_same_review(paid: httpx.Client, model: MessagesApi) -> None:
    body = call(GOOD[0], project="p")
    first, again = (paid.post("/v1/reviews", json=body).json() for _ in range(2))
    assert first["reviews"] == again["reviews"]
    assert (first["reviews"][0]["reviewer"], again["replayed"]) == ("anthropic", True)
    assert len(model.requests) == 1
    assert cost(first["reviews"][0]) == model.usage_total_microdollars


def test_a_client_that_hangs_up_and_asks_again_is_charged_once(paid: httpx.Client, model: MessagesApi) -> None:
    model.script(slow(reply(), before_headers=1.0))
    body = call(GOOD[0], project="p")
    with pytest.raises(httpx.ReadTimeout):
        paid.post("/v1/reviews", json=body, timeout=httpx.Timeout(10, read=0.4))
    answer = paid.post("/v1/reviews", json=body).json()
    assert (answer["verdict"], answer["replayed"]) == ("approve", True)
    assert len(model.requests) == 1
    assert cost(answer["reviews"][0]) == model.usage_total_microdollars > 0


def test_the_same_call_from_many_at_once_asks_the_model_once(paid: httpx.Client, model: MessagesApi) -> None:
    model.script(slow(reply(), before_headers=0.5))
    body = call(GOOD[0], project="p")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: paid.post("/v1/reviews", json=body).json(), range(8)))
    assert len({answer["reviews"][0]["id"] for answer in answers}) == 1
    assert sum(not answer["replayed"] for answer in answers) == 1
    assert len(model.requests) == 1
    assert len(paid.get("/v1/entries", params={"project": "p"}).json()["items"]) == 1


def test_a_call_whose_model_never_answers_is_held_within_the_deadline(paid: httpx.Client, model: MessagesApi) -> None:
    model.script(slow(reply(), before_headers=60))
    body = call(GOOD[0], project="p", deadline_seconds=2)
    answer = paid.post("/v1/reviews", json=body, timeout=20).json()
    (review,) = answer["reviews"]
    assert (answer["verdict"], review["fault"]) == ("held", "timeout")
    assert paid.post("/v1/reviews", json=body).json()["reviews"] == [review]
