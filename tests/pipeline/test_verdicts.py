"""Every verdict, through the real pipeline on a real database."""

from datetime import datetime

import pytest

from app.schemas.judging import Fault, Restatement
from app.schemas.reviews import Candidate
from app.schemas.vocabulary import Category, Level, Operation, Reason, Scope, Verdict
from tests.support.canaries import canaries
from tests.support.documents import document
from tests.support.pipelines import GOOD, PROJECT, SLOP, Bench, ScriptedReviewer, failed, found

LEAK = f"The workers read the key {canaries()['AWS key id']} from their environment and from nowhere else."
README = "# Storage\n\nRaw pages are stored first, so that the rules can be replayed over them later without a crawl.\n"


async def test_a_good_memory_is_approved_and_becomes_a_pending_entry(bench: Bench) -> None:
    answer = await bench.review(GOOD[0], agent="claude-code")
    (review,) = answer.reviews
    assert (answer.verdict, review.verdict, review.reasons) == (Verdict.APPROVE, Verdict.APPROVE, [])
    (entry,) = bench.entries()
    assert (entry["status"], entry["text"], entry["agent"]) == ("pending", GOOD[0], "claude-code")
    assert (entry["review_id"], review.entry_id) == (review.id, entry["id"])


async def test_the_agent_reads_a_short_note_beside_an_approval(bench: Bench) -> None:
    answer = await bench.review(GOOD[0])
    assert answer.context is not None
    assert "reviewer: offline" in answer.context
    assert len(answer.context) < 200


async def test_the_gate_is_run_again(bench: Bench) -> None:
    answer = await bench.review(SLOP)
    (review,) = answer.reviews
    assert (review.verdict, review.reasons, review.reviewer) == (Verdict.REJECT, [Reason.SESSION_SUMMARY], "gate")
    assert answer.context is None
    assert bench.entries() == []


async def test_a_text_that_is_too_short_can_be_reworked(bench: Bench) -> None:
    (review,) = (await bench.review("Use tabs.")).reviews
    assert (review.verdict, review.reasons) == (Verdict.REWRITE, [Reason.TOO_SHORT])


async def test_at_level_gate_nobody_judges_and_nothing_is_indexed(bench: Bench) -> None:
    bench.index.set_level(PROJECT, Level.GATE)
    assert (await bench.review(GOOD[0])).verdict is Verdict.APPROVE
    assert (await bench.review(GOOD[0], session="s2")).verdict is Verdict.APPROVE
    assert (await bench.review(SLOP)).verdict is Verdict.REJECT
    assert bench.entries() == []


async def test_the_project_is_remembered_even_if_its_first_text_is_refused(bench: Bench) -> None:
    await bench.review(SLOP)
    assert [row["name"] for row in bench.rows("SELECT name FROM project")] == [PROJECT]


async def test_a_dry_run_judges_and_makes_no_entry(bench: Bench) -> None:
    answer = await bench.review(GOOD[0], dry_run=True)
    assert answer.verdict is Verdict.APPROVE
    assert answer.reviews[0].entry_id is None
    assert bench.entries() == []


# --- what the second model finds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judgement", "verdict", "reasons"),
    [
        (found(), Verdict.APPROVE, []),
        (found(addresses_reader=True), Verdict.REJECT, [Reason.INJECTION]),
        (found(Category.NONE), Verdict.REJECT, [Reason.SESSION_SUMMARY]),
        (found(Category.NONE, suggested_text=GOOD[1]), Verdict.REWRITE, [Reason.SESSION_SUMMARY]),
        (found(Category.QUIRK, durable=False), Verdict.REWRITE, [Reason.EPHEMERAL]),
        (found(Category.QUIRK, scope=Scope.RESOURCE), Verdict.REWRITE, [Reason.TOO_SPECIFIC]),
        (found(Category.STATE, single_fact=False), Verdict.APPROVE, []),
        (found(scope=Scope.RESOURCE), Verdict.REWRITE, [Reason.TOO_SPECIFIC]),
        (found(Category.DISCOVERY, scope=Scope.PLATITUDE), Verdict.REWRITE, [Reason.TOO_GENERIC]),
        (found(Category.DECISION, gives_why=False), Verdict.REWRITE, [Reason.NO_WHY]),
        (found(single_fact=False), Verdict.REWRITE, [Reason.SEVERAL_FACTS]),
        (failed(Fault.REFUSAL), Verdict.HELD, []),
    ],
)
async def test_the_verdict_follows_from_what_the_model_finds(
    paid: Bench, model: ScriptedReviewer, judgement: object, verdict: Verdict, reasons: list[Reason]
) -> None:
    model.script(judgement)  # type: ignore[arg-type]
    (review,) = (await paid.review(GOOD[0])).reviews
    assert (review.verdict, review.reasons, review.reviewer) == (verdict, reasons, "anthropic")
    assert (len(paid.entries()) == 1) == (verdict is Verdict.APPROVE)


async def test_a_refusal_hands_over_the_suggested_text_and_the_reviewers_sentence(
    paid: Bench, model: ScriptedReviewer
) -> None:
    model.script(found(scope=Scope.RESOURCE, suggested_text=GOOD[1], reason="It names one order only."))
    (review,) = (await paid.review(GOOD[0])).reviews
    assert review.suggested_text == GOOD[1]
    for part in ("[too_specific]", "It names one order only.", f"Suggested text: “{GOOD[1]}”", "/hygiene"):
        assert part in review.message


