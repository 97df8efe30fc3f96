"""What the embedded reviewer sees of a text: its wording with the particulars masked, as counted features.

A linear model over characters and words learns tone, tense and templates in any language; masking paths, numbers,
hashes and code keeps it from learning one project's names instead. The skeleton of a text (its commonest words, and of
all others only how they end) carries the build of its sentences over to words that no training text had.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import log1p

import numpy as np
import numpy.typing as npt

from app.reviewers import moods
from app.reviewers.pieces import Floats, Ids, Pieces
from app.words import words

# Blocks of features, and how much each weighs against the others: runs of characters within words, words, pairs of
# words, runs within the first words, the last words, the very first word, the skeleton, groups of word pieces, and
# the three of `moods`.
BLOCKS = {"c": 1.4, "w": 1.0, "p": 0.9, "f": 0.7, "l": 0.5, "s": 0.35, "k": 1.0, "g": 0.7, "m": 0.7, "n": 0.7, "o": 0.7}
MOODS = frozenset("mno")
FIRST_WORDS = 5
LAST_WORDS = 6
SHORTEST_GRAM, LONGEST_GRAM = 2, 5
FIRST_OF_SKELETON, LAST_OF_SKELETON = 9, 8
FIRST_PIECES = 8
FIRST_GROUPS = 6
FEWEST_WORDS, LEAST_KNOWN = 6, 0.15
MEAN_WEIGHT, FIRST_WEIGHT = 0.3, 0.2

_EXTENSIONS = (
    "py|pyi|ipynb|js|jsx|ts|tsx|mjs|cjs|vue|svelte|md|mdx|rst|txt|go|rs|c|h|cc|cpp|hpp|cs|java|kt|kts|swift|m|rb|php|"
    "lua|gd|tscn|sh|bash|zsh|ps1|sql|json|jsonc|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|xml|html?|s?css|csv|parquet|proto|"
    "tf|tfvars|hcl|dockerfile|gradle|service|log|wasm|ino|dts"
)
_CODE = re.compile(r"`([^`\n]*)`")
_COMMANDS = (
    "git|npm|npx|pnpm|yarn|uv|pip|cargo|go|make|docker|kubectl|terraform|python3?|node|curl|sudo|bin|rails|mix|bundle|"
    "poetry|helm|aws|gcloud|apt|brew|systemctl|ssh"
)
_KINDS_OF_CODE = tuple(
    (re.compile(pattern), f" {name} ")
    for pattern, name in (
        (r"[\w.:]*\w\(.*\)$", "codecall"),
        (r"-", "codeflag"),
        (r"[A-Z][A-Z0-9_]+(?:=.*)?$", "codeconst"),
        (rf"(?:{_COMMANDS})\s", "codecommand"),
        (r".*\s", "codephrase"),
        (r".*/", "codepath"),
        (r"[a-z][a-z0-9-]*$", "codeword"),
        (r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)*$", "codetype"),
        (r".*\.", "codemember"),
        (r".*_", "codename"),
    )
)
_BEFORE_CODE = ((re.compile(r"```.*?(?:```|\Z)", re.DOTALL), " codeblock "), (re.compile(r"https?://\S+"), " url "))
# Each with a sign that must be there, since to look for one sign is far quicker.
_AFTER_CODE = tuple(
    (re.compile(sign), re.compile(pattern, re.IGNORECASE), f" {name} ")
    for sign, pattern, name in (
        (r"\.", rf"(?:[\w.@~-]*/)*[\w.@*-]+\.(?:{_EXTENSIONS})\b(?::\d+)?", "file"),
        (r"/", r"(?<!\w)~?/?(?:[\w.@-]+/){1,}[\w.@*-]*", "path"),
        (r"\d", r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b", "hash"),
        (r"\d", r"\b\d{4}-\d\d(?:-\d\d)?\b", "date"),
        (r"\d", r"\b\d+\s?/\s?\d+\b", "ratio"),
        (r"\d", r"(?:#|\bPR-?|\bGH-)\d+\b|\b[A-Z]{2,6}-\d+\b", "ticket"),
        (r"\d", r"\bv?\d+(?:\.\d+){1,3}\b", "version"),
        (r"\d", r"\d[\d.,]*\s?%", "percent"),
        (r"\d", r"\d[\d.,:]*", "number"),
    )
)
_MASK_NAMES = frozenset(name.strip() for table in (_BEFORE_CODE, _KINDS_OF_CODE, _AFTER_CODE) for *_, name in table) | {
    "code"
}
_CODE_NAMES = frozenset(name for name in _MASK_NAMES if name.startswith("code"))
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[✅✔☑✓🚧🎉🚀⏳❌⚠📝🔧✨→⇒=:;!?()\[\]]")
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s]")
_ENDINGS = ("tion", "ing", "ed", "ly", "ment", "ness", "able", "s", "er", "en", "e", "t", "n")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_CHECK = re.compile("[✅✔☑✓🎉🚀✨]")
_IDENTIFIER = re.compile(r"\b(?:[a-z]+[A-Z]\w*|\w+_\w+|[A-Z][a-z]+[A-Z]\w*)\b")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w.+-]+")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_LATIN_LETTER = re.compile(f"[{_LATIN}]")
_LATIN_WORD = re.compile(f"[{_LATIN}]+$")
_LETTER_OF_KNOWN_SCRIPTS = re.compile(f"[{_LATIN}\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|$)")


@dataclass(frozen=True)
class Known:
    """What the features of a text are told apart by.

    Attributes:
        common: the words that the skeleton keeps.
        groups: the group of each word piece.
    """

    common: frozenset[str] = frozenset()
    groups: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))


@dataclass(frozen=True)
class Wording:
    """A text, the same masked, and the ids of the masked text's word pieces."""

    text: str
    masked: str
    ids: Ids

    @classmethod
    def of(cls, text: str, pieces: Pieces) -> "Wording":
        """The wording of a text."""
        shown = masked(text)
        return cls(text, shown, pieces.cut(shown))


