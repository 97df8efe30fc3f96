"""Find the lesson within the account of an edit, in its own words: what is headed so, or else the last sentence."""

import re

from app.words import words

FEWEST_WORDS = 8

_HEADED = re.compile(
    r"(?:^|[\s*_.])(?:learned|learnt|lessons?|takeaway|gelernt|erkenntnis|aprendido|lecci[oó]n|appris|leçon|aprendizado|"
    r"imparato|вывод|урок|wniosek|ders|教训|学んだこと|교훈)[*_]*\s*[:：]\s*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")
# Words at the head of a sentence that lean on the sentence before.
_LEANING = re.compile(
    r"(?:it|its|this|that|these|those|they|their|he|she|both|neither|then|also|so|but|and|otherwise|instead|"
    r"es|das|dies\w*|sie|er|dann|auch|aber|und|sonst|esto|eso|ello|esta|también|pero|además|y|cela|ça|ce|cette|"
    r"mais|aussi|et|isso|isto|mas|e|questo|ma|это|оно|они|но|и|to|ale|bu|ama|これ|それ|这|那|이|그)\b",
    re.IGNORECASE,
)


def lesson(text: str) -> str | None:
    """The part of a text that can stand without the rest; None if there is none that surely can."""
    if headed := list(_HEADED.finditer(text)):
        return _standing(text[headed[-1].end() :])
    sentences = [sentence for sentence in _SENTENCE_END.split(text.strip()) if sentence.strip()]
    last = sentences[-1].strip() if len(sentences) > 1 else ""
    return None if _LEANING.match(last) else _standing(last)


def _standing(part: str) -> str | None:
    part = part.strip().strip("*_").strip()
    return part[:1].upper() + part[1:] if len(words(part)) >= FEWEST_WORDS else None
