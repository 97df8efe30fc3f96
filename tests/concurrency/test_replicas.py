"""Two services on one PostgreSQL, as a team runs them: exactly one, however they race; and back after an outage."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.http_service import call, http_service
from tests.support.messages_api import messages_api, reply
from tests.support.pipelines import COST, GOOD, Bench, ScriptedReviewer
from tests.support.postgres import Postgres, own_postgres
from tests.support.service import Service

pytestmark = pytest.mark.postgres

STATES = [
    f"The {part} is {state}, and the rest of it comes after that."
    for part in ("importer", "ferry timetable", "login page", "search index", "billing export")
    for state in ("half done", "waiting for a review", "blocked by the vendor", "in its second phase")
]
THINGS = ("lamp", "lens", "mirror", "shutter", "stair", "rail", "bell", "buoy", "chart", "flag")
PLACES = ("reef", "quay", "pier", "mole", "spit", "sound", "bight", "cape")


def running(folder: Path, url: str, stack: ExitStack, count: int = 2, **settings: str) -> list[Service]:
    """So many services on one database, in processes of their own."""
    environment = {f"MEMORY_BOUNCER_{name.upper()}": value for name, value in settings.items()}
    services = []
    for number in range(count):
        service = Service(folder / f"replica-{number}", environment | {"MEMORY_BOUNCER_DATABASE_URL": url})
        stack.callback(service.stop)
        services.append(service)
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(Service.start, services))
    return services


def ask(service: Service, body: dict[str, Any]) -> httpx.Response:
    """Have a call reviewed."""
    return httpx.post(f"{service.url}/v1/reviews", json=body, timeout=60, trust_env=False)


def ask_until_answered(service: Service, body: dict[str, Any]) -> dict[str, Any]:
    """Have a call reviewed, again and again while the service is unavailable, as hooks do; the answer."""
    while (response := ask(service, body)).status_code == 503:
        time.sleep(0.02)
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


def ask_all(services: Sequence[Service], bodies: Sequence[dict[str, Any]]) -> list[httpx.Response]:
    """Have all calls reviewed at once, by the services in turn."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(ask, cycle(services), bodies))


def test_of_fifty_equal_texts_over_two_services_one_is_approved(tmp_path: Path, postgres_url: str) -> None:
    with ExitStack() as stack:
        services = running(tmp_path, postgres_url, stack)
        bodies = [call(GOOD[0], project="p", session=f"s{number}", deadline_seconds=60) for number in range(50)]
        responses = ask_all(services, bodies)
        assert Counter(response.status_code for response in responses) == {200: 50}
        assert Counter(response.json()["verdict"] for response in responses) == {"approve": 1, "duplicate": 49}
        assert [len(service.entries("p")) for service in services] == [1, 1]


def test_of_twenty_states_over_two_services_one_is_approved_and_every_question_paid_once(
    tmp_path: Path, postgres_url: str
) -> None:
    with ExitStack() as stack:
        api = stack.enter_context(messages_api(reply(category="STATE")))
        services = running(
            tmp_path,
            postgres_url,
            stack,
            level="model",
            anthropic_base_url=api.url,
            anthropic_api_key="test-" + "key-" * 4,
            budget_microdollars="10000000",
        )
        bodies = [
            call(text, project="p", session=f"s{number}", deadline_seconds=60) for number, text in enumerate(STATES)
        ]
        responses = ask_all(services, bodies)
        assert Counter(response.status_code for response in responses) == {200: 20}
        verdicts = Counter(response.json()["verdict"] for response in responses)
        assert (verdicts["approve"], verdicts["update"] + verdicts["duplicate"]) == (1, 19)
        assert [entry["category"] for entry in services[0].entries("p")] == ["STATE"]
        with psycopg.connect(postgres_url.replace("+psycopg", "")) as database:
            windows = database.execute("SELECT spent, reserved FROM budget_window").fetchall()
        assert windows == [(api.usage_total_microdollars, 0)]


