"""Neighbours searched in PostgreSQL itself, so that services keep nothing: vectors by pgvector, words by a GIN index.

The tables are made when a service starts and not by a migration, since they depend on what the schema's version does
not know: whether the server has pgvector, and how long the embedder's vectors are. Everything in them can be made
again from the entries; vectors that a service without pgvector has left in `entry_vector` are taken over.
"""

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, delete, select, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from app import space
from app.db import Database, Vector
from app.embeddings import Embedder
from app.errors import ConfigurationError
from app.models import ENTRY, ENTRY_VECTOR
from app.neighbours.search import LENGTH_FLOOR, VISIBLE, Indexed
from app.projects import ProjectRow
from app.words import words

OLDEST_PGVECTOR = (0, 8)  # the first with iterative scans, without which a filtered search finds too few
MOST_INDEXED_DIMENSIONS = 4_000  # of half-precision vectors; longer ones are searched without an index

# A project of at most so many entries is read whole: exact, and sooner done than a search of all projects' entries.
# No project has more entries than revisions, and its revision is known without asking.
MOST_READ_WHOLE = 20_000
# How many entries the graph links each one with, how many it keeps in view while it grows and while it is searched.
# benchmarks/neighbours measures what they give; with pgvector's own (16, 64, 40) a search finds 89% of 100,000.
LINKS, VIEW_BUILDING, VIEW_SEARCHING = 24, 128, 480
# So many more than asked for are taken from the graph: among entries of other projects it would else end too soon.
SPARE = 100

# The rarest words of a question are looked up until so many entries have been read: what "the" finds tells nothing.
MOST_PLACES = 2_000
LONGEST_WORD = 200  # characters; an index takes no words beyond two kilobytes, and nobody asks for one twice

PORTION = 500

_VISIBLE = ", ".join(f"'{status}'" for status in VISIBLE)
# The OFFSET keeps the sorting below and this above it, so that only the best are looked up among the entries.
_IF_VISIBLE = f"CROSS JOIN LATERAL (SELECT FROM entry WHERE id = entry_id AND status IN ({_VISIBLE}) OFFSET 0) visible"

# Whole vectors, of which there is no index: the project's own are read, whatever the planner thinks of that.
_EXACT = text(
    "SELECT entry_id FROM ("
    " SELECT entry_id, vector <#> CAST(:vector AS vector) AS distance FROM entry_search"
    " WHERE project_id = :project_id ORDER BY distance OFFSET 0"
    f") AS near {_IF_VISIBLE} ORDER BY distance LIMIT :count"
)
_TUNE = text(
    f"SELECT set_config('hnsw.ef_search', '{VIEW_SEARCHING}', true),"
    " set_config('hnsw.iterative_scan', 'relaxed_order', true)"
)
# More than asked for, since the graph is of rounded vectors, the order relaxed, and some may not be visible; then
# sorted by the whole vectors.
_NEAR = (
    "WITH near AS MATERIALIZED ("
    " SELECT entry_id, vector FROM entry_search WHERE project_id = :project_id"
    " ORDER BY CAST(vector AS halfvec({dimension})) <#> CAST(CAST(:vector AS vector) AS halfvec({dimension}))"
    " LIMIT :some"
    f") SELECT entry_id FROM near {_IF_VISIBLE} ORDER BY vector <#> CAST(:vector AS vector) LIMIT :count"
)
_SIMILARITIES = text(
    "SELECT entry_id, -(vector <#> CAST(:vector AS vector)) FROM entry_search WHERE entry_id = ANY(:ids)"
)

# BM25 as in memory. The OFFSET makes each word a look-up of its own, and by the word alone: all entries of the project
# would be gone through as well, for each word, to leave out what the project before the word leaves out already.
_BY_WORDS = text(
    "WITH asked AS ("
    " SELECT word, sum(entries) OVER (ORDER BY entries, word) AS places,"
    " ln(1 + (greatest(:size - entries, 0) + 0.5) / (entries + CAST(0.5 AS float8))) AS rarity"
    " FROM entry_search_word WHERE word = ANY(:words)"
    "), found AS MATERIALIZED ("
    " SELECT entry_id, size, rarity FROM asked CROSS JOIN LATERAL ("
    "  SELECT entry_id, project_id, CAST(length(words) AS float8) AS size FROM entry_search"
    "  WHERE words @@ CAST(quote_literal(word) AS tsquery) OFFSET 0"
    " ) AS having_it WHERE places <= :most_places AND project_id = :project_id"
    "), ranked AS ("
    f" SELECT entry_id, sum(rarity) / ({LENGTH_FLOOR} + min(size) / mean) AS score"
    "  FROM found CROSS JOIN (SELECT avg(size) AS mean FROM found) AS lengths"
    " GROUP BY entry_id, mean ORDER BY score DESC, entry_id DESC OFFSET 0"
    f") SELECT entry_id FROM ranked {_IF_VISIBLE} ORDER BY score DESC, entry_id DESC LIMIT :count"
)

