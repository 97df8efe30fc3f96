"""Labelled texts: what a candidate is, what surrounds it, and what should come of it.

A data set is a folder with ``candidates/``, ``duplicates/``, ``documents/`` and ``projects/`` by project, and
``attacks.jsonl`` and ``benign_security.jsonl`` beside them; or one JSON Lines file of candidates. The format is
described in evals/README.md.
"""

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from app.errors import Invalid
from app.schemas.fields import Model
from app.schemas.vocabulary import Category, Reason, Scope, Verdict

CONTEXT_FOLDER = "projects"
# Families of attacks on whoever judges the text; the others aim, through the memory, at its later readers.
ON_REVIEWER = frozenset(
    {
        "instruct_reviewer",
        "fake_verdict",
        "forged_turn",
        "forged_evidence",
        "authority_claim",
        "role_play",
        "social_pressure",
        "prompt_leak",
    }
)


class Suite(StrEnum):
    """Which question a case asks."""

    CANDIDATES = "candidates"
    DUPLICATES = "duplicates"
    DOCUMENTS = "documents"
    ATTACKS = "attacks"
    BENIGN = "benign"


class Split(StrEnum):
    """Which part of the data a group belongs to; never by line, so that no voice or idea is on both sides."""

    TRAIN = "train"
    DEVELOPMENT = "development"
    TEST = "test"


class StoredText(Model):
    """An entry that the project already has."""

    label: str
    category: Category
    text: str


class DocumentText(Model):
    """A passage of the project's documents."""

    path: str
    heading: str
    text: str


class ExpectedFacts(Model):
    """The labelled facts; those left out of the data have the value of a good memory."""

    durable: bool = True
    self_contained: bool = True
    scope: Scope | None = None
    gives_why: bool | None = None
    single_fact: bool = True
    duplicate_of: str | None = None
    supersedes: str | None = None
    restates: str | None = Field(default=None, description="path#heading of the passage")
    addresses_reader: bool = False


class Labelled(Model):
    """One text with its surroundings and labels."""

    id: str
    suite: Suite
    project: str
    group: str = Field(description="what is never on two sides of a split: the project, or an attack's idea")
    split: Split
    kind: str
    lang: str
    text: str
    category: Category
    verdict: Verdict
    reasons: tuple[Reason, ...]
    facts: ExpectedFacts
    context: str = ""
    entries: tuple[StoredText, ...] = ()
    documents: tuple[DocumentText, ...] = ()
    of: str | None = Field(
        default=None, description="the candidate that one side of a pair is, the other being its edit"
    )

    @property
    def is_on_reviewer(self) -> bool:
        """Whether it is an attack of a family that aims at whoever judges it, not only at its later readers."""
        return self.suite is Suite.ATTACKS and self.kind.partition("/")[0] in ON_REVIEWER


def load(path: Path) -> list[Labelled]:
    """All labelled texts of a folder or file, in a fixed order.

    Raises:
        Invalid: the path holds none, or a line is not as the format says (named by file and line).
    """
    if path.is_dir():
        found = [case for file in sorted(path.rglob("*.jsonl")) for case in _cases(file, path)]
    elif path.is_file():
        found = list(_cases(path, path.parent))
    else:
        raise Invalid(f"There is no file or folder {path}.")
    if not found:
        raise Invalid(f"{path} holds no labelled texts (*.jsonl).")
    return found


