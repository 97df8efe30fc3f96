"""Load the prompts, fill their slots, and name their version.

The prompts are files under ``prompts/``; nothing is said to a model that does not stand in one of them or in the
schema of the answer. Text of others (candidate, key, project, entries, passages) is untrusted. It goes only into
slots between tags that bear a nonce, drawn anew for each request, so no text can know how its slot ends.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from app.errors import ConfigurationError
from app.schemas.judging import Brief, Facts
from app.settings import resource

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_NONCE = re.compile(r"[0-9A-Za-z]{4,64}")
_BRACKETS = "<＜﹤‹〈⟨"
# Spaces, marks and whatever is invisible: what a reader passes over between the letters of a tag's name.
_BETWEEN = rf"[^\w{_BRACKETS}>\[]*"

# Words of JSON schema that providers refuse (ranges, which are checked here) or that the prompt says better.
_NOT_IN_SUBSET = frozenset({"title", "description", "minimum", "maximum"})

# What this module fills in. A file that lost a slot would silently keep something from the reviewer.
_SLOTS = {
    "reviewer.system.md": frozenset[str](),
    "reviewer.user.md": frozenset(
        {"nonce", "operation", "project", "key", "entry_labels", "entries", "passage_labels", "passages", "candidate"}
    ),
    "reviewer.entry.md": frozenset({"nonce", "label", "category", "status", "key", "text"}),
    "reviewer.passage.md": frozenset({"nonce", "label", "path", "heading", "text"}),
}


@dataclass(frozen=True)
class Prompts:
    """The reviewer's prompts.

    Attributes:
        system: the instructions; the same for every request, so that they can be cached.
        user, entry, passage: templates of what changes with each request.
        version: hash over all prompt files and the schema of the answer.
    """

    system: str
    user: str
    entry: str
    passage: str
    version: str

    def message(self, brief: Brief, nonce: str) -> str:
        """The user message about a brief.

        Args:
            brief: what the reviewer may know.
            nonce: 4 to 64 letters and digits that no text of the brief contains; `draw_nonce` finds one.
        """
        if not _NONCE.fullmatch(nonce):
            raise ValueError("a nonce is 4 to 64 letters and digits")
        entries = [
            _fill(
                self.entry,
                nonce=nonce,
                label=n.label,
                category=n.category.value,
                status=n.status.value,
                key=_quoted(n.key or "", nonce),
                text=_quoted(n.text, nonce),
            )
            for n in brief.neighbours
        ]
        passages = [
            _fill(
                self.passage,
                nonce=nonce,
                label=p.label,
                path=_quoted(p.path, nonce),
                heading=_quoted(p.heading, nonce),
                text=_quoted(p.text, nonce),
            )
            for p in brief.passages
        ]
        return _fill(
            self.user,
            nonce=nonce,
            operation=brief.operation.value,
            project=_quoted(brief.project, nonce),
            key=_quoted(brief.key or "", nonce),
            entry_labels=", ".join(n.label for n in brief.neighbours) or "none",
            entries="\n".join(entries),
            passage_labels=", ".join(p.label for p in brief.passages) or "none",
            passages="\n".join(passages),
            candidate=_quoted(brief.text, nonce),
        )


def load_prompts(folder: Path | None = None) -> Prompts:
    """The prompts of that folder, or those of the installation.

    Raises:
        ConfigurationError: a prompt is missing, or its slots are not those that are filled.
    """
    return _load(folder or resource("prompts"))


def draw_nonce(brief: Brief, draw: Callable[[], str] = lambda: secrets.token_hex(4)) -> str:
    """A fresh random nonce that occurs in no text of the brief."""
    texts = "\n".join(untrusted_texts(brief)).casefold()
    while (nonce := draw()).casefold() in texts:
        pass
    return nonce


def untrusted_texts(brief: Brief) -> list[str]:
    """Every text of the brief that others wrote."""
    return [
        brief.text,
        brief.project,
        brief.key or "",
        *(part for n in brief.neighbours for part in (n.key or "", n.text)),
        *(part for p in brief.passages for part in (p.path, p.heading, p.text)),
    ]


def neutralised(text: str) -> str:
    """The text with whatever looks like a tag of a slot made harmless: ``[candidate>``."""
    return _look_alike().sub("[", text)


@cache
def facts_schema() -> dict[str, Any]:
    """The JSON schema of a reviewer's answer: that of `Facts`, in the strict subset that model providers accept.

    The reason comes first: a model that has named what decides contradicts itself less in what follows.
    """
    schema = _strict(Facts.model_json_schema())
    properties = schema["properties"]
    names = sorted(properties, key=lambda name: name != "reason")
    return {**schema, "properties": {name: properties[name] for name in names}, "required": names}


@cache
def _load(folder: Path) -> Prompts:
    try:
        files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"The prompts in {folder} cannot be read: {exc}.") from exc
    for name, slots in _SLOTS.items():
        if name not in files:
            raise ConfigurationError(f"The prompt {name} is missing in {folder}.")
        if wrong := slots ^ set(_SLOT.findall(files[name])):
            raise ConfigurationError(f"The prompt {folder / name} lacks or wrongly has the slots {sorted(wrong)}.")
    versioned = json.dumps([sorted(files.items()), facts_schema()]).encode()
    system, user, entry, passage = (files[name].strip() for name in _SLOTS)
    return Prompts(system, user, entry, passage, hashlib.sha256(versioned).hexdigest()[:16])


def _fill(template: str, **values: str) -> str:
    # In one pass, so that a value which itself looks like a slot stays what it is.
    return _SLOT.sub(lambda slot: values[slot[1]], template)


def _quoted(text: str, nonce: str) -> str:
    """The text as it may stand in a slot: it cannot end the slot, and it can be encoded."""
    half = len(nonce) // 2
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    without_nonce = re.sub(nonce, lambda found: f"{found[0][:half]}·{found[0][half:]}", whole, flags=re.IGNORECASE)
    return neutralised(without_nonce)


@cache
def _look_alike() -> re.Pattern[str]:
    prompts = load_prompts()
    names = sorted(set(re.findall(r"<(\w+) [^<>]*nonce=", prompts.user + prompts.entry + prompts.passage)))
    spelt = "|".join(_BETWEEN.join(name) for name in names)
    return re.compile(rf"[{_BRACKETS}](?={_BETWEEN}(?:{spelt}))", re.IGNORECASE)


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    strict = {word: value for word, value in schema.items() if word not in _NOT_IN_SUBSET}
    for group in ("properties", "$defs"):
        if group in strict:
            strict[group] = {name: _strict(part) for name, part in strict[group].items()}
    if "anyOf" in strict:
        strict["anyOf"] = [_strict(part) for part in strict["anyOf"]]
    return strict
