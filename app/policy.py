"""From facts to a verdict, by plain rules and without I/O.

The order of the rules is the order of the functions' lines; the first that applies decides. The caller's own label
of a category never counts.
"""

from app.schemas.judging import Brief, Decision, Facts, Neighbour
from app.schemas.vocabulary import Category, EntryStatus, Reason, Scope, Verdict

# After so many refusals of near-same texts in a session, the next one is held for a person.
MOST_REFUSALS = 3
REFUSALS = frozenset({Verdict.REWRITE, Verdict.UPDATE, Verdict.DUPLICATE, Verdict.REJECT})


def decide(
    facts: Facts,
    brief: Brief,
    *,
    secret: bool = False,
    replaces: str | None = None,
    may_supersede: frozenset[str] = frozenset(),
) -> Decision:
    """The verdict that follows from the facts.

    Args:
        facts: what the reviewer found.
        brief: what it was shown; labels in the facts refer to it.
        secret: a secret was found in the text.
        replaces: id of the entry that the agent's own update call replaces.
        may_supersede: ids of entries that the candidate may take the place of: those under the key that an update
            call names, and those that this session was told to update in a store that cannot.
    """
    if secret:
        return Decision(verdict=Verdict.REJECT, reasons=(Reason.SECRET,))
    if facts.addresses_reader:
        return Decision(verdict=Verdict.REJECT, reasons=(Reason.INJECTION,))
    return (
        _duplicate(facts, brief, replaces)
        or _restatement(facts)
        or _update(facts, brief, replaces, may_supersede)
        or _quality(facts)
    )


def refused_by_gate(reasons: tuple[Reason, ...]) -> Decision:
    """The verdict on a text that the gate refuses: what has the wrong size can be reworked, the rest is rejected."""
    size = {Reason.TOO_SHORT, Reason.TOO_LONG}
    return Decision(verdict=Verdict.REWRITE if set(reasons) <= size else Verdict.REJECT, reasons=reasons)


def combine(verdicts: list[Verdict]) -> Verdict:
    """The verdict on a whole tool call: approved only if every text is; a refusal outweighs a held text."""
    for verdict in (
        Verdict.REJECT,
        Verdict.REWRITE,
        Verdict.UPDATE,
        Verdict.DUPLICATE,
        Verdict.EXPIRED,
        Verdict.HELD,
    ):
        if verdict in verdicts:
            return verdict
    return Verdict.APPROVE


def _duplicate(facts: Facts, brief: Brief, replaces: str | None) -> Decision | None:
    twin = _neighbour(brief, facts.duplicate_of)
    # An unconfirmed entry may never have reached the store, so it refuses nobody.
    if twin is None or twin.entry_id == replaces or twin.status is EntryStatus.UNCONFIRMED:
        return None
    return Decision(verdict=Verdict.DUPLICATE, reasons=(Reason.DUPLICATE,), entry=twin.label)


def _restatement(facts: Facts) -> Decision | None:
    if facts.restates is None:
        return None
    return Decision(verdict=Verdict.DUPLICATE, reasons=(Reason.RESTATES_DOCUMENT,), passage=facts.restates.passage)


def _update(facts: Facts, brief: Brief, replaces: str | None, may_supersede: frozenset[str]) -> Decision | None:
    # A STATE takes the place of the STATE and of nothing else, and nothing else takes the place of the STATE.
    is_state = facts.category is Category.STATE
    target = brief.state if is_state else _neighbour(brief, facts.supersedes)
    if (
        target is None
        or (target.category is Category.STATE and not is_state)
        or target.entry_id == replaces
        or target.status is EntryStatus.UNCONFIRMED
    ):
        return None
    if target.entry_id in may_supersede:
        # Still to pass the rules of quality; the entry is carried along so that it becomes its next version.
        decision = _quality(facts)
        return decision.model_copy(update={"entry": target.label}) if decision.verdict is Verdict.APPROVE else decision
    reasons = (Reason.SECOND_STATE,) if is_state else ()
    return Decision(verdict=Verdict.UPDATE, reasons=reasons, entry=target.label)


def _quality(facts: Facts) -> Decision:
    if facts.category is Category.NONE or not facts.durable:
        return _not_durable(facts)
    if facts.scope is Scope.RESOURCE and facts.category in (Category.RULE, Category.DISCOVERY, Category.QUIRK):
        return Decision(verdict=Verdict.REWRITE, reasons=(Reason.TOO_SPECIFIC,))
    if facts.scope is Scope.PLATITUDE and facts.category in (Category.RULE, Category.DISCOVERY):
        return Decision(verdict=Verdict.REWRITE, reasons=(Reason.TOO_GENERIC,))
    faults = [
        reason
        for reason, applies in (
            (Reason.NO_WHY, facts.category is Category.DECISION and facts.gives_why is False),
            (Reason.NOT_SELF_CONTAINED, not facts.self_contained),
            (Reason.SEVERAL_FACTS, facts.category is not Category.STATE and not facts.single_fact),
        )
        if applies
    ]
    if faults:
        return Decision(verdict=Verdict.REWRITE, reasons=tuple(faults))
    return Decision(verdict=Verdict.APPROVE)


def _not_durable(facts: Facts) -> Decision:
    no_memory = facts.category is Category.NONE
    salvage = bool(facts.suggested_text and facts.suggested_text.strip())
    # What can be salvaged is told as an account of what was done; what cannot is true only for now.
    reason = Reason.SESSION_SUMMARY if no_memory or salvage else Reason.EPHEMERAL
    verdict = Verdict.REJECT if no_memory and not salvage else Verdict.REWRITE
    return Decision(verdict=verdict, reasons=(reason,))


def _neighbour(brief: Brief, label: str | None) -> Neighbour | None:
    return next((n for n in brief.neighbours if n.label == label), None) if label else None