def masked(text: str) -> str:
    """The text with code, paths, numbers, hashes and the like replaced by the names of their kinds."""
    for pattern, name in _BEFORE_CODE:
        text = pattern.sub(name, text)
    text = _CODE.sub(_kind_of_code, text)
    for sign, pattern, name in _AFTER_CODE:
        if sign.search(text):
            text = pattern.sub(name, text)
    return " ".join(text.split())


def tokens(wording: Wording) -> list[str]:
    """Words and marks of the masked text, as the skeleton is made of."""
    return _TOKEN.findall(wording.masked)


def count(wording: Wording, known: Known) -> Counter[str]:
    """How often each feature occurs; the first character names its block (see ``BLOCKS``)."""
    plain = wording.masked.casefold()
    said = _WORD.findall(plain)
    found = [run for word in plain.split() for run in _character_runs("c", word)]
    found += ["w" + token for token in said]
    found += [f"p{a} {b}" for a, b in pairwise(said)]
    found += [run for word in said[:FIRST_WORDS] for run in _character_runs("f", word)]
    found += ["l" + token for token in said[-LAST_WORDS:]]
    found += ["s" + token for token in said[:1]]
    found += ["k" + run for run in _skeleton_runs([_shape(token, known) for token in tokens(wording)])]
    if len(known.groups):
        found += ["g" + run for run in _group_runs([str(group) for group in known.groups[wording.ids].tolist()])]
    found += moods.of(wording.text)
    return Counter(found)


def is_strange(counted: Mapping[str, int], known: Container[str], text: str) -> bool:
    """Whether a text is in a language that the models never met, so that they can tell nothing of it.

    Args:
        counted: its features.
        known: the features that the models know.
        text: itself.
    """
    letters = len(_LETTER.findall(text))
    if len(_LETTER_OF_KNOWN_SCRIPTS.findall(text)) < letters / 2:
        return True
    if len(_LATIN_LETTER.findall(text)) < letters / 2:
        return False
    said = [feature for feature in counted if feature[0] == "w" and _LATIN_WORD.match(feature, 1)]
    said = [feature for feature in said if feature[1:] not in _MASK_NAMES]
    return len(said) >= FEWEST_WORDS and sum(feature in known for feature in said) < LEAST_KNOWN * len(said)