def test_what_one_service_learns_the_other_knows(tmp_path: Path, postgres_url: str) -> None:
    with ExitStack() as stack:
        one, other = running(tmp_path, postgres_url, stack)
        assert ask(one, call(GOOD[0], project="p", session="s1")).json()["verdict"] == "approve"
        assert ask(other, call(GOOD[0], project="p", session="s2")).json()["verdict"] == "duplicate"
        found = other.get("/v1/entries/search", project="p", query="idempotency")
        assert [hit["entry"]["text"] for hit in found] == [GOOD[0]]


# --- a server that goes away ----------------------------------------------------------------------------------------


@pytest.fixture
def own() -> Iterator[tuple[Postgres, str]]:
    """A server that may be stopped, and the URL of an empty database on it."""
    with own_postgres() as server:
        yield server, server.url("postgres")


def test_while_the_server_is_away_the_service_says_so_and_recovers_by_itself(
    tmp_path: Path, own: tuple[Postgres, str]
) -> None:
    server, url = own
    body = call(GOOD[0], project="p", deadline_seconds=1)
    with http_service(tmp_path, database_url=url, busy_timeout_seconds=1) as client:
        assert client.get("/readyz").status_code == 200
        server.stop()
        for response in (client.get("/readyz"), client.get("/v1/entries"), client.post("/v1/reviews", json=body)):
            assert (response.status_code, response.json()["type"]) == (503, "urn:memory-bouncer:problem:unavailable")
            assert str(server.folder) not in response.text
        assert client.get("/healthz").status_code == 200
        server.start()
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/reviews", json=body).json()["verdict"] == "approve"
        server.stop()
        server.start()
        assert client.get("/v1/entries").status_code == 200, "a restart that nobody met is not noticed at all"


async def test_what_was_paid_while_the_server_was_away_is_recorded_when_it_is_back(
    tmp_path: Path, own: tuple[Postgres, str]
) -> None:
    server, url = own
    model = ScriptedReviewer()
    model.hold()
    bench = Bench(tmp_path, database_url=url, model=model, budget_microdollars=500_000, level="model")
    asking = asyncio.create_task(bench.review(GOOD[0], deadline_seconds=60))
    await model.asked()
    await asyncio.to_thread(server.stop)
    model.release()
    await asyncio.to_thread(server.start)
    (review,) = (await asking).reviews
    assert (review.verdict, review.usage.cost_microdollars) == ("approve", COST)
    assert bench.money() == {"spent": COST, "reserved": 0, "settled": COST, "open": 0}
    await bench.close()


@pytest.mark.parametrize("end", [Postgres.stop, Postgres.crash], ids=["restart", "crash"])
def test_a_server_that_goes_down_under_load_loses_nothing_that_was_answered(
    tmp_path: Path, own: tuple[Postgres, str], end: Any
) -> None:
    """What was answered is there once, and what was asked again under the same id did not come twice."""
    server, url = own
    first_answers = threading.Semaphore(0)
    with ExitStack() as stack:
        services = running(tmp_path, url, stack, busy_timeout_seconds="2")

        def write(place: str) -> list[dict[str, Any]]:
            done = []
            for thing, service in zip(THINGS, cycle(services), strict=False):
                text = f"Always polish the {thing} at {place} light before dusk, because salt blinds it overnight."
                body = call(text, project="p", session=place, deadline_seconds=60)
                done += ask_until_answered(service, body)["reviews"]
                first_answers.release()
            return done

        with ThreadPoolExecutor(len(PLACES)) as pool:
            writing = [pool.submit(write, place) for place in PLACES]
            for _ in PLACES:
                assert first_answers.acquire(timeout=60)
            end(server)
            server.start()
            answered = [review for future in writing for review in future.result()]

        assert len(answered) == len(PLACES) * len(THINGS)
        approved = {review["text"] for review in answered if review["verdict"] == "approve"}
        assert {entry["text"] for entry in _all(services[0], "/v1/entries")} == approved
        assert {review["id"] for review in _all(services[1], "/v1/reviews")} == {review["id"] for review in answered}


def _all(service: Service, path: str) -> list[dict[str, Any]]:
    """The items of all pages, each once."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = service.get(path, project="p", count=50, **cursor)
        items += page["items"]
        if page["next"] is None:
            assert len({item["id"] for item in items}) == len(items)
            return items
        cursor = {"before": page["next"]}
