"""Kept answers are read as strictly as fresh ones; quotes prove something or nothing."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reviewers.anthropic import AnthropicReviewer
from app.reviewers.replies import NoFacts, facts_in, parse
from app.schemas.judging import Facts, Fault
from app.schemas.vocabulary import Category
from tests.support.briefs import brief, neighbour, passage
from tests.support.messages_api import error, facts, refusal, reply

WHOLE = reply(category="QUIRK").body


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        WHOLE.decode(),
        json.loads(WHOLE),
        facts(category="QUIRK"),
        json.dumps(facts(category="QUIRK")),
        f"Sure!\n```json\n{json.dumps(facts(category='QUIRK'), indent=2)}\n```",
        reply(category="QUIRK", tokens=None).body,
        reply(category="QUIRK", thinking=True, fenced=True).body,
    ],
    ids=["bytes", "text", "object", "facts", "facts as text", "fenced", "no usage", "thinking"],
)
def test_an_answer_is_read_in_whatever_form_it_was_kept(answer: bytes | str | dict[str, object]) -> None:
    assert AnthropicReviewer.parse(answer, brief()).category is Category.QUIRK


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (refusal().body, Fault.REFUSAL),
        (error(500).body, Fault.SCHEMA_VIOLATION),
        ("", Fault.NOT_JSON),
        (b"\xff", Fault.NOT_JSON),
        ({}, Fault.SCHEMA_VIOLATION),
        ({"content": "text"}, Fault.UPSTREAM_ERROR),
        ({"content": [], "usage": {"input_tokens": -1}}, Fault.UPSTREAM_ERROR),
        ({"content": [], "usage": None}, Fault.NOT_JSON),
        ({"content": [{"type": "tool_use", "input": facts()}]}, Fault.NOT_JSON),
        ({"content": [{"type": "text", "text": {"a": 1}}]}, Fault.NOT_JSON),
        ({"content": [{"text": json.dumps(facts())}]}, Fault.NOT_JSON),
        ({"content": [], "stop_reason": "refusal", "stop_details": "none of your business"}, Fault.REFUSAL),
    ],
)
def test_an_answer_without_facts_says_why(answer: bytes | str | dict[str, object], fault: Fault) -> None:
    with pytest.raises(NoFacts) as refused:
        parse(answer, brief())
    assert refused.value.fault is fault


def test_the_text_of_several_blocks_is_one_answer() -> None:
    text = json.dumps(facts())
    blocks = [{"type": "text", "text": text[:40]}, {"type": "text", "text": text[40:]}]
    assert parse({"content": blocks}, brief()).durable


def test_a_reply_says_nothing_of_the_answer_that_it_could_not_read() -> None:
    secret = "the " + "launch code"
    for answer in (facts(category=secret), {**facts(), secret: 1}, facts(duplicate_of=secret), {"content": secret}):
        with pytest.raises(NoFacts) as refused:
            parse(answer, brief())
        assert secret not in refused.value.detail
        assert refused.value.__cause__ is None


def test_facts_that_the_model_quotes_from_the_candidate_are_not_taken_for_its_own() -> None:
    forged, own = json.dumps(facts()), json.dumps(facts(category="NONE", addresses_reader=True))
    with pytest.raises(NoFacts) as refused:
        facts_in(f"The text claims {forged}, but: {own}", brief())
    assert refused.value.fault is Fault.SCHEMA_VIOLATION


def test_the_same_answer_twice_is_one_answer() -> None:
    assert facts_in(json.dumps(facts()) * 2, brief()) == Facts.model_validate(facts())


def test_labels_count_only_where_they_were_given() -> None:
    shown = brief(neighbours=(neighbour("E1"), neighbour("E2")))
    assert parse(facts(duplicate_of="E2"), shown).duplicate_of == "E2"
    assert parse(facts(duplicate_of="E1", supersedes="E2"), shown).supersedes == "E2"
    for label in ("E3", "e1", "E1 ", "P1", "null"):
        with pytest.raises(NoFacts) as refused:
            parse(facts(supersedes=label), shown)
        assert refused.value.fault is Fault.UNKNOWN_LABEL


@pytest.mark.parametrize("category", ["RULE", "DISCOVERY"])
def test_what_is_asked_of_a_category_must_be_answered(category: str) -> None:
    with pytest.raises(NoFacts, match="scope"):
        parse(facts(category=category, scope=None), brief())
    with pytest.raises(NoFacts, match="why"):
        parse(facts(category="DECISION", gives_why=None), brief())


@pytest.mark.parametrize("scope", [None, "resource", "pattern"])
def test_of_a_quirk_the_scope_may_be_given(scope: str | None) -> None:
    assert parse(facts(category="QUIRK", scope=scope), brief()).scope == scope


DOCUMENT = (
    "Raw pages are stored first,\nso that   rules can be *replayed*; see `</candidate>`.\n"
    "生のページを先に保存する。Cafe\u0301 au lait. ห้ามลบข้อมูลดิบ Don’t “fix” it – replay‑only."
)


@pytest.mark.parametrize(
    "quote",
    [
        "Raw pages are",
        "stored first, so that rules can",
        " rules\tcan be\n*replayed*; ",
        "*replayed*; see `[/candidate>`.",
        "*replayed*; see `</candidate>`.",
        "生のページを先に保存する",
        "Café au lait",
        "ห้ามลบข้อมูลดิบ",
        "Adding a spider",
        'Don\'t "fix" it - replay-only.',
    ],
)
def test_words_of_the_passage_are_evidence(quote: str) -> None:
    shown = brief(passages=(passage("P1", DOCUMENT),))
    restated = parse(facts(restates={"passage": "P1", "quote": quote}), shown).restates
    assert restated is not None
    assert restated.quote == quote


@pytest.mark.parametrize(
    "quote",
    ["", "first", "stored first", "replayed;", "raw pages are", "Raw pages were", "ページ", "Raw pages … rules"],
)
def test_other_words_and_too_few_words_are_none(quote: str) -> None:
    shown = brief(passages=(passage("P1", DOCUMENT), passage("P2", "raw pages were raw")))
    with pytest.raises(NoFacts) as refused:
        parse(facts(restates={"passage": "P1", "quote": quote}), shown)
    assert refused.value.fault is Fault.QUOTE_NOT_FOUND


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(Facts.model_fields)), json_values, min_size=1, max_size=4))
def test_facts_with_anything_at_all_in_them_are_facts_or_a_fault(changes: dict[str, object]) -> None:
    try:
        found = parse(facts(**changes), brief())
    except NoFacts:
        return
    assert found == Facts.model_validate_json(json.dumps(facts(**changes)), strict=True)


@given(st.one_of(st.text(), st.binary(), st.text(alphabet='{}[]":, ae0', max_size=200)))
def test_any_text_at_all_is_facts_or_a_fault(answer: str | bytes) -> None:
    with pytest.raises(NoFacts):
        parse(answer, brief())


def test_prompts_prices_and_kept_answers_do_without_the_slow_sdk() -> None:
    modules = "app.prompts, app.prices, app.reviewers, app.reviewers.replies"
    program = f"import sys, {modules}; sys.exit('anthropic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
