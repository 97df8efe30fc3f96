"""What differs between two texts, and the exact comparison, which may forbid that they say the same.

Likeness alone cannot tell: "port 5432" and "port 5433" are nearer to each other than most rewordings. So the exact
comparison looks at which words differ once spelling, fillers and templates are put aside (`app.reviewers.spelling`).
Another number, version or name forbids it, and so do an exception more or less and a word that tells of a change. Where
the texts share most of their words, so does each small difference: a negation, a small word that turns the sense
(`app.reviewers.contrasts`), a word in the place of another, or two that changed places; if there is none, they say the
same. Where they share fewer, likeness is weighed (`app.reviewers.likeness`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from app.reviewers import contrasts, pieces, spelling, spellings
from app.reviewers.pieces import Floats, Ids
from app.reviewers.spelling import NEGATION
from app.words import words

MOST_PIECES = 96
LONGEST_TEXT = 1500
SIDES_KEPT = 4096  # a few kilobytes each
WORDS_KEPT = 16_384
NEARLY_ALL, CONDITION_OVERLAP = 0.7, 0.4
NAMES_OVERLAP = 0.5
AKIN = 0.35
STEM, SHORTEST_BEGINNING = 5, 3
MOST_WORDS = 160
FOCUS_REACH = 2
# Below these hardly a duplicate of the training data lies, but most neighbours do.
LEAST_COSINE, LEAST_WORDS = 0.3, 0.1

_CODE = re.compile(r"`([^`\n]+)`")
_IDENTIFIER = re.compile(r"[\w./@:-]*(?:[a-z][A-Z]|_|/|\.(?=\w)|::|--)[\w./@:-]*|\b[A-Z][A-Z0-9_]+\b")
_PART = re.compile(r"[\w@-]+")
_CAPITALISED = re.compile(r"\b[A-Z][\w-]*\w")
_BEGINS_SENTENCE = re.compile(r"(?:^|[.!?:;*#\n•—-])\W*$")
_CONDITION = re.compile(
    r"\b(?:except\w*|unless|only (?:if|when|while|until)|apart from|other than|save for|provided that|as long as|"
    r"au(?:ß|ss)er|ausnahm\w*|ausgenommen|es sei denn|nur wenn|solange|excep\w*|salvo|a menos que|solo si|sauf|"
    r"à moins|seulement si|exceção|a não ser|eccett\w*|eccezion\w*|tranne|a meno che|solo se|кроме|исключ\w*|"
    r"только если|oprócz|wyjąt\w*|chyba że|hariç|istisna\w*|dışında)\b|"
    r"例外|ただし|限り|除外|除了|除非|但是|예외|제외|단,",
    re.IGNORECASE,
)
_FLOATING = frozenset(map(spelling.folded, spellings.FLOATING)) - {""}
# A language that writes every noun with a capital.
_GERMAN = re.compile(r"\b(?:der|die|das|den|dem|und|nicht|ist|wird|werden|eine?|im|auf)\b")
_LETTER = re.compile(r"[^\W\d_]")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?=\w)[^.!?。！？\n]*)*[.!?。！？]*")
# Words by which a text says that something is no longer as it was.
_ORDER = re.compile(
    r"\b(?:then|afterwards|dann|danach|luego|despu[eé]s|puis|ensuite|depois|poi|затем|потом|potem|sonra)\b"
    r"|然后|再|その後|次に|다음",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:now|nowadays|no longer|any ?more|correction|corrected|was wrong|(?:we|i|was) thought|contrary to|used to|"
    r"formerly|instead|meanwhile|from \w+ on|finally|moved|changed|replaced|switched|jetzt|inzwischen|nun|korrektur|"
    r"falsch|mittlerweile|statt|früher|ya no|ahora|desde|corrección|désormais|corrigé|agora|adesso|"
    r"теперь|больше|раньше|поправка|вместо|artık|düzeltme|teraz|już|zamiast)\b|"
    r"現在|今は|以前|訂正|変更|不再|改|更正|现在|之前|이제|더 이상|정정",
    re.IGNORECASE,
)


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
    def said(self) -> spelling.Saying:
        """What it says, spelling aside."""
        return spelling.said(self.text[:LONGEST_TEXT])

    @property
    def core(self) -> tuple[str, ...]:
        """Its stems in order."""
        return self.said.stems

    @cached_property
    def counted(self) -> Counter[str]:
        """How often it says each stem."""
        return Counter(self.said.stems)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Its numbers, versions and quantities, also those that are spelt out; every text may speak of one thing."""
        return frozenset(stem for stem in self.counted if stem[0] == "#" and stem != "#1")

    @cached_property
    def names(self) -> frozenset[str]:
        """Its identifiers and names in Latin letters, folded in case."""
        found = {part for code in _CODE.findall(self.text) for part in _PART.findall(code)}
        prose = _CODE.sub(" ` ", spelling.untemplated(self.text))
        found.update(part for name in _IDENTIFIER.findall(prose) for part in _PART.findall(name) if len(part) > 1)
        if not prose.isupper() and not _GERMAN.search(prose):
            capitals = _CAPITALISED.finditer(prose)
            found.update(m.group() for m in capitals if not _BEGINS_SENTENCE.search(prose[: m.start()]))
        folded = (name.casefold() for name in found if name.isascii() and not name.isdigit())
        return frozenset(name for name in folded if name not in spellings.UNITS)

    @cached_property
    def words(self) -> frozenset[str]:
        """Its different words as they are written."""
        return frozenset(words(self.text))

    @cached_property
    def conditional(self) -> bool:
        """Whether it makes an exception or a condition."""
        return bool(_CONDITION.search(self.text))

    @cached_property
    def _small_words(self) -> list[tuple[str, str]]:
        return contrasts.said(self.text[:LONGEST_TEXT])

    @cached_property
    def small(self) -> dict[str, str]:
        """The senses of its small words by their stems."""
        return {spelling.folded(word): sense for phrase, sense in self._small_words for word in phrase.split()}

    @cached_property
    def senses(self) -> Counter[str]:
        """How often it says each sense of a small word."""
        return Counter(sense for _, sense in self._small_words)

    @cached_property
    def focus(self) -> frozenset[str]:
        """The stems near each "only" and "also": where it stands beside its word does not matter."""
        core = self.core
        places = [place for place, stem in enumerate(core) if self.is_focus(stem)]
        reach = range(-FOCUS_REACH, FOCUS_REACH + 1)
        near = {place + step for place in places for step in reach if step}
        return frozenset(core[place] for place in near if 0 <= place < len(core))

    def is_focus(self, stem: str) -> bool:
        """Whether it is an "only" or "also"."""
        return self.small.get(stem) in contrasts.FOCUS

    def floats(self, stem: str) -> bool:
        """Whether it may stand before or after what it says something of."""
        return stem in _FLOATING or self.is_focus(stem)

    @cached_property
    def changes(self) -> int:
        """How many words say that something is no longer as it was."""
        return len(_CHANGE.findall(self.text))

    @cached_property
    def tells_order(self) -> bool:
        """Whether it says what comes first and what then."""
        return bool(_ORDER.search(self.text))

    @cached_property
    def runs(self) -> frozenset[str]:
        """Its runs of four characters."""
        plain = self.text.casefold()
        return frozenset(plain[start : start + 4] for start in range(len(plain) - 3))

    @cached_property
    def vocabulary(self) -> tuple[list[str], Floats, Floats]:
        """Its different stems, numbers and negations left out; their unit vectors; how much each tells."""
        written = dict(self.said.pairs)
        stems = [stem for stem in written if stem[0] not in (NEGATION, "#")][:MOST_WORDS]
        if not stems:
            return [], np.zeros((0, pieces.DIMENSION), dtype=np.float32), np.zeros(0, dtype=np.float32)
        found = [_meant(written[stem]) for stem in stems]
        telling = np.array([length for _, length in found], dtype=np.float32)
        return stems, np.array([vector for vector, _ in found]), telling / max(float(telling.sum()), 1e-6)


