"""What holds for all facts about all briefs."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from app import policy
from app.schemas.judging import Brief, Facts, Restatement
from app.schemas.vocabulary import Category, EntryStatus, Reason, Scope, Verdict
from tests.support.briefs import briefs

labels = st.none() | st.sampled_from(["E1", "E2", "E3", "E4", "E9", ""])
some_facts = st.builds(
    Facts,
    category=st.sampled_from(Category),
    durable=st.booleans(),
    self_contained=st.booleans(),
    scope=st.none() | st.sampled_from(Scope),
    gives_why=st.none() | st.booleans(),
    single_fact=st.booleans(),
    duplicate_of=labels,
    supersedes=labels,
    restates=st.none() | st.builds(Restatement, passage=st.sampled_from(["P1", "P2"]), quote=st.text(max_size=9)),
    addresses_reader=st.booleans(),
    suggested_text=st.none() | st.text(max_size=9),
    reason=st.text(max_size=9),
    confidence=st.floats(0, 1),
)
entry_ids = st.sampled_from(["id-E1", "id-E2", "id-E3", "id-E4"])
replaced = st.none() | entry_ids
told = st.frozensets(entry_ids)


@given(some_facts, briefs(), st.booleans(), replaced, told)
def test_every_combination_has_one_verdict_and_always_the_same(
    facts: Facts, brief: Brief, secret: bool, replaces: str | None, may_supersede: frozenset[str]
) -> None:
    before = facts.model_copy(deep=True), brief.model_copy(deep=True)
    first = policy.decide(facts, brief, secret=secret, replaces=replaces, may_supersede=may_supersede)
    again = policy.decide(facts, brief, secret=secret, replaces=replaces, may_supersede=may_supersede)
    assert first == again
    assert (facts, brief) == before
    assert first.verdict is not Verdict.HELD


@given(some_facts, briefs(), replaced, told)
def test_a_secret_beats_everything(
    facts: Facts, brief: Brief, replaces: str | None, may_supersede: frozenset[str]
) -> None:
    decision = policy.decide(facts, brief, secret=True, replaces=replaces, may_supersede=may_supersede)
    assert (decision.verdict, decision.reasons) == (Verdict.REJECT, (Reason.SECRET,))


@given(some_facts, briefs(), replaced, told)
def test_an_injection_beats_everything_but_a_secret(
    facts: Facts, brief: Brief, replaces: str | None, may_supersede: frozenset[str]
) -> None:
    aimed = facts.model_copy(update={"addresses_reader": True})
    decision = policy.decide(aimed, brief, replaces=replaces, may_supersede=may_supersede)
    assert (decision.verdict, decision.reasons) == (Verdict.REJECT, (Reason.INJECTION,))


@given(some_facts, briefs(), replaced, told)
def test_approval_means_that_no_rule_fires(
    facts: Facts, brief: Brief, replaces: str | None, may_supersede: frozenset[str]
) -> None:
    decision = policy.decide(facts, brief, replaces=replaces, may_supersede=may_supersede)
    if decision.verdict is not Verdict.APPROVE:
        return
    assert decision.reasons == ()
    assert facts.durable
    assert facts.category is not Category.NONE
    assert facts.self_contained
    assert facts.single_fact or facts.category is Category.STATE
    assert facts.restates is None
    assert not facts.addresses_reader
    assert not (facts.category is Category.DECISION and facts.gives_why is False)
    assert not (facts.category in (Category.RULE, Category.DISCOVERY) and facts.scope not in (None, Scope.PATTERN))
    assert not (facts.category is Category.QUIRK and facts.scope is Scope.RESOURCE)
    confirmed = {n.label: n.entry_id for n in brief.neighbours if n.status is not EntryStatus.UNCONFIRMED}
    assert confirmed.get(facts.duplicate_of or "") in (None, replaces)
    if decision.entry is not None:
        assert confirmed[decision.entry] in may_supersede
    elif facts.category is not Category.STATE:
        states = {n.entry_id for n in brief.neighbours if n.category is Category.STATE}
        assert confirmed.get(facts.supersedes or "") in {None, replaces, *states}
    elif brief.state is not None:
        assert brief.state.entry_id == replaces


@given(some_facts, briefs(), replaced, told)
def test_a_memory_is_never_thrown_away(
    facts: Facts, brief: Brief, replaces: str | None, may_supersede: frozenset[str]
) -> None:
    decision = policy.decide(facts, brief, replaces=replaces, may_supersede=may_supersede)
    if decision.verdict is Verdict.REJECT:
        assert facts.category is Category.NONE or facts.addresses_reader


@given(some_facts, briefs(), replaced, told)
def test_a_refusal_says_why_or_where(
    facts: Facts, brief: Brief, replaces: str | None, may_supersede: frozenset[str]
) -> None:
    decision = policy.decide(facts, brief, replaces=replaces, may_supersede=may_supersede)
    if decision.verdict in policy.REFUSALS:
        assert decision.reasons or decision.entry


@given(some_facts, briefs(), replaced, told)
def test_an_entry_is_named_only_by_a_label_that_was_given(
    facts: Facts, brief: Brief, replaces: str | None, may_supersede: frozenset[str]
) -> None:
    decision = policy.decide(facts, brief, replaces=replaces, may_supersede=may_supersede)
    assert decision.entry is None or decision.entry in {n.label for n in brief.neighbours}
    assert decision.passage is None or (facts.restates is not None and decision.passage == facts.restates.passage)


@given(some_facts, briefs(), told)
def test_a_rule_fires_alike_whatever_the_project_holds_elsewhere(
    facts: Facts, brief: Brief, may_supersede: frozenset[str]
) -> None:
    """Entries that the facts do not name and that are no STATE change nothing."""
    named = {facts.duplicate_of, facts.supersedes}
    fewer = tuple(n for n in brief.neighbours if n.label in named or n.category is Category.STATE)
    with_all = policy.decide(facts, brief, may_supersede=may_supersede)
    with_few = policy.decide(
        facts, brief.model_copy(update={"neighbours": fewer, "passages": ()}), may_supersede=may_supersede
    )
    assert with_all == with_few


@given(st.lists(st.sampled_from(Verdict), min_size=1, max_size=4))
def test_the_verdict_on_a_call_is_one_of_its_texts_in_any_order(verdicts: list[Verdict]) -> None:
    combined = {policy.combine(list(order)) for order in permutations(verdicts)}
    assert len(combined) == 1
    assert combined <= set(verdicts)
    assert (combined == {Verdict.APPROVE}) == (set(verdicts) == {Verdict.APPROVE})


@given(st.lists(st.sampled_from(Reason), min_size=1, max_size=4, unique=True).map(tuple))
def test_the_gate_never_lets_pass_what_it_has_reasons_against(reasons: tuple[Reason, ...]) -> None:
    decision = policy.refused_by_gate(reasons)
    assert decision.verdict in (Verdict.REWRITE, Verdict.REJECT)
    assert decision.reasons == reasons
    assert (Reason.SECRET in reasons) <= (decision.verdict is Verdict.REJECT)