def dense(wording: Wording, pieces: Pieces) -> Floats:
    """Measures of form, then what the words mean together and what the first ones mean (`Pieces.mean`)."""
    form = np.array(list(layout(wording).values()), dtype=np.float32)
    meant = MEAN_WEIGHT * pieces.mean(wording.ids)
    first = FIRST_WEIGHT * pieces.mean(wording.ids[:FIRST_PIECES])
    return np.concatenate([form, meant, first])


def layout(wording: Wording) -> Mapping[str, float]:
    """Measures of the text's form, each about 0 to 3."""
    text = wording.text
    said = wording.masked.split()
    size = max(1, len(said))
    kinds = Counter(said)
    return {
        "length": log1p(len(words(text))) / 2,
        "characters": log1p(len(text)) / 3,
        "checks": min(3.0, len(_CHECK.findall(text))),
        "bullets": min(3.0, len(_BULLET.findall(text))),
        "lines": log1p(text.count("\n")),
        "code": 3 * sum(kinds[name] for name in _CODE_NAMES) / size,
        "files": 3 * (kinds["file"] + kinds["path"]) / size,
        "numbers": 3 * (kinds["number"] + kinds["percent"]) / size,
        "traces": min(3.0, kinds["hash"] + kinds["ratio"] + kinds["ticket"] + kinds["date"]),
        "versions": min(2.0, kinds["version"]),
        "identifiers": 3 * len(_IDENTIFIER.findall(text)) / size,
        "names": 3 * len(_NAME.findall(text)) / size,
        "commas": 3 * text.count(",") / size,
        "colons": 3 * text.count(":") / size,
        "clauses": min(3.0, text.count(";") + text.count("—") + text.count(" - ")),
        "sentences": log1p(len(_SENTENCE_END.findall(text))),
        "ended": float(text.rstrip()[-1:] in {".", "。", "!", "`", ")"}),
        "lower_start": float(text[:1].islower()),
        "variety": len(kinds) / size,
    }


LAYOUT_SIZE = len(layout(Wording("", "", np.zeros(0, dtype=np.int64))))


def _kind_of_code(span: re.Match[str]) -> str:
    inside = span.group(1).strip()
    return next((name for pattern, name in _KINDS_OF_CODE if pattern.match(inside)), " code ")


@lru_cache(maxsize=16_384)
def _character_runs(block: str, word: str) -> tuple[str, ...]:
    padded = f" {word} "
    return tuple(
        block + padded[start : start + length]
        for length in range(SHORTEST_GRAM, LONGEST_GRAM + 1)
        for start in range(len(padded) - length + 1)
    )


def _shape(token: str, known: Known) -> str:
    """A common word or mark as it is; of any other word whether it begins with a capital, and how it ends."""
    low = token.casefold()
    if low in known.common or token in _MASK_NAMES or not token[0].isalnum():
        return low
    if token.isdigit():
        return "#"
    capital = "A" if token[0].isupper() else "a"
    ending = next((end for end in _ENDINGS if low.endswith(end) and len(low) > len(end) + 2), "")
    return f"{capital}~{ending}"


def _skeleton_runs(shapes: list[str]) -> Iterator[str]:
    """Runs of up to three, then those that begin and end the text."""
    framed = ["^", *shapes, "$"]
    yield from framed
    for a, b in pairwise(framed):
        yield f"{a} {b}"
    for a, b, c in zip(framed, framed[1:], framed[2:], strict=False):
        yield f"{a} {b} {c}"
    first = framed[:FIRST_OF_SKELETON]
    for shape in first:
        yield f"F {shape}"
    for a, b in pairwise(first):
        yield f"F {a} {b}"
    for length in (1, 2, 3):
        yield "S " + " ".join(framed[1 : 1 + length])
    for shape in framed[-LAST_OF_SKELETON:]:
        yield f"L {shape}"


def _group_runs(groups: list[str]) -> Iterator[str]:
    yield from groups
    for a, b in pairwise(groups):
        yield f"{a} {b}"
    for group in groups[:FIRST_GROUPS]:
        yield f"F {group}"
