"""Cut a text into the words by which it is found again; the same cut serves indexing, asking and comparing."""

import re
import unicodedata
from functools import lru_cache

RUN = 4
TEXTS_KEPT = 1_000

# Scripts written without spaces are cut into overlapping pairs of characters, which finds their words well enough
# without a dictionary.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_FIRST_UNSPACED = re.compile(rf"[{_UNSPACED}]")


def overlap(one: str, other: str) -> float:
    """Share of the shorter text's different words that the other has too, 0 to 1."""
    first, second = different(one), different(other)
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


@lru_cache(maxsize=TEXTS_KEPT)
def different(text: str) -> frozenset[str]:
    """The text's different words; kept for a while, since some texts are compared again and again."""
    return frozenset(words(text))


def words(text: str) -> list[str]:
    """Words in their order, folded in case and accents; pairs of characters where a script has no spaces."""
    plain = text.lower() if text.isascii() else _plain(text)
    found: list[str] = []
    for token in _TOKEN.findall(plain):
        if _FIRST_UNSPACED.match(token) and len(token) > 1:
            found += [token[i : i + 2] for i in range(len(token) - 1)]
        else:
            found += token.split("_") if "_" in token else [token]
    return [word for word in found if word]


def runs(text: str) -> list[str]:
    """The words' runs of four characters, by which inflected and compound words are found; short words whole."""
    found: list[str] = []
    for word in words(text):
        if len(word) <= RUN:
            found.append(word)
        else:
            padded = f" {word} "
            found += [padded[i : i + RUN] for i in range(len(padded) - RUN + 1)]
    return found


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))