def split_of(group: str) -> Split:
    """Half of the groups train, a sixth is for development, a third for the test; by a hash of the name."""
    share = int(sha256(f"split:{group}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
    if share < 1 / 2:
        return Split.TRAIN
    return Split.DEVELOPMENT if share < 2 / 3 else Split.TEST


def _cases(file: Path, root: Path) -> Iterator[Labelled]:
    build = _BUILDERS.get(file.stem) or _BUILDERS.get(file.parent.name, _candidate)
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield build(row, str(row.get("project", file.stem)), root)
        except KeyError as exc:
            raise Invalid(f"{file}, line {number}: there is no {exc}.") from exc
        except (ValueError, TypeError, AttributeError, ValidationError) as exc:
            raise Invalid(f"{file}, line {number}: {_first_line(exc)}") from exc


def _candidate(row: dict[str, Any], project: str, root: Path) -> Labelled:
    context = _project(root, project)
    return Labelled(
        id=row["id"],
        suite=Suite.CANDIDATES,
        project=project,
        group=project,
        split=split_of(project),
        kind=row.get("case", "candidate"),
        lang=row.get("lang", "en"),
        text=row["text"],
        category=row["category"],
        verdict=row["verdict"],
        reasons=tuple(row.get("reasons", ())),
        facts=ExpectedFacts(**row.get("facts", {})),
        context=row.get("context", context.get("context", "")),
        entries=tuple(StoredText(**entry) for entry in row.get("entries", ())),
        documents=_documents(context),
    )


def _duplicate(row: dict[str, Any], project: str, root: Path) -> Labelled:
    same, newer = bool(row["duplicate"]), bool(row["supersedes"])
    verdict = Verdict.DUPLICATE if same else Verdict.UPDATE if newer else Verdict.APPROVE
    return Labelled(
        id=row["id"],
        suite=Suite.DUPLICATES,
        project=project,
        group=project,
        split=split_of(project),
        kind=row["kind"],
        lang=row["lang"] if row["lang"] == row["stored_lang"] else f"{row['stored_lang']}>{row['lang']}",
        text=row["text"],
        category=row["stored_category"],
        verdict=verdict,
        reasons=(Reason.DUPLICATE,) if same else (),
        facts=ExpectedFacts(duplicate_of="E1" if same else None, supersedes="E1" if newer else None),
        context=_project(root, project).get("context", ""),
        entries=(StoredText(label="E1", category=row["stored_category"], text=row["stored"]),),
        of=row.get("of"),
    )


def _document(row: dict[str, Any], project: str, root: Path) -> Labelled:
    restates = bool(row["restates"])
    context = _project(root, project)
    return Labelled(
        id=row["id"],
        suite=Suite.DOCUMENTS,
        project=project,
        group=project,
        split=split_of(project),
        kind=row["kind"],
        lang=row["lang"],
        text=row["text"],
        category=Category.NONE,
        verdict=Verdict.DUPLICATE if restates else Verdict.APPROVE,
        reasons=(Reason.RESTATES_DOCUMENT,) if restates else (),
        facts=ExpectedFacts(restates=f"{row['path']}#{row['heading']}" if restates else None),
        context=context.get("context", ""),
        documents=_documents(context),
    )


def _attack(row: dict[str, Any], _: str, __: Path) -> Labelled:
    return Labelled(
        id=row["id"],
        suite=Suite.ATTACKS,
        project="workbench",
        group=row["group"],
        split=split_of(row["group"]),
        kind=f"{row['family']}/{row['kind']}",
        lang=row["lang"],
        text=row["text"],
        category=Category.NONE,
        verdict=row["verdict"],
        reasons=tuple(row["reasons"]),
        facts=ExpectedFacts(**row.get("facts", {})),
    )


def _benign(row: dict[str, Any], project: str, _: Path) -> Labelled:
    return Labelled(
        id=row["id"],
        suite=Suite.BENIGN,
        project=project,
        group=row["group"],
        split=split_of(row["group"]),
        kind=f"benign/{row['category'].lower()}",
        lang=row["lang"],
        text=row["text"],
        category=row["category"],
        verdict=row["verdict"],
        reasons=tuple(row["reasons"]),
        facts=ExpectedFacts(**row.get("facts", {})),
        context=row["context"],
    )


_BUILDERS: dict[str, Callable[[dict[str, Any], str, Path], Labelled]] = {
    "duplicates": _duplicate,
    "documents": _document,
    "attacks": _attack,
    "benign_security": _benign,
}


@cache
def _project(root: Path, project: str) -> dict[str, Any]:
    file = root / CONTEXT_FOLDER / f"{project}.json"
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return loaded


def _documents(context: dict[str, Any]) -> tuple[DocumentText, ...]:
    return tuple(DocumentText(**passage) for passage in context.get("documents", ()))


def _first_line(exc: Exception) -> str:
    return str(exc).splitlines()[0] if str(exc) else type(exc).__name__
