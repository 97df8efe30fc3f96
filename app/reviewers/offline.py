"""The embedded reviewer: free, deterministic, always there. It refuses only what it is sure of.

It goes by wording, and by what words mean one by one, not by what a text means. So it abstains (lets pass, with low
confidence) rather than refuse a good memory, and calls two texts the same only if a score and the exact comparison of
their numbers, names and negation agree. A text that may be an attack it leaves to a person.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.reviewers import cascade, clauses, disguises, features, linear, pairs, pieces, wrapping
from app.reviewers.features import Wording
from app.reviewers.likeness import measures
from app.reviewers.pairs import Comparison, Side
from app.reviewers.salvage import lesson
from app.schemas.judging import Brief, Facts, Fault, Judgement, Neighbour, Passage, Restatement
from app.schemas.vocabulary import Category, EntryStatus, Scope

LONGEST_TEXT = 4000
ALIKE_SIMILARITY = 0.80
# The likeness of near texts between which nothing differs; 1 is for equal words, which alone make two STATEs the same.
NEARLY_EQUAL = 0.999
CLEARLY_HOSTILE, HARMLESS = 2.0, -20.0
ALIKE_WORDS = 0.6
# What may keep a memory from standing as it is, as the models name it.
FAULTS = ("buried", "resource", "no_why", "platitude", "fragment", "several")
CATEGORIES = (Category.STATE, Category.DECISION, Category.RULE, Category.DISCOVERY, Category.QUIRK)

_NOT_LASTING = "It reads like an account of what was done, or of where things stand just now, not like what stays true."
_PASSING = "It reads like something that is true only for now."
_GENERIC = "It reads like advice that holds for any project."
_FRAGMENT = "It reads like a fragment that means little without its surroundings."
_BURIED = "It reads like the account of an edit, with what is worth keeping somewhere in it."
_NARROW = "It reads like something about one resource or one incident; the general rule should come first."
_UNREASONED = "It reads like a choice without the reason for it."
_SEVERAL = "It reads like several facts, which would be looked up one by one."
_SUSPICIOUS = "A part of it reads like an order to whoever reads it; a person should look at it."


@dataclass(frozen=True)
class Reading:
    """What the models say of a text.

    Attributes:
        text: without what is wrapped round it.
        found: the score of each thing that a text may be.
        kinds: the probability of each category, if it is a memory.
        unfit: the probability that it cannot stand as it is.
        slop: the probability that it is slop.
        strange: whether it is of a language that the models never met.
    """

    text: str
    found: Mapping[str, float]
    kinds: Mapping[Category, float]
    unfit: float
    slop: float
    strange: bool

    @cached_property
    def lesson(self) -> str | None:
        """What might be kept of it, if it is the account of an edit."""
        return lesson(self.text)

    @cached_property
    def faults(self) -> dict[str, float]:
        """What may keep it from standing rather than that it is slop, with the probability of each."""
        likely = {fault: linear.logistic(self.found[fault]) for fault in FAULTS}
        return {fault: probability for fault, probability in likely.items() if probability > self.slop}

    @cached_property
    def fault(self) -> str | None:
        """The likeliest of these that can be told; None for none."""
        # Without its lesson a buried one could only be called passing.
        told = [fault for fault in self.faults if fault != "buried" or self.lesson is not None]
        return max(told, key=lambda name: self.faults[name], default=None)


class OfflineReviewer:
    """Models of a text's wording and its clauses, and a comparison with its neighbours."""

    def __init__(self) -> None:
        self._models = linear.load()
        self._cascade = cascade.load()
        self._pieces = pieces.load()

    def judge(self, brief: Brief) -> Judgement:
        """Facts about the candidate; beside them the fault that it is suspicious, where wording cannot decide that."""
        text = brief.text[:LONGEST_TEXT]
        said = self._read(wrapping.unwrapped(text))
        hostile = self._hostile(text, said.found["attack"], strange=said.strange)
        attack = self._models.probability("attack", hostile)
        thresholds = self._models.thresholds
        fit = said.unfit < thresholds["unfit"] or said.strange
        offered = pairs.side(brief.text)
        likeness, twin = self._same(brief, offered)
        facts = self._facts(said, fit=fit).model_copy(
            update={
                "duplicate_of": twin,
                "restates": self._restated(brief, offered),
                "addresses_reader": attack >= thresholds["attack"],
                "confidence": round(1 - said.unfit if fit else said.unfit, 3),
            }
        )
        may_attack = attack >= thresholds["suspicious"]
        # What is refused anyway need not be looked at by anybody.
        suspicious = may_attack and fit and not facts.addresses_reader
        alike = _alike(brief, offered)
        sure = not may_attack and self._is_sure(facts, brief, offered, said, fit=fit, likeness=likeness, alike=alike)
        return Judgement(
            reviewer="offline",
            facts=facts,
            fault=Fault.SUSPICIOUS if suspicious else None,
            fault_detail=_SUSPICIOUS if suspicious else None,
            possible_duplicate=alike,
            sure=sure,
        )

    def _is_sure(
        self,
        facts: Facts,
        brief: Brief,
        offered: Side,
        said: Reading,
        *,
        fit: bool,
        likeness: float,
        alike: str | None,
    ) -> bool:
        """Whether a decision of this kind, with this confidence, nearly always agreed with the label."""
        if facts.duplicate_of is not None:
            twin = next(n for n in brief.neighbours if n.label == facts.duplicate_of)
            # An unconfirmed twin refuses nobody, so the text would be approved after all.
            confirmed = twin.status is not EntryStatus.UNCONFIRMED
            compared = Comparison(pairs.side(twin.text), offered)
            # What one leaves out may be an exception, and another order may be another order of the steps.
            same = compared.is_in_order and not compared.lost and not compared.added and not compared.turned
            return confirmed and same and cascade.reached(self._cascade.duplicate, likeness)
        if alike is not None or facts.restates is not None or facts.category is Category.STATE:
            return False
        # Where things stand is told in the words of passing news; and what may be rewritten wants a suggestion.
        may_be_state = linear.logistic(said.found["standing"]) >= self._models.thresholds["standing"]
        return not (fit or said.faults or may_be_state) and cascade.reached(self._cascade.slop, said.unfit)

    def _read(self, text: str) -> Reading:
        """What all models say of a text."""
        wording, counted, found = self._score(text)
        weighed = np.array([*found.values(), *features.layout(wording).values()], dtype=np.float32)
        (unfit,) = self._models.unfit.scores(weighed)
        return Reading(
            text=text,
            found=found,
            kinds=linear.softmax(dict(zip(CATEGORIES, self._models.kinds.scores(weighed), strict=True))),
            unfit=self._models.probability("unfit", unfit),
            slop=self._models.probability("slop", found["slop"]),
            strange=features.is_strange(counted, self._models.text.index, text),
        )

    def _score(self, text: str) -> tuple[Wording, Counter[str], dict[str, float]]:
        """The wording of a text, its features, and its score for each thing that a text may be."""
        wording = Wording.of(text, self._pieces)
        counted = features.count(wording, self._models.known)
        (found,) = self._models.text.scores([counted], features.dense(wording, self._pieces)[None])
        return wording, counted, found

    def _hostile(self, text: str, body: float, *, strange: bool) -> float:
        """The score of being an attack: that of the most hostile clause, and that of the whole.

        What is wrapped round a memory, or hidden in it, says nothing of its worth, but may well hold an order.
        """
        readings = list(disguises.readings(text))
        clause = max(found["attack"] for found in self._models.clause.scores(list(clauses.of(text, readings))))
        if strange:
            # Of a language that the models never met only a clause with marks of an attack tells something.
            return clause if clause >= CLEARLY_HOSTILE else HARMLESS
        beside = [hidden for disguise, hidden in readings if disguise]
        if fields := wrapping.said_in_front_matter(text):
            beside.append(fields)
        whole = max([body, *(self._score(said)[2]["attack"] for said in beside)])
        return clause + self._models.texts_share * whole

    def _facts(self, said: Reading, *, fit: bool) -> Facts:
        """What the text is, and what keeps it from standing if something does."""
        kinds = dict(said.kinds)
        # A false STATE would send a good memory to be merged into the project's one STATE entry.
        if fit and kinds[Category.STATE] < self._models.thresholds["state"]:
            kinds.pop(Category.STATE)
        category = max(kinds, key=lambda kind: kinds[kind])
        facts = Facts(
            category=category,
            durable=True,
            self_contained=True,
            scope=Scope.PATTERN if category in (Category.RULE, Category.DISCOVERY) else None,
            gives_why=True if category is Category.DECISION else None,
            single_fact=True,
            duplicate_of=None,
            supersedes=None,
            restates=None,
            addresses_reader=False,
            suggested_text=None,
            reason="",
            confidence=0.0,
        )
        if fit:
            return facts
        fault = said.fault
        return facts.model_copy(update=_fault_of_memory(said, fault) if fault else _fault_of_slop(said.found))

    def _same(self, brief: Brief, offered: Side) -> tuple[float, str | None]:
        """Likeness and label of the neighbour that says the same, if one surely does."""
        best: tuple[float, str | None] = 0.0, None
        for neighbour in brief.neighbours:
            if neighbour.similarity < pairs.LEAST_COSINE:
                continue
            likeness = self._likeness(pairs.side(neighbour.text), offered)
            # Where things stand is told again and again in like words; the newer account is an update.
            if neighbour.category is Category.STATE and likeness < 1:
                continue
            if likeness >= self._models.thresholds["duplicate"] and likeness > best[0]:
                best = likeness, neighbour.label
        return best

    def _restated(self, brief: Brief, offered: Side) -> Restatement | None:
        """The words of a passage that already say all that the candidate says, if some surely do."""
        best: tuple[float, Restatement] | None = None
        for passage, quote in _quotes(brief.passages):
            stored = pairs.side(quote)
            likeness = self._likeness(stored, offered)
            if likeness < self._models.thresholds["restatement"] or (best is not None and likeness <= best[0]):
                continue
            # What a passage lacks may be the one thing worth keeping: an exception, a case, a cause.
            if likeness == 1 or not Comparison(stored, offered).adds_clause:
                best = likeness, Restatement(passage=passage.label, quote=quote)
        return best[1] if best else None

    def _likeness(self, stored: Side, offered: Side) -> float:
        compared = Comparison(stored, offered)
        if not compared.is_close:
            return 0.0
        if compared.equal:
            return 1.0
        if compared.differ or not compared.is_akin:
            return 0.0
        if compared.is_near:
            return NEARLY_EQUAL
        (score,) = self._models.pair.scores(measures(compared))
        return self._models.probability("same", score)


