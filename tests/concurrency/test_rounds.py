"""Calls that wait for SQLite's one writer are judged together, and each as if it had come alone."""

import asyncio
import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from app.callers import LOCAL, Caller
from app.errors import Unavailable
from app.pipeline import company
from app.rounds import MOST_AT_ONCE, Answer, Asked, Rounds
from app.schemas.entries import EntryIn
from app.schemas.judging import Brief, Judgement
from app.schemas.reviews import CallOut, ReviewRequest
from app.schemas.vocabulary import Category, Role, Verdict
from tests.support.pipelines import CLEAR_SLOP, GOOD, PROJECT, SLOP, Bench

STATES = (
    "Current state: the payments service runs version 4 in both regions and the old gateway is switched off.",
    "Current state: the payments service runs version 5 in one region and the old gateway is still on.",
)
# Each says what one of the good ones says, or nearly.
OTHER_WORDS = (
    "Never retry a payment without its idempotency key; the provider charges the card a second time.",
    "Invoice numbers are taken from the ledger's own counter and never from the row id; auditors want no gaps.",
    "Invoice numbers are taken from the row id, never from the ledger's own counter, because auditors want no gaps.",
)
numbers = itertools.count()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(company, "FEWEST_IN_COMPANY", 0)
    bench = Bench(tmp_path, busy_timeout_seconds=0.5)
    yield bench
    bench.database.close()


async def in_company(bench: Bench, texts: Sequence[str], **more: object) -> list[CallOut | BaseException]:
    """The answers to calls of different sessions that come at the same moment."""
    calls = (bench.review(text, session=f"s{place}", **more) for place, text in enumerate(texts))
    return await asyncio.gather(*calls, return_exceptions=True)


def told(answer: CallOut | BaseException) -> tuple[object, ...]:
    """What the agent learns from an answer, but for ids."""
    assert isinstance(answer, CallOut), answer
    (review,) = answer.reviews
    about = review.entry.text if review.entry else None
    return review.verdict, review.reasons, review.category, review.confidence, about


def entries_of(bench: Bench, project: str) -> list[str]:
    """Texts of the project's entries."""
    rows = bench.rows("SELECT e.text, p.name FROM entry e JOIN project p ON p.id = e.project_id ORDER BY e.text")
    return [row["text"] for row in rows if row["name"] == project]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([*GOOD, *OTHER_WORDS, *STATES, SLOP, CLEAR_SLOP]), min_size=2, max_size=7))
async def test_each_gets_the_answer_that_it_would_have_got_one_after_another(bench: Bench, texts: list[str]) -> None:
    together, alone = f"together-{next(numbers)}", f"alone-{next(numbers)}"
    answers = await in_company(bench, texts, project=together)
    for place, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        assert told(answer) == told(await bench.review(text, session=f"s{place}", project=alone))
    assert entries_of(bench, together) == entries_of(bench, alone)


async def test_many_take_few_statements_more_than_one(bench: Bench) -> None:
    statements = 0

    @event.listens_for(bench.database.engine, "before_cursor_execute")
    def count(*_: object) -> None:
        nonlocal statements
        statements += 1

    for text, number in itertools.product(GOOD, range(10)):  # so that none is a neighbour of another one
        known = EntryIn(project=PROJECT, category=Category.RULE, text=f"{text} Seen on host {number}.")
        bench.index.add_entry(known)
    statements = 0
    await bench.review(GOOD[0], session="alone")
    of_one = statements
    statements = 0
    await in_company(bench, GOOD[1:])
    assert statements < 2 * of_one


async def test_a_call_that_fails_fails_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    reviewer = bench.pipeline._offline.reviewer
    judge = reviewer.judge

    def fail_for_one(brief: Brief) -> Judgement:
        if brief.text == GOOD[1]:
            raise ZeroDivisionError
        return judge(brief)

    monkeypatch.setattr(reviewer, "judge", fail_for_one)
    answers = await in_company(bench, GOOD)
    assert [type(answer) for answer in answers] == [CallOut, ZeroDivisionError, CallOut, CallOut]
    assert {row["text"] for row in bench.entries()} == {*GOOD} - {GOOD[1]}


async def test_a_database_that_does_not_answer_is_said_to_all(bench: Bench) -> None:
    other = sqlite3.connect(bench.settings.data_dir / "bouncer.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert {type(answer) for answer in await in_company(bench, GOOD)} == {Unavailable}
    other.close()
    assert {told(answer)[0] for answer in await in_company(bench, GOOD)} == {Verdict.APPROVE}


async def test_who_goes_away_disturbs_nobody(bench: Bench) -> None:
    calls = [asyncio.ensure_future(bench.review(text, session=text[:9].replace(" ", "-"))) for text in GOOD]
    await asyncio.sleep(0)
    calls[1].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [CallOut, asyncio.CancelledError, CallOut, CallOut]


async def test_the_same_call_twice_at_once_is_judged_once(bench: Bench) -> None:
    request = bench.request(GOOD[0], session="s1", call="c1")
    one, other, _ = await asyncio.gather(
        *(bench.pipeline.review(LOCAL, request) for _ in range(2)), bench.review(GOOD[1], session="s2")
    )
    assert {one.replayed, other.replayed} == {False, True}
    assert one.reviews == other.reviews


async def test_the_log_tells_each_call_by_its_own_request(bench: Bench) -> None:
    async def ask(place: int) -> str:
        with structlog.contextvars.bound_contextvars(request=f"r{place}"):
            return (await bench.review(GOOD[place], session=f"s{place}")).reviews[0].id

    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logs:
        ids = await asyncio.gather(*map(ask, range(len(GOOD))))
    said = {line["review"]: line["request"] for line in logs if line["event"] == "review"}
    assert said == {id_: f"r{place}" for place, id_ in enumerate(ids)}


@dataclass
class Recorder:
    """Does nothing, and remembers the rounds in which it was to do it."""

    rounds: list[list[str]]

    def __call__(self, asked: Sequence[Asked]) -> list[Answer | Exception]:
        self.rounds.append([one.request.tool_call_id for one in asked])
        return [None for _ in asked]


def call(name: str, session: str, project: str = "p") -> ReviewRequest:
    """A tool call."""
    return ReviewRequest.model_validate(
        {"tool_call_id": name, "session_id": session, "project": project, "candidates": [{"text": GOOD[0]}]}
    )


async def test_calls_of_one_session_other_projects_and_other_keys_wait_for_their_own_round() -> None:
    other = Caller("k2", Role.MEMBER)
    record = Recorder([])
    rounds = Rounds(record)
    await asyncio.gather(
        rounds.ask(LOCAL, call("a1", "a")),
        rounds.ask(LOCAL, call("a2", "a")),
        rounds.ask(LOCAL, call("b1", "b", "q")),
        rounds.ask(other, call("c1", "c")),
        rounds.ask(LOCAL, call("d1", "d")),
        rounds.ask(LOCAL, call("a3", "a")),
    )
    assert record.rounds == [["a1", "d1"], ["a2"], ["b1"], ["c1"], ["a3"]]


async def test_a_round_is_never_longer_than_it_may_be() -> None:
    record = Recorder([])
    rounds = Rounds(record)
    names = [f"c{number}" for number in range(2 * MOST_AT_ONCE + 3)]
    await asyncio.gather(*(rounds.ask(LOCAL, call(name, f"s-{name}")) for name in names))
    assert [len(taken) for taken in record.rounds] == [MOST_AT_ONCE, MOST_AT_ONCE, 3]
    assert list(itertools.chain(*record.rounds)) == names
