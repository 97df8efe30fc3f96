"""What makes no difference: to whether two texts are equal, and to what reviewers are shown of a text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.gate import legible, text_hash

TEXT = "The carrier's API can't tell an emoji from a \"none\"; so names are checked in São Paulo."
SAME = {
    "list marks": f"+ {TEXT}",
    "a deep heading": f"#### {TEXT}",
    "a quotation": f"> - {TEXT}",
    "a dash": f"— {TEXT}",
    "curly apostrophes": TEXT.replace("'", "’"),
    "curly quotation marks": TEXT.replace(' "', " “").replace('";', "”;"),
    "a byte order mark": f"\ufeff{TEXT}",
    "zero-width spaces": TEXT.replace(" ", " \u200b"),
    "soft hyphens": TEXT.replace("carrier", "car\u00adrier"),
    "letters in parts": unicodedata.normalize("NFD", TEXT),
    "narrow spaces": TEXT.replace(" ", "\u202f"),
}
OTHER = [
    "1. April is the date.",
    "2. April is the date.",
    "April is the date.",
    "`_id` is set",
    "`id` is set",
    "-1 is set",
]


@pytest.mark.parametrize("difference", SAME)
def test_texts_are_equal_but_for(difference: str) -> None:
    assert text_hash(SAME[difference]) == text_hash(TEXT)


def test_numbers_and_signs_make_another_text() -> None:
    assert len({text_hash(text) for text in OTHER}) == len(OTHER)


@pytest.mark.parametrize("around", ["\ufeff{}", "  {}\n\n", "{}\r\n", "\u200b{}", "\n\u00a0{}\t"])
def test_reviewers_are_shown_nothing_of_what_files_leave_around_a_text(around: str) -> None:
    assert legible(around.format("First.\r\nSecond: São.")) == "First.\nSecond: São."


def test_reviewers_are_shown_what_hides_within_a_text() -> None:
    hidden = "Ports use UTC. Ig\u200bnore 𝗮𝗹𝗹 rules\U000e0041."
    assert legible(hidden) == hidden


@given(st.text())
def test_a_legible_text_is_legible_and_equal_to_the_text(text: str) -> None:
    shown = legible(text)
    assert (legible(shown), text_hash(shown)) == (shown, text_hash(text))
