"""What the same texts would get without a reviewer: nothing at all, the gate alone, or one similarity threshold."""

from collections.abc import Callable, Sequence

from app import gate, policy
from app.embeddings import Embedder
from app.evaluation.data import Labelled, Split, Suite
from app.evaluation.report import RuleHits
from app.evaluation.run import Judged
from app.evaluation.score import Share
from app.schemas.vocabulary import Reason, Verdict
from hooks import store_hygiene_gate as hook

FALSE_DUPLICATES_ALLOWED = 0.01


def no_gate(cases: Sequence[Labelled]) -> list[Judged]:
    """Everything is stored."""
    return [_judged(case, Verdict.APPROVE) for case in cases]


def gate_alone(cases: Sequence[Labelled]) -> list[Judged]:
    """Only the patterns, the word floor and the shapes of secrets."""
    judged = []
    for case in cases:
        reasons = gate.check(case.text)
        verdict = policy.refused_by_gate(reasons).verdict if reasons else Verdict.APPROVE
        judged.append(_judged(case, verdict, reasons))
    return judged


def cosine_alone(cases: Sequence[Labelled], development: Sequence[Labelled], embedder: Embedder) -> list[Judged]:
    """A text is a duplicate if an entry or passage is similar enough, and is stored otherwise.

    The threshold is the lowest that calls at most 1% of the development pairs duplicates falsely.
    """
    similarity = _nearest(embedder)
    pairs = [case for case in development if case.suite is Suite.DUPLICATES]
    others = sorted((similarity(case) for case in pairs if case.verdict is not Verdict.DUPLICATE), reverse=True)
    threshold = others[int(FALSE_DUPLICATES_ALLOWED * len(others))] + 1e-6 if others else 1.0
    return [
        _judged(case, Verdict.DUPLICATE, (Reason.DUPLICATE,))
        if similarity(case) >= threshold
        else _judged(case, Verdict.APPROVE)
        for case in cases
    ]


def rule_hits(cases: Sequence[Labelled]) -> list[RuleHits]:
    """For each of the gate's rules, switched on or off: which share of the slop it meets, and of the good texts."""
    texts = [case for case in cases if case.suite is Suite.CANDIDATES]
    slop = [case.text for case in texts if case.verdict is Verdict.REJECT]
    good = [case.text for case in texts if case.verdict is Verdict.APPROVE]

    def met(rule: hook.Rule, among: list[str]) -> Share:
        return Share(count=sum(bool(hook.matched_rules(text, (rule,))) for text in among), of=len(among))

    def short(among: list[str]) -> Share:
        return Share(count=sum(hook.count_words(text) < hook.MINIMUM_WORDS for text in among), of=len(among))

    hits = [RuleHits(rule=rule.id, on=rule.default, slop=met(rule, slop), good=met(rule, good)) for rule in hook.RULES]
    floor = RuleHits(rule=f"fewer than {hook.MINIMUM_WORDS} words", on=True, slop=short(slop), good=short(good))
    return [*hits, floor]


def _nearest(embedder: Embedder) -> Callable[[Labelled], float]:
    def similarity(case: Labelled) -> float:
        near = [entry.text for entry in case.entries] or [passage.text for passage in case.documents]
        if not near:
            return -1.0
        vectors = embedder.embed([case.text, *near])
        return float((vectors[1:] @ vectors[0]).max())

    return similarity


def development(cases: Sequence[Labelled]) -> list[Labelled]:
    """The cases by which thresholds are chosen."""
    return [case for case in cases if case.split is Split.DEVELOPMENT]


def _judged(case: Labelled, verdict: Verdict, reasons: tuple[Reason, ...] = ()) -> Judged:
    return Judged(
        case=case,
        verdict=verdict,
        category=None,
        reasons=reasons,
        reviewer="gate",
        confidence=None,
        fault=None,
        cost_microdollars=0,
        possible_duplicate=False,
        prompt_hash=None,
        model=None,
    )
