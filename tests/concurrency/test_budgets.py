"""A thousand reviews at once from two services, at a cap that suffices for a hundred: not a micro-dollar too much.

The services are real processes, and the model is a server on a socket that reports its own usage. Some answers are
errors, some are cut off, some connections break, and some clients do not wait.
"""

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tests.support.clocked_service import clocked, set_clock
from tests.support.http_service import call
from tests.support.messages_api import MessagesApi, Request, Step, Tokens, drop, error, messages_api, reply, truncated
from tests.support.purse import Purse
from tests.support.service import Service

CAP = 40_000
REVIEWS = 1_000
RETRYING = 4
MARCH, APRIL = datetime(2026, 3, 31, 23, 59, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
PATIENCE = 60.0
NUMBER = re.compile(r"Keep item (\d+) of")
SETTINGS = {
    "LEVEL": "model",
    "BUDGET_MICRODOLLARS": str(CAP),
    "AT_CAP": "hold",
    "MODEL_CALLS_PER_MINUTE": "0",
    "ANTHROPIC_API_KEY": "test-" + "key-" * 4,
    "BUSY_TIMEOUT_SECONDS": "60",
    "MODEL_TIMEOUT_SECONDS": "60",
}
REFUSED = re.compile(r"the team's monthly budget: (\d+) of (\d+) taken, (\d+) wanted")


class Model:
    """The model's server: what it answers depends on the number in the text, and on how often that was asked."""

    def __init__(self) -> None:
        self._asked: Counter[int] = Counter()

    def __call__(self, request: Request) -> Step:
        found = NUMBER.search(request.user)
        assert found is not None
        number = int(found[1])
        self._asked[number] += 1
        first = self._asked[number] == 1
        tokens = Tokens(input=1_500 + number % 17, output=450 - number % 13)
        match number % 20:
            case 3:
                return truncated(tokens=tokens)
            case 7:
                return error(529, kind="overloaded_error", retry_after=0)
            case 11 if first:
                return error(500, retry_after=0, tokens=tokens)  # a gateway that bills for its failure
            case 13 if first:
                return drop(mid_body=True)
            case 17:
                return reply(text="I would rather not.", tokens=tokens)
        return reply(category="NONE", durable=False, tokens=tokens)


def body(number: int) -> dict[str, Any]:
    """A review that only this number asks for."""
    memory = f"Keep item {number} of the list in the vault, because it is asked for."
    return call(memory, project="p", session=f"s{number}", deadline_seconds=120)


@pytest.fixture
def model() -> Iterator[MessagesApi]:
    with messages_api(Model()) as api:
        yield api


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    file = tmp_path / "clock"
    set_clock(file, MARCH)
    return file


@pytest.fixture
def purse(database_url: str) -> Iterator[Purse]:
    """A look at the same budgets from outside."""
    purse = Purse(database_url, setting=CAP)
    yield purse
    purse.database.close()


@pytest.fixture
def services(tmp_path: Path, database_url: str, model: MessagesApi, clock: Path, purse: Purse) -> Iterator[list[str]]:
    """The addresses of two services."""
    environment = {f"MEMORY_BOUNCER_{name}": value for name, value in SETTINGS.items()}
    environment |= {"MEMORY_BOUNCER_DATABASE_URL": database_url, "MEMORY_BOUNCER_ANTHROPIC_BASE_URL": model.url}
    with ExitStack() as stack:
        both = [Service(tmp_path / f"service-{n}", environment) for n in range(2)]
        for service in both:
            service.program = clocked(clock)
            stack.callback(service.stop)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Service.start, both))
        yield [service.url for service in both]


