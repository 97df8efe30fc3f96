"""The embedded reviewer: free, deterministic, always there. It refuses only what it is sure of.

It looks at wording, not at meaning, so it abstains (lets pass, with low confidence) rather than refuse a good memory,
and it never calls two texts the same unless their numbers, names and negations agree as well.
"""

import re
from dataclasses import dataclass

from app.schemas import Brief, Category, Facts, Judgement, Scope
from app.words import words

SAME_SIMILARITY = 0.93
ALIKE_SIMILARITY = 0.80

_DONE = re.compile(
    r"\b(?:implemented|added|fixed|updated|refactored|completed|merged|pushed|committed|deployed|released|renamed|"
    r"moved|removed|migrated|finished|verified|checked|confirmed|tested|wrote|created|cleaned|set up|bumped|landed)\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:today|yesterday|tonight|currently|right now|this (?:session|week|morning|sprint)|next (?:steps?|up|session)|"
    r"in progress|wip|todo|to do|blocked (?:by|on)|remaining|pending|left to do|up next|so far|for now)\b|✅|🚧|⏳",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"\b(?:in progress|current(?:ly)? (?:focus|state|phase|status|working)|where (?:it|we|things) stand|"
    r"next(?: up| steps?)?:|blocked (?:by|on)|phase \d|milestone|half done|still open|up next|remaining)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:always|never|must(?: not)?|do not|don['’]t|should(?: not)?|use\b.*\b(?:instead|not)\b|prefer|avoid|"
    r"only ever|has to|have to|require[sd]?|before (?:each|every|any)|make sure|ensure)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decided|decision|chose|chosen|we (?:use|picked|went with|settled on|keep)|instead of|over\b.*\bbecause|"
    r"rejected|in favou?r of|trade-?off|opted|agreed)\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"\b(?:because|since|so that|in order to|as\b.*\b(?:would|cannot|can't)|due to|otherwise|to avoid|reason|therefore|"
    r"hence|which means|why)\b|:\s|—|=>|→",
    re.IGNORECASE,
)
_QUIRK = re.compile(
    r"\b(?:bug|quirk|gotcha|silently|surprising(?:ly)?|unexpected(?:ly)?|despite|even though|ignores?|"
    r"(?:fails?|breaks?) (?:when|if|with)|(?:does not|doesn['’]t) (?:support|accept|work)|workaround|crash(?:es)?|"
    r"returns? .{1,40} (?:instead|rather)|by default)\b",
    re.IGNORECASE,
)
_DEICTIC = re.compile(r"^(?:it|this|that|these|those|they|he|she|also|and|but|then|same)\b", re.IGNORECASE)
_AIMED_AT_READER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|your|these)\b.{0,40}"
    r"\b(?:instructions?|rules?|prompts?|guidelines?|rubric)\b"
    r"|\b(?:reviewer|classifier|judge|moderator)s?\b.{0,60}\b(?:approve|accept|must|should|return|output|mark)\b"
    r"|\byou are (?:now|a|an)\b|\bas an ai\b|\bdo not (?:tell|mention|reveal)\b.{0,40}\b(?:user|anyone|human)\b"
    r"|\"?(?:verdict|addresses_reader|duplicate_of|self_contained)\"?\s*[:=]|</?(?:system|candidate|assistant|instructions?)\b",
    re.IGNORECASE | re.DOTALL,
)
_NEGATIONS = frozenset(
    {
        "not",
        "no",
        "never",
        "without",
        "don",
        "doesn",
        "isn",
        "cannot",
        "can't",
        "nicht",
        "kein",
        "keine",
        "nie",
        "sin",
        "ne",
        "pas",
    }
)


@dataclass(frozen=True)
class OfflineReviewer:
    """Rules over the wording of a candidate and an exact comparison with its neighbours."""

    name: str = "offline"

    def judge(self, brief: Brief) -> Judgement:
        """Facts about the candidate; never a fault."""
        twin, possible = _twins(brief)
        category, confidence = _categorise(brief.text)
        durable = category is not Category.NONE
        facts = Facts(
            category=category,
            durable=durable,
            self_contained=not (_DEICTIC.match(brief.text) and len(words(brief.text)) < 15),
            scope=Scope.PATTERN if category in (Category.RULE, Category.DISCOVERY) else None,
            gives_why=bool(_WHY.search(brief.text)) if category is Category.DECISION else None,
            single_fact=True,
            duplicate_of=twin,
            supersedes=None,
            restates=None,
            addresses_reader=bool(_AIMED_AT_READER.search(brief.text)),
            suggested_text=None,
            reason=""
            if durable
            else "It tells what was done or where things stand at this moment, not what stays true.",
            confidence=confidence,
        )
        return Judgement(reviewer="offline", facts=facts, possible_duplicate=possible)


def _categorise(text: str) -> tuple[Category, float]:
    signals = {
        Category.RULE: len(_RULE.findall(text)),
        Category.QUIRK: len(_QUIRK.findall(text)),
        Category.DECISION: len(_DECISION.findall(text)),
    }
    lasting = sum(signals.values()) + len(_WHY.findall(text)) / 2
    passing = len(_DONE.findall(text)) + len(_NOW.findall(text))
    if _STATE.search(text) and passing >= 2 and lasting < 2:
        return Category.STATE, 0.6
    if passing >= 2 and lasting < 1:
        return Category.NONE, min(0.95, 0.6 + 0.1 * passing)
    best = max(signals, key=lambda category: signals[category])
    return (best, 0.5 + 0.1 * min(4, signals[best])) if signals[best] else (Category.DISCOVERY, 0.4)


def _twins(brief: Brief) -> tuple[str | None, str | None]:
    for neighbour in sorted(brief.neighbours, key=lambda n: -n.similarity):
        if neighbour.similarity >= SAME_SIMILARITY and _details(brief.text) == _details(neighbour.text):
            return neighbour.label, neighbour.label
        if neighbour.similarity >= ALIKE_SIMILARITY:
            return None, neighbour.label
    return None, None


def _details(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What must agree exactly in two texts that say the same: words with digits or odd case, and negations."""
    tokens = re.findall(r"[\w.@/-]+", text)
    exact = frozenset(
        t.strip(".").casefold() for t in tokens if re.search(r"\d", t) or re.search(r"[A-Z_/.@-]", t[1:-1])
    )
    return exact, frozenset(words(text)) & _NEGATIONS
