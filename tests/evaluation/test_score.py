"""Shares, their intervals, and the bars that they must clear."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import Invalid
from app.evaluation import bars, baselines, score
from app.evaluation.data import ExpectedFacts, Labelled, Split, Suite
from app.evaluation.run import Judged
from app.evaluation.score import Share
from app.schemas.judging import Shortcut
from app.schemas.vocabulary import Category, Reason, Verdict


def case(number: int, verdict: Verdict, suite: Suite = Suite.CANDIDATES, text: str = "One two three four") -> Labelled:
    return Labelled(
        id=f"c{number}",
        suite=suite,
        project="p",
        group="p",
        split=Split.TEST,
        kind="x",
        lang="en",
        text=text,
        category=Category.RULE if verdict is Verdict.APPROVE else Category.NONE,
        verdict=verdict,
        reasons=(),
        facts=ExpectedFacts(),
    )


@given(st.integers(0, 400), st.integers(1, 400))
def test_an_interval_holds_its_share_and_stays_between_none_and_all(count: int, more: int) -> None:
    share = Share(count=count, of=count + more)
    low, high = share.interval or (2.0, -1.0)
    assert 0 <= low <= (share.value or 0.0) <= high <= 1


def test_wilson_s_interval_has_the_published_values() -> None:
    assert Share(count=0, of=10).interval == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert Share(count=5, of=10).interval == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_a_share_of_nothing_has_no_value() -> None:
    nothing = Share(count=0, of=0)
    assert (nothing.value, nothing.interval, str(nothing)) == (None, None, "–")


def test_without_a_gate_all_slop_is_admitted_and_nothing_good_refused() -> None:
    cases = [case(1, Verdict.REJECT), case(2, Verdict.APPROVE), case(3, Verdict.APPROVE)]
    scores = score.score(baselines.no_gate(cases))
    assert (scores.slop_admitted, scores.good_refused) == (Share(count=1, of=1), Share(count=0, of=2))


def test_the_gate_alone_refuses_what_its_floor_refuses() -> None:
    scores = score.score(baselines.gate_alone([case(1, Verdict.REJECT), case(2, Verdict.APPROVE)]))
    assert (scores.slop_admitted.count, scores.good_refused.count) == (0, 1)


def test_a_held_text_is_neither_admitted_nor_refused() -> None:
    judged = [j.model_copy(update={"verdict": Verdict.HELD}) for j in baselines.no_gate([case(1, Verdict.APPROVE)])]
    scores = score.score(judged)
    assert (scores.good_refused.count, scores.held.count) == (0, 1)


def test_flips_are_counted_over_common_cases() -> None:
    one = baselines.no_gate([case(1, Verdict.APPROVE), case(2, Verdict.APPROVE)])
    two = baselines.gate_alone([case(2, Verdict.APPROVE), case(3, Verdict.APPROVE)])
    assert score.flips(one, two) == Share(count=1, of=1)


def test_bars_name_what_was_missed(tmp_path: Path) -> None:
    file = tmp_path / "bars.json"
    file.write_text(
        json.dumps(
            [
                {"measure": "slop_admitted", "at": "most", "value": 0.2, "better_than": ["no gate"]},
                {"measure": "good_refused", "at": "most", "value": 0.05},
                {"measure": "category", "at": "least", "value": 0.75},
            ]
        ),
        encoding="utf-8",
    )
    scores = score.score(baselines.no_gate([case(1, Verdict.REJECT), case(2, Verdict.APPROVE)]))
    lines = bars.missed(bars.load_bars(file), "offline", {"offline": scores, "no gate": scores})
    assert [line.split(":")[0] for line in lines] == ["Slop admitted", "Slop admitted", "Category right"]
    assert "no better than no gate" in lines[1]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "nonsense",
        '[{"measure": "luck", "at": "most", "value": 0.5}]',
        '[{"measure": "held", "at": "most", "value": 5}]',
    ],
)
def test_unusable_bars_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bars.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Invalid, match=r"bars\.json"):
        bars.load_bars(file)


def judged(case_: Labelled, verdict: Verdict, *reasons: Reason, shortcut: Shortcut | None = None) -> Judged:
    """What came of a case, by the model unless there was a shortcut."""
    return Judged(
        case=case_,
        verdict=verdict,
        category=Category.RULE,
        reasons=reasons,
        reviewer="offline" if shortcut is Shortcut.CASCADE else "anthropic",
        confidence=0.9,
        fault=None,
        cost_microdollars=0 if shortcut else 7,
        possible_duplicate=False,
        prompt_hash=None,
        model=None,
        shortcut=shortcut,
    )


def test_what_the_cascade_loses_is_told_from_what_it_gains() -> None:
    good, slop, known = case(1, Verdict.APPROVE), case(2, Verdict.REJECT), case(3, Verdict.APPROVE)
    alone = [judged(good, Verdict.APPROVE), judged(slop, Verdict.APPROVE), judged(known, Verdict.APPROVE)]
    first = [
        judged(good, Verdict.REJECT, shortcut=Shortcut.CASCADE),
        judged(slop, Verdict.REJECT, shortcut=Shortcut.CASCADE),
        judged(known, Verdict.APPROVE),
    ]
    again = [*first[:2], judged(known, Verdict.APPROVE, shortcut=Shortcut.CACHE)]
    spared = score.spared(alone, first, again)
    assert (spared.not_asked, spared.differs) == (Share(count=2, of=3), Share(count=2, of=2))
    assert (spared.lost, spared.gained, spared.right) == (Share(count=1, of=2),) * 3
    assert (spared.microdollars, spared.of_microdollars, spared.cached) == (14, 21, Share(count=1, of=1))


def test_a_reason_counts_as_found_only_where_it_is_the_labelled_one() -> None:
    slop = case(1, Verdict.REJECT).model_copy(update={"reasons": (Reason.EPHEMERAL,)})
    run = [
        judged(slop, Verdict.REJECT, Reason.EPHEMERAL),
        judged(slop, Verdict.REJECT, Reason.SESSION_SUMMARY),
        judged(slop, Verdict.APPROVE),
    ]
    ephemeral = next(tally for tally in score.by_reason(run) if tally.reason is Reason.EPHEMERAL)
    assert (ephemeral.refused, ephemeral.found) == (Share(count=2, of=3), Share(count=1, of=3))
    assert ephemeral.right == Share(count=1, of=1)


def test_attacks_on_the_reviewer_are_counted_by_themselves() -> None:
    kinds = ("fake_verdict/record", "role_play/plain", "backdoor/plain", "backdoor/record")
    attacks = [
        case(number, Verdict.REJECT, Suite.ATTACKS).model_copy(update={"kind": kind})
        for number, kind in enumerate(kinds)
    ]
    verdicts = (Verdict.REJECT, Verdict.APPROVE, Verdict.HELD, Verdict.REJECT)
    scores = score.score([judged(attack, verdict) for attack, verdict in zip(attacks, verdicts, strict=True)])
    assert scores.reviewer_attacks_stopped == Share(count=1, of=2)
    assert scores.attacks_stopped == Share(count=3, of=4)


def test_attacks_are_told_by_family_and_by_form() -> None:
    attacks = [
        case(number, Verdict.REJECT, Suite.ATTACKS).model_copy(update={"kind": kind})
        for number, kind in enumerate(("backdoor/plain", "backdoor/json", "steering/plain"))
    ]
    run = [judged(attacks[0], Verdict.HELD), *(judged(attack, Verdict.REJECT) for attack in attacks[1:])]
    found = {group.title: group.tallies for group in score.groups(run)}
    assert found["Attacks by family"]["backdoor"] == score.Tally(of=2, right=1, held=1)
    assert found["Attacks by form"]["plain"] == score.Tally(of=2, right=1, held=1)
