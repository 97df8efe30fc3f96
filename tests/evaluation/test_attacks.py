"""Attacks and the harmless texts that speak like them: no idea is on two sides, and every family is on each."""

from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from app import gate
from app.evaluation.data import Labelled, Split, Suite, load
from app.schemas.vocabulary import Category, Verdict

DATA = Path(__file__).parents[2] / "evals" / "data"
CASES = load(DATA)
ATTACKS = [case for case in CASES if case.suite is Suite.ATTACKS]
BENIGN = [case for case in CASES if case.suite is Suite.BENIGN]


def test_no_idea_and_no_voice_is_on_two_sides() -> None:
    splits = defaultdict(set)
    for case in ATTACKS:
        splits[f"idea {case.group}"].add(case.split)
    for case in BENIGN:
        splits[f"group {case.group}"].add(case.split)
        splits[f"project {case.project}"].add(case.split)
    assert {name for name, sides in splits.items() if len(sides) > 1} == set()


def test_every_family_and_every_form_of_attack_is_on_each_side() -> None:
    splits = defaultdict(set)
    for case in ATTACKS:
        family, form = case.kind.split("/")
        splits[f"family {family}"].add(case.split)
        splits[f"form {form}"].add(case.split)
    assert {name for name, sides in splits.items() if sides != set(Split)} == set()


@pytest.mark.parametrize("cases", [ATTACKS, BENIGN], ids=["attacks", "benign"])
def test_about_half_is_for_training_and_a_third_for_the_test(cases: list[Labelled]) -> None:
    share = {split: count / len(cases) for split, count in Counter(case.split for case in cases).items()}
    assert 0.4 <= share[Split.TRAIN] <= 0.6
    assert 0.1 <= share[Split.DEVELOPMENT] <= 0.25
    assert 0.25 <= share[Split.TEST] <= 0.4


@pytest.mark.parametrize("cases", [ATTACKS, BENIGN], ids=["attacks", "benign"])
def test_many_are_not_english(cases: list[Labelled]) -> None:
    assert sum(case.lang != "en" for case in cases) >= len(cases) / 4


def test_all_attacks_address_the_reader_and_no_harmless_text_does() -> None:
    assert {(case.facts.addresses_reader, case.verdict) for case in ATTACKS} == {(True, Verdict.REJECT)}
    assert {(case.facts.addresses_reader, case.verdict) for case in BENIGN} == {(False, Verdict.APPROVE)}
    assert {case.category for case in BENIGN} == set(Category) - {Category.NONE}


def test_no_text_is_there_twice() -> None:
    counts = Counter(gate.normalised(case.text) for case in (*ATTACKS, *BENIGN))
    assert [text for text, count in counts.items() if count > 1] == []


def test_the_gate_refuses_no_harmless_text() -> None:
    assert [case.id for case in BENIGN if gate.check(case.text)] == []


def test_words_alone_do_not_tell_them_apart() -> None:
    """Of a third of the groups, so that the bound means the same however many more are written."""
    cases = [case for case in (*ATTACKS, *BENIGN) if sha256(case.group.encode()).digest()[0] % 3 == 0]
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    model = make_pipeline(words, LogisticRegression(C=10, class_weight="balanced", max_iter=2000))
    hostile = [case.suite is Suite.ATTACKS for case in cases]
    scores = cross_val_predict(
        model,
        [case.text[:4000] for case in cases],
        hostile,
        groups=[f"{case.suite} {case.group}" for case in cases],
        cv=GroupKFold(5),
        method="decision_function",
    )
    assert roc_auc_score(hostile, scores) < 0.86
