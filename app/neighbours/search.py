"""What the searches of both databases have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlmodel import Session

from app.db import Vector
from app.projects import ProjectRow
from app.schemas.vocabulary import EntryStatus

VISIBLE = (EntryStatus.PENDING.value, EntryStatus.STORED.value, EntryStatus.UNCONFIRMED.value)

# The sum of the shared words' rarities is divided by this plus the text's length as a multiple of the mean: BM25
# (Robertson and Zaragoza, 2009) without its count of repetitions, with b = 1 and k = 4. The usual 0.75 and 1.2 find
# fewer (benchmarks/shortlist, development split), since memories are short and their twins may be shorter still.
LENGTH_FLOOR = 0.25


@dataclass(frozen=True)
class Indexed:
    """An entry's text with its unit vector, as of the project's revision that brought it."""

    id: str
    text: str
    vector: Vector
    revision: int


class Search(Protocol):
    """Finds a project's visible entries by vector and by words, as the session's transaction sees them.

    Every method may raise ``Unavailable``: the stored vectors are another embedder's since a reindex.
    """

    def by_vector(self, session: Session, project: ProjectRow, vector: Vector, count: int) -> list[str]:
        """Ids of the entries nearest to a unit vector, best first."""
        ...

    def by_words(self, session: Session, project: ProjectRow, text: str, count: int) -> list[str]:
        """Ids of the entries that share the rarest words with a text, best first."""
        ...

    def similarities(
        self, session: Session, project: ProjectRow, ids: Sequence[str], vector: Vector
    ) -> dict[str, float]:
        """Cosine similarity of each of these entries to a unit vector; those that are not visible may be missing."""
        ...

    def add(self, session: Session, project_id: str, entries: Sequence[Indexed]) -> None:
        """Index entries in the order of their revisions; within the transaction that writes them, under its lock."""
        ...

    def replace(self, session: Session, entry_id: str, text: str, vector: Vector) -> None:
        """Index an entry's newer text; within the transaction that writes it, under the project's lock."""
        ...
