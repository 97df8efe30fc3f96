"""The table of reasons is the one list that messages, the skill and the service key on."""

from pathlib import Path

import pytest

from app.schemas.fields import MAX_TEXT
from app.schemas.vocabulary import Reason
from hooks import store_hygiene_gate as hook

SKILL = Path(__file__).parents[2] / "skills" / "hygiene" / "SKILL.md"


def test_every_reason_code_of_the_service_has_a_text() -> None:
    assert set(hook.REASONS) == {reason.value for reason in Reason}


@pytest.mark.parametrize("text", hook.REASONS.values())
def test_a_text_is_one_short_sentence_that_says_what_to_do(text: str) -> None:
    assert text.endswith(".")
    assert text.count(".") == 1
    assert ":" in text
    assert len(text) <= 160


@pytest.mark.parametrize("code", list(Reason))
def test_the_skill_says_what_to_do_for_every_code(code: Reason) -> None:
    assert f"| `{code}` |" in SKILL.read_text(encoding="utf-8")


def test_what_the_gate_lets_pass_is_not_too_long_for_the_service() -> None:
    assert hook.MAXIMUM_CHARACTERS <= hook.MAXIMUM_TEXT == MAX_TEXT
