"""Projects: their level, what a hook needs to know of them, their documents."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from app.schemas.fields import Model, Name
from app.schemas.vocabulary import Level


class PolicyOut(Model):
    """What a hook needs to know of a project's policy."""

    project: str
    level: Level
    minimum_words: int
    maximum_characters: int
    reasons: dict[str, str]


class ProjectIn(Model):
    """Settings of a project."""

    level: Level


class ProjectOut(Model):
    """A project and how far its candidates go."""

    name: str
    level: Level
    created_at: datetime


class DocumentIn(Model):
    """A document of the project: its path, the hash of its text, and the text when the service lacks it."""

    path: Name
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    text: Annotated[str, StringConstraints(max_length=1_000_000)] | None = None


class DocumentsIn(Model):
    """All documents of a project; those not listed are forgotten."""

    documents: list[DocumentIn] = Field(max_length=500)


class DocumentsOut(Model):
    """Paths whose text the service lacks and wants sent."""

    wanted: list[str]
    passages: int


class DocumentHeld(Model):
    """A document that the service compares candidates with."""

    path: str
    sha256: str
    passages: int
    updated_at: datetime


class DocumentsHeld(Model):
    """All documents of a project, by path."""

    documents: list[DocumentHeld]
