"""What the embedded reviewer looks at clause by clause to find an attack: who is addressed, and what is aimed at.

One hostile clause in a good memory is enough, so each clause is judged by itself. A clause is seen by its words and by
the fields of meaning that meet in it (`app.reviewers.cues`): secrets × sending, guards × switching off, and so on.
Words in quotation marks or back-ticks are mentioned, not said, and count as such.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from math import ceil

from app.reviewers import cues, disguises
from app.reviewers.lexicon import plain

# Blocks of features, and how much each weighs: fields, fields that meet, fields of mentioned words, words, pairs of
# words, the first word, its fields, and what is odd about the whole text or the way the clause was hidden.
BLOCKS = {"1": 1.0, "2": 1.0, "q": 0.5, "w": 1.0, "p": 0.8, "s": 0.3, "S": 0.3, "x": 2.0}
MOST_CLAUSES = 32

_END = re.compile(
    r"(?<=[.!?])[)\"'”*_]*\s+|(?<=[。！？；])|[\n\u2028\u2029]+|;\s+|\s+[—–]\s+|\s+-\s+(?=[A-Z])|<!--|-->"
)
_MENTIONED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]{3,160}\"|“[^”\n]{3,160}”|«[^»\n]{3,160}»|„[^“”\n]{3,160}[“”]|「[^」\n]{3,160}」",
    re.DOTALL,
)
_WORD = re.compile(r"[.~]?[^\W_]+(?:[-'’.][^\W_]+)*")
Mark = tuple[str, re.Pattern[str]]
_MARKS: tuple[Mark, ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "turn",
            r"^\W{0,3}(?:system|assistant|user|human|developer|reviewer|tool|ai|model)\s*(?:prompt|message)?\s*\]?:",
        ),
        (
            "tag",
            (
                r"<\|?/?(?:im_start|im_end|system|assistant|user|inst|endoftext|instructions?|candidate|untrusted|input|"
                r"output|passages?|neighbours?)\b[^>]*>|\[/?(?:inst|system|wake)\b[^\]]*\]|<<sys>>|###\s*(?:system|instruction)"
            ),
        ),
        (
            "call",
            (
                r"<(?:invoke|function_call|tool_use|tool_call|parameter)\b|\baction input\b|"
                r"\"(?:tool_calls?|function|arguments|jsonrpc|hookspecificoutput|permissiondecision)\"\s*:"
            ),
        ),
        (
            "field",
            (
                r"[\"'{\s,](?:verdict|addresses_reader|duplicate_of|self_contained|suggested_text|single_fact|gives_why|"
                r"durable|overrid\w*|reviewer|status)\"?\s*[:=]"
            ),
        ),
        ("markup", r"<!--|-->|display\s*:\s*none|<script|<font|color\s*[:=]\s*\"?white|^\[//\]|<img|onerror"),
        ("sql", r"'\s*\)\s*;|\b(?:drop table|union select)\b|;\s*--|\bupdate \w+ set\b"),
        ("template", r"\{\{.*?\}\}|\{%.*?%\}|__\w+__\.|!!python|\$\{jndi"),
        ("pipe", r"\b(?:curl|wget|iwr)\b[^\n]{0,90}\|\s*(?:sudo\s+)?(?:ba|z)?sh|base64\s+-d|\beval\b|\bexec\("),
        (
            "address",
            (
                r"\b\d{1,3}(?:\.\d{1,3}){3}\b|https?://|\bwww\.|"
                r"\b[\w-]+(?:\.[\w-]+)*\.(?:example|com|net|org|io|dev|xyz|sh|site|ru|cn|top)\b"
            ),
        ),
        ("mailbox", r"[\w.+-]+@[\w-]+\.[\w.]+"),
        (
            "vault",
            (
                r"(?:^|[\s`'\"/~])\.(?:env|netrc|ssh|aws|npmrc|kube|pgpass|gnupg)\b|id_rsa|authorized_keys|"
                r"/etc/(?:passwd|shadow)|[A-Z_]*(?:SECRET|TOKEN|API_?KEY|PASSWORD)[A-Z_]*\b"
            ),
        ),
        (
            "danger",
            (
                r"rm -rf|--force\b|--no-verify|--trusted-host|--skip-\w+|chmod (?:777|\+x)|REJECT_UNAUTHORIZED|"
                r"verify\s*=\s*false|\bsudo\b|\bnc \b|--yes\b|dangerously|permissions?\.allow|allow\W+\[?\W*\*"
            ),
        ),
        ("settings", r"\.claude|settings\.json|claude\.md|agents\.md|\bhooks?\b\W{0,4}(?:off|\{\})|\bmcp"),
        (
            "spell",
            r"\b(?:pre-?approved|calibration|test mode|debug mode|developer mode|standing order|jailbreak|DAN)\b",
        ),
    )
)
# Looked for at the start of each clause; the others are looked for in the whole text first, which most texts spare.
_AT_START = frozenset({"turn", "markup", "field"})


def of(text: str, readings: Iterable[tuple[str, str]]) -> Iterator[Counter[str]]:
    """The features of each clause of a text, in all its readings (see `disguises.readings`)."""
    odd = sorted(disguises.traces(text))
    for disguise, reading in readings:
        marks = [(name, mark) for name, mark in _MARKS if name in _AT_START or mark.search(reading)]
        for clause in split(reading):
            yield count(clause, (*odd, *([disguise] if disguise else [])), marks)


def split(text: str) -> list[str]:
    """The clauses of a text, in order; the text itself if it has none.

    Of very many, several are taken together: none may hide behind the others.
    """
    parts = [part.strip() for part in _END.split(text) if part and part.strip()]
    together = max(1, ceil(len(parts) / MOST_CLAUSES))
    return [" ".join(parts[first : first + together]) for first in range(0, len(parts), together)] or [text]


def count(clause: str, odd: Iterable[str] = (), marks: Sequence[Mark] = _MARKS) -> Counter[str]:
    """The features of a clause; the first character names its block (see ``BLOCKS``).

    Args:
        clause: its text.
        odd: names of what is odd about the whole text, or how the clause was hidden in it.
        marks: those that may stand in the clause.
    """
    mentions: list[str] = _MENTIONED.findall(clause)
    said = plain(_MENTIONED.sub(" … ", clause) if mentions else clause)
    words: list[str] = _WORD.findall(said)
    lexicon = cues.lexicon()
    fields = set(lexicon.fields_within(said)).union(*map(lexicon.fields_of, words))
    aims = sorted(fields | {f"m_{name}" for name, mark in marks if mark.search(clause)})
    found = ["1" + aim for aim in aims]
    found += [f"2{a}×{b}" for a, b in combinations(aims, 2)]
    for mention in mentions:
        found += ["q" + field for word in _WORD.findall(plain(mention)) for field in sorted(lexicon.fields_of(word))]
    found += ["w" + word for word in words]
    found += [f"p{a} {b}" for a, b in pairwise(words)]
    if words:
        found.append("s" + words[0])
        found += ["S" + field for field in sorted(lexicon.fields_of(words[0]))]
    found += ["x" + name for name in odd]
    return Counter(found)
