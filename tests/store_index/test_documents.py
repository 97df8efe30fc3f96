"""The project's documents: sent once, cut into passages, replaced when they change."""

import asyncio
import threading
from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import documents, projects
from app.callers import LOCAL
from app.db import Vector
from app.documents import MOST_PASSAGES, RETIRED_DAYS
from app.errors import Invalid, Unavailable
from app.index import Index
from app.passages import LONGEST, passages
from app.schemas.judging import Passage
from app.schemas.projects import DocumentIn, DocumentsOut
from app.schemas.vocabulary import Level, Verdict
from tests.support.documents import document
from tests.support.pipelines import GOOD, PROJECT, Bench, embedder

README = """Intro without a heading.

# Storage

Raw pages are stored first.
They are never changed.

## Replay ##

Rules can be replayed over stored pages.

```
# no heading

still the same fence
```
"""


def shortlist(bench: Bench, text: str, count: int = 4, leave_out: str | None = None) -> list[Passage]:
    """The passages near a text."""
    with bench.database.read() as session:
        project = projects.find(session, LOCAL, PROJECT)
        assert project is not None
        vector = embedder().embed([text])[0]
        return list(bench.index.documents.shortlist(session, project, vector, count, leave_out=leave_out))


# --- sending ------------------------------------------------------------------------------------------------------


async def test_hashes_alone_tell_which_texts_are_wanted(bench: Bench) -> None:
    sent = bench.index.put_documents(PROJECT, [document("README.md", README, send=False)])
    assert (sent.wanted, sent.passages) == (["README.md"], 0)
    sent = bench.index.put_documents(PROJECT, [document("README.md", README)])
    assert (sent.wanted, sent.passages) == ([], 4)
    sent = bench.index.put_documents(PROJECT, [document("README.md", README, send=False)])
    assert (sent.wanted, sent.passages) == ([], 4)


async def test_a_changed_document_is_wanted_and_replaced(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("README.md", README)])
    changed = "# Storage\n\nRaw pages are thrown away at once."
    sent = bench.index.put_documents(PROJECT, [document("README.md", changed, send=False)])
    assert (sent.wanted, sent.passages) == (["README.md"], 4), "the older text serves until the newer comes"
    bench.index.put_documents(PROJECT, [document("README.md", changed)])
    assert [p.text for p in shortlist(bench, "raw pages")] == ["Raw pages are thrown away at once."]


async def test_documents_that_are_not_listed_are_forgotten(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("a.md", README), document("b.md", "Only this line is in b.")])
    sent = bench.index.put_documents(PROJECT, [document("b.md", "Only this line is in b.", send=False)])
    assert (sent.wanted, sent.passages) == ([], 1)
    assert [p.path for p in shortlist(bench, README)] == ["b.md"]
    assert bench.index.put_documents(PROJECT, []).passages == 0
    assert shortlist(bench, README) == []


async def test_a_project_that_is_not_known_is_not_made_for_having_no_documents(bench: Bench) -> None:
    assert bench.index.put_documents(PROJECT, []) == DocumentsOut(wanted=[], passages=0)
    assert bench.rows("SELECT id FROM project") == []


async def test_saying_the_same_again_is_no_change(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("a.md", README)])
    before = bench.rows("SELECT documents_revision FROM project")
    bench.index.put_documents(PROJECT, [document("a.md", README, send=False)])
    assert bench.rows("SELECT documents_revision FROM project") == before


async def test_a_text_with_another_hash_is_refused_and_changes_nothing(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("a.md", README)])
    forged = DocumentIn(path="b.md", sha256="0" * 64, text="Something else.")
    with pytest.raises(Invalid, match=r"b\.md"):
        bench.index.put_documents(PROJECT, [forged])
    assert [row["path"] for row in bench.rows("SELECT path FROM document")] == ["a.md"]


async def test_a_path_that_stands_twice_is_refused(bench: Bench) -> None:
    with pytest.raises(Invalid, match="twice"):
        bench.index.put_documents(PROJECT, [document("a.md", README), document("a.md", "Other text.")])


async def test_the_hash_is_that_of_the_text_as_it_was_sent(bench: Bench) -> None:
    text = "A line with \x00 in it, as no database stores it."
    sent = DocumentIn(path="a.bin", sha256=sha256(text.encode()).hexdigest(), text=text)
    assert bench.index.put_documents(PROJECT, [sent]).passages == 1
    assert "\x00" not in shortlist(bench, text)[0].text


async def test_an_empty_document_has_no_passages_and_is_not_asked_for_again(bench: Bench) -> None:
    assert bench.index.put_documents(PROJECT, [document("a.md", "")]).wanted == []
    assert bench.index.put_documents(PROJECT, [document("a.md", "", send=False)]).wanted == []


# --- following the project ----------------------------------------------------------------------------------------


