"""What Prometheus gets to see."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.http_service import call, http_service
from tests.support.messages_api import MessagesApi, error, messages_api, reply
from tests.support.pipelines import GOOD, SLOP
from tests.support.team import team

LABEL = re.compile(r'(\w+)="([^"]*)"')


def shown(client: httpx.Client) -> dict[str, float]:
    """Each figure by its name and labels as they are written."""
    lines = client.get("/metrics").raise_for_status().text.splitlines()
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


@pytest.fixture
def model() -> Iterator[MessagesApi]:
    with messages_api() as api:
        yield api


@pytest.fixture
def paid(tmp_path: Path, database_url: str, model: MessagesApi) -> Iterator[httpx.Client]:
    with http_service(
        tmp_path,
        database_url=database_url,
        anthropic_api_key="test-" + "key-" * 4,
        anthropic_base_url=model.url,
        budget_microdollars=10_000_000,
        level="model",
    ) as client:
        yield client


def test_reviews_money_and_what_waits_are_counted(paid: httpx.Client, model: MessagesApi) -> None:
    model.script(reply(), error(401), reply(category="NONE", durable=False))
    for number, text in enumerate((GOOD[0], GOOD[1], GOOD[2], SLOP)):
        paid.post("/v1/reviews", json=call(text, project="p", session=f"s{number}")).raise_for_status()
    paid.post("/v1/reviews", json=call(GOOD[3], project="p", dry_run=True)).raise_for_status()
    found = shown(paid)
    reviews = {name: value for name, value in found.items() if name.startswith("bouncer_reviews_total")}
    assert reviews == {
        'bouncer_reviews_total{reviewer="anthropic",verdict="approve"}': 1,
        'bouncer_reviews_total{reviewer="anthropic",verdict="held"}': 1,
        'bouncer_reviews_total{reviewer="anthropic",verdict="reject"}': 1,
        'bouncer_reviews_total{reviewer="gate",verdict="reject"}': 1,
    }, "a dry run is no review"
    assert found['bouncer_review_reasons_total{reason="session_summary"}'] == 2
    assert found['bouncer_review_faults_total{fault="unauthorized"}'] == 1
    assert found['bouncer_review_seconds_count{reviewer="anthropic"}'] == 3
    assert found['bouncer_model_calls_total{outcome="answered"}'] == 3, "but it was paid for"
    assert found['bouncer_model_calls_total{outcome="unauthorized"}'] == 1
    assert found["bouncer_model_cost_microdollars_total"] == model.usage_total_microdollars
    assert found['bouncer_model_tokens_total{kind="cache_read"}'] == 3 * 2_600
    assert (
        found['bouncer_budget_microdollars{period="month",scope="team",what="spent"}'] == model.usage_total_microdollars
    )
    assert found['bouncer_budget_microdollars{period="month",scope="team",what="reserved"}'] == 0
    assert found['bouncer_budget_microdollars{period="month",scope="team",what="limit"}'] == 10_000_000
    assert found['bouncer_budget_refused{period="month",scope="team"}'] == 0
    assert [found[f'bouncer_budgets{{state="{state}"}}'] for state in ("ok", "warned", "at_cap")] == [1, 0, 0]
    assert found["bouncer_circuit_open"] == 0
    assert found['bouncer_held{fault="unauthorized"}'] == 1
    assert found["bouncer_held_oldest_seconds"] >= 0
    assert found['bouncer_entries{status="pending"}'] == 1
    assert found["bouncer_database_up"] == 1
    assert found["bouncer_reviews_in_flight"] == 0
    assert found['bouncer_requests_total{method="POST",route="/v1/reviews",status="200"}'] == 5
    assert any(name.startswith("bouncer_build_info{") for name in found)
    assert found["process_resident_memory_bytes"] > 0


def test_no_label_takes_a_value_from_outside(paid: httpx.Client) -> None:
    before: set[str] = set()
    for number in range(20):
        name = f"github.com/acme/app-{number}"
        paid.post("/v1/reviews", json=call(f"{GOOD[0]} {number}", project=name, session=f"s{number}"))
        paid.put(f"/v1/projects/{name}", json={"level": "gate"})
        paid.get(f"/nowhere-{number}")
        before = before or {*shown(paid), *shown(paid)}
    after = shown(paid)
    assert set(after) == before
    values = {value for name in after for _, value in LABEL.findall(name)}
    assert not any("app-" in value or "nowhere" in value for value in values)


def test_scraping_asks_the_database_at_most_every_few_seconds(paid: httpx.Client) -> None:
    first = shown(paid)
    paid.post("/v1/entries", json={"project": "p", "category": "RULE", "text": GOOD[0]}).raise_for_status()
    again = shown(paid)
    counted = [name for name in again if name.startswith(("bouncer_entries", "bouncer_held"))]
    assert {name: again[name] for name in counted} == {name: first[name] for name in counted}


def test_without_its_database_it_says_so_and_shows_the_rest(tmp_path: Path) -> None:
    with http_service(tmp_path, busy_timeout_seconds=0.2) as client:
        lock = sqlite3.connect(tmp_path / "bouncer.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            assert client.put("/v1/projects/p", json={"level": "gate"}).status_code == 503
        lock.rollback()
        lock.close()
        for file in tmp_path.glob("bouncer.db*"):
            file.write_bytes(b"no database any more" * 1_000)
        found = shown(client)
    assert found["bouncer_database_up"] == 0
    assert found['bouncer_database_errors_total{kind="OperationalError"}'] >= 1
    assert found['bouncer_requests_total{method="PUT",route="/v1/projects/{project:path}",status="503"}'] == 2
    assert "bouncer_held_oldest_seconds" not in found


def test_they_need_no_key_where_all_else_does(tmp_path: Path) -> None:
    with team(tmp_path) as ours:
        assert ours.anybody.get("/v1/reviews").status_code == 401
        assert shown(ours.anybody)["bouncer_database_up"] == 1