@lru_cache(maxsize=SIDES_KEPT)
def side(text: str) -> Side:
    """The side of a text; what was found out about stored ones serves the next comparison as well."""
    return Side(text)


@dataclass(frozen=True)
class Comparison:
    """A stored and an offered text, word by word."""

    stored: Side
    offered: Side

    @cached_property
    def equal(self) -> bool:
        """Whether both say the same words in the same order, and no small word turns them."""
        return bool(self.stored.core) and self.stored.core == self.offered.core and not self.turned

    @cached_property
    def is_close(self) -> bool:
        """Whether they share words enough for anybody to compare them closely; cheap."""
        one, other = self.stored.words, self.offered.words
        return len(one & other) >= LEAST_WORDS * min(len(one), len(other))

    @cached_property
    def is_akin(self) -> bool:
        """Whether they mean something alike as a whole."""
        return float(self.stored.meaning @ self.offered.meaning) >= LEAST_COSINE

    @cached_property
    def turned(self) -> bool:
        """Whether one has a small word that turns what the other says."""
        return contrasts.turned(self.stored.senses, self.offered.senses)

    @cached_property
    def _unmatched(self) -> tuple[list[str], list[str], dict[str, str]]:
        lost = [stem for stem in self.stored.counted if stem not in self.offered.counted]
        added = [stem for stem in self.offered.counted if stem not in self.stored.counted]
        beginnings: defaultdict[str, list[str]] = defaultdict(list)
        for stem in lost:
            beginnings[stem[:SHORTEST_BEGINNING]].append(stem)
        inflected: dict[str, str] = {}
        for stem in added:
            forms = beginnings[stem[:SHORTEST_BEGINNING]]
            if (form := next((other for other in forms if _inflects(stem, other)), None)) is not None:
                inflected[stem] = form
                forms.remove(form)
        # "forever" and "for ever"
        said, told = "".join(self.stored.core), "".join(self.offered.core)
        lost = [s for s in lost if s not in inflected.values() and not _joined(s, told, self.offered)]
        added = [s for s in added if s not in inflected and not _joined(s, said, self.stored)]
        return lost, added, inflected

    @property
    def lost(self) -> list[str]:
        """Stems that only the stored text says."""
        return self._unmatched[0]

    @property
    def added(self) -> list[str]:
        """Stems that only the offered text says."""
        return self._unmatched[1]

    @cached_property
    def shared(self) -> int:
        """How many stems both say."""
        return (self.stored.counted & self.offered.counted).total() + len(self._unmatched[2])

    @cached_property
    def overlap(self) -> tuple[float, float]:
        """The shared stems as shares of the shorter and of the longer text."""
        short, long = sorted((len(self.stored.core), len(self.offered.core)))
        return self.shared / max(1, short), self.shared / max(1, long)

    @cached_property
    def negations(self) -> int:
        """How many negations one says more than the other."""
        return abs(self.stored.counted[NEGATION] - self.offered.counted[NEGATION])

    @cached_property
    def displaced(self) -> int:
        """How many shared stems follow another than in the stored text, though no clause begins between them."""
        inflected = self._unmatched[2]
        common = {s for s in self.stored.counted if s in self.offered.counted} | set(inflected.values())
        told = [s for s in self.stored.core if s in common and not self.stored.floats(s)]
        retold = [(inflected.get(s, s), p) for p, s in enumerate(self.offered.core) if not self.offered.floats(s)]
        retold = [(s, place) for s, place in retold if s in common]
        order = [s for s, _ in retold]
        if _rotated(told, order):
            return 0
        follow = set(pairwise(told))
        said, begins = self.offered.said, self.offered.said.begins
        compounds = {
            (inflected.get(a, a), inflected.get(b, b)) for a, b in (*said.compounds, *self.stored.said.compounds)
        }
        return sum(
            (a, b) not in follow
            and not any(p in begins for p in range(first + 1, second + 1))
            and not ((b, a) in follow and compounds & {(a, b), (b, a)})
            for (a, first), (b, second) in pairwise(retold)
        )

    @property
    def is_near(self) -> bool:
        """Whether they share so many words that the exact comparison alone can tell whether they say the same."""
        return self.overlap[1] > NEARLY_ALL

    @property
    def is_in_order(self) -> bool:
        """Whether the words that both say follow one another alike in both, whatever the order of the clauses."""
        inflected = self._unmatched[2]
        order = [inflected.get(stem, stem) for stem in self.offered.core]
        common = set(order) & set(self.stored.core)
        return [s for s in self.stored.core if s in common] == [s for s in order if s in common]

    @cached_property
    def strange_names(self) -> tuple[list[str], list[str]]:
        """Names that only the stored text has, and those that only the offered one has, in no inflection either."""
        return _strangers(self.stored.names, self.offered), _strangers(self.offered.names, self.stored)

    @cached_property
    def nearest(self) -> tuple[Floats, Floats]:
        """For each stem of the vocabulary of either, how near the nearest of the other means; 1 if that says it too."""
        left, one, _ = self.stored.vocabulary
        right, other, _ = self.offered.vocabulary
        if not left or not right:
            return np.zeros(len(left), dtype=np.float32), np.zeros(len(right), dtype=np.float32)
        table = one @ other.T
        lost, added = set(self.lost), set(self.added)
        best = np.where([stem in lost for stem in left], table.max(axis=1), 1.0)
        other_best = np.where([stem in added for stem in right], table.max(axis=0), 1.0)
        return best.astype(np.float32), other_best.astype(np.float32)

    @cached_property
    def differ(self) -> bool:
        """Whether the exact comparison forbids that the offered text says only what the stored one says."""
        if self.equal:
            return False
        stored, offered = self.stored, self.offered
        if offered.numbers - stored.numbers or self.renumbered or offered.changes > stored.changes:
            return True
        least, _ = self.overlap
        lost_names, added_names = self.strange_names
        if added_names and (lost_names or (self.lost and least > NAMES_OVERLAP)):
            return True
        if least > CONDITION_OVERLAP and stored.conditional != offered.conditional:
            return True
        return self.is_near and (
            self.negations > 0
            or self.turned
            or self.displaced > (1 if self.lost and self.added else 0)
            or self.refocused
            or self.resteps
            or self.replaced
        )

    @cached_property
    def renumbered(self) -> bool:
        """Whether a number gave way to one that the text says elsewhere too ("bell 9 twice", then "bell 2 twice")."""
        again = (self.offered.counted - self.stored.counted).keys() & self.stored.numbers
        return bool(again) and bool(self.stored.numbers - self.offered.numbers)

    @cached_property
    def opposed(self) -> bool:
        """Whether small words of both stand against one another: before here, after there."""
        return contrasts.opposed(self.stored.senses, self.offered.senses)

    @cached_property
    def adds_clause(self) -> bool:
        """Whether a clause after the first of the offered text is new by half of its words or more."""
        added = set(self.added)
        stems = self.offered.core
        starts = sorted({*self.offered.said.begins, len(stems)})
        return any(
            2 * sum(stem in added for stem in stems[start:end]) >= end - start
            for start, end in pairwise(starts)
            if start
        )

    @cached_property
    def resteps(self) -> bool:
        """Whether both tell steps, and in another order."""
        return self.stored.tells_order and self.offered.tells_order and not self.is_in_order

    @cached_property
    def refocused(self) -> bool:
        """Whether "only" or "also" belongs to another word."""
        one, other = self.stored.focus, self.offered.focus
        return bool(one) and bool(other) and one.isdisjoint(other)

    @cached_property
    def replaced(self) -> bool:
        """Whether a word stands in the place of another one: the only one that differs, or of another meaning.

        Small words of a sense that both have are left out.
        """
        lost = [stem for stem in self.lost if not self._said_by_both(self.stored.small.get(stem, ""))]
        added = [stem for stem in self.added if not self._said_by_both(self.offered.small.get(stem, ""))]
        if not added:
            return False
        if not lost:
            # A word that is said twice may be replaced once.
            return bool(self.stored.counted - self.offered.counted)
        if len(lost) == len(added) == 1 or self._one_sign_differs(lost, added):
            return True
        stems, _, _ = self.offered.vocabulary
        return any(near < AKIN for stem, near in zip(stems, self.nearest[1], strict=True) if stem in added)

    def _said_by_both(self, sense: str) -> bool:
        return 0 < self.stored.senses[sense] == self.offered.senses[sense]

    def _one_sign_differs(self, lost: list[str], added: list[str]) -> bool:
        """Whether one sign is replaced in a script without spaces, whose words are pairs that overlap."""
        return all(
            len(pairs) == 2 and pairs[0].isalpha() and not pairs[0].isascii() and pairs[0][-1:] == pairs[1][:1]
            for pairs in (lost, added)
        )


