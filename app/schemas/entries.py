"""Entries of the index."""

from datetime import datetime

from pydantic import Field

from app.schemas.fields import MAX_CANDIDATES, Model, Name, Text
from app.schemas.vocabulary import Category, EntryStatus, MemoryCategory


class EntryOut(Model):
    """An approved memory in the index."""

    id: str
    project: str
    category: Category
    text: str
    key: str | None
    store: str
    store_id: str | None
    status: EntryStatus
    version: int
    review_id: str | None
    key_id: str = Field(description="Id of the key that proposed it; `local` where none was needed.")
    session_id: str | None
    agent: str | None
    agent_id: str | None = Field(default=None, description="The subagent that offered it, if it was one.")
    tool: str | None = Field(default=None, description="The tool that it was offered with.")
    unreviewed: bool = Field(description="It was let into the store while nobody could judge it.")
    created_at: datetime
    updated_at: datetime


class EntryPage(Model):
    """Entries, newest first; ``next`` is the cursor of the following page."""

    items: list[EntryOut]
    next: str | None


class EntryIn(Model):
    """A memory that is already in a store, to be indexed without a review."""

    project: Name
    category: MemoryCategory
    text: Text
    key: Name | None = None
    store: Name = "unknown"
    store_id: Name | None = None


class EntryHit(Model):
    """An entry found by a search, with its cosine similarity to the query."""

    entry: EntryOut
    similarity: float


class DeletedReport(Model):
    """Items that the agent's delete tool removed from a store, named in whichever ways the tool names them."""

    project: Name
    store: Name
    store_ids: list[Name] = Field(default=[], max_length=MAX_CANDIDATES)
    keys: list[Name] = Field(default=[], max_length=MAX_CANDIDATES)
    texts: list[Text] = Field(default=[], max_length=MAX_CANDIDATES)


class DeletedOut(Model):
    """Ids of the entries that a delete marked."""

    entries: list[str]
