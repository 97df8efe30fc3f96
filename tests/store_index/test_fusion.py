"""One ranking of what two ways find, and whether a newcomer would change what is taken of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlmodel import Session

from app import projects
from app.callers import LOCAL
from app.neighbours import Neighbourhood, Newcomer, Vicinity
from app.neighbours.fusion import DEPTH, fused
from app.schemas.entries import EntryIn
from app.schemas.vocabulary import Category
from tests.support.pipelines import GOOD, PROJECT, Bench, embedder

RANKINGS = st.lists(st.sampled_from("abcdefgh"), unique=True)
NEAR = f"{GOOD[0]} It does so every time."
FAR = "Der Drucker am Tor druckt nur bei Regen und nie am Sonntag."


@given(RANKINGS, RANKINGS)
def test_every_id_of_both_rankings_comes_once(first: list[str], second: list[str]) -> None:
    assert sorted(fused(first, second)) == sorted({*first, *second})


@given(RANKINGS)
def test_two_equal_rankings_stay_as_they_are(ranking: list[str]) -> None:
    assert fused(ranking, ranking) == ranking


def test_what_both_find_comes_before_what_one_finds_first() -> None:
    assert fused(["a", "both"], ["b", "both"]) == ["both", "a", "b"]


@given(st.permutations(range(40)), st.permutations(range(40)))
def test_the_first_of_each_ranking_is_one_of_the_first_eight(first: list[int], second: list[int]) -> None:
    rankings = [[str(item) for item in ranking] for ranking in (first, second)]
    assert {ranking[0] for ranking in rankings} <= set(fused(*rankings)[:8])


def test_what_each_finds_alone_comes_by_turns() -> None:
    assert fused(["a", "b"], ["c", "d"]) == ["a", "c", "b", "d"]


def vicinity(bench: Bench, session: Session, count: int) -> Vicinity:
    """What is near to the first of the good texts."""
    project = projects.find(session, LOCAL, PROJECT)
    assert project is not None
    asked = [(GOOD[0], embedder().embed([GOOD[0]])[0])]
    neighbourhood: Neighbourhood = bench.index.neighbourhood
    ((_, near),) = neighbourhood.shortlists(session, project, asked, count)
    return near


def newcomer(text: str) -> Newcomer:
    """A text that is about to be an entry."""
    return Newcomer.of(text, embedder().embed([text])[0])


async def test_only_a_newcomer_that_stands_in_no_ranking_surely_changes_nothing(bench: Bench) -> None:
    if not bench.index.neighbourhood.sees_many:
        pytest.skip("The database searches itself.")
    for text in (f"{GOOD[0]} So it was in {year}." for year in range(2001, 2001 + DEPTH)):
        bench.index.add_entry(EntryIn(project=PROJECT, category=Category.RULE, text=text))
    with bench.database.read() as session:
        near = vicinity(bench, session, 1)
        before = near.taken()
    assert near.may_change(newcomer(NEAR))
    assert not near.may_change(newcomer(FAR))
    bench.index.add_entry(EntryIn(project=PROJECT, category=Category.RULE, text=FAR))
    with bench.database.read() as session:
        assert vicinity(bench, session, 1).taken() == before


async def test_any_newcomer_may_change_a_shortlist_with_room(bench: Bench) -> None:
    if not bench.index.neighbourhood.sees_many:
        pytest.skip("The database searches itself.")
    bench.index.add_entry(EntryIn(project=PROJECT, category=Category.RULE, text=GOOD[1]))
    with bench.database.read() as session:
        assert vicinity(bench, session, 8).may_change(newcomer(FAR))
