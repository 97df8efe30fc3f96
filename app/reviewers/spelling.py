"""Cut a text into what it says, spelling aside: words without fillers and inflection, numbers, quantities, negations.

Two texts that differ only in what is dropped or folded here say the same: articles and copulas, headings and template
words, case and accents, British and American spelling, abbreviations, digits and spelt numbers, 60 s and one minute.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.reviewers import spellings
from app.words import words

NEGATION = "¬"
_SHORTEST_STEM = 3

_BREAK = "|"
_TOKEN = re.compile(r"[|¬]|#[A-Z](?= )|(?<![^\W\d_])[vV]?\d+(?:[.,:]\d+)*(?:%|[^\W_]+)?|[^\W\d_][^\W_]*")
_AMOUNT = re.compile(r"[vV]?(\d+(?:[.,:]\d+)*)(%|[^\W_]*)")
_LETTER_NAME = re.compile(r"(?<=\w )([A-HJ-Z])(?=[\s.,;:)]|$)")
_BOUNDARY = re.compile(
    r"[.!?;:](?=\s|$)|[,—–()\n。、，；：！？]|\s-\s|"
    r"\b(?:because|since|so|hence|therefore|while|weil|denn|da|deshalb|porque|pues|car|parce|perché|poiché|потому|"
    r"поэтому|bo|gdyż|çünkü)\b",
    re.IGNORECASE,
)
_UNSPACED_NUMERALS = dict(zip("一二三四五六七八九十两両", (*range(1, 11), 2, 2), strict=True))
_UNSPACED_NUMERAL = re.compile("[一二两両三四五六七八九十]")
_UNSPACED_QUANTITY = re.compile(rf"(\d+|[一二两両三四五六七八九十])\s?({'|'.join(spellings.UNSPACED_UNITS)})")
_GROUPS_OF_THOUSANDS = re.compile(r"(?<=\d)[,\u2009\u202f\u00a0'’](?=\d{3}(?!\d))|(?<=\d) (?=000(?!\d))")
_PER_CENT = re.compile(r"\s?\b(?:per cent|por ciento|pour cent|per cento)\b|(?<=\d)\s?(?:％|%)", re.IGNORECASE)
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))?\s?([ap])(?:\.\s?)?m\b\.?|\b0(?=\d:\d\d\b)", re.IGNORECASE)
_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_COMPOUND_NUMERAL = re.compile(
    rf"\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[-‑]({'|'.join(_ONES)})\b", re.IGNORECASE
)
_TITLE = re.compile(r"\W*(\w[^\n]{2,70}?)(?:[.:](?=\s)|\s[—–-](?=\s)|\n)")
# "restore of a snapshot" is a snapshot restore.
_OF = re.compile(r"\b([a-z]{3,}) of (?:the |an? |its |our |their )?([a-z]{3,})\b", re.IGNORECASE)
_NOT_OF = frozenset(words("out instead because one two each all some most none any many few kind part end top front"))
_NEGATIONS = re.compile(
    r"\b(?:neither\b[^.;\n]{1,60}?\bnor|"
    r"(?:ca|do|does|did|is|are|was|were|wo|would|should|could|must|has|have|had|need|ai)"
    r"n['’]?t|cannot|not|never|no|none|nobody|nothing|nowhere|without|w/o|neither|nor|nicht|nie|niemals|kein\w{0,2}|"
    r"niemand|nichts|ohne|weder|nunca|jam[aá]s|sin|nada|ning[uú]n\w*|nadie|ni|não|nem|sem|nenhum\w*|"
    r"(?:ne\s|n['’])\s?(?:\S+\s){0,4}?(?:pas|jamais|plus|rien|aucun\w*|personne)|ne|sans|aucun\w*|pas|jamais|"
    r"non\b[^.;\n]{1,40}?\bmai|non|mai|senza|nessun\w*|né|"
    r"не|ни|никогда|без|нельзя|нет|никто|ничего|nigdy|bez|nie|nikt|żaden\w*|değil|asla|hiç|yok|geen|niet|nooit)\b",
    re.IGNORECASE,
)
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNSPACED_NEGATION = re.compile(
    r"ない|なく|なかっ|なければ|ません|ず(?=[、。に])|ぬ(?=[、。])|禁止|不|没|勿|别|非|未|无|않|말|없|못|안 |아니|금지"
)


@dataclass(frozen=True)
class Saying:
    """What a text says, in order.

    Attributes:
        stems: of its words; `#` before a number or quantity, and `NEGATION` for each negation.
        written: each of them as it was written.
        begins: places of the stems that begin a clause.
        joined: places of the stems that follow the one before with nothing between.
    """

    stems: tuple[str, ...]
    written: tuple[str, ...]
    begins: frozenset[int]
    joined: frozenset[int]

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each stem with the word as it was written."""
        return zip(self.stems, self.written, strict=True)

    @property
    def compounds(self) -> Iterator[tuple[str, str]]:
        """Each two stems that stand together."""
        return ((self.stems[place - 1], self.stems[place]) for place in sorted(self.joined))


def untemplated(text: str) -> str:
    """The text without what templates write round it."""
    return spellings.UNSPACED_TEMPLATE.sub(" ", spellings.TEMPLATE.sub(" ", text))


