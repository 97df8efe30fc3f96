"""Whether two texts say the same: a calibrated score of their likeness, and an exact comparison that may forbid it.

Likeness alone cannot tell: "port 5432" and "port 5433" are nearer to each other than most rewordings. So numbers,
versions, names and negation are compared exactly, and a text that repeats another almost word by word but for a word or
their order is an edit, never a rewording.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log

import numpy as np

from app.reviewers import pieces
from app.reviewers.pieces import Floats, Ids
from app.words import words

MOST_PIECES = 96
LONGEST_TEXT = 1500
SIDES_KEPT = 4096  # a few kilobytes each
NEAR, EQUAL = 0.5, 0.99
EDITED = 0.6
OVERLAPS = 0.5
NEGATION_OVERLAPS = 0.4
STEM = 5

# Words whose presence changes nothing about what a text says; negations and prepositions are none of them.
_FILLERS = frozenset(
    word
    for line in (
        "a an the is are was were be been so very really just also please and der die das ein eine ist sind und auch",
        "el la los las un una es son y le les une est sont et o os as um uma e",
    )
    for word in line.split()
)
_NUMERALS = {
    word: str(number)
    for number, spelt in enumerate(
        (
            "zero null cero",
            "",
            "two both twice zwei zwo beide dos deux due dois duas два",
            "three drei tres trois tre três три",
            "four vier cuatro quatre quattro quatro четыре",
            "five fünf cinco cinq cinque пять",
            "six sechs seis sei шесть",
            "seven sieben siete sept sette sete семь",
            "eight acht ocho huit otto oito восемь",
            "nine neun nueve neuf nove девять",
            "ten zehn diez dix dieci dez десять",
        )
    )
    for word in spelt.split()
}
_NUMBER = re.compile(r"(?<![^\W\d_])v?(\d+(?:[.,:]\d+)*)")
_LETTERS = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"`([^`\n]+)`")
_IDENTIFIER = re.compile(r"[\w./@:-]*(?:[a-z][A-Z]|_|/|\.(?=\w)|::|--)[\w./@:-]*|\b[A-Z][A-Z0-9_]+\b")
_PART = re.compile(r"[\w@-]+")
_CAPITALISED = re.compile(r"\b[A-Z][\w-]*\w")
_BEGINS_SENTENCE = re.compile(r"(?:^|[.!?:;*#\n•—-])\W*$")
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nor|neither|cannot|without|nobody|nothing|\w+n['’]t|dont|doesnt|isnt|cant|wont|"
    r"nicht|nie|niemals|kein\w*|ohne|nunca|jam[aá]s|sin|nada|ningun\w*|não|nem|sem|nenhum\w*|ne|pas|jamais|sans|"
    r"aucun\w*|non|mai|senza|nessun\w*|не|никогда|без|нельзя|nigdy|bez|değil|asla|hiç|geen|niet|nooit)\b|\bn['’]\w|"
    r"ない|なく|ません|ず[、。に]|不|没|勿|别|非|未|禁止|않|말|없|못|안 |아니",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?=\w)[^.!?。！？\n]*)*[.!?。！？]*")


@dataclass(frozen=True)
class Side:
    """One of two texts, with what the comparison needs to know of it."""

    text: str

    @cached_property
    def ids(self) -> Ids:
        """Its word pieces in order."""
        return pieces.load().cut(self.text[:LONGEST_TEXT])[:MOST_PIECES]

    @cached_property
    def meaning(self) -> Floats:
        """The unit vector of its pieces."""
        return pieces.load().mean(self.ids)

    @cached_property
    def core(self) -> list[str]:
        """Its words without fillers, in order."""
        return [word for word in words(self.text) if word not in _FILLERS]

    @cached_property
    def said(self) -> frozenset[str]:
        """Its different words, without fillers."""
        return frozenset(self.core)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its numbers and versions, also those that are spelt out."""
        written = (number.replace(",", ".") for number in _NUMBER.findall(self.text))
        spelt = (_NUMERALS[word] for word in _LETTERS.findall(self.text.casefold()) if word in _NUMERALS)
        return frozenset([*written, *spelt])

    @cached_property
    def names(self) -> frozenset[str]:
        """Its identifiers and names in Latin letters, folded in case."""
        found = {part for code in _CODE.findall(self.text) for part in _PART.findall(code)}
        prose = _CODE.sub(" ` ", self.text)
        found.update(part for name in _IDENTIFIER.findall(prose) for part in _PART.findall(name) if len(part) > 1)
        found.update(m.group() for m in _CAPITALISED.finditer(prose) if not _BEGINS_SENTENCE.search(prose[: m.start()]))
        return frozenset(name.casefold() for name in found if name.isascii() and not name.isdigit())

    @cached_property
    def negated(self) -> bool:
        """Whether anything in it is negated."""
        return bool(_NEGATION.search(self.text))


