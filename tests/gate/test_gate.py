"""The gate as a whole: pure, the same every time, bounded, and in a fixed order."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import MAXIMUM_CHARACTERS, REASONS, gate
from tests.support.canaries import canaries

ORDER = ["secret", "too_long", "session_summary", "not_self_contained", "ephemeral", "too_short"]
LONG = "some words that go on and on " * (MAXIMUM_CHARACTERS // 20)
SCRAPS = [
    "session complete",
    "PR merged",
    "next session: ",
    "`",
    '"',
    "'",
    "«",
    "[backlog]",
    "✅ done",
    "a b c d e f g h",
]


@given(st.lists(st.one_of(st.text(max_size=40), st.sampled_from(SCRAPS)), max_size=12))
def test_any_text_gives_known_codes_each_once_and_the_same_again(parts: list[str]) -> None:
    text = " ".join(parts)
    reasons = gate(text)
    assert set(reasons) <= set(ORDER)
    assert len(set(reasons)) == len(reasons)
    assert reasons == gate(text)


def test_secret_comes_first_then_length_then_slop_then_the_floor() -> None:
    assert gate(f"{canaries()['npm']} {'x' * MAXIMUM_CHARACTERS}") == ["secret", "too_long", "too_short"]
    assert gate("PR merged") == ["session_summary", "too_short"]


def test_a_text_may_be_as_long_as_the_limit() -> None:
    text = LONG[:MAXIMUM_CHARACTERS]
    assert gate(text) == []
    assert gate(text + "x") == ["too_long"]


def test_slop_at_the_head_of_a_text_that_is_too_long_is_named_too() -> None:
    assert gate("Session complete. " + LONG) == ["too_long", "session_summary"]


@pytest.mark.parametrize(
    "unit",
    [
        *("\n", "- ", "'", '"a ', "`", "“", "session ", "✅ a ", "What: ", "1/1 ", "pushed a b ", "*a", "_a ", ". \n"),
        *(
            "pr 1 ",
            "pr the merged",
            "the session is ",
            "all tasks are - ",
            "会话结束 ",
            "\ufdfa",
            "a\u200b",
            "N/A\n[your a",
        ),
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    started = time.monotonic()
    gate(unit * 500_000)
    assert time.monotonic() - started < 5


def test_the_texts_of_the_reasons_pass_the_gate_themselves() -> None:
    assert {text: gate(text) for text in REASONS.values() if gate(text)} == {}
