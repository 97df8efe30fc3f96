"""The shortlist that a reviewer sees: near by meaning or by words, with the project's STATE, in step with the file."""

from pathlib import Path

import numpy as np
import pytest
from sqlmodel import Session

from app import entries, projects
from app.callers import LOCAL
from app.db import Vector
from app.errors import ConfigurationError
from app.neighbours import Indexed, Neighbourhood, open_neighbourhood
from app.schemas.entries import EntryIn
from app.schemas.judging import Brief, Neighbour
from app.schemas.reviews import Candidate
from app.schemas.vocabulary import Category, EntryStatus, Operation
from tests.support.pipelines import GOOD, PROJECT, Bench, embedder

FILLER = [
    f"Always rotate the {word} logs weekly, because the disk of that host is small." for word in "abcdefghijklmnop"
]


def keep(bench: Bench, text: str, category: Category = Category.RULE, project: str = PROJECT) -> str:
    """Index a stored memory; its entry's id."""
    entry = bench.index.add_entry(EntryIn(project=project, category=category, text=text, store="memory"))
    return str(entry.id)


def shortlist(bench: Bench, text: str, count: int = 8, leave_out: frozenset[str] = frozenset()) -> list[Neighbour]:
    """The candidate's neighbours."""
    with bench.database.read() as session:
        project = projects.find(session, LOCAL, PROJECT)
        assert project is not None
        vector = embedder().embed([text])[0]
        near = bench.index.neighbourhood.shortlist(session, project, text, vector, count, leave_out=leave_out)
    return list(near)


async def test_labels_count_from_one_in_the_order_of_the_list(bench: Bench) -> None:
    for text in GOOD:
        keep(bench, text)
    assert [n.label for n in shortlist(bench, GOOD[0])] == ["E1", "E2", "E3", "E4"]


async def test_the_nearest_by_meaning_comes_first(bench: Bench) -> None:
    for text in (*FILLER, GOOD[0]):
        keep(bench, text)
    first = shortlist(bench, "A payment may be retried only with the idempotency key that it had at first.")[0]
    assert first.text == GOOD[0]
    assert 0.3 < first.similarity < 1


async def test_a_rare_word_finds_what_the_vector_misses(bench: Bench) -> None:
    wanted = keep(bench, "Set QZX_9917 to zero on the ferry, since the modem counts from one.")
    for text in FILLER:
        keep(bench, text)
    found = shortlist(bench, FILLER[1].replace("that host", "QZX_9917"))
    assert wanted in {n.entry_id for n in found}


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("本番環境のデータベースは必ず移行の前に止めること。", "移行の前にデータベースを止める必要がある。"),
        ("Перед миграцией всегда останавливайте очередь задач.", "Очередь задач надо остановить перед миграцией."),
        ("Die Größe des Puffers muss stets durch acht teilbar sein.", "GRÖSSE des Puffers: durch acht teilbar."),
    ],
)
async def test_words_of_other_scripts_are_found(bench: Bench, stored: str, asked: str) -> None:
    wanted = keep(bench, stored)
    for text in FILLER:
        keep(bench, text)
    assert shortlist(bench, asked, 2)[0].entry_id == wanted


async def test_words_that_are_search_syntax_are_only_words(bench: Bench) -> None:
    keep(bench, GOOD[0])
    for text in ('" OR * NEAR(', "NOT AND OR NEAR", 'project : "x"', "a* ^b {c} -d +e", "'; DROP TABLE entry; --"):
        shortlist(bench, f"payment {text} idempotency")
    assert len(bench.entries()) == 1


async def test_a_text_without_a_word_has_neighbours_by_vector_only(bench: Bench) -> None:
    keep(bench, GOOD[0])
    assert len(shortlist(bench, "!!! ???")) == 1


