"""The rules in their order: each fires alone, and each gives way to the ones before it."""

import pytest

from app import policy
from app.schemas.judging import Brief, Decision, Facts, Restatement
from app.schemas.vocabulary import Category, EntryStatus, Reason, Scope, Verdict
from tests.support.briefs import brief, neighbour, passage
from tests.support.pipelines import facts

RESTATES = Restatement(passage="P1", quote="Raw pages are stored first")
STATE = neighbour("E2", "The importer is half done.", category=Category.STATE)
MEMORIES = [category for category in Category if category is not Category.NONE]
WITH_STATE = brief(neighbours=(neighbour(), STATE))


def decide(found: Facts, about: Brief | None = None, **more: object) -> Decision:
    return policy.decide(found, about or brief(), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("category", MEMORIES)
def test_a_good_memory_of_each_category_is_approved_without_reasons(category: Category) -> None:
    assert decide(facts(category)) == Decision(verdict=Verdict.APPROVE)


def test_a_secret_is_rejected() -> None:
    assert decide(facts(), secret=True) == Decision(verdict=Verdict.REJECT, reasons=(Reason.SECRET,))


def test_a_text_that_addresses_its_reader_is_rejected() -> None:
    assert decide(facts(addresses_reader=True)) == Decision(verdict=Verdict.REJECT, reasons=(Reason.INJECTION,))


def test_a_duplicate_names_its_twin() -> None:
    assert decide(facts(duplicate_of="E1")) == Decision(
        verdict=Verdict.DUPLICATE, reasons=(Reason.DUPLICATE,), entry="E1"
    )


def test_a_restatement_names_its_passage() -> None:
    assert decide(facts(restates=RESTATES)) == Decision(
        verdict=Verdict.DUPLICATE, reasons=(Reason.RESTATES_DOCUMENT,), passage="P1"
    )


def test_a_second_state_is_an_update_of_the_first() -> None:
    assert decide(facts(Category.STATE), WITH_STATE) == Decision(
        verdict=Verdict.UPDATE, reasons=(Reason.SECOND_STATE,), entry="E2"
    )


def test_what_supersedes_an_entry_is_an_update_of_it() -> None:
    assert decide(facts(supersedes="E1")) == Decision(verdict=Verdict.UPDATE, entry="E1")


def test_a_state_updates_the_state_whatever_else_it_supersedes() -> None:
    assert decide(facts(Category.STATE, supersedes="E1"), WITH_STATE).entry == "E2"


def test_a_state_takes_the_place_of_no_other_memory() -> None:
    assert decide(facts(Category.STATE, supersedes="E1")) == Decision(verdict=Verdict.APPROVE)


@pytest.mark.parametrize("category", [c for c in MEMORIES if c is not Category.STATE])
def test_no_other_memory_takes_the_place_of_the_state(category: Category) -> None:
    assert decide(facts(category, supersedes="E2"), WITH_STATE) == Decision(verdict=Verdict.APPROVE)


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_no_memory_is_rejected(durable: bool) -> None:
    found = facts(Category.NONE, durable=durable)
    assert decide(found) == Decision(verdict=Verdict.REJECT, reasons=(Reason.SESSION_SUMMARY,))


@pytest.mark.parametrize("category", MEMORIES)
def test_a_memory_that_is_true_only_for_now_asks_for_a_rewrite(category: Category) -> None:
    assert decide(facts(category, durable=False)) == Decision(verdict=Verdict.REWRITE, reasons=(Reason.EPHEMERAL,))


@pytest.mark.parametrize("category", MEMORIES)
def test_a_lesson_buried_in_an_account_asks_for_the_lesson_alone(category: Category) -> None:
    buried = facts(category, durable=False, suggested_text="Never retry a payment without its idempotency key.")
    assert decide(buried) == Decision(verdict=Verdict.REWRITE, reasons=(Reason.SESSION_SUMMARY,))


def test_a_fact_worth_keeping_hidden_in_a_summary_asks_for_a_rewrite() -> None:
    hidden = facts(Category.NONE, suggested_text="Never retry a payment without its idempotency key.")
    assert decide(hidden) == Decision(verdict=Verdict.REWRITE, reasons=(Reason.SESSION_SUMMARY,))


def test_a_blank_suggestion_salvages_nothing() -> None:
    assert decide(facts(Category.NONE, suggested_text=" \n")).verdict is Verdict.REJECT


@pytest.mark.parametrize("category", [Category.RULE, Category.DISCOVERY])
@pytest.mark.parametrize(
    ("scope", "reason"), [(Scope.RESOURCE, Reason.TOO_SPECIFIC), (Scope.PLATITUDE, Reason.TOO_GENERIC)]
)
def test_rules_and_discoveries_must_name_a_pattern(category: Category, scope: Scope, reason: Reason) -> None:
    assert decide(facts(category, scope=scope)) == Decision(verdict=Verdict.REWRITE, reasons=(reason,))


def test_a_quirk_may_be_too_specific_but_never_too_generic() -> None:
    specific = Decision(verdict=Verdict.REWRITE, reasons=(Reason.TOO_SPECIFIC,))
    assert decide(facts(Category.QUIRK, scope=Scope.RESOURCE)) == specific
    assert decide(facts(Category.QUIRK, scope=Scope.PLATITUDE)).verdict is Verdict.APPROVE
    assert decide(facts(Category.QUIRK, scope=None)).verdict is Verdict.APPROVE


@pytest.mark.parametrize("category", [Category.STATE, Category.DECISION])
@pytest.mark.parametrize("scope", Scope)
def test_scope_is_not_asked_of_other_categories(category: Category, scope: Scope) -> None:
    assert decide(facts(category, scope=scope)).verdict is Verdict.APPROVE


def test_a_decision_needs_its_why() -> None:
    assert decide(facts(Category.DECISION, gives_why=False)) == Decision(
        verdict=Verdict.REWRITE, reasons=(Reason.NO_WHY,)
    )


@pytest.mark.parametrize("category", [Category.STATE, Category.RULE, Category.DISCOVERY, Category.QUIRK])
def test_no_other_category_needs_a_why(category: Category) -> None:
    assert decide(facts(category, gives_why=False)).verdict is Verdict.APPROVE


@pytest.mark.parametrize("category", [c for c in MEMORIES if c is not Category.STATE])
def test_several_facts_are_several_memories(category: Category) -> None:
    assert decide(facts(category, single_fact=False)) == Decision(
        verdict=Verdict.REWRITE, reasons=(Reason.SEVERAL_FACTS,)
    )


def test_a_state_counts_as_one_fact_whatever_it_lists() -> None:
    assert decide(facts(Category.STATE, single_fact=False)) == Decision(verdict=Verdict.APPROVE)


def test_all_faults_of_wording_are_named_at_once() -> None:
    found = facts(Category.DECISION, gives_why=False, self_contained=False, single_fact=False)
    assert decide(found).reasons == (Reason.NO_WHY, Reason.NOT_SELF_CONTAINED, Reason.SEVERAL_FACTS)


def test_each_rule_gives_way_to_the_ones_before_it() -> None:
    """Take the facts that break every rule, and mend them one by one in the order of the rules."""
    worst = facts(
        Category.STATE,
        durable=False,
        addresses_reader=True,
        duplicate_of="E1",
        restates=RESTATES,
        self_contained=False,
        suggested_text="Better.",
    )
    mended: list[tuple[dict[str, object], bool, Verdict, Reason]] = [
        ({}, True, Verdict.REJECT, Reason.SECRET),
        ({}, False, Verdict.REJECT, Reason.INJECTION),
        ({"addresses_reader": False}, False, Verdict.DUPLICATE, Reason.DUPLICATE),
        ({"duplicate_of": None}, False, Verdict.DUPLICATE, Reason.RESTATES_DOCUMENT),
        ({"restates": None}, False, Verdict.UPDATE, Reason.SECOND_STATE),
        ({"category": Category.RULE, "scope": Scope.RESOURCE}, False, Verdict.REWRITE, Reason.SESSION_SUMMARY),
        ({"suggested_text": None}, False, Verdict.REWRITE, Reason.EPHEMERAL),
        ({"durable": True}, False, Verdict.REWRITE, Reason.TOO_SPECIFIC),
        ({"scope": Scope.PATTERN}, False, Verdict.REWRITE, Reason.NOT_SELF_CONTAINED),
    ]
    for change, secret, verdict, reason in mended:
        worst = worst.model_copy(update=change)
        decision = decide(worst, WITH_STATE, secret=secret)
        assert (decision.verdict, decision.reasons) == (verdict, (reason,))
    assert decide(worst.model_copy(update={"self_contained": True}), WITH_STATE).verdict is Verdict.APPROVE


# --- entries that refuse nobody -----------------------------------------------------------------------------------


def test_an_entry_that_may_never_have_been_stored_makes_no_duplicate() -> None:
    unconfirmed = brief(neighbours=(neighbour(status=EntryStatus.UNCONFIRMED),))
    assert decide(facts(duplicate_of="E1"), unconfirmed).verdict is Verdict.APPROVE
    assert decide(facts(supersedes="E1"), unconfirmed).verdict is Verdict.APPROVE


def test_an_unconfirmed_state_does_not_count_as_the_projects_state() -> None:
    unconfirmed = brief(neighbours=(STATE.model_copy(update={"status": EntryStatus.UNCONFIRMED}),))
    assert decide(facts(Category.STATE), unconfirmed).verdict is Verdict.APPROVE


def test_a_live_state_counts_beside_an_unconfirmed_one() -> None:
    older = STATE.model_copy(update={"label": "E1", "status": EntryStatus.UNCONFIRMED})
    assert decide(facts(Category.STATE), brief(neighbours=(older, STATE))).entry == "E2"


@pytest.mark.parametrize("found", [facts(duplicate_of="E1"), facts(supersedes="E1")])
def test_an_entry_does_not_stand_in_the_way_of_its_own_replacement(found: Facts) -> None:
    assert decide(found, replaces="id-E1").verdict is Verdict.APPROVE


def test_a_state_may_replace_itself() -> None:
    assert decide(facts(Category.STATE), WITH_STATE, replaces="id-E2").verdict is Verdict.APPROVE


def test_a_replacement_is_still_no_duplicate_of_another_entry() -> None:
    both = brief(neighbours=(neighbour(), neighbour("E2", "Something else.")))
    assert decide(facts(duplicate_of="E2"), both, replaces="id-E1").entry == "E2"


def test_a_label_that_was_not_given_points_to_nothing() -> None:
    assert decide(facts(duplicate_of="E7")).verdict is Verdict.APPROVE
    assert decide(facts(supersedes="E7")).verdict is Verdict.APPROVE


# --- superseding in a store that cannot update --------------------------------------------------------------------


def test_after_the_advice_to_update_a_new_item_may_take_the_entrys_place() -> None:
    decision = decide(facts(Category.STATE), WITH_STATE, may_supersede=frozenset({"id-E2"}))
    assert decision == Decision(verdict=Verdict.APPROVE, entry="E2")


def test_advice_about_one_entry_is_no_leave_to_supersede_another() -> None:
    decision = decide(facts(supersedes="E1"), WITH_STATE, may_supersede=frozenset({"id-E2"}))
    assert (decision.verdict, decision.entry) == (Verdict.UPDATE, "E1")


def test_a_superseding_text_must_be_a_good_memory_too() -> None:
    found = facts(Category.STATE, self_contained=False)
    decision = decide(found, WITH_STATE, may_supersede=frozenset({"id-E2"}))
    assert decision == Decision(verdict=Verdict.REWRITE, reasons=(Reason.NOT_SELF_CONTAINED,))


# --- the gate and the call ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reasons", [(Reason.TOO_SHORT,), (Reason.TOO_LONG,)])
def test_a_text_of_the_wrong_size_can_be_reworked(reasons: tuple[Reason, ...]) -> None:
    assert policy.refused_by_gate(reasons) == Decision(verdict=Verdict.REWRITE, reasons=reasons)


@pytest.mark.parametrize(
    "reasons",
    [(Reason.SECRET,), (Reason.SESSION_SUMMARY,), (Reason.SESSION_SUMMARY, Reason.TOO_SHORT)],
)
def test_what_else_the_gate_refuses_is_rejected(reasons: tuple[Reason, ...]) -> None:
    assert policy.refused_by_gate(reasons) == Decision(verdict=Verdict.REJECT, reasons=reasons)


def test_a_call_is_approved_only_if_every_text_is() -> None:
    assert policy.combine([Verdict.APPROVE, Verdict.APPROVE]) is Verdict.APPROVE
    for other in Verdict:
        if other is not Verdict.APPROVE:
            assert policy.combine([Verdict.APPROVE, other, Verdict.APPROVE]) is other


def test_a_refusal_outweighs_a_text_that_nobody_could_judge() -> None:
    for refusal in policy.REFUSALS:
        assert policy.combine([Verdict.HELD, refusal]) is refusal


def test_a_passage_is_named_by_the_label_that_it_was_given() -> None:
    two = brief(passages=(passage("P1"), passage("P2", "Rules can be replayed over stored pages.")))
    found = facts(restates=Restatement(passage="P2", quote="Rules can be replayed"))
    assert decide(found, two).passage == "P2"
