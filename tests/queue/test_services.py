"""Real services: replicas that race for what is held, people against a slow model, and kills in between."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.http_service import call
from tests.support.messages_api import MessagesApi, Request, Step, error, messages_api, reply, slow
from tests.support.pipelines import GOOD
from tests.support.service import Service

PATIENCE = 60.0
AGENT = "claude-code"
HASTY = """\
from datetime import timedelta
from app import held, main, queue
main.SWEEP_SECONDS, held.FIRST_PAUSE = 0.2, timedelta(seconds=0.2)
from app.cli import main
main()
"""


class HastyService(Service):
    """A service that looks at its queue five times a second."""

    program = (sys.executable, "-c", HASTY)


class Model:
    """What the model's server answers at the moment: that it is overloaded, until it is told otherwise."""

    def __init__(self) -> None:
        self.answer: Step = error(529)

    def __call__(self, _: Request) -> Step:
        """The answer to a request."""
        return self.answer


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def api(model: Model) -> Iterator[MessagesApi]:
    with messages_api(model) as api:
        yield api


def service(folder: Path, api: MessagesApi, kind: type[Service] = Service, **settings: str) -> Service:
    given = {
        "level": "model",
        "anthropic_base_url": api.url,
        "anthropic_api_key": "test-" + "key-" * 4,
        "budget_microdollars": "10000000",
        "at_cap": "hold",
        **settings,
    }
    return kind(folder, {f"MEMORY_BOUNCER_{name.upper()}": value for name, value in given.items()})


def send(service: Service, path: str, body: dict[str, Any]) -> Any:
    response = httpx.post(f"{service.url}{path}", json=body, timeout=PATIENCE, trust_env=False)
    response.raise_for_status()
    return response.json()


def hold(service: Service, *texts: str) -> list[str]:
    """Have texts held, each in a call of its own; ids of the reviews."""
    answers = [send(service, "/v1/reviews", call(text, project="p", deadline_seconds=3)) for text in texts]
    assert [answer["verdict"] for answer in answers] == ["held"] * len(texts)
    return [answer["reviews"][0]["id"] for answer in answers]


def news(service: Service) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = service.get("/v1/decisions/news", project="p", agent=AGENT)["items"]
    return items


@pytest.mark.postgres
def test_two_replicas_decide_each_held_text_once_and_pay_once(
    tmp_path: Path, postgres_url: str, api: MessagesApi, model: Model
) -> None:
    texts = [f"{text} It was seen on host {number}." for text in GOOD for number in range(3)]
    with ExitStack() as stack:
        replicas = []
        for number in range(2):
            replica = service(tmp_path / str(number), api, HastyService, database_url=postgres_url)
            stack.callback(replica.stop)
            replica.start()
            replicas.append(replica)
        hold(replicas[0], *texts)
        model.answer = slow(reply(), before_headers=0.05)
        give_up = time.monotonic() + PATIENCE
        while replicas[1].get("/v1/queue")["counts"] and time.monotonic() < give_up:
            time.sleep(0.1)

    with psycopg.connect(postgres_url.replace("+psycopg", "")) as database:
        decisions = database.execute("SELECT review_id, verdict FROM decision").fetchall()
        (windows,) = database.execute("SELECT spent, reserved FROM budget_window").fetchall()
        (cost,) = database.execute("SELECT sum(cost_microdollars) FROM review").fetchall()
    assert len(decisions) == len({review_id for review_id, _ in decisions}) == len(texts)
    assert windows == (api.usage_total_microdollars, 0)
    assert cost[0] == api.usage_total_microdollars


def test_a_decision_outlives_a_kill_and_is_told_until_it_was_heard(tmp_path: Path, api: MessagesApi) -> None:
    running = service(tmp_path, api)
    running.start()
    try:
        (review_id,) = hold(running, GOOD[0])
        send(running, f"/v1/reviews/{review_id}/decision", {"verdict": "approve", "reason": "It holds."})
        running.kill()
        running.start()
        (item,) = news(running)
        assert item["text"] == GOOD[0]
        running.kill()
        running.start()
        assert news(running) == [item]
        send(running, "/v1/decisions/told", {"decisions": [item["decision_id"]]})
        assert news(running) == []
        assert send(running, "/v1/reviews", call(GOOD[0], project="p"))["verdict"] == "approve"
    finally:
        running.stop()


def test_a_person_is_right_against_a_slow_model(tmp_path: Path, api: MessagesApi, model: Model) -> None:
    running = service(tmp_path, api, HastyService)
    running.start()
    try:
        (review_id,) = hold(running, GOOD[0])
        asked = len(api.requests)
        model.answer = slow(reply(), before_headers=1.5)
        give_up = time.monotonic() + PATIENCE
        while len(api.requests) == asked and time.monotonic() < give_up:
            time.sleep(0.05)
        send(running, f"/v1/reviews/{review_id}/decision", {"verdict": "reject", "reason": "Not true any more."})
        while running.rows("SELECT 1 FROM call WHERE open_until IS NOT NULL") and time.monotonic() < give_up:
            time.sleep(0.05)
        review = running.get(f"/v1/reviews/{review_id}")
        assert (review["verdict"], review["reviewer"]) == ("reject", "person")
        assert [decision["by"] for decision in review["decisions"]] == ["person"]
        assert [item["verdict"] for item in news(running)] == ["reject"]
    finally:
        running.stop()