async def test_no_more_neighbours_than_asked_for_but_the_state_on_top(bench: Bench) -> None:
    state = keep(bench, "Half of the ferries have their new modems; the rest follows in spring.", Category.STATE)
    for text in FILLER:
        keep(bench, text)
    found = shortlist(bench, FILLER[0], 3)
    assert len(found) == 4
    assert found[3].entry_id == state
    assert found[3].is_live_state


async def test_the_live_state_is_shown_beside_an_unconfirmed_one(bench: Bench) -> None:
    older = keep(bench, "Half of the ferries have their new modems; the rest follows in spring.", Category.STATE)
    bench.execute("UPDATE entry SET status = 'unconfirmed'")
    live = keep(bench, "All of the ferries have their new modems.", Category.STATE)
    for text in FILLER:
        keep(bench, text)
    found = {n.entry_id for n in shortlist(bench, "Half of the ferries have new modems, the rest will in spring.", 1)}
    assert found == {older, live}


async def test_left_out_entries_are_not_shown_even_if_one_is_the_state(bench: Bench) -> None:
    rule, state = keep(bench, GOOD[0]), keep(bench, GOOD[1], Category.STATE)
    assert {n.entry_id for n in shortlist(bench, GOOD[0], leave_out=frozenset({rule, state}))} == set()


async def test_a_neighbour_says_what_a_verdict_needs(bench: Bench) -> None:
    review = (await bench.review(Candidate(text=GOOD[0], key="payments"))).reviews[0]
    (neighbour,) = shortlist(bench, GOOD[0])
    assert (neighbour.entry_id, neighbour.text, neighbour.key, neighbour.version, neighbour.status) == (
        review.entry_id,
        GOOD[0],
        "payments",
        1,
        EntryStatus.PENDING,
    )
    assert neighbour.similarity == pytest.approx(1, abs=1e-5)


# --- in step with the file ----------------------------------------------------------------------------------------


async def test_what_another_process_writes_is_found(bench: Bench, tmp_path: Path, database_url: str) -> None:
    keep(bench, GOOD[0])
    assert len(shortlist(bench, GOOD[0])) == 1
    other = Bench(tmp_path, database_url=database_url)
    entry_id = keep(other, GOOD[1])
    assert {n.text for n in shortlist(bench, GOOD[1])} == set(GOOD[:2])
    other.index.delete_entry(entry_id)
    assert [n.text for n in shortlist(bench, GOOD[1])] == [GOOD[0]]
    await other.close()


async def test_an_index_that_starts_late_knows_everything(bench: Bench, tmp_path: Path, database_url: str) -> None:
    for text in GOOD:
        keep(bench, text)
    bench.index.delete_entry(bench.entries()[0]["id"])
    late = Bench(tmp_path, database_url=database_url)
    assert {n.text for n in shortlist(late, GOOD[0])} == set(GOOD[1:])
    await late.close()


async def test_what_was_taken_back_hides_nothing_that_comes_after(bench: Bench) -> None:
    keep(bench, GOOD[0])
    with pytest.raises(ZeroDivisionError), bench.database.write() as session:
        give_up_an_entry(bench, session)
    kept = keep(bench, GOOD[2])
    with bench.database.read() as session:
        now = projects.find(session, LOCAL, PROJECT)
        assert now is not None
        vector = embedder().embed([GOOD[2]])[0]
        by_vector, _ = bench.index.neighbourhood.rankings(session, now, GOOD[2], vector, 1)
    assert by_vector == [kept]


def give_up_an_entry(bench: Bench, session: Session) -> None:
    """Write an entry, look for neighbours in the same transaction, and fail."""
    project = projects.locked(session, LOCAL, PROJECT, bench.clock())
    given = EntryIn(project=PROJECT, category=Category.RULE, text=GOOD[1])
    made = entries.add_stored(session, LOCAL, project.id, given, "hash", bench.clock())
    vector = embedder().embed([GOOD[1]])[0]
    bench.index.neighbourhood.add(session, project.id, Indexed(made.id, GOOD[1], vector, made.revision))
    assert bench.index.neighbourhood.shortlist(session, project, GOOD[0], vector, 8)
    raise ZeroDivisionError