@lru_cache(maxsize=SIDES_KEPT)
def side(text: str) -> Side:
    """The side of a text; what was found out about stored ones serves the next comparison as well."""
    return Side(text)


def differ(stored: Side, offered: Side) -> bool:
    """Whether the exact comparison forbids that the offered text says only what the stored one says."""
    if stored.core == offered.core:
        return False
    if offered.numbers - stored.numbers:
        return True
    shared = len(stored.said & offered.said)
    overlap = shared / max(1, min(len(stored.said), len(offered.said)))
    added, lost = _strangers(offered.names, stored), _strangers(stored.names, offered)
    if added and (lost or overlap > OVERLAPS):
        return True
    if stored.negated != offered.negated and overlap > NEGATION_OVERLAPS:
        return True
    return shared / max(1, len(stored.said), len(offered.said)) > EDITED


def measures(stored: Side, offered: Side) -> Floats:
    """The likeness of two texts in numbers, each about 0 to 1, for the weights of the model."""
    cosine = float(stored.meaning @ offered.meaning)
    (left, left_telling), (right, right_telling) = _vocabulary(stored.ids), _vocabulary(offered.ids)
    if len(left) == 0 or len(right) == 0:
        return np.zeros(MEASURES, dtype=np.float32)
    table = left @ right.T
    found = [(left_telling, table.max(axis=1)), (right_telling, table.max(axis=0))]
    covered = sorted(float(telling @ best) for telling, best in found)
    missing = sorted(float(telling @ (best < NEAR)) for telling, best in found)
    repeated = sorted(float(telling @ (best > EQUAL)) for telling, best in found)
    shared = len(stored.said & offered.said)
    few, many = sorted((max(1, len(stored.said)), max(1, len(offered.said))))
    one, other = _runs(stored.text), _runs(offered.text)
    runs = len(one & other) / max(1, min(len(one), len(other)))
    short, long = sorted((max(1, len(stored.ids)), max(1, len(offered.ids))))
    return np.array(
        [
            cosine,
            cosine * cosine,
            *covered,
            covered[0] * covered[1],
            *missing,
            *repeated,
            shared / few,
            shared / many,
            runs,
            log(long / short) / 3,
            log(short) / 5,
            min(2, len(stored.numbers & offered.numbers)) / 2,
            min(3, len(stored.names & offered.names)) / 3,
            min(3, len(stored.names - offered.names)) / 3,
            min(3, len(offered.names - stored.names)) / 3,
            float(bool(stored.numbers - offered.numbers)),
            float(stored.negated != offered.negated),
        ],
        dtype=np.float32,
    )


MEASURES = 20


def score(weights: Floats, stored: Side, offered: Side) -> float:
    """The uncalibrated score that two texts say the same; the last weight is the bias."""
    return float(measures(stored, offered) @ weights[:-1] + weights[-1])


def windows(passage: str) -> Iterator[str]:
    """Each sentence of a passage and each two that follow each other, as exact parts of it."""
    spans = [match.span() for match in _SENTENCE.finditer(passage) if match.group().strip()]
    for place, (start, end) in enumerate(spans):
        yield passage[start:end].strip()
        if place + 1 < len(spans):
            yield passage[start : spans[place + 1][1]].strip()


def _vocabulary(ids: Ids) -> tuple[Floats, Floats]:
    """Unit vectors of the different pieces, and how much each tells (in sum 1)."""
    different, known = np.unique(ids), pieces.load()
    telling = known.lengths[different]
    return known.vectors[different] / telling[:, None], telling / max(float(telling.sum()), 1e-6)


def _runs(text: str) -> set[str]:
    """Runs of four characters."""
    plain = text.casefold()
    return {plain[start : start + 4] for start in range(len(plain) - 3)}


def _strangers(names: frozenset[str], other: Side) -> list[str]:
    """Names that the other text does not have, in no inflection either."""
    return [name for name in names - other.names if not any(_akin(name, word) for word in other.said)]


def _akin(name: str, word: str) -> bool:
    stem = name[: max(3, min(STEM, len(name) - 1))]
    return word.startswith(stem) or (len(word) > 3 and name.startswith(word))
