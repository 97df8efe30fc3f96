"""However many come at once, by threads or by processes: one equal text, one STATE, no budget overspent."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.schemas.vocabulary import Category, Verdict
from tests.support.http_service import call, http_service
from tests.support.pipelines import GOOD, Bench, ScriptedReviewer, found
from tests.support.postgres import on_sqlite
from tests.support.racer import race

STATES = [
    f"The {part} is {state}, and the {other} comes after it."
    for part in ("importer", "ferry timetable", "login page", "search index", "billing export")
    for state, other in (
        ("half done", "mobile app"),
        ("waiting for a review", "printer driver"),
        ("blocked by the vendor", "translation"),
        ("in its second phase", "archive"),
    )
]


def test_of_fifty_equal_texts_over_http_one_is_approved(tmp_path: Path, database_url: str) -> None:
    with http_service(tmp_path, database_url=database_url) as client, ThreadPoolExecutor(50) as pool:
        bodies = [call(GOOD[0], project="p", session=f"s{number}") for number in range(50)]
        responses = list(pool.map(lambda body: client.post("/v1/reviews", json=body), bodies))
        assert Counter(response.status_code for response in responses) == {200: 50}
        assert Counter(response.json()["verdict"] for response in responses) == {"approve": 1, "duplicate": 49}
        assert len(client.get("/v1/entries", params={"project": "p"}).json()["items"]) == 1


@on_sqlite  # test_replicas has it on PostgreSQL
def test_of_equal_texts_from_four_processes_one_is_approved(tmp_path: Path, database_url: str) -> None:
    verdicts = race(tmp_path, [[GOOD[0]] * 12 for _ in range(4)], database_url=database_url)
    assert Counter(verdicts) == {Verdict.APPROVE: 1, Verdict.DUPLICATE: 47}


async def test_of_twenty_states_at_once_one_is_approved(tmp_path: Path, database_url: str) -> None:
    bench = Bench(
        tmp_path,
        database_url=database_url,
        model=ScriptedReviewer(found(Category.STATE)),
        budget_microdollars=10_000_000,
        level="model",
    )
    answers = await asyncio.gather(
        *(bench.review(text, session=f"s{number}", deadline_seconds=60) for number, text in enumerate(STATES))
    )
    counts = Counter(answer.verdict for answer in answers)
    assert counts[Verdict.APPROVE] == 1
    assert counts[Verdict.APPROVE] + counts[Verdict.UPDATE] + counts[Verdict.DUPLICATE] == 20
    assert len(bench.entries()) == 1
    await bench.close()


@on_sqlite  # test_replicas has it on PostgreSQL
def test_of_states_from_four_processes_one_is_approved(tmp_path: Path, database_url: str) -> None:
    verdicts = race(
        tmp_path, [STATES[start::4] for start in range(4)], database_url=database_url, category=Category.STATE
    )
    counts = Counter(verdicts)
    assert counts[Verdict.APPROVE] == 1
    assert Verdict.HELD not in counts


def test_different_texts_from_four_processes_are_all_approved(tmp_path: Path, database_url: str) -> None:
    texts = [
        [
            f"Always keep the {word} of depot {depot} dry, because its mirror tarnishes."
            for word in ("lamp", "lens", "log")
        ]
        for depot in ("north", "south", "east", "west")
    ]
    verdicts = race(tmp_path, texts, database_url=database_url)
    assert len(verdicts) == 12
    bench = Bench(tmp_path, database_url=database_url)
    assert len(bench.entries()) == Counter(verdicts)[Verdict.APPROVE]
    assert {entry["revision"] for entry in bench.entries()} == set(range(1, len(bench.entries()) + 1))
    bench.database.close()


@pytest.mark.parametrize("affordable", [1, 25])
def test_the_budget_is_spent_to_the_last_call_and_not_beyond(
    tmp_path: Path, database_url: str, affordable: int
) -> None:
    cost = 900
    texts = [
        [
            f"Keep item {process * 100 + number} of the list in the vault, because it is asked for."
            for number in range(20)
        ]
        for process in range(2)
    ]
    verdicts = race(
        tmp_path, texts, database_url=database_url, category=Category.NONE, cost=cost, budget=affordable * cost
    )
    assert Counter(verdicts) == Counter({Verdict.REJECT: affordable, Verdict.HELD: 40 - affordable})
    bench = Bench(tmp_path, database_url=database_url)
    spent = affordable * cost
    assert bench.money() == {"spent": spent, "reserved": 0, "settled": spent, "open": 0}
    bench.database.close()
