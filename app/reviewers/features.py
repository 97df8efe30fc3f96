"""What the embedded reviewer sees of a text: its wording with the particulars masked, as counted features.

A linear model over characters and words learns tone, tense and templates in any language; masking paths, numbers,
hashes and code keeps it from learning one project's names instead.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import log1p

from app.words import words

# Blocks of features, and how much each weighs against the others: runs of characters within words, words, pairs of
# words, runs within the first words, the last words, and the very first word.
BLOCKS = {"c": 1.0, "w": 1.0, "p": 0.8, "f": 0.7, "l": 0.5, "s": 0.35}
FIRST_WORDS = 5
LAST_WORDS = 6
SHORTEST_GRAM, LONGEST_GRAM = 2, 5

_EXTENSIONS = (
    "py|pyi|ipynb|js|jsx|ts|tsx|mjs|cjs|vue|svelte|md|mdx|rst|txt|go|rs|c|h|cc|cpp|hpp|cs|java|kt|kts|swift|m|rb|php|"
    "lua|gd|tscn|sh|bash|zsh|ps1|sql|json|jsonc|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|xml|html?|s?css|csv|parquet|proto|"
    "tf|tfvars|hcl|dockerfile|gradle|service|log|wasm|ino|dts"
)
_MASKS = tuple(
    (re.compile(pattern, re.IGNORECASE), f" {name} ")
    for pattern, name in (
        (r"```.*?(?:```|\Z)", "codeblock"),
        (r"https?://\S+", "url"),
        (r"`[^`\n]*`", "code"),
        (rf"(?:[\w.@~-]*/)*[\w.@*-]+\.(?:{_EXTENSIONS})\b(?::\d+)?", "file"),
        (r"(?<!\w)~?/?(?:[\w.@-]+/){1,}[\w.@*-]*", "path"),
        (r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b", "hash"),
        (r"\b\d{4}-\d\d(?:-\d\d)?\b", "date"),
        (r"\b\d+\s?/\s?\d+\b", "ratio"),
        (r"(?:#|\bPR-?|\bGH-)\d+\b|\b[A-Z]{2,6}-\d+\b", "ticket"),
        (r"\bv?\d+(?:\.\d+){1,3}\b", "version"),
        (r"\d[\d.,]*\s?%", "percent"),
        (r"\d[\d.,:]*", "number"),
    )
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[✅✔☑✓🚧🎉🚀⏳❌⚠📝🔧✨→⇒=:;!?()\[\]]")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_CHECK = re.compile("[✅✔☑✓🎉🚀✨]")
_IDENTIFIER = re.compile(r"\b(?:[a-z]+[A-Z]\w*|\w+_\w+|[A-Z][a-z]+[A-Z]\w*)\b")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w.+-]+")


def masked(text: str) -> str:
    """The text with code, paths, numbers, hashes and the like replaced by the names of their kinds."""
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return " ".join(text.split())


def count(text: str) -> Counter[str]:
    """How often each feature occurs; the first character names its block (see ``BLOCKS``)."""
    plain = masked(text).casefold()
    tokens = _WORD.findall(plain)
    counted: Counter[str] = Counter()
    counted.update("c" + run for run in _character_runs(plain))
    counted.update("w" + token for token in tokens)
    counted.update(f"p{a} {b}" for a, b in pairwise(tokens))
    counted.update("f" + run for run in _character_runs(" ".join(tokens[:FIRST_WORDS])))
    counted.update("l" + token for token in tokens[-LAST_WORDS:])
    if tokens:
        counted["s" + tokens[0]] += 1
    return counted


def layout(text: str) -> dict[str, float]:
    """Measures of the text's form, each about 0 to 3."""
    plain = masked(text)
    tokens = plain.split()
    size = max(1, len(tokens))
    kinds = Counter(tokens)
    return {
        "length": log1p(len(words(text))) / 2,
        "characters": log1p(len(text)) / 3,
        "checks": min(3.0, len(_CHECK.findall(text))),
        "bullets": min(3.0, len(_BULLET.findall(text))),
        "lines": log1p(text.count("\n")),
        "code": 3 * kinds["code"] / size,
        "files": 3 * (kinds["file"] + kinds["path"]) / size,
        "numbers": 3 * (kinds["number"] + kinds["percent"]) / size,
        "traces": min(3.0, kinds["hash"] + kinds["ratio"] + kinds["ticket"] + kinds["date"]),
        "versions": min(2.0, kinds["version"]),
        "identifiers": 3 * len(_IDENTIFIER.findall(text)) / size,
        "names": 3 * len(_NAME.findall(text)) / size,
        "commas": 3 * text.count(",") / size,
        "colons": 3 * text.count(":") / size,
        "clauses": min(3.0, text.count(";") + text.count("—") + text.count(" - ")),
        "sentences": log1p(len(re.findall(r"[.!?。！？](?:\s|$)", text))),
        "ended": float(text.rstrip()[-1:] in {".", "。", "!", "`", ")"}),
        "lower_start": float(text[:1].islower()),
        "variety": len(kinds) / size,
    }


def _character_runs(text: str) -> Iterator[str]:
    for word in text.split():
        padded = f" {word} "
        for length in range(SHORTEST_GRAM, LONGEST_GRAM + 1):
            if length > len(padded):
                break
            for start in range(len(padded) - length + 1):
                yield padded[start : start + length]