class CountingEmbedder:
    """The embedding model, which counts the texts and may be made to think until it is told to go on."""

    def __init__(self) -> None:
        self.model, self.dimension = embedder().model, embedder().dimension
        self.texts = 0
        self.thinks = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def embed(self, texts: Sequence[str]) -> Vector:
        """The vectors, once it may go on."""
        self.texts += len(texts)
        self.thinks.set()
        assert self.go.wait(20)
        return embedder().embed(texts)


def by_hash(*sent: DocumentIn) -> list[DocumentIn]:
    """The documents without their texts."""
    return [document.model_copy(update={"text": None}) for document in sent]


async def test_going_back_and_forth_between_two_checkouts_needs_neither_texts_nor_vectors(bench: Bench) -> None:
    counting = CountingEmbedder()
    index = Index(bench.database, counting)
    here = [document("README.md", README), document("docs/a.md", "Both of the checkouts have this.")]
    there = [document("README.md", "# Storage\n\nRaw pages are thrown away at once."), here[1]]
    index.put_documents(LOCAL, PROJECT, here)
    index.put_documents(LOCAL, PROJECT, there)
    counting.texts = 0

    for _ in range(3):
        assert index.put_documents(LOCAL, PROJECT, by_hash(*here)).wanted == []
        assert "Raw pages are stored first." in shortlist(bench, "raw pages")[0].text
        assert index.put_documents(LOCAL, PROJECT, by_hash(*there)).wanted == []
        assert shortlist(bench, "raw pages")[0].text == "Raw pages are thrown away at once."
    assert counting.texts == 0
    assert len(bench.rows("SELECT id FROM document")) == 3


async def test_a_document_under_another_name_is_not_wanted_again(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("README.md", README), document("b.md", "Only this line is in b.")])

    sent = bench.index.put_documents(PROJECT, by_hash(document("docs/README.md", README)))

    assert (sent.wanted, sent.passages) == ([], 4)
    assert {p.path for p in shortlist(bench, README)} == {"docs/README.md"}


async def test_copies_are_documents_of_their_own(bench: Bench) -> None:
    copies = [document("a.md", README), document("b.md", README)]
    assert bench.index.put_documents(PROJECT, copies).passages == 8
    assert bench.index.put_documents(PROJECT, []).passages == 0
    assert bench.index.put_documents(PROJECT, by_hash(*copies)) == DocumentsOut(wanted=[], passages=8)
    assert bench.index.put_documents(PROJECT, by_hash(copies[1])).passages == 4


async def test_what_is_gone_for_good_is_erased(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("a.md", README), document("b.md", "Only this line is in b.")])
    bench.index.put_documents(PROJECT, [document("b.md", "Only this line is in b.")])
    bench.clock.pass_(days=RETIRED_DAYS - 1)
    bench.pipeline.sweep()
    assert len(bench.rows("SELECT id FROM document")) == 2

    bench.clock.pass_(days=2)
    bench.pipeline.sweep()

    assert [row["path"] for row in bench.rows("SELECT path FROM document")] == ["b.md"]
    assert len(bench.rows("SELECT id FROM passage")) == 1
    assert bench.index.put_documents(PROJECT, by_hash(document("a.md", README))).wanted == ["a.md"]


async def test_of_many_older_texts_only_the_latest_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_RETIRED", 3)
    texts = [f"The lamp of this lighthouse turns {turns} times a minute." for turns in range(7)]
    for text in texts:
        bench.clock.pass_(minutes=1)
        bench.index.put_documents(PROJECT, [document("a.md", text)])

    kept = {row["sha256"] for row in bench.rows("SELECT sha256 FROM document")}
    assert kept == {document("a.md", text).sha256 for text in texts[3:]}


async def test_a_long_document_is_kept_up_to_a_number_of_passages(bench: Bench) -> None:
    text = "\n\n".join(f"Line {number} of the chart." for number in range(MOST_PASSAGES + 50))
    assert bench.index.put_documents(PROJECT, [document("a.md", text)]).passages == MOST_PASSAGES


async def test_reviews_go_on_while_documents_are_read(bench: Bench) -> None:
    slow = CountingEmbedder()
    slow.go.clear()
    sending = asyncio.create_task(
        asyncio.to_thread(Index(bench.database, slow).put_documents, LOCAL, PROJECT, [document("a.md", README)])
    )
    try:
        assert await asyncio.to_thread(slow.thinks.wait, 20)
        assert (await bench.review(GOOD[0])).verdict is Verdict.APPROVE
        assert not sending.done()
    finally:
        slow.go.set()
    assert (await sending).passages == 4


async def test_who_waits_too_long_for_a_turn_is_told_to_come_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PATIENCE_SECONDS", 0.01)
    with bench.index.documents.turn(), pytest.raises(Unavailable):
        bench.index.put_documents(PROJECT, [document("a.md", README)])
    assert bench.index.put_documents(PROJECT, [document("a.md", README)]).passages == 4


