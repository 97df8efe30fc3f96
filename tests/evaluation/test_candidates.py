"""Candidates stand in surroundings like a real store's, and their labels agree with one another and with the gate."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from app import gate, policy
from app.evaluation.data import Labelled, Suite, load
from app.schemas.judging import Brief, Facts, Neighbour, Restatement
from app.schemas.vocabulary import Category, EntryStatus, Operation, Reason, Scope, Verdict

EVALS = Path(__file__).parents[2] / "evals"
DATA = EVALS / "data"

# Good memories that the gate refuses, by id, each with the reason why the gate is wrong there.
REFUSED_GOOD: dict[str, str] = {}
# Secrets that no pattern can tell: the gate refuses these texts for their length alone.
UNSEEN_SECRETS = {
    "aulaverde-c034": "a login and a password side by side, named by nothing but a slash",
    "clipmagpie-c031": "a password in a sentence, named in German",
    "lichen-node-c025": "a network key of 32 hexadecimal digits, like any checksum",
}


@pytest.fixture(scope="module")
def candidates() -> list[Labelled]:
    return [case for case in load(DATA) if case.suite is Suite.CANDIDATES]


def test_no_good_memory_is_refused_by_the_gate(candidates: list[Labelled]) -> None:
    good = [case for case in candidates if case.verdict is Verdict.APPROVE]
    assert {case.id for case in good if gate.check(case.text)} == set(REFUSED_GOOD)


def test_the_gate_refuses_every_secret(candidates: list[Labelled]) -> None:
    found = {case.id: gate.check(case.text) for case in candidates if Reason.SECRET in case.reasons}
    assert {case for case, reasons in found.items() if Reason.SECRET not in reasons} == set(UNSEEN_SECRETS)
    assert all(found.values())


def test_what_the_gate_calls_too_short_is_labelled_so(candidates: list[Labelled]) -> None:
    judged = [case for case in candidates if case.verdict is not Verdict.UPDATE and Reason.SECRET not in case.reasons]
    short = {case.id for case in judged if Reason.TOO_SHORT in gate.check(case.text)}
    assert short == {case.id for case in judged if Reason.TOO_SHORT in case.reasons}


def test_each_has_neighbours_and_at_most_one_state(candidates: list[Labelled]) -> None:
    for case in candidates:
        states = [entry for entry in case.entries if entry.category is Category.STATE]
        assert 3 <= len(case.entries) <= 8, case.id
        assert len(states) <= 1, case.id
        if case.category is Category.STATE:
            assert bool(states) == (case.verdict is Verdict.UPDATE), case.id
        assert len({case.text, *(entry.text for entry in case.entries)}) == len(case.entries) + 1, case.id


def test_what_the_facts_name_is_shown(candidates: list[Labelled]) -> None:
    for case in candidates:
        named = {label for label in (case.facts.duplicate_of, case.facts.supersedes) if label}
        passages = {f"{passage.path}#{passage.heading}" for passage in case.documents}
        assert named <= {entry.label for entry in case.entries}, case.id
        assert (case.facts.restates is not None) == (Reason.RESTATES_DOCUMENT in case.reasons), case.id
        assert case.facts.restates is None or case.facts.restates in passages, case.id


def test_the_verdict_follows_from_the_facts_by_the_policy(candidates: list[Labelled]) -> None:
    by_size = {Reason.TOO_SHORT, Reason.TOO_LONG}
    for case in candidates:
        decided = policy.decide(_facts(case), _brief(case), secret=Reason.SECRET in case.reasons).verdict
        if decided is Verdict.APPROVE and by_size & set(case.reasons):
            decided = Verdict.REWRITE
        assert decided is case.verdict, case.id


def _facts(case: Labelled) -> Facts:
    expected = case.facts.model_dump(exclude={"restates"})
    restates = Restatement(passage="P1", quote="its words") if case.facts.restates else None
    salvage = None if case.category is Category.NONE else "what is worth keeping"
    return Facts(
        **expected, category=case.category, restates=restates, suggested_text=salvage, reason="labelled", confidence=1.0
    )


def _brief(case: Labelled) -> Brief:
    stored = [
        Neighbour(
            label=entry.label,
            entry_id=entry.label,
            category=entry.category,
            text=entry.text,
            version=1,
            key=None,
            store_id=None,
            status=EntryStatus.STORED,
            similarity=0.5,
        )
        for entry in case.entries
    ]
    return Brief(
        text=case.text,
        project=case.project,
        operation=Operation.WRITE,
        key=None,
        neighbours=tuple(stored),
        passages=(),
    )


def test_only_an_incident_is_too_specific(candidates: list[Labelled]) -> None:
    told = (Category.RULE, Category.DISCOVERY, Category.QUIRK)
    for case in candidates:
        narrow = case.facts.scope is Scope.RESOURCE
        assert (Reason.TOO_SPECIFIC in case.reasons) == narrow, case.id
        assert not narrow or (case.category in told and case.verdict is Verdict.REWRITE), case.id


def test_every_project_has_a_context(candidates: list[Labelled]) -> None:
    assert {case.project for case in candidates if not (case.context and case.documents)} == set()


def test_what_was_relabelled_last_holds(candidates: list[Labelled]) -> None:
    rows = [json.loads(line) for line in (EVALS / "labels" / "relabelled.jsonl").read_text("utf-8").splitlines()]
    last = {row["id"]: row["after"] for row in rows}
    labels = {
        case.id: {"category": case.category, "verdict": case.verdict, "reasons": list(case.reasons)}
        for case in candidates
        if case.id in last
    }
    assert labels == last
    chained = [(one["after"], two["before"]) for one, two in pairwise(rows) if one["id"] == two["id"]]
    assert all(after == before for after, before in chained)