async def review_all_at_once(services: list[str]) -> None:
    """Ask for all reviews at the same time; every twentieth client does not wait for its answer."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=300, limits=limits, trust_env=False) as client:

        async def ask(number: int, url: str) -> None:
            timeout = 1.0 if number % 20 == 19 else 300.0
            try:
                response = await client.post(f"{url}/v1/reviews", json=body(number), timeout=timeout)
                assert response.status_code in (200, 503), response.text
            except httpx.TimeoutException:
                assert timeout == 1.0

        await asyncio.gather(*(ask(number, url) for number, url in zip(range(REVIEWS), cycle(services), strict=False)))


def rows(purse: Purse, query: str) -> list[Any]:
    """What the database holds."""
    with purse.database.read() as session:
        return list(session.execute(text(query)).all())


def until_quiet(purse: Purse) -> None:
    """Wait until no review is on its way, also none whose client has gone."""
    give_up, before, same = time.monotonic() + PATIENCE, -1, 0
    while same < 5:
        assert time.monotonic() < give_up
        ((calls, open_),) = rows(purse, "SELECT count(*), count(open_until) FROM call")
        same, before = (same + 1 if calls == before and not open_ else 0), calls
        time.sleep(0.2)


def ask_until_answered(url: str, asked: dict[str, Any]) -> dict[str, Any]:
    """One review, asked again while the service is unavailable, as hooks do."""
    while (response := httpx.post(f"{url}/v1/reviews", json=asked, timeout=120, trust_env=False)).status_code == 503:
        time.sleep(0.02)
    response.raise_for_status()
    (review,) = response.json()["reviews"]
    return dict(review)


def without_failures() -> Iterator[int]:
    """Numbers of further reviews that the model answers at once."""
    return (number for number in count(REVIEWS) if number % 20 in (0, 1, 2))


def check_books(purse: Purse, model: MessagesApi, windows: int) -> int:
    """Ledger, windows, reviews and provider tell of the same money; what was spent in all."""
    report = purse.report()
    assert (report.consistent, report.differences, report.reserved_microdollars) == (True, [], 0)
    spent = [window.spent_microdollars for window in report.windows]
    assert len(spent) == windows
    assert max(spent) <= CAP
    assert sum(spent) == report.cost_microdollars == model.usage_total_microdollars
    return sum(spent)


async def test_a_thousand_reviews_at_a_cap_for_a_hundred(
    services: list[str], purse: Purse, model: MessagesApi, clock: Path
) -> None:
    await review_all_at_once(services)
    await asyncio.to_thread(until_quiet, purse)
    check_books(purse, model, windows=1)

    numbers = without_failures()
    while (last := ask_until_answered(services[0], body(next(numbers))))["fault"] is None:
        pass
    assert last["fault"] == "budget_exhausted"
    spent = check_books(purse, model, windows=1)

    # No call was refused for which there was room at that moment, and in the end there is less than one call's.
    details = [row[0] for row in rows(purse, "SELECT fault_detail FROM review WHERE fault = 'budget_exhausted'")]
    refused = [tuple(map(int, found.groups())) for detail in details if (found := REFUSED.fullmatch(detail))]
    assert len(refused) == len(details) > REVIEWS / 2
    assert all(taken + wanted > limit == CAP for taken, limit, wanted in refused)
    assert CAP - spent < min(wanted for _, _, wanted in refused)

    # The next window, while clients ask again and again: none of them is turned away from its first moment on.
    rolled = threading.Event()

    def ask_again_and_again(place: int) -> list[dict[str, Any]]:
        answers = []
        for number in numbers_of[place]:
            was_april = rolled.is_set()
            answers.append(ask_until_answered(services[place % 2], body(number)))
            if was_april:
                return answers
        raise AssertionError

    numbers_of = [(n for n in count(10_000 * (place + 1)) if n % 20 == 0) for place in range(RETRYING)]
    with ThreadPoolExecutor(RETRYING) as pool:
        asking = [pool.submit(ask_again_and_again, place) for place in range(RETRYING)]
        await asyncio.sleep(1)
        set_clock(clock, APRIL)
        rolled.set()
        answers = [await asyncio.wrap_future(future) for future in asking]
    assert [series[0]["fault"] for series in answers] == ["budget_exhausted"] * RETRYING
    assert [(series[-1]["reviewer"], series[-1]["fault"]) for series in answers] == [("anthropic", None)] * RETRYING
    await asyncio.to_thread(until_quiet, purse)
    check_books(purse, model, windows=2)
