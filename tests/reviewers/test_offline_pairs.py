"""Two texts are the same only if a score and the exact comparison agree; an edit is never a rewording."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.reviewers import pairs, spelling
from app.reviewers.likeness import measures
from app.reviewers.offline import OfflineReviewer
from app.reviewers.pairs import Side
from app.schemas.vocabulary import Category
from tests.support.briefs import brief, neighbour, passage

STORED = (
    "The gateway drops requests above 25 MB, so uploads go straight to MinIO with a signed link.",
    "Never call Redis `KEYS` in production; it blocks every client for 2 seconds, use `SCAN` with a cursor.",
    "Postgres 15 ignores the index on `lower(email)` unless the query says lower(email) as well.",
    "Invoices are rounded per line because the tax office compares each of the 12 lines and not the total.",
)


@pytest.fixture(scope="module")
def reviewer() -> OfflineReviewer:
    return OfflineReviewer()


def called_same(reviewer: OfflineReviewer, stored: str, offered: str, category: Category = Category.DECISION) -> bool:
    facts = reviewer.judge(brief(offered, neighbours=(neighbour(text=stored, category=category),), passages=())).facts
    assert facts is not None
    return facts.duplicate_of == "E1"


@pytest.mark.parametrize("stored", STORED)
def test_the_same_words_are_a_duplicate(reviewer: OfflineReviewer, stored: str) -> None:
    assert called_same(reviewer, stored, f"- {stored.upper().rstrip('.')}!")


@pytest.mark.parametrize(
    ("stored", "offered"),
    [
        (
            STORED[0],
            "[RULE] the gateway drops requests above 25MB, so uploads go straight to MinIO with a signed link",
        ),
        (STORED[1], "Don't call Redis KEYS in prod: it blocks every client for two seconds. Use SCAN with a cursor"),
        (
            STORED[1],
            "Never call Redis `KEYS` in production; it blocks every client for 2000 ms, use `SCAN` with a cursor.",
        ),
        (STORED[2], "Note: PG 15 ignores the index on `lower(email)`, unless the query says lower(email) too"),
        (
            "Colours are normalised before the analyser runs.",
            "What: colors are normalized before the analyzer runs.",
        ),
        (
            "SF12 is never used because one uplink costs fourteen times SF7.",
            "One uplink costs 14 times SF7, so SF12 is never used.",
        ),
    ],
)
def test_the_same_in_other_spelling_order_or_template_is_a_duplicate(
    reviewer: OfflineReviewer, stored: str, offered: str
) -> None:
    assert called_same(reviewer, stored, offered)


@settings(max_examples=40, deadline=None)
@given(stored=st.sampled_from(STORED), number=st.integers(0, 99_999))
def test_another_number_or_version_is_no_duplicate(reviewer: OfflineReviewer, stored: str, number: int) -> None:
    edited = re.sub(r"\d+", str(number), stored, count=1)
    if re.findall(r"\d+", edited) != re.findall(r"\d+", stored) and edited != stored:
        assert not called_same(reviewer, stored, edited)


def test_a_number_that_the_text_says_elsewhere_too_is_another_number(reviewer: OfflineReviewer) -> None:
    stored = "Always ring bell 9 twice at low tide, because pilot boat 9 waits for it beyond the bar."
    assert not called_same(reviewer, stored, stored.replace("9", "2"))


@settings(max_examples=40, deadline=None)
@given(stored=st.sampled_from(STORED), name=st.sampled_from(["Kafka", "Ceph", "SQLite", "MariaDB", "Valkey"]))
def test_another_name_is_no_duplicate(reviewer: OfflineReviewer, stored: str, name: str) -> None:
    edited = re.sub(r"MinIO|Redis|Postgres|Invoices", name, stored)
    assert not called_same(reviewer, stored, edited)


@pytest.mark.parametrize(
    ("stored", "edited"),
    [
        (STORED[0], STORED[0].replace("go", "do not go")),
        (STORED[1], STORED[1].replace("Never call", "Call")),
        (STORED[2], STORED[2].replace("ignores", "never ignores")),
        ("Rechnungen werden je Zeile gerundet.", "Rechnungen werden nicht je Zeile gerundet."),
        ("注文の状態は直接変更できる。", "注文の状態は直接変更できない。"),
    ],
)
def test_a_negation_is_no_duplicate(reviewer: OfflineReviewer, stored: str, edited: str) -> None:
    assert not called_same(reviewer, stored, edited)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), stored=st.sampled_from(STORED))
def test_one_other_word_is_no_duplicate(reviewer: OfflineReviewer, data: st.DataObject, stored: str) -> None:
    words, counted = stored.split(), Side(stored).counted
    once = [place for place, word in enumerate(words) if [counted[stem] for stem in spelling.said(word).stems] == [1]]
    place = data.draw(st.sampled_from(once))
    other = data.draw(st.sampled_from(["harbour", "purple", "backwards", "sideways", "Tuesday"]))
    edited = " ".join([*words[:place], other, *words[place + 1 :]])
    assert not called_same(reviewer, stored, edited)


@pytest.mark.parametrize(
    ("stored", "edited"),
    [
        (
            "Corrections flow from the archive to the index, the other way round they are lost.",
            "Corrections flow from the index to the archive, the other way round they are lost.",
        ),
        ("`editor` can publish, `author` cannot.", "`author` can publish, `editor` cannot."),
        ("Board overlays win over shield overlays.", "Shield overlays win over board overlays."),
    ],
)
def test_the_direction_matters(reviewer: OfflineReviewer, stored: str, edited: str) -> None:
    assert not called_same(reviewer, stored, edited)


@pytest.mark.parametrize(
    ("stored", "edited"),
    [
        (
            "Harbour staff log in by eHerkenning only, because the port must be able to shut accounts itself.",
            "harbour staff log in only by eHerkenning, as the port has to be able to shut accounts itself",
        ),
        (
            "Exports run on the replica alone, imports on the primary.",
            "Exports run only on the replica, imports on the primary",
        ),
    ],
)
def test_only_may_stand_on_either_side_of_its_word(reviewer: OfflineReviewer, stored: str, edited: str) -> None:
    assert called_same(reviewer, stored, edited)


def test_only_belongs_to_its_word(reviewer: OfflineReviewer) -> None:
    stored = "Only admins may see the invoices of other ports in the portal."
    assert not called_same(reviewer, stored, "Admins may see the invoices only of other ports in the portal.")


@pytest.mark.parametrize(
    "edited",
    [
        STORED[2].replace("lower(email) as well", "harbour as well"),  # said twice, replaced once
        STORED[2].replace(" unless the query says lower(email) as well", ""),
        STORED[0].replace(".", ", except for images."),
        "Postgres 15 ignores the index on `lower(email)` only if the query says lower(email) as well.",
    ],
)
def test_a_lost_or_added_condition_is_no_duplicate(reviewer: OfflineReviewer, edited: str) -> None:
    stored = STORED[0] if edited.startswith("The gateway") else STORED[2]
    assert not called_same(reviewer, stored, edited)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("wait 60 s", "wait one minute"),
        ("12 hours", "twelve hours"),
        ("8,000 rows of 256 MB", "8000 rows of 256MB"),
        ("the db repo", "database repositories"),
        ("it isn't organised", "not organized"),
        ("Why: tracks are coloured", "tracks are colored"),
        ("not before 03:10", "not before 3:10 a.m."),
        ("sent at 17:30", "sent at 5:30 pm"),
        ("cut at 1024 bytes", "cut at 1 KiB"),
        ("2M tickets", "2 million tickets"),
        ("80.00 CHF", "80 CHF"),
        ("94 per cent", "94 %"),
        ("retry three times", "retry thrice"),
        ("refuses above twenty-one", "refuses above 21"),
        ("restore of a snapshot", "snapshot restore"),
        ("每 48 小时", "每两天"),
    ],
)
def test_spelling_is_put_aside(one: str, other: str) -> None:
    assert spelling.said(one).stems == spelling.said(other).stems


@pytest.mark.parametrize(
    ("stored", "offered"),
    [
        (
            "Config objects are immutable after start, on all hosts of ours.",
            "Config objects are mutable after start, on all hosts of ours.",
        ),
        (
            "Unpaid invoices are exported each night to the ledger.",
            "Paid invoices are exported each night to the ledger.",
        ),
        (
            "Der Cache ist im Test unverschlüsselt, wie es der Prüfer will.",
            "Der Cache ist im Test verschlüsselt, wie es der Prüfer will.",
        ),
        (
            "Le cache est désactivé pendant l'import des lots de nuit.",
            "Le cache est activé pendant l'import des lots de nuit.",
        ),
        ("Незакрытые заказы попадают в ночной отчёт склада.", "Закрытые заказы попадают в ночной отчёт склада."),
        (
            "Validate the file, then lock the table, then import the rows.",
            "Lock the table, then validate the file, then import the rows.",
        ),
        (
            "Zuerst das Lager sperren, dann die Liste drucken, dann zählen.",
            "Zuerst die Liste drucken, dann das Lager sperren, dann zählen.",
        ),
    ],
)
def test_the_opposite_of_a_word_and_another_order_of_steps_are_no_duplicate(
    reviewer: OfflineReviewer, stored: str, offered: str
) -> None:
    assert not called_same(reviewer, stored, offered)
    assert not called_same(reviewer, offered, stored)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "All exports but the daily one go through the queue of the archive.",
            "All exports go through the queue of the archive.",
        ),
        (
            "Feature folders export through public.ts only, tests aside.",
            "Feature folders export through public.ts only.",
        ),
    ],
)
def test_what_leaves_something_out_is_no_sure_duplicate(reviewer: OfflineReviewer, one: str, other: str) -> None:
    for stored, told in ((one, other), (other, one)):
        assert not reviewer.judge(brief(told, neighbours=(neighbour(text=stored, similarity=0.97),))).sure


def test_another_account_of_where_things_stand_is_no_duplicate(reviewer: OfflineReviewer) -> None:
    stored = "Phase 2 runs: importer done, billing blocked by the tax office, mobile app frozen."
    offered = "The importer is done and the mobile app frozen; phase 2 runs, the tax office blocks billing."
    assert not called_same(reviewer, stored, offered, category=Category.STATE)


def test_a_text_that_a_passage_holds_restates_it_by_exact_words(reviewer: OfflineReviewer) -> None:
    text = "Raw pages are stored first. A document without a schema is skipped with a note, not an error. Rules follow."
    offered = "A document without a schema is skipped with a note, not an error."
    facts = reviewer.judge(brief(offered, neighbours=(), passages=(passage(text=text),))).facts
    assert facts is not None
    assert facts.restates is not None
    assert (facts.restates.passage, facts.restates.quote) == ("P1", offered)


@pytest.mark.parametrize(
    "extra", [", critical medicines first.", "; backups ignore it.", " — except on holidays.", ", logs by checksum."]
)
def test_a_clause_that_a_passage_lacks_is_restated_by_nothing(reviewer: OfflineReviewer, extra: str) -> None:
    text = "A document without a schema is skipped with a note, not an error."
    offered = text.removesuffix(".") + extra
    facts = reviewer.judge(brief(offered, neighbours=(), passages=(passage(text=text),))).facts
    assert facts is not None
    assert facts.restates is None


def test_marks_between_sentences_are_no_words_to_restate() -> None:
    assert list(pairs.windows("/... Rules follow.")) == ["Rules follow."]


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=300))
def test_windows_are_exact_parts_of_the_passage(text: str) -> None:
    assert all(window and window in text for window in pairs.windows(text))


@settings(max_examples=60, deadline=None)
@given(one=st.text(max_size=80), other=st.text(max_size=80))
def test_measures_of_any_two_texts_are_numbers(one: str, other: str) -> None:
    found = measures(pairs.Comparison(Side(one), Side(other)))
    assert found.shape == measures(pairs.Comparison(Side("one text"), Side("and another"))).shape
    assert bool(np.isfinite(found).all())