_PUT = text(
    "INSERT INTO entry_search (entry_id, project_id, words, vector)"
    " SELECT id, project_id, CAST(words AS tsvector), CAST(vector AS vector)"
    " FROM unnest(CAST(:ids AS text[]), CAST(:project_ids AS text[]), CAST(:words AS text[]), CAST(:vectors AS text[]))"
    "  AS given(id, project_id, words, vector)"
    " ON CONFLICT (entry_id) DO UPDATE SET words = excluded.words, vector = excluded.vector"
)
# In their order, so that two who count at once never wait for each other. How many entries have a word now is not
# worth knowing exactly: what was replaced or deleted still counts.
_COUNT = text(
    "INSERT INTO entry_search_word (word, entries)"
    " SELECT word, count(*) FROM unnest(CAST(:words AS text[])) AS word GROUP BY word ORDER BY word"
    " ON CONFLICT (word) DO UPDATE SET entries = entry_search_word.entries + excluded.entries"
)
# A graph that does not fit in this is built many times more slowly; it is taken only as far as it is needed.
_MAKE_ROOM = text(
    "SELECT set_config('maintenance_work_mem', '1GB', true)"
    " WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('1GB')"
)
_LEFT_BEHIND = (
    select(ENTRY.c.id, ENTRY.c.project_id, ENTRY.c.text, ENTRY_VECTOR.c.vector)
    .join(ENTRY_VECTOR, ENTRY_VECTOR.c.entry_id == ENTRY.c.id)
    .order_by(ENTRY.c.id)
    .limit(PORTION)
)
_TAKEN_OVER = delete(ENTRY_VECTOR).where(ENTRY_VECTOR.c.entry_id.in_(bindparam("ids", expanding=True)))


class InPostgres:
    """Searches with statements; each sees what its transaction sees."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._near = text(_NEAR.format(dimension=embedder.dimension))

    def by_vector(self, session: Session, project: ProjectRow, vector: Vector, count: int) -> list[str]:
        """Ids of the entries nearest to a unit vector, best first; of a large project, nearly always all of them."""
        space.confirm(session, self._embedder)
        asked = {"project_id": project.id, "vector": _written(vector), "count": count}
        if project.revision > MOST_READ_WHOLE and self._embedder.dimension <= MOST_INDEXED_DIMENSIONS:
            session.execute(_TUNE)
            found = session.execute(self._near, {**asked, "some": count + SPARE}).scalars().all()
            # Fewer if the search gave up among the entries of others, or met too many that are not visible.
            if len(found) == count:
                return list(found)
        return list(session.execute(_EXACT, asked).scalars())

    def by_words(self, session: Session, project: ProjectRow, text: str, count: int) -> list[str]:
        """Ids of the entries that share the rarest words with a text, best first."""
        asked = {
            "project_id": project.id,
            "words": _own(project.id, text),
            "size": project.revision,
            "most_places": MOST_PLACES,
            "count": count,
        }
        return list(session.execute(_BY_WORDS, asked).scalars())

    def similarities(
        self,
        session: Session,
        project: ProjectRow,  # noqa: ARG002 - the ids say it
        ids: Sequence[str],
        vector: Vector,
    ) -> dict[str, float]:
        """Cosine similarity of each of these entries to a unit vector."""
        if not ids:
            return {}
        rows = session.execute(_SIMILARITIES, {"ids": list(ids), "vector": _written(vector)})
        return {row[0]: row[1] for row in rows}

    def add(self, session: Session, project_id: str, entries: Sequence[Indexed]) -> None:
        """Index entries."""
        space.confirm(session, self._embedder)
        _put(session, [(entry.id, project_id, entry.text, entry.vector) for entry in entries])

    def replace(self, session: Session, entry_id: str, text: str, vector: Vector) -> None:
        """Index an entry's newer text."""
        space.confirm(session, self._embedder)
        project_id = session.execute(select(ENTRY.c.project_id).where(ENTRY.c.id == entry_id)).scalar_one()
        _put(session, [(entry_id, project_id, text, vector)])