# --- what changed while a reviewer was thinking -------------------------------------------------------------------


def brief_of(bench: Bench, text: str) -> Brief:
    """The brief of a candidate as it is now."""
    near = tuple(shortlist(bench, text))
    return Brief(text=text, project=PROJECT, operation=Operation.WRITE, key=None, neighbours=near, passages=())


def amended(bench: Bench, brief: Brief, since: int, leave_out: frozenset[str] = frozenset()) -> Brief:
    """The brief with what changed since."""
    with bench.database.read() as session:
        project = projects.find(session, LOCAL, PROJECT)
        assert project is not None
        vector = embedder().embed([brief.text])[0]
        neighbourhood: Neighbourhood = bench.index.neighbourhood
        return neighbourhood.amended(session, project, brief, vector, since=since, leave_out=leave_out)


def revision(bench: Bench) -> int:
    """How often the project's entries have changed."""
    return int(bench.rows("SELECT revision FROM project")[0]["revision"])


async def test_a_near_newcomer_is_added_under_the_next_label(bench: Bench) -> None:
    keep(bench, GOOD[1])
    brief, since = brief_of(bench, GOOD[0]), revision(bench)
    keep(bench, GOOD[0])
    keep(bench, GOOD[3])
    now = amended(bench, brief, since)
    assert [(n.label, n.text) for n in now.neighbours] == [("E1", GOOD[1]), ("E2", GOOD[0])]


async def test_a_new_state_is_added_however_far_away(bench: Bench) -> None:
    brief, since = brief_of_empty(), 0
    keep(bench, "Half of the ferries have their new modems; the rest follows in spring.", Category.STATE)
    assert amended(bench, brief, since).state is not None


def brief_of_empty() -> Brief:
    """A brief from before the project had entries."""
    return Brief(text=GOOD[0], project=PROJECT, operation=Operation.WRITE, key=None, neighbours=(), passages=())


async def test_a_neighbour_that_is_gone_leaves_the_labels_of_the_others(bench: Bench) -> None:
    ids = {text: keep(bench, text) for text in GOOD[:3]}
    brief, since = brief_of(bench, GOOD[0]), revision(bench)
    second = brief.neighbours[1]
    bench.index.delete_entry(second.entry_id)
    newcomer = keep(bench, f"{GOOD[0]} It does so every time.")
    now = amended(bench, brief, since)
    assert [n.label for n in now.neighbours] == ["E1", "E3", "E4"]
    assert now.neighbours[2].entry_id == newcomer
    assert ids[GOOD[0]] == now.neighbours[0].entry_id


async def test_the_own_entry_leaves_the_brief(bench: Bench) -> None:
    own, other = keep(bench, GOOD[0], Category.STATE), keep(bench, GOOD[1])
    brief = brief_of(bench, GOOD[0])
    now = amended(bench, brief, revision(bench), frozenset({own}))
    assert [n.entry_id for n in now.neighbours] == [other]


async def test_nothing_new_leaves_the_brief_as_it_was(bench: Bench) -> None:
    keep(bench, GOOD[0])
    brief = brief_of(bench, GOOD[0])
    assert amended(bench, brief, revision(bench)) is brief


# --- one embedding model ------------------------------------------------------------------------------------------


class OtherEmbedder:
    """Another model."""

    model = "another-model"
    dimension = 256

    def embed(self, texts: object) -> Vector:  # noqa: ARG002 - the interface has it
        """Nothing to see."""
        return np.zeros((0, 256), dtype=np.float32)


async def test_vectors_of_two_models_are_never_mixed(bench: Bench) -> None:
    open_neighbourhood(bench.database, embedder())
    with pytest.raises(ConfigurationError, match="reindex"):
        open_neighbourhood(bench.database, OtherEmbedder())
