"""The words of the entries, in each database's own full-text index; `words.words` has cut them.

Both find an entry by any of a few words and rank what they found by how rare the words are in it (BM25, or its like).
"""

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import text
from sqlmodel import Session


class WordIndex(Protocol):
    """Finds entries by their words."""

    def put(self, session: Session, project_id: str, entry_id: str, words: Sequence[str]) -> None:
        """Index an entry's words, in place of those of its earlier text."""
        ...

    def nearest(self, session: Session, project_id: str, words: Sequence[str], count: int, *, size: int) -> list[str]:
        """Ids of the project's entries that have some of the words, best first.

        Args:
            session: a session.
            project_id: whose entries.
            words: the words asked for, each once.
            count: most ids.
            size: how many entries the project has.
        """
        ...

    def common(self, session: Session, least: int) -> dict[str, int]:
        """The words that stand in so many entries or more, with the number of entries, in all projects together."""
        ...


class Fts5:
    """SQLite's FTS5. Rows of earlier texts stay until a reindex and do no harm."""

    _PUT = text("INSERT INTO entry_words (project, entry_id, words) VALUES (:project_id, :entry_id, :words)")
    _NEAREST = text(
        "SELECT entry_id FROM entry_words WHERE entry_words MATCH :words AND project = :project_id"
        " ORDER BY rank LIMIT :count"
    )
    _COMMON = text("SELECT term, doc FROM entry_words_vocabulary WHERE doc >= :least")

    def put(self, session: Session, project_id: str, entry_id: str, words: Sequence[str]) -> None:
        """Index an entry's words."""
        session.execute(self._PUT, {"project_id": project_id, "entry_id": entry_id, "words": " ".join(words)})

    def nearest(
        self,
        session: Session,
        project_id: str,
        words: Sequence[str],
        count: int,
        *,
        size: int,  # noqa: ARG002 - the index knows it
    ) -> list[str]:
        """Ids of the project's entries that have some of the words, best first."""
        asked = " OR ".join(f'"{word}"' for word in words)
        found = session.execute(self._NEAREST, {"words": asked, "project_id": project_id, "count": count})
        return list(found.scalars())

    def common(self, session: Session, least: int) -> dict[str, int]:
        """The words that stand in so many entries or more."""
        return {word: int(number) for word, number in session.execute(self._COMMON, {"least": least})}


class Gin:
    """PostgreSQL's inverted index (GIN) over lists of words."""

    _LONGEST = 200  # characters; an index takes no words beyond two kilobytes, and nobody asks for one twice
    _PUT = text(
        "INSERT INTO entry_words (project, entry_id, words)"
        " VALUES (:project_id, :entry_id, array_to_tsvector(CAST(:words AS text[])))"
        " ON CONFLICT (entry_id) DO UPDATE SET words = excluded.words"
    )
    # The index knows nothing of how rare a word is, so it is counted among what was found: BM25's inverse document
    # frequency and length, without its count of repetitions, since a word rarely stands in a memory twice. The OFFSET
    # keeps each word a look-up of its own, also before the server knows anything about the table.
    _NEAREST = text(
        "WITH found AS ("
        " SELECT entry_id, size, avg(size) OVER () AS mean,"
        " ln(1 + (greatest(:size - count(*) OVER same, 0) + CAST(0.5 AS float8)) / (count(*) OVER same + 0.5))"
        "  AS rarity"
        " FROM unnest(CAST(:words AS text[])) AS asked(word) CROSS JOIN LATERAL ("
        "  SELECT entry_id, CAST(length(words) AS float8) AS size FROM entry_words"
        "  WHERE words @@ CAST(quote_literal(word) AS tsquery) AND project = :project_id OFFSET 0"
        " ) AS having_it WINDOW same AS (PARTITION BY word)"
        ")"
        " SELECT entry_id FROM found GROUP BY entry_id, size, mean"
        " ORDER BY sum(rarity) / (1 + 1.2 * (0.25 + 0.75 * size / mean)) DESC, entry_id DESC LIMIT :count"
    )
    _COMMON = text(
        "SELECT word, ndoc FROM ts_stat('SELECT words FROM entry_words ORDER BY entry_id DESC LIMIT 20000')"
        " WHERE ndoc >= :least"
    )

    def put(self, session: Session, project_id: str, entry_id: str, words: Sequence[str]) -> None:
        """Index an entry's words, in place of those of its earlier text."""
        cut = sorted({word[: self._LONGEST] for word in words})
        session.execute(self._PUT, {"project_id": project_id, "entry_id": entry_id, "words": cut})

    def nearest(self, session: Session, project_id: str, words: Sequence[str], count: int, *, size: int) -> list[str]:
        """Ids of the project's entries that have some of the words, best first."""
        cut = [word[: self._LONGEST] for word in words]
        asked = {"words": cut, "project_id": project_id, "count": count, "size": size}
        return list(session.execute(self._NEAREST, asked).scalars())

    def common(self, session: Session, least: int) -> dict[str, int]:
        """The words that stand in so many entries or more, among the latest."""
        return {word: int(number) for word, number in session.execute(self._COMMON, {"least": least})}


_INDEXES: dict[str, WordIndex] = {"sqlite": Fts5(), "postgresql": Gin()}


def word_index(session: Session) -> WordIndex:
    """The index of the session's database."""
    return _INDEXES[session.get_bind().dialect.name]
