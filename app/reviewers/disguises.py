"""Undo the disguises in which an order reaches a model past a reader: look-alike letters, invisible ones, encodings."""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

_CYRILLIC_TO_LATIN = dict(zip("аеорсухікѕјԁһԛԝАВЕКМНОРСТХІЅЈУ", "aeopcyxiksjdhqwABEKMHOPCTXISJY", strict=True))
_GREEK_TO_LATIN = dict(zip("οαρνΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "oapvABEZHIKMNOPTYX", strict=True))
_TO_LATIN = _CYRILLIC_TO_LATIN | _GREEK_TO_LATIN
_TO_CYRILLIC = {latin: cyrillic for cyrillic, latin in _CYRILLIC_TO_LATIN.items()}
_FOREIGN = re.compile("[\u0370-\u052f]")
_LATIN = re.compile("[A-Za-z]")
_WORD = re.compile(r"\w+")
_SPACED_OUT = re.compile(r"(?<!\S)(?:\w ){4,}\w(?!\S)")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_FLAG = "\U0001f3f4"
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_JOINERS = frozenset("\u00ad\u200c\u200e\u200f")
_STYLED = re.compile("[\U0001d400-\U0001d7ff\u24b6-\u24e9]")
_MORSE = re.compile(r"(?:[.-]{1,6} ){8,}")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{16,}={0,2}(?![A-Za-z0-9+/=])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}){10,}(?![0-9A-Za-z])")
_PERCENT = re.compile(r"\S*(?:%[0-9a-fA-F]{2}\S*){3,}")
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}){6,}")
_ENTITIES = re.compile(r"(?:&#(?:\d{2,6}|x[0-9a-fA-F]{2,5});\s?){6,}")
_DIGIT_AS_LETTER = str.maketrans("013457@$", "oieastas")
_DIGIT_IN_WORD = re.compile(r"(?=[\w@$]*[013457@$])(?=[\w@$]*[^\W\d_])[\w@$]+")
_SENTENCES = re.compile(r"(?<=[.:])\s|\s(?=[.:])|\n")
# Short English words that hardly occur in what other texts become when they are turned about.
_TELLTALE = re.compile(r"\b(?:the|and|this|that|for|you|your|with|not|are|all|what|approve)\b", re.IGNORECASE)
_TURNED_TELLTALES = 2
_LEAST_DECODED = 8
_LEAST_DIGIT_WORDS, _DIGIT_WORDS = 4, 0.4
_STYLED_LETTERS = 4


def readings(text: str) -> Iterator[tuple[str, str]]:
    """The text as it is shown, then everything hidden in it, each with the name of its disguise (``""`` for none)."""
    shown = unfolded(text)
    yield "", shown
    for run in _TAGS.findall(text):
        yield "tags", "".join(chr(ord(letter) - 0xE0000) for letter in run)
    for run in _BASE64.findall(shown):
        if decoded := _from_base64(run):
            yield "base64", decoded
    for run in _HEX.findall(shown):
        if decoded := _prose(bytes.fromhex(run)):
            yield "hex", decoded
    for run in _PERCENT.findall(shown):
        yield "percent", unquote(run, errors="replace")
    for run in _ESCAPED.findall(shown):
        yield "escapes", codecs.decode(run, "unicode_escape")
    for run in _ENTITIES.findall(shown):
        yield "entities", html.unescape(run)
    if spelt := _with_letters_for_digits(shown):
        yield "digits", spelt
    yield from (("rot13", sentence) for sentence in _turned(shown, _rot13))
    yield from (("reversed", sentence) for sentence in _turned(shown, _reversed))


def unfolded(text: str) -> str:
    """The text without invisible letters, and its look-alike letters brought back to the script of their word."""
    if text.isascii():
        return _SPACED_OUT.sub(_closed_up, text)
    plain = "".join(letter for letter in unicodedata.normalize("NFKC", text) if not _invisible(letter))
    if _FOREIGN.search(plain):
        foreign = _reads_foreign(plain)
        plain = _WORD.sub(lambda word: _in_one_script(word.group(), foreign=foreign), plain)
    return _SPACED_OUT.sub(_closed_up, plain)


