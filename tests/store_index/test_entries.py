"""Entries: imported, listed in pages, searched."""

import pytest
from pydantic import ValidationError

from app import entries
from app.callers import LOCAL
from app.errors import Conflict
from app.schemas.entries import EntryIn, EntryOut
from app.schemas.vocabulary import Category, EntryStatus
from tests.support.pipelines import GOOD, PROJECT, Bench


def add(bench: Bench, text: str, category: Category = Category.RULE, **more: str) -> EntryOut:
    """Import a memory that is in its store already."""
    entry: EntryOut = bench.index.add_entry(
        EntryIn.model_validate({"project": PROJECT, "category": category, "text": text, **more})
    )
    return entry


async def test_an_imported_memory_is_stored_at_once(bench: Bench) -> None:
    entry = add(bench, GOOD[0], key="payments", store="memory", store_id="item-1")
    assert (entry.status, entry.version, entry.review_id, entry.key, entry.store, entry.store_id) == (
        EntryStatus.STORED,
        1,
        None,
        "payments",
        "memory",
        "item-1",
    )
    assert bench.entry(entry.id)["text"] == GOOD[0]


async def test_an_imported_memory_refuses_its_like(bench: Bench) -> None:
    add(bench, GOOD[0])
    assert (await bench.review(GOOD[0])).verdict == "duplicate"


async def test_equal_texts_and_second_states_cannot_be_imported(bench: Bench) -> None:
    add(bench, GOOD[0], Category.STATE)
    for text, category in ((GOOD[0].upper(), Category.RULE), (GOOD[1], Category.STATE)):
        with pytest.raises(Conflict):
            add(bench, text, category)
    add(bench, GOOD[1], Category.STATE, project="elsewhere")
    assert len(bench.entries()) == 2


async def test_no_memory_cannot_be_imported(bench: Bench) -> None:
    with pytest.raises(ValidationError, match="category"):
        add(bench, GOOD[0], Category.NONE)


async def test_pages_show_every_entry_once_though_more_come_in_between(bench: Bench) -> None:
    made = [add(bench, f"Always keep shelf number {number} free for the crates.").id for number in range(7)]
    seen: list[str] = []
    before = None
    while True:
        with bench.database.read() as session:
            page = entries.page(session, LOCAL, project_id=None, category=None, status=None, before=before, count=3)
        if not page:
            break
        seen += [entry.id for entry in page]
        before = page[-1].id
        add(bench, f"Never block the door number {len(seen)}, because the fire brigade checks it.")
    assert seen == made[::-1]


async def test_pages_can_be_narrowed_down(bench: Bench) -> None:
    rule, quirk = add(bench, GOOD[0]), add(bench, GOOD[3], Category.QUIRK)
    bench.index.delete_entry(rule.id)
    elsewhere = add(bench, GOOD[1], project="elsewhere")
    narrow = {
        "category": (Category.QUIRK, [quirk.id]),
        "status": (EntryStatus.DELETED, [rule.id]),
        "project_id": (bench.entry(elsewhere.id)["project_id"], [elsewhere.id]),
    }
    for name, (value, expected) in narrow.items():
        arguments = {"project_id": None, "category": None, "status": None, name: value}
        with bench.database.read() as session:
            page = entries.page(session, LOCAL, before=None, count=9, **arguments)
        assert [entry.id for entry in page] == expected, name


async def test_a_search_finds_the_nearest_first_and_no_other_projects(bench: Bench) -> None:
    for text in GOOD:
        add(bench, text)
    add(bench, GOOD[0], project="elsewhere")
    hits = bench.index.search(PROJECT, "retry a payment with its idempotency key", 3)
    assert hits[0].entry.text == GOOD[0]
    assert len(hits) == 3
    assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)
    assert {hit.entry.project for hit in hits} == {PROJECT}


async def test_a_search_in_an_unknown_project_finds_nothing(bench: Bench) -> None:
    assert bench.index.search("nowhere", GOOD[0], 3) == []
