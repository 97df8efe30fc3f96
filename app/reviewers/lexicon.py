"""Words sorted into fields of meaning, in several languages, and quick ways to find which fields a text touches."""

import re
import unicodedata
from collections.abc import Iterator, Mapping

_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LONGEST_STEM = 14
_WORDS_KEPT = 20_000
_NOTHING: frozenset[str] = frozenset()


def plain(text: str) -> str:
    """The text in lower case and without accents, as the words of the fields are compared."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


class Lexicon:
    """Fields by their words.

    Words ending in ``*`` stand for all that begin so, an underscore joins two words that follow one another, and
    scripts without spaces are searched for the words as they stand.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._exact: dict[str, frozenset[str]] = {}
        self._stems: dict[str, frozenset[str]] = {}
        self._unspaced: dict[str, frozenset[str]] = {}
        self._of: dict[str, frozenset[str]] = {}
        for field, listed in fields.items():
            for written in listed.split():
                word = plain(written.rstrip("*")).replace("_", " ")
                unspaced = _UNSPACED.search(word)
                table = self._unspaced if unspaced else self._stems if written.endswith("*") else self._exact
                table[word] = table.get(word, _NOTHING) | {field}

    def fields_of(self, word: str) -> frozenset[str]:
        """The fields of a word that `plain` has folded."""
        if (known := self._of.get(word)) is not None:
            return known
        found = self._exact.get(word, _NOTHING)
        for length in range(2, min(len(word), _LONGEST_STEM) + 1):
            found |= self._stems.get(word[:length], _NOTHING)
        if len(self._of) < _WORDS_KEPT:
            self._of[word] = found
        return found

    def fields_of_two(self, word: str, following: str) -> frozenset[str]:
        """The fields of two words that follow one another."""
        return self._exact.get(f"{word} {following}", _NOTHING)

    def fields_within(self, text: str) -> Iterator[str]:
        """The fields of the words that occur anywhere in a text of a script without spaces."""
        if _UNSPACED.search(text):
            for word, fields in self._unspaced.items():
                if word in text:
                    yield from fields