async def test_an_approval_suggests_nothing(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(found(suggested_text=GOOD[1]))
    assert (await paid.review(GOOD[0])).reviews[0].suggested_text is None


@pytest.mark.parametrize("suggestion", [SLOP, "Use tabs.", LEAK])
async def test_what_the_gate_would_refuse_is_never_suggested(
    paid: Bench, model: ScriptedReviewer, suggestion: str
) -> None:
    model.script(found(single_fact=False, suggested_text=suggestion))
    (review,) = (await paid.review(GOOD[0])).reviews
    assert (review.verdict, review.suggested_text) == (Verdict.REWRITE, None)
    assert suggestion not in review.message
    assert all(suggestion not in row["facts"] for row in paid.rows("SELECT facts FROM review"))


async def test_nothing_is_suggested_for_an_attack(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(found(addresses_reader=True, suggested_text=GOOD[1]))
    (review,) = (await paid.review(GOOD[0])).reviews
    assert (review.reasons, review.suggested_text) == ([Reason.INJECTION], None)
    assert GOOD[1] not in review.message


async def test_what_the_gate_would_refuse_salvages_no_summary(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(found(Category.NONE, suggested_text=SLOP))
    assert (await paid.review(GOOD[0])).verdict is Verdict.REJECT


async def test_a_duplicate_names_the_entry_that_the_model_was_shown(paid: Bench, model: ScriptedReviewer) -> None:
    entry_id = await paid.store(GOOD[0], "item-7")
    model.script(lambda brief: found(duplicate_of=brief.neighbours[0].label))
    (review,) = (
        await paid.review("Retrying a payment needs its idempotency key, else the card is charged twice.")
    ).reviews
    assert (review.verdict, review.reasons) == (Verdict.DUPLICATE, [Reason.DUPLICATE])
    assert review.entry is not None
    assert (review.entry_id, review.entry.id, review.entry.store_id, review.entry.text) == (
        entry_id,
        entry_id,
        "item-7",
        GOOD[0],
    )
    assert "item-7" in review.message
    assert GOOD[0] in review.message


async def test_a_restatement_names_the_document_with_the_quote(paid: Bench, model: ScriptedReviewer) -> None:
    paid.index.put_documents(PROJECT, [document("docs/storage.md", README)])
    model.script(found(restates=Restatement(passage="P1", quote="Raw pages are stored first")))
    (review,) = (
        await paid.review(
            "Raw pages are stored first, because extraction rules change every week and are replayed over them."
        )
    ).reviews
    assert (review.verdict, review.reasons) == (Verdict.DUPLICATE, [Reason.RESTATES_DOCUMENT])
    assert review.passage is not None
    assert (review.passage.path, review.passage.heading, review.passage.quote) == (
        "docs/storage.md",
        "Storage",
        "Raw pages are stored first",
    )
    assert "docs/storage.md (Storage)" in review.message
    assert model.briefs[0].passages[0].text.startswith("Raw pages are stored first")


async def test_an_update_of_a_document_is_not_compared_with_that_document(paid: Bench, model: ScriptedReviewer) -> None:
    other = README.replace("Raw pages", "Old pages")
    paid.index.put_documents(PROJECT, [document("docs/storage.md", README), document("docs/old.md", other)])
    edit = Candidate(text="Raw pages are stored first, so that rules can be replayed later.", key="docs/storage.md")
    await paid.review(edit, store="files", operation=Operation.UPDATE, dry_run=True)
    assert [(p.label, p.path) for p in model.briefs[-1].passages] == [("P1", "docs/old.md")]
    await paid.review(edit, store="files", operation=Operation.WRITE, dry_run=True)
    assert "docs/storage.md" in {p.path for p in model.briefs[-1].passages}


async def test_what_supersedes_an_entry_becomes_an_update_with_all_that_is_needed_for_it(
    paid: Bench, model: ScriptedReviewer
) -> None:
    entry_id = await paid.store(GOOD[0], "item-7")
    model.script(lambda brief: found(supersedes=brief.neighbours[0].label, suggested_text=GOOD[1]))
    (review,) = (await paid.review("Retry a payment twice at most, always with its idempotency key.")).reviews
    assert review.verdict is Verdict.UPDATE
    assert review.entry is not None
    assert (review.entry.id, review.entry.version, review.entry.text) == (entry_id, 1, GOOD[0])
    assert review.suggested_text == GOOD[1]
    assert "version 1" in review.message


async def test_the_callers_own_label_of_a_kind_counts_for_nothing(paid: Bench, model: ScriptedReviewer) -> None:
    model.script(found(Category.NONE))
    (review,) = (await paid.review("[RULE] always: a very good rule about things that we did this week.")).reviews
    assert (review.verdict, review.category) == (Verdict.REJECT, Category.NONE)


async def test_the_model_sees_the_candidates_neighbours_with_their_keys(paid: Bench, model: ScriptedReviewer) -> None:
    await paid.store(GOOD[0], "item-7", call="c1")
    await paid.review(GOOD[1])
    (neighbour,) = model.briefs[-1].neighbours
    assert (neighbour.label, neighbour.text, neighbour.store_id, neighbour.status) == (
        "E1",
        GOOD[0],
        "item-7",
        "stored",
    )


async def test_another_projects_entries_are_never_neighbours(paid: Bench, model: ScriptedReviewer) -> None:
    await paid.store(GOOD[0], project="github.com/acme/elsewhere")
    await paid.review(GOOD[0])
    assert model.briefs[-1].neighbours == ()
    assert [entry["status"] for entry in paid.entries()] == ["stored", "pending"]


async def test_nothing_is_decided_before_it_was_asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log and metrics take the time between the two for how long the review took."""

    def ticking() -> datetime:
        bench.clock.pass_(seconds=1)
        return bench.clock()

    monkeypatch.setattr(bench.pipeline, "_now", ticking)
    await bench.review(GOOD[0])
    (row,) = bench.rows("SELECT created_at, decided_at FROM review")
    assert str(row["decided_at"]) > str(row["created_at"])
