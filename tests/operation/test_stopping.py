"""Told to stop, the service lets nothing begin and brings what is under way to an end."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_service import call
from tests.support.messages_api import MessagesApi, asking_always, messages_api, reply, slow
from tests.support.pipelines import GOOD
from tests.support.service import Service, running_service

PATIENCE = 60.0


@pytest.fixture
def model() -> Iterator[MessagesApi]:
    with messages_api() as api:
        yield api


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def settings(model: MessagesApi, database_url: str, drain: float) -> dict[str, str]:
    return asking_always(
        model,
        MEMORY_BOUNCER_DATABASE_URL="" if database_url.startswith("sqlite") else database_url,
        MEMORY_BOUNCER_DRAIN_SECONDS=str(drain),
    )


def ask(service: Service, text: str) -> httpx.Response:
    body = call(text, project="p", session=text[-5:].strip(" ."), deadline_seconds=60)
    return httpx.post(f"{service.url}/v1/reviews", json=body, trust_env=False, timeout=PATIENCE)


def until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < give_up, "it never came"
        time.sleep(0.02)


def is_draining(service: Service) -> bool:
    return httpx.get(f"{service.url}/readyz", trust_env=False, timeout=PATIENCE).status_code == 503


def test_reviews_under_way_are_finished_and_no_new_ones_begin(
    tmp_path: Path, database_url: str, model: MessagesApi, pool: ThreadPoolExecutor
) -> None:
    model.script(*[slow(reply(), before_headers=4.0)] * 3)
    with running_service(tmp_path, settings(model, database_url, 60)) as service:
        asked: list[Future[httpx.Response]] = [pool.submit(ask, service, text) for text in GOOD[:3]]
        until(lambda: len(model.requests) == 3)
        process = service.process
        process.send_signal(signal.SIGTERM)
        until(lambda: is_draining(service))
        late = ask(service, GOOD[3])
        assert (late.status_code, late.json()["type"]) == (503, "urn:memory-bouncer:problem:unavailable")
        assert httpx.get(f"{service.url}/healthz", trust_env=False).status_code == 200
        assert [future.result().json()["verdict"] for future in asked] == ["approve"] * 3
        assert process.wait(PATIENCE) == 0
        service.stop()
        service.start()
        assert {entry["text"] for entry in service.entries("p")} == set(GOOD[:3])


def test_reviews_that_take_too_long_are_held_and_answered_so(
    tmp_path: Path, database_url: str, model: MessagesApi, pool: ThreadPoolExecutor
) -> None:
    model.script(*[slow(reply(), before_headers=PATIENCE)] * 3)
    with running_service(tmp_path, settings(model, database_url, 0.5)) as service:
        asked = [pool.submit(ask, service, text) for text in GOOD[:3]]
        until(lambda: len(model.requests) == 3)
        process = service.process
        process.send_signal(signal.SIGTERM)
        answers: list[dict[str, Any]] = [future.result().json() for future in asked]
        assert process.wait(PATIENCE) == 0
        until(lambda: model.open_connections == 0)
        service.stop()
        service.start()
        assert [(a["verdict"], a["reviews"][0]["fault"]) for a in answers] == [("held", "interrupted")] * 3
        assert {r["id"] for r in service.reviews("p")} == {a["reviews"][0]["id"] for a in answers}
        assert service.metrics()['bouncer_budget_microdollars{period="month",scope="team",what="reserved"}'] == 0


def test_a_service_at_rest_stops_at_once(tmp_path: Path) -> None:
    with (
        running_service(tmp_path, {"MEMORY_BOUNCER_DRAIN_SECONDS": "120"}) as service,
        httpx.Client(base_url=service.url, trust_env=False) as idle,
    ):
        idle.get("/v1/entries").raise_for_status()
        service.process.terminate()
        assert service.process.wait(30) == 0


def test_a_second_interrupt_waits_for_no_model(tmp_path: Path, model: MessagesApi, pool: ThreadPoolExecutor) -> None:
    model.script(slow(reply(), before_headers=PATIENCE))
    with running_service(tmp_path, settings(model, "sqlite:", 120)) as service:
        asked = pool.submit(ask, service, GOOD[0])
        until(lambda: len(model.requests) == 1)
        service.process.send_signal(signal.SIGINT)
        until(lambda: is_draining(service))
        service.process.send_signal(signal.SIGINT)
        assert asked.result().json()["verdict"] == "held"
        assert service.process.wait(30) in (0, 130)
