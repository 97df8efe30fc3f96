"""What nobody could judge is decided later, and the agent of a later session is told and acts on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_client import Desk, MakeDesk
from tests.support.memories import MIGRATIONS, RETRIES
from tests.support.memory_calls import create_entity
from tests.support.service import Service, running_service

pytestmark = pytest.mark.e2e


@pytest.fixture
def held_service(tmp_path: Path, nobody: str) -> Iterator[Service]:
    """A service whose second model cannot be reached."""
    environment = {
        "MEMORY_BOUNCER_LEVEL": "model",
        "MEMORY_BOUNCER_ANTHROPIC_BASE_URL": nobody,
        "MEMORY_BOUNCER_BUDGET_MICRODOLLARS": "5000000",
    }
    with running_service(tmp_path / "held-service", environment) as service:
        yield service


@pytest.fixture
def desk(make_desk: MakeDesk, held_service: Service) -> Desk:
    return make_desk(held_service.url, environment={"MEMORY_BOUNCER_ON_FAILURE": "hold"})


def held_ids(service: Service) -> list[str]:
    return [item["review_id"] for item in service.get("/v1/queue")["items"]]


def test_an_approved_text_is_told_and_stored_in_a_later_session(desk: Desk, held_service: Service) -> None:
    run = desk.run([create_entity("billing gateway", RETRIES)])
    assert "later session" in run.refusal(0)
    assert desk.memory == {}
    assert RETRIES in desk.bouncer("queue", "list", "--json").stdout
    (review_id,) = held_ids(held_service)
    done = desk.bouncer("queue", "approve", review_id[:28], "--reason", "The bank says so.", "--category", "RULE")
    assert done.returncode == 0, done

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert f"Store exactly this text, with mcp__memory__create_entities under “billing gateway”:\n{RETRIES}" in (
        run.heard.context
    )
    assert run.result(0).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}
    (entry,) = held_service.entries(desk.project_name)
    assert (entry["text"], entry["status"], entry["category"]) == (RETRIES, "stored", "RULE")
    assert "decided" not in desk.run(["Nothing today."]).heard.context


def test_a_text_that_a_person_turns_away_is_told_with_the_reason(desk: Desk, held_service: Service) -> None:
    desk.run([create_entity("billing gateway", RETRIES)])
    (review_id,) = held_ids(held_service)
    desk.bouncer("queue", "rewrite", review_id, "--reason", "It is migrations that matter.", "--text", MIGRATIONS)

    run = desk.run([create_entity("deployments", MIGRATIONS)])

    assert MIGRATIONS in run.heard.context
    assert desk.memory == {"deployments": [MIGRATIONS]}


def test_what_the_policy_lets_in_unreviewed_is_an_entry_and_removed_if_turned_away(
    make_desk: MakeDesk, held_service: Service
) -> None:
    desk = make_desk(held_service.url)
    desk.run([create_entity("billing gateway", RETRIES)])
    assert desk.memory == {"billing gateway": [RETRIES]}
    (entry,) = held_service.entries(desk.project_name)
    assert (entry["status"], entry["unreviewed"], entry["store_id"]) == ("stored", True, "billing gateway")
    (review_id,) = held_ids(held_service)

    desk.bouncer("queue", "reject", review_id, "--reason", "No longer true.")

    run = desk.run(["Nothing today."])
    assert "Remove it from store memory (stored as “billing gateway”)" in run.heard.context
    (entry,) = held_service.entries(desk.project_name)
    assert entry["status"] == "withdrawn"
