"""What breaks around the service: each hook answers in time, no text is lost, and the service recovers by itself."""

import contextlib
import os
import resource
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from hooks import store_hygiene_gate as hook
from tests.support.hook_runs import Said, event, journal, run
from tests.support.http_service import call
from tests.support.messages_api import MessagesApi, asking_always, error, messages_api, reply, slow
from tests.support.pipelines import GOOD
from tests.support.postgres import own_postgres
from tests.support.service import Service, running_service

TOOL = "mcp__memory__create_entities"
BUSY = {"MEMORY_BOUNCER_BUSY_TIMEOUT_SECONDS": "0.5"}
AWAY = "60"
FRESH = "The lens is polished before dusk and never after, because salt blinds it overnight and nobody sees."


def offer(service: Service, text: str, number: int = 1, **settings: str) -> Said:
    """Have the real hook asked about a text; its own limit of time is far below that of whatever is slow."""
    entity = {"name": "light", "entityType": "note", "observations": [text]}
    payload = event("PreToolUse", TOOL, {"entities": [entity]}, session_id=f"s{number}", tool_use_id=f"toolu_{number}")
    environment = {"MEMORY_BOUNCER_URL": service.url, "MEMORY_BOUNCER_DEADLINE": "4", **settings}
    return run(payload, environment)


def offer_all(service: Service, texts: tuple[str, ...] = GOOD, first: int = 1, **settings: str) -> list[Said]:
    """Have the hook asked about all of them at once."""
    with ThreadPoolExecutor(len(texts)) as pool:
        futures = [pool.submit(offer, service, text, first + place, **settings) for place, text in enumerate(texts)]
        return [future.result() for future in futures]


def flushed(service: Service) -> list[str]:
    """Send what the journal keeps to the service; what became of each."""
    environment = {**os.environ, "MEMORY_BOUNCER_URL": service.url}
    config = hook.load_config(os.getcwd(), environment)  # noqa: PTH109
    _, left = hook.journal_flush(config, 60)
    assert left == 0
    return [str(record["flushed"]) for record in journal()]


def check_unreviewed(answers: list[Said]) -> None:
    """Nobody judged, so nobody was refused; and all of the texts are kept."""
    assert [answer.decision for answer in answers] == [None] * len(answers)
    assert all("not reviewed" in answer.context for answer in answers), answers
    assert sorted(str(record["text"]) for record in journal()) == sorted(GOOD)


def check_recovered(service: Service) -> None:
    """The same process judges again, what was kept first."""
    assert flushed(service) == ["approve"] * len(GOOD)
    assert offer(service, FRESH, number=99).decision is None
    assert service.process.poll() is None
    assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 200


@contextlib.contextmanager
def locked(service: Service, url: str) -> Iterator[None]:
    """The database locked by somebody who does not let go."""
    if url.startswith("sqlite"):
        holder = sqlite3.connect(service.data_dir / "bouncer.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.rollback()
        holder.close()
    else:
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            connection.execute("LOCK TABLE project, call, review IN ACCESS EXCLUSIVE MODE")
            yield
            connection.rollback()


def test_a_database_that_stays_locked(tmp_path: Path, database_url: str) -> None:
    own = BUSY if database_url.startswith("sqlite") else BUSY | {"MEMORY_BOUNCER_DATABASE_URL": database_url}
    with running_service(tmp_path, own) as service:
        with locked(service, database_url):
            check_unreviewed(offer_all(service))
            response = httpx.post(
                f"{service.url}/v1/reviews",
                json=call(GOOD[0], project="p", deadline_seconds=1),
                trust_env=False,
                timeout=60,
            )
            assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
        assert sum(value for name, value in service.metrics().items() if "database_errors_total" in name) > 0
        check_recovered(service)


def test_a_full_disk(tmp_path: Path) -> None:
    with running_service(tmp_path, BUSY) as service:
        offer(
            service, "`pilotd` rings the bell twice at low tide, because the boat waits for the second ring.", number=50
        )
        pid = service.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        # No byte can be written to any file, the log's included, which is how a full disk looks from inside.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
        assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 503
        check_unreviewed(offer_all(service))
        assert service.get("/v1/entries", project="nowhere")["items"] == [], "reading goes on"
        assert httpx.get(f"{service.url}/healthz", trust_env=False).status_code == 200
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        check_recovered(service)
        assert service.rows("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.postgres
def test_a_postgresql_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    with own_postgres() as server:
        own = BUSY | {"MEMORY_BOUNCER_DATABASE_URL": server.url("postgres")}
        with running_service(tmp_path, own) as service:
            server.crash()
            check_unreviewed(offer_all(service))
            server.start()
            check_recovered(service)


# --- the model ------------------------------------------------------------------------------------------------------


@pytest.fixture
def model() -> Iterator[MessagesApi]:
    with messages_api() as api:
        yield api


def test_a_model_that_takes_a_minute_holds_up_neither_hooks_nor_other_projects(
    tmp_path: Path, model: MessagesApi
) -> None:
    model.script(*[slow(reply(), before_headers=float(AWAY))] * len(GOOD))
    with running_service(tmp_path, asking_always(model)) as service, ThreadPoolExecutor(1) as pool:
        httpx.put(f"{service.url}/v1/projects/free", json={"level": "offline"}, trust_env=False).raise_for_status()
        asked = pool.submit(offer_all, service)
        free = httpx.post(f"{service.url}/v1/reviews", json=call(GOOD[0], project="free"), trust_env=False, timeout=60)
        assert free.json()["verdict"] == "approve"
        check_unreviewed(asked.result())
        held = service.get("/v1/reviews", verdict="held")["items"]
        assert {review["fault"] for review in held} == {"timeout"}
        assert {review["text"] for review in held} == set(GOOD)
        assert offer(service, FRESH, number=99).decision is None
        assert service.get("/v1/reviews")["items"][0]["verdict"] == "approve"


def test_a_storm_of_overload_is_told_as_what_it_is_and_passes(tmp_path: Path, model: MessagesApi) -> None:
    many = 12
    model.script(*[error(529, kind="overloaded_error")] * (2 * (many + len(GOOD))))
    with running_service(tmp_path, asking_always(model, MEMORY_BOUNCER_AT_CAP="hold")) as service:
        bodies = [call(f"{GOOD[0]} Case {number}.", project="p", session=f"c{number}") for number in range(many)]
        with ThreadPoolExecutor(many) as pool:
            responses = list(
                pool.map(
                    lambda body: httpx.post(f"{service.url}/v1/reviews", json=body, trust_env=False, timeout=60), bodies
                )
            )
        for response in responses:
            assert response.status_code == 200 or response.headers["content-type"] == "application/problem+json"
        held = [
            review for response in responses if response.status_code == 200 for review in response.json()["reviews"]
        ]
        assert {review["verdict"] for review in held} == {"held"}
        assert {review["fault"] for review in held} <= {"overloaded", "circuit_open", "timeout"}
        check_unreviewed(offer_all(service))
        model.clear()
        # The model is left alone for a while after so many failures; then it is asked again, by this same process.
        give_up = time.monotonic() + 120
        while not _judged_by_model(service):
            assert time.monotonic() < give_up, "the model is never asked again"
            time.sleep(2)


def _judged_by_model(service: Service) -> bool:
    body = call(f"{GOOD[1]} Seen at {time.time_ns()}.", project="p", session=f"s{time.time_ns()}")
    answer = httpx.post(f"{service.url}/v1/reviews", json=body, trust_env=False, timeout=60).json()
    review = answer["reviews"][0]
    return bool(review["reviewer"] == "anthropic" and review["verdict"] != "held")