def missing(session: Session) -> str | None:
    """Why the server cannot search vectors, with what to do; None if it can. Pgvector is put to use if it may be."""
    version = session.execute(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")).scalar()
    if version is None:
        offered = text("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        if session.execute(offered).scalar() is None:
            return "the server has no pgvector: install it there"
        try:
            with session.begin_nested():
                session.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        except DBAPIError:
            return "the account may not put pgvector to use: have an administrator run CREATE EXTENSION vector"
        version = session.execute(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")).scalar_one()
    if tuple(map(int, version.split(".")[:2])) < OLDEST_PGVECTOR:
        return f"pgvector {version} is too old: install 0.8 or newer and run ALTER EXTENSION vector UPDATE"
    return None


def prepare(database: Database, embedder: Embedder) -> str | None:
    """Make the tables and indexes if they are not there, and take over what was kept without them.

    Services that start at once take turns. Returns why it cannot be done, as `missing` does.

    Raises:
        ConfigurationError: the tables hold vectors of another length.
    """
    with database.write() as session:
        database.take_turn_to_migrate(session)
        if (reason := missing(session)) is not None:
            return reason
        session.execute(_MAKE_ROOM)
        _make_tables(session, embedder.dimension)
        while rows := session.execute(_LEFT_BEHIND).all():
            _put(session, [(row[0], row[1], row[2], row[3]) for row in rows])
            session.execute(_TAKEN_OVER, {"ids": [row[0] for row in rows]})
        # Last, since an index is built many times faster than it grows.
        _make_indexes(session, embedder.dimension)
    return None


def forget(session: Session) -> None:
    """Drop the tables; their vectors are of no use any more."""
    session.execute(text("DROP TABLE IF EXISTS entry_search, entry_search_word"))


def _make_tables(session: Session, dimension: int) -> None:
    # pgvector keeps the length of a column's vectors where other types keep theirs.
    known = session.execute(
        text("SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass('entry_search') AND attname = 'vector'")
    ).scalar()
    if known == dimension:
        return
    if known is not None and session.execute(text("SELECT 1 FROM entry_search LIMIT 1")).first() is not None:
        raise ConfigurationError(f"The stored vectors have {known} dimensions, the configured embedder's {dimension}.")
    forget(session)
    session.execute(
        text(
            "CREATE TABLE entry_search ("
            " entry_id varchar PRIMARY KEY REFERENCES entry ON DELETE CASCADE,"
            " project_id varchar NOT NULL,"
            " words tsvector NOT NULL,"
            f" vector vector({dimension}) NOT NULL)"
        )
    )
    # In the row itself if there is room, where a search finds it sooner.
    session.execute(text("ALTER TABLE entry_search ALTER COLUMN vector SET STORAGE MAIN"))
    session.execute(
        text(
            "CREATE TABLE entry_search_word (word varchar PRIMARY KEY, entries integer NOT NULL) WITH (fillfactor = 70)"
        )
    )


def _make_indexes(session: Session, dimension: int) -> None:
    session.execute(text("CREATE INDEX IF NOT EXISTS ix_entry_search_project_id ON entry_search (project_id)"))
    # Without a pending list, which every search would have to read through.
    session.execute(
        text(
            "CREATE INDEX IF NOT EXISTS ix_entry_search_words ON entry_search USING gin (words) WITH (fastupdate = off)"
        )
    )
    if dimension <= MOST_INDEXED_DIMENSIONS:
        session.execute(
            text(
                "CREATE INDEX IF NOT EXISTS ix_entry_search_vector ON entry_search"
                f" USING hnsw (CAST(vector AS halfvec({dimension})) halfvec_ip_ops)"
                f" WITH (m = {LINKS}, ef_construction = {VIEW_BUILDING})"
            )
        )


def _put(session: Session, rows: Iterable[tuple[str, str, str, Vector]]) -> None:
    """Index entries given as id, project id, text and vector."""
    ids, project_ids, texts, vectors = zip(*rows, strict=True)
    lexemes = [_own(project_id, text_) for project_id, text_ in zip(project_ids, texts, strict=True)]
    session.execute(
        _PUT,
        {
            "ids": list(ids),
            "project_ids": list(project_ids),
            "words": [" ".join(f"'{word}'" for word in some) for some in lexemes],
            "vectors": [_written(vector) for vector in vectors],
        },
    )
    session.execute(_COUNT, {"words": [word for some in lexemes for word in some]})


def _own(project_id: str, text_: str) -> list[str]:
    """The different words of a project's text, each with the project before it: the index is one for all projects."""
    # The end of an id is its random part; were two alike, only time would be lost.
    return sorted({f"{project_id[-12:]}{word[:LONGEST_WORD]}" for word in words(text_)})


def _written(vector: Vector) -> str:
    """The vector as pgvector reads it, exactly."""
    return json.dumps(vector.tolist())