def _fault_of_memory(said: Reading, fault: str) -> dict[str, object]:
    """The facts that make the policy send back a memory that cannot stand as it is."""
    narrow = max((Category.RULE, Category.DISCOVERY, Category.QUIRK), key=lambda kind: said.kinds[kind])
    facts: dict[str, dict[str, object]] = {
        "buried": {"durable": False, "suggested_text": said.lesson, "reason": _BURIED},
        "resource": {"category": narrow, "scope": Scope.RESOURCE, "gives_why": None, "reason": _NARROW},
        "no_why": {"category": Category.DECISION, "scope": None, "gives_why": False, "reason": _UNREASONED},
        "platitude": {
            "category": Category.RULE,
            "scope": Scope.PLATITUDE,
            "gives_why": None,
            "reason": _GENERIC,
        },
        "fragment": {"self_contained": False, "reason": _FRAGMENT},
        "several": {"single_fact": False, "reason": _SEVERAL},
    }
    return facts[fault]


def _fault_of_slop(found: Mapping[str, float]) -> dict[str, object]:
    """The facts that make the policy refuse a text for the likeliest of the reasons that its wording can tell apart."""
    reasons = ("session_summary", "ephemeral", "too_generic", "not_self_contained")
    match max(reasons, key=lambda reason: found[reason]):
        case "ephemeral":
            return {"durable": False, "reason": _PASSING}
        case "too_generic":
            return {"category": Category.RULE, "scope": Scope.PLATITUDE, "gives_why": None, "reason": _GENERIC}
        case "not_self_contained":
            return {"self_contained": False, "reason": _FRAGMENT}
        case _:
            return {
                "category": Category.NONE,
                "durable": False,
                "scope": None,
                "gives_why": None,
                "reason": _NOT_LASTING,
            }


def _quotes(passages: tuple[Passage, ...]) -> Iterator[tuple[Passage, str]]:
    for passage in passages:
        for quote in dict.fromkeys(pairs.windows(passage.text)):
            yield passage, quote


def _alike(brief: Brief, offered: Side) -> str | None:
    """Label of the neighbour that may say the same: near by vector, or with most of the same words."""

    def closeness(neighbour: Neighbour) -> float:
        said, other = offered.counted.keys(), pairs.side(neighbour.text).counted.keys()
        shared = len(said & other) / min(len(said), len(other)) if said and other else 0.0
        return max(neighbour.similarity / ALIKE_SIMILARITY, shared / ALIKE_WORDS)

    close, label = max(((closeness(n), n.label) for n in brief.neighbours), default=(0.0, None))
    return label if close >= 1 else None
