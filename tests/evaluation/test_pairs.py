"""Pairs of a stored text and a new one: labels keep to their kind, and no plain statistic stands in for the meaning."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app import gate
from app.evaluation.data import Split, split_of

DATA = Path(__file__).parents[2] / "evals" / "data"
CLOSE = 0.6  # shared words among all words, above which a pair differs by a word or two
SAME = {"near_copy", "wrapped", "respelt", "reordered", "short_long", "reworded", "other_register", "translated"}
NEWER = {"newer_value", "correction"}
EXACT = {"number", "version", "name", "negation", "direction", "contrast"}  # superseding if both cannot hold at once


def rows(folder: str) -> list[dict[str, Any]]:
    """All lines of a folder, each with the split of its project."""
    return [
        {**json.loads(line), "split": split_of(file.stem)}
        for file in sorted((DATA / folder).glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").split("\n")
        if line
    ]


PAIRS = rows("duplicates")


def overlap(pair: dict[str, Any]) -> float:
    """Shared words (of scripts without spaces: pairs of characters) among all words of both texts."""
    first, second = (set(_words(pair[side])) for side in ("stored", "text"))
    return len(first & second) / max(1, len(first | second))


def _words(text: str) -> list[str]:
    found: list[str] = []
    for word in re.findall(r"\w+", text.lower()):
        dense = re.search("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]", word)
        found += [word[i : i + 2] for i in range(max(1, len(word) - 1))] if dense else [word]
    return found


def test_the_labels_of_a_pair_follow_its_kind() -> None:
    for pair in PAIRS:
        labels = (pair["duplicate"], pair["supersedes"])
        allowed = {
            **{key: {(True, False)} for key in SAME},
            **{key: {(False, True)} for key in NEWER},
            **{key: {(False, True), (False, False)} for key in EXACT},
            "related": {(False, False)},
        }
        assert labels in allowed[pair["kind"]], pair["id"]
        assert (pair["lang"] != pair["stored_lang"]) or pair["kind"] != "translated", pair["id"]


def test_a_second_state_that_says_something_new_is_an_update() -> None:
    states = [pair for pair in PAIRS if pair["stored_category"] == "STATE"]
    assert states
    assert all(pair["duplicate"] or pair["supersedes"] for pair in states)


def test_every_kind_and_both_answers_are_in_every_split() -> None:
    for split in Split:
        seen = {pair["kind"] for pair in PAIRS if pair["split"] is split}
        assert seen == SAME | NEWER | EXACT | {"related"}, split


def test_no_pair_is_refused_before_anybody_compares_it() -> None:
    assert [pair["id"] for pair in PAIRS if gate.check(pair["text"])] == []


@pytest.mark.parametrize("split", list(Split))
def test_duplicates_share_more_words_than_look_alikes_but_not_reliably(split: Split) -> None:
    pairs = [pair for pair in PAIRS if pair["split"] is split and pair["lang"] == pair["stored_lang"]]
    same = np.array([overlap(pair) for pair in pairs if pair["duplicate"]])
    other = np.array([overlap(pair) for pair in pairs if not pair["duplicate"]])
    ahead = (same[:, None] > other).mean() + (same[:, None] == other).mean() / 2
    assert 0.55 <= ahead <= 0.9


PASSAGES = rows("documents")
RESTATES = {"near_copy", "merged", "heading", "split", "paraphrase", "translation"}
ADDS = {"one_fact_added", "exception", "number", "related"}


def test_the_labels_of_a_passage_follow_its_kind_and_quotes_are_in_the_project() -> None:
    for case in PASSAGES:
        project = json.loads((DATA / "projects" / f"{case['id'].rsplit('-', 1)[0]}.json").read_text(encoding="utf-8"))
        assert any(case["passage"] == document["text"] for document in project["documents"]), case["id"]
        assert case["kind"] in (RESTATES if case["restates"] else ADDS), case["id"]
        assert (case["quote"] in case["passage"]) if case["restates"] else case["quote"] is None, case["id"]


def test_no_restatement_is_refused_before_anybody_compares_it() -> None:
    assert [case["id"] for case in PASSAGES if gate.check(case["text"])] == []


@pytest.mark.parametrize("split", list(Split))
def test_close_words_with_other_punctuation_may_be_either(split: Split) -> None:
    """Of texts in nearly the same words, look-alikes are often dressed anew too, and copies often left plain."""
    close = [
        pair
        for pair in PAIRS
        if pair["split"] is split and pair["lang"] == pair["stored_lang"] and overlap(pair) >= CLOSE
    ]
    for same in (True, False):
        dressed = [_marks(pair["stored"]) != _marks(pair["text"]) for pair in close if pair["duplicate"] is same]
        assert 0.35 <= sum(dressed) / len(dressed) <= 0.88


def _marks(text: str) -> tuple[str, bool]:
    return re.sub(r"[\w\s]", "", text), text[:1].isupper()


@pytest.mark.parametrize("split", list(Split))
def test_words_that_a_passage_lacks_do_not_tell_who_adds_a_fact(split: Split) -> None:
    cases = [case for case in PASSAGES if case["split"] is split and case["kind"] != "translation"]
    lacking = {
        restates: np.array(
            [
                len(set(_words(case["text"])) - set(_words(case["passage"])))
                for case in cases
                if case["restates"] is restates
            ]
        )
        for restates in (True, False)
    }
    fewer = (lacking[True][:, None] < lacking[False]).mean() + (lacking[True][:, None] == lacking[False]).mean() / 2
    assert fewer <= 0.88
