"""The exact search by words, against the plainest way to do it."""

from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.neighbours import word_index
from app.neighbours.word_index import WordIndex
from app.words import runs, words

ids = st.sampled_from([f"e{number}" for number in range(12)])
texts = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]), max_size=6)
steps = st.lists(st.tuples(st.sampled_from(["put", "put", "drop"]), ids, texts), max_size=60)


def plain_scores(kept: dict[str, list[str]], asked: list[str]) -> dict[str, float]:
    """BM25 with the same constants, word by word and text by text."""
    sizes = {item: len(set(text)) for item, text in kept.items()}
    mean = max(sum(sizes.values()) / max(len(kept), 1), 1.0)
    scores = {}
    for item, text in kept.items():
        shared = set(asked) & set(text)
        holders = {word: sum(word in other for other in kept.values()) for word in shared}
        rarity = sum(log(1 + (len(kept) - n + 0.5) / (n + 0.5)) for n in holders.values())
        if shared:
            scores[item] = rarity / (0.25 + sizes[item] / mean)
    return scores


@settings(max_examples=80)
@given(steps, texts, st.integers(0, 15))
def test_it_ranks_as_comparing_one_by_one_does(
    steps: list[tuple[str, str, list[str]]], asked: list[str], count: int
) -> None:
    index, kept = WordIndex(), dict[str, list[str]]()
    for step, item, text in steps:
        if step == "put":
            kept[item] = text
            index.put(item, text)
        else:
            kept.pop(item, None)
            index.drop(item)
    scores = plain_scores(kept, asked)
    found = index.nearest(asked, count)
    assert len(index) == len(kept)
    assert len(found) == len(set(found)) == min(count, len(scores))
    best = sorted(scores.values(), reverse=True)
    assert all(abs(scores[item] - score) < 1e-4 for item, score in zip(found, best, strict=False))


@settings(max_examples=60)
@given(st.lists(texts, max_size=20), texts, texts, st.integers(1, 6))
def test_a_further_text_does_not_come_before_the_place_that_is_told(
    kept: list[list[str]], asked: list[str], newer: list[str], count: int
) -> None:
    index = WordIndex()
    for number, text in enumerate(kept):
        index.put(f"e{number}", text)
    place = index.ranked(asked, count).place(set(newer))
    index.put("newer", newer)
    found = index.nearest(asked, count)
    if "newer" in found:
        assert place is not None
        assert place <= found.index("newer")


def test_many_deletions_neither_hide_the_rest_nor_take_room() -> None:
    index = WordIndex()
    for number in range(5_000):
        index.put(f"e{number}", ["common", f"own{number}"])
        if number >= 10:
            index.drop(f"e{number - 10}")
    assert len(index) == 10
    assert len(index._ids) <= 2 * word_index.FEWEST_FORGOTTEN
    assert index.nearest(["own4999"], 3) == ["e4999"]
    assert index.nearest(["own17"], 3) == []


def test_a_text_that_is_put_again_is_found_by_its_newer_words_only() -> None:
    index = WordIndex()
    index.put("e1", ["old"])
    index.put("e1", ["new"])
    assert (index.nearest(["old"], 1), index.nearest(["new"], 1)) == ([], ["e1"])


def test_a_word_that_stands_everywhere_is_not_looked_up_where_a_rare_one_tells() -> None:
    index = WordIndex()
    for number in range(word_index.MOST_PLACES + 10):
        index.put(f"e{number}", ["the"])
    index.put("rare", ["the", "rare"])
    assert index.nearest(["the", "rare"], 8) == ["rare"]


@pytest.mark.parametrize(
    ("stored", "asked"),
    [("Migrationsläufe", "die Migration"), ("idempotency keys", "idempotent"), ("database", "data"), ("ok", "OK!")],
)
def test_another_form_of_a_word_is_found(stored: str, asked: str) -> None:
    index = WordIndex()
    index.put("wanted", runs(stored))
    index.put("other", runs("never retry payments"))
    assert index.nearest(runs(asked), 1) == ["wanted"]


@given(st.text())
def test_a_text_is_found_by_itself_unless_it_has_no_word(text: str) -> None:
    index = WordIndex()
    index.put("itself", runs(text))
    assert index.nearest(runs(text), 1) == (["itself"] if words(text) else [])