def traces(text: str) -> frozenset[str]:
    """Names of what is odd about the letters of a text as it was sent."""
    found = set()
    if _SPACED_OUT.search(text):
        found.add("spaced")
    if _MORSE.search(text):
        found.add("morse")
    if text.isascii():
        return frozenset(found)
    if any(
        unicodedata.category(c) == "Cf" and c not in _JOINERS and not _joins_emoji(text, i) for i, c in enumerate(text)
    ):
        found.add("invisible")
    if _BIDI.search(text):
        found.add("bidi")
    if _TAGS.search(text) and _FLAG not in text:
        found.add("tags")
    if any(_mixes_scripts(word) for word in _WORD.findall(text)):
        found.add("mixed")
    if len(_STYLED.findall(text)) > _STYLED_LETTERS:
        found.add("styled")
    return frozenset(found)


def _invisible(letter: str) -> bool:
    if letter in "\n\t\u2028\u2029":
        return False
    return unicodedata.category(letter) in ("Cf", "Cc") or "\ufe00" <= letter <= "\ufe0f"


def _joins_emoji(text: str, place: int) -> bool:
    return text[place] == "\u200d" and place > 0 and ord(text[place - 1]) > 0x2190


def _mixes_scripts(word: str) -> bool:
    return len(word) > 2 and word.isalpha() and bool(_FOREIGN.search(word)) and bool(_LATIN.search(word))


def _reads_foreign(text: str) -> bool:
    """Whether some word can only be meant in its own script."""
    words = (word for word in _WORD.findall(text) if len(word) > 3 and _FOREIGN.search(word))
    return any(not _LATIN.search(word) and not all(letter in _TO_LATIN for letter in word) for word in words)


def _in_one_script(word: str, *, foreign: bool) -> str:
    if not _FOREIGN.search(word):
        return word
    mixed = bool(_LATIN.search(word))
    if all(letter in _TO_LATIN or not _FOREIGN.match(letter) for letter in word) and (mixed or not foreign):
        return "".join(_TO_LATIN.get(letter, letter) for letter in word)
    return "".join(_TO_CYRILLIC.get(letter, letter) for letter in word) if mixed else word


def _closed_up(run: re.Match[str]) -> str:
    return run.group().replace(" ", "")


def _from_base64(run: str) -> str:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _prose(base64.b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _prose(raw: bytes) -> str:
    """The bytes as text if they read like words; else nothing."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return ""
    wordy = sum(letter.isalnum() or letter in " .,:;/-_'\"()|\n" for letter in text)
    return text if len(text) >= _LEAST_DECODED and " " in text and wordy > 0.9 * len(text) else ""


def _with_letters_for_digits(shown: str) -> str:
    """The text with letters in the place of the digits that stand for them, if so many of its words have some."""
    words, odd = _WORD.findall(shown), _DIGIT_IN_WORD.findall(shown)
    if len(odd) < max(_LEAST_DIGIT_WORDS, _DIGIT_WORDS * len(words)):
        return ""
    return _DIGIT_IN_WORD.sub(lambda word: word.group().translate(_DIGIT_AS_LETTER), shown)


def _turned(shown: str, turn: Callable[[str], str]) -> Iterator[str]:
    """Sentences that read as English only after turning."""
    turned = turn(shown)
    if len(_TELLTALE.findall(turned)) < _TURNED_TELLTALES:
        return
    for sentence in _SENTENCES.split(turned):
        if len(_TELLTALE.findall(sentence)) >= _TURNED_TELLTALES and not _TELLTALE.search(turn(sentence)):
            yield sentence


def _rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


def _reversed(text: str) -> str:
    return text[::-1]