def _without_title(text: str) -> str:
    """The text without a title that says only what the rest says too."""
    found = _TITLE.match(text)
    if found is None:
        return text
    title, rest = (frozenset(map(folded, words(part))) for part in (found.group(1), text[found.end() :]))
    return text[found.end() :] if title <= rest | {""} else text


def said(text: str) -> Saying:
    """What a text says, spelling aside."""
    shown = text.lower() if text.isupper() else text
    plain = _UNSPACED_QUANTITY.sub(_spaced_quantity, _CLOCK.sub(_hour, _without_title(untemplated(shown))))
    plain = _COMPOUND_NUMERAL.sub(_summed, plain)
    plain = _OF.sub(_compound, _PER_CENT.sub("%", _GROUPS_OF_THOUSANDS.sub("", plain)))
    marked = _BOUNDARY.sub(_BREAK, _LETTER_NAME.sub(r"#\1 ", _NEGATIONS.sub(f" {NEGATION} ", plain)))
    stems: list[str] = []
    written: list[str] = []
    begins: set[int] = set()
    joined: set[int] = set()
    negated, ended = False, -1
    for match in _TOKEN.finditer(marked):
        token, places = match.group(), len(stems)
        if token == _BREAK:
            begins.add(places)
            negated = False
            continue
        if token == NEGATION:
            # Many languages negate twice what is negated once.
            found = [] if negated else [(NEGATION, NEGATION)]
            negated = True
        elif token[0] == "#":
            found = [(token, token)]
        elif amount := _AMOUNT.fullmatch(token):
            found = _amount(amount)
        else:
            found = [(folded(word), word) for word in words(token)]
            negated = negated and token.casefold() not in spellings.CONJUNCTIONS
        for stem, word in found:
            _append(stems, written, stem, word)
        if places and len(stems) > places and ended >= 0 and not marked[ended : match.start()].strip("-`*_ "):
            joined.add(places)
        ended = match.end() if len(stems) > places else -1
    if _UNSPACED.search(text):
        extra = [NEGATION] * len(_UNSPACED_NEGATION.findall(text))
        extra += [f"#{_UNSPACED_NUMERALS[sign]}" for sign in _UNSPACED_NUMERAL.findall(plain)]
        stems += extra
        written += extra
    return Saying(tuple(stems), tuple(written), frozenset(begins), frozenset(joined))


def _hour(clock: re.Match[str]) -> str:
    hour, minute, half = clock.groups()
    if hour is None:
        return ""
    return f"{int(hour) % 12 + (12 if half in 'pP' else 0)}:{minute or '00'}"


def _spaced_quantity(quantity: re.Match[str]) -> str:
    number, unit = quantity.groups()
    return f" {_UNSPACED_NUMERALS.get(number, number)}{spellings.UNSPACED_UNITS[unit]} "


def _summed(numeral: re.Match[str]) -> str:
    tens, unit = (part.casefold() for part in numeral.groups())
    return str(int(spellings.NUMERALS[tens]) + 1 + _ONES.index(unit))


def _compound(phrase: re.Match[str]) -> str:
    what, whose = phrase.groups()
    return phrase.group() if what.casefold() in _NOT_OF else f"{whose} {what}"


def _append(stems: list[str], written: list[str], stem: str, word: str) -> None:
    unit = spellings.UNITS.get(word) or _STEMMED_UNITS.get(stem)
    if unit and stems and stems[-1] in spellings.ONE:
        stems[-1] = _quantity("1", unit)
    elif unit and stems and stems[-1][0] == "#" and stems[-1][1:].replace(".", "", 1).isdigit():
        stems[-1] = _quantity(stems[-1][1:], unit)
    elif stem:
        stems.append(stem)
        written.append(word)


def _amount(amount: re.Match[str]) -> list[tuple[str, str]]:
    number, attached = amount.group(1).replace(",", ".").removesuffix(".00"), amount.group(2)
    base = spellings.MILLION if attached == "M" else spellings.UNITS.get(attached.casefold())
    return [(_quantity(number, base), f"#{number}") if base else (f"#{number}{attached.casefold()}",) * 2]


@lru_cache(maxsize=32_768)
def folded(word: str) -> str:
    """A word as it is compared; empty for a filler."""
    if word in spellings.FILLERS:
        return ""
    if (number := spellings.NUMERALS.get(word)) is not None:
        return f"#{number}"
    word = spellings.ABBREVIATIONS.get(word, word)
    if not word.isascii() or not word.isalpha():
        return word
    for british, american in spellings.AMERICAN:
        word = british.sub(american, word)
    for ending in spellings.ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] != "s":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > _SHORTEST_STEM else word


def _quantity(number: str, unit: tuple[str, float] | None) -> str:
    if unit is None or number.count(".") > 1 or ":" in number:
        return f"#{number}"
    measured, factor = unit
    value = f"{float(number) * factor:.6g}"
    return f"#{value}{measured}"


_STEMMED_UNITS = {stem: value for unit, value in spellings.UNITS.items() if len(unit) > 2 and (stem := folded(unit))}
