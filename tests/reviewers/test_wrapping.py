"""What tools and habits wrap round a memory is taken off before its worth is judged, and nothing else is."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reviewers.wrapping import unwrapped, without_front_matter

SAID = "Never hold the printer's socket over a break, since the printer drops idle links after 15 minutes."


@pytest.mark.parametrize(
    "head",
    [
        "Note: ",
        "**Note:** ",
        "[MEMORY] ",
        "- [note] ",
        "## Memory\n",
        "📝 Note — ",
        "TIL: ",
        "Memory\n\n",
        "备注：",
        "- Nota: ",
    ],
)
def test_a_label_that_says_nothing_is_taken_off(head: str) -> None:
    assert unwrapped(head + SAID) == SAID


@pytest.mark.parametrize(
    "text",
    [
        "Note that the printer drops idle links.",
        "Memory leaks in `spool` come from the PDF cache.",
        "Note:",
        "# Printer",
    ],
)
def test_words_that_say_something_stay(text: str) -> None:
    assert unwrapped(text) == text


def test_lines_that_were_broken_for_their_length_are_joined() -> None:
    assert unwrapped(textwrap.fill(SAID, 60)) == SAID


@pytest.mark.parametrize("text", ["Printer:\n- drops idle links\n- needs a socket", "One fact.\n\nAnother fact."])
def test_lists_and_paragraphs_keep_their_lines(text: str) -> None:
    assert unwrapped(text) == text


@pytest.mark.parametrize("tail", [" (see `docs/printer.md`)", " (see `docs/printer.md`).", "（cf. ADR 12）"])
def test_a_pointer_at_the_end_is_taken_off(tail: str) -> None:
    assert unwrapped(SAID + tail) == SAID


@pytest.mark.parametrize("text", ["(see docs/printer.md)", f"{SAID} (seen on 3 May)", f"{SAID} (15 minutes)"])
def test_other_brackets_stay(text: str) -> None:
    assert unwrapped(text) == text


@pytest.mark.parametrize(
    "text", ["---\na: b\n---\n", "---\n\n---", "--- a\n---\n", "---\nNo field at all.\n---\nMore."]
)
def test_what_is_no_front_matter_is_read_as_it_stands(text: str) -> None:
    assert without_front_matter(text) == text


@given(st.text(alphabet=st.sampled_from("ab .:\n-—()[]*#`:"), max_size=80), st.sampled_from(["", "Note: ", "[MEMO] "]))
def test_something_is_left_of_whatever_said_something(text: str, head: str) -> None:
    assert bool(unwrapped(head + text).strip()) == bool((head + text).strip())