def windows(passage: str) -> Iterator[str]:
    """Each sentence of a passage and each two that follow each other, as exact parts of it, unless they say nothing."""
    spans = [match.span() for match in _SENTENCE.finditer(passage) if _LETTER.search(match.group())]
    for place, (start, end) in enumerate(spans):
        yield passage[start:end].strip()
        if place + 1 < len(spans):
            yield passage[start : spans[place + 1][1]].strip()


@lru_cache(maxsize=WORDS_KEPT)
def _meant(word: str) -> tuple[Floats, float]:
    """The unit vector of a word, and how much it tells."""
    known = pieces.load()
    total: Floats = known.vectors[known.cut(word)].sum(axis=0)
    length = float(np.linalg.norm(total))
    return total / max(length, 1e-6), min(length, 12.0)


def _inflects(one: str, other: str) -> bool:
    """Whether two stems are forms of one word, going by how they begin."""
    if not one.isalpha() or not other.isalpha():
        return False
    short, long = sorted((len(one), len(other)))
    common = next((place for place in range(short) if one[place] != other[place]), short)
    return (common >= 4 and common >= 0.7 * long) or (common == short >= SHORTEST_BEGINNING and long <= short + 3)


def _joined(stem: str, text: str, other: Side) -> bool:
    """Whether it stands in the other side's stems, written as one; but no "paid" in "unpaid"."""
    if len(stem) <= 2 or not stem.isalpha() or stem not in text:
        return False
    return not any(word.startswith(tuple(prefix + stem for prefix in spellings.REVERSING)) for word in other.counted)


def _rotated(one: list[str], other: list[str]) -> bool:
    """Whether one begins in the middle of the other and then goes round."""
    return len(one) == len(other) and any(one[place:] + one[:place] == other for place in range(len(one)))


def _strangers(names: frozenset[str], other: Side) -> list[str]:
    joined = "".join(other.core)
    return [name for name in names - other.names - other.words if not _known(name, other, joined)]


def _known(name: str, other: Side, joined: str) -> bool:
    spelt_apart = len(name) >= STEM and name.isalpha() and name in joined
    return spelt_apart or spelling.folded(name) in other.counted or any(_akin(name, word) for word in other.words)


def _akin(name: str, word: str) -> bool:
    if any(letter.isdigit() for letter in name):
        return name == word or name.replace("-", "").replace("_", "") == word
    stem = name[: max(3, min(STEM, len(name) - 1))]
    return word.startswith(stem) or (len(word) > 3 and name.startswith(word))