async def test_agents_that_send_the_same_at_once_have_it_kept_once(bench: Bench) -> None:
    counting = CountingEmbedder()
    index = Index(bench.database, counting)
    sent = [document(f"{name}.md", f"# {name}\n\n{README}") for name in "abc"]

    answers = await asyncio.gather(*(asyncio.to_thread(index.put_documents, LOCAL, PROJECT, sent) for _ in range(5)))

    assert [answer.wanted for answer in answers] == [[]] * 5
    assert counting.texts == 12
    assert len(bench.rows("SELECT id FROM document")) == 3


async def test_checkouts_that_send_different_texts_at_once_leave_one_of_each(bench: Bench) -> None:
    replicas = [Index(bench.database, embedder()) for _ in range(4)]
    sent = [
        [document(f"{name}.md", f"The {name} of checkout {number} is painted anew.") for name in ("lamp", "lens")]
        for number in range(4)
    ]

    await asyncio.gather(
        *(
            asyncio.to_thread(replica.put_documents, LOCAL, PROJECT, own)
            for replica, own in zip(replicas, sent, strict=True)
        )
    )

    held = {held.path: held.sha256 for held in bench.index.documents_of(PROJECT)}
    assert set(held) == {"lamp.md", "lens.md"}
    assert bench.index.put_documents(PROJECT, sent[2]).wanted == []
    assert len(shortlist(bench, "painted")) == 2


# --- finding ------------------------------------------------------------------------------------------------------


async def test_the_nearest_passage_comes_first_under_its_heading(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("README.md", README)])
    found = shortlist(bench, "Rules are replayed over pages that were stored.")
    assert [p.label for p in found] == ["P1", "P2", "P3", "P4"]
    assert (found[0].path, found[0].heading, found[0].text) == (
        "README.md",
        "Replay",
        "Rules can be replayed over stored pages.",
    )


async def test_the_document_that_is_edited_is_left_out_and_crowds_out_no_other(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("a.md", README), document("b.md", "Only this line is in b.")])
    found = shortlist(bench, README, 2, leave_out="a.md")
    assert [(p.label, p.path) for p in found] == [("P1", "b.md")]
    assert shortlist(bench, README, 0, leave_out="a.md") == []
    assert len(shortlist(bench, README, leave_out="c.md")) == 4


async def test_a_project_without_documents_has_no_passages(bench: Bench) -> None:
    bench.index.put_documents("elsewhere", [document("README.md", README)])
    bench.index.set_level(PROJECT, Level.OFFLINE)
    assert bench.index.put_documents(PROJECT, []).passages == 0
    assert shortlist(bench, README) == []


async def test_what_another_process_sends_is_found(bench: Bench) -> None:
    bench.index.put_documents(PROJECT, [document("README.md", README)])
    shortlist(bench, README)
    other = Index(bench.database, embedder())
    other.put_documents(LOCAL, PROJECT, [document("b.md", "Only this line is in b.")])
    assert [p.path for p in shortlist(bench, README)] == ["b.md"]


# --- cutting ------------------------------------------------------------------------------------------------------


def test_passages_follow_headings_and_paragraphs() -> None:
    assert [(cut.heading, cut.text.splitlines()[0]) for cut in passages(README)] == [
        ("", "Intro without a heading."),
        ("Storage", "Raw pages are stored first."),
        ("Replay", "Rules can be replayed over stored pages."),
        ("Replay", "```"),
    ]


def test_a_fence_is_cut_neither_at_its_comments_nor_at_its_blank_lines() -> None:
    *_, fence = passages(README)
    assert fence.text == "```\n# no heading\n\nstill the same fence\n```"


def test_a_long_paragraph_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(600)]
    cuts = [cut.text for cut in passages(" ".join(words))]
    assert len(cuts) > 4
    assert all(len(cut) <= LONGEST for cut in cuts)
    assert " ".join(cuts).split() == words


def test_a_long_line_without_spaces_is_cut_all_the_same() -> None:
    cuts = [cut.text for cut in passages("x" * 5_000)]
    assert all(len(cut) <= LONGEST for cut in cuts)
    assert "".join(cuts) == "x" * 5_000


@given(st.lists(st.sampled_from(["# head", "```", "", "text", "  ", "y" * 1_000, "a\tb"]), max_size=20).map("\n".join))
def test_every_word_of_a_text_is_in_one_passage_or_heading(text: str) -> None:
    cuts = list(passages(text))
    kept = "".join("".join(cut.text.split()) for cut in cuts)
    without_headings = "".join("".join(line.split()) for line in text.splitlines() if line != "# head")
    assert kept.replace("#head", "") == without_headings
    assert all(cut.text.strip() and len(cut.text) <= 2 * LONGEST for cut in cuts)
