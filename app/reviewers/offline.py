"""The embedded reviewer: free, deterministic, always there. It refuses only what it is sure of.

It goes by wording, not by meaning. So it abstains (lets pass, with low confidence) rather than refuse a good memory,
says nothing of scope, reasons or single facts, and calls two texts the same only if their words are.
"""

import re
from collections.abc import Sequence

from app.reviewers import linear
from app.schemas import Brief, Category, Facts, Judgement, Neighbour, Scope
from app.words import words

ALIKE_SIMILARITY = 0.80
ALIKE_WORDS = 0.6

# Words whose presence changes nothing about what a text says; negations and prepositions are none of them.
_FILLERS = frozenset(
    (
        "a",
        "an",
        "the",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "so",
        "very",
        "really",
        "just",
        "also",
        "please",
        "and",
    )
    + (
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "ist",
        "sind",
        "und",
        "auch",
        "el",
        "la",
        "los",
        "las",
        "un",
        "una",
        "es",
        "son",
    )
    + ("y", "le", "les", "une", "est", "sont", "et", "o", "os", "as", "um", "uma", "e")
)
_AIMED_AT_READER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|your|these)\b.{0,40}"
    r"\b(?:instructions?|rules?|prompts?|guidelines?|rubric)\b"
    r"|\b(?:reviewer|classifier|moderator)s?\b.{0,60}\b(?:must|should|return|output|mark)\b.{0,40}\b(?:approve|accept)"
    r"|\"(?:verdict|addresses_reader|duplicate_of|self_contained)\"\s*:"
    r"|</?(?:system|candidate|assistant|instructions?)\b[^>]*>",
    re.IGNORECASE | re.DOTALL,
)
_NOT_LASTING = "It reads like an account of what was done, or of where things stand just now, not like what stays true."


class OfflineReviewer:
    """Linear models over a text's wording, and a comparison of its words with those of its neighbours."""

    def __init__(self) -> None:
        self._models = linear.load()

    def judge(self, brief: Brief) -> Judgement:
        """Facts about the candidate; never a fault."""
        reading = self._models.read(brief.text)
        thresholds = self._models.thresholds
        lasting = reading.slop < thresholds["slop"]
        category = self._category(reading.categories) if lasting else Category.NONE
        facts = Facts(
            category=category,
            durable=lasting,
            self_contained=True,
            scope=Scope.PATTERN if category in (Category.RULE, Category.DISCOVERY) else None,
            gives_why=True if category is Category.DECISION else None,
            single_fact=True,
            duplicate_of=_same(brief),
            supersedes=None,
            restates=None,
            addresses_reader=reading.injection >= thresholds["injection"] or bool(_AIMED_AT_READER.search(brief.text)),
            suggested_text=None,
            reason="" if lasting else _NOT_LASTING,
            confidence=round((1 - reading.slop) * reading.categories[category] if lasting else reading.slop, 3),
        )
        return Judgement(reviewer="offline", facts=facts, possible_duplicate=_alike(brief))

    def _category(self, probabilities: dict[Category, float]) -> Category:
        # A false STATE would send a good memory to be merged into the project's one STATE entry.
        unsure = probabilities[Category.STATE] < self._models.thresholds["state"]
        return max(
            (category for category in probabilities if not (unsure and category is Category.STATE)),
            key=lambda category: probabilities[category],
        )


def _same(brief: Brief) -> str | None:
    """Label of the neighbour that says the same in the same words, fillers and punctuation apart."""
    said = _core(brief.text)
    return next((n.label for n in brief.neighbours if said and _core(n.text) == said), None)


def _alike(brief: Brief) -> str | None:
    """Label of the neighbour that may say the same: near by vector, or with most of the same words."""
    said = set(_core(brief.text))

    def closeness(neighbour: Neighbour) -> float:
        other = set(_core(neighbour.text))
        shared = len(said & other) / min(len(said), len(other)) if said and other else 0.0
        return max(neighbour.similarity / ALIKE_SIMILARITY, shared / ALIKE_WORDS)

    nearest = max(brief.neighbours, key=closeness, default=None)
    return nearest.label if nearest is not None and closeness(nearest) >= 1 else None


def _core(text: str) -> Sequence[str]:
    return [word for word in words(text) if word not in _FILLERS]
