"""The words of the entries on PostgreSQL lie beside their vectors, in tables that the service makes if it has pgvector.

Up, the words are dropped: a service that finds pgvector makes them again when it takes over the vectors. Down, the
vectors come back to where they are without it.
"""

import json

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op
from app.words import words

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

LONGEST_WORD = 200
PORTION = 1_000


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_table("entry_words")


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    if sa.inspect(op.get_bind()).has_table("entry_search"):
        _put_vectors_back()
    op.execute("DROP TABLE IF EXISTS entry_search, entry_search_word")
    op.create_table(
        "entry_words",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("entry_id", sa.String(), nullable=False),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.ForeignKeyConstraint(["entry_id"], ["entry.id"], name=op.f("fk_entry_words_entry_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_entry_words")),
    )
    _fill_words()
    op.create_index(
        "ix_entry_words_words", "entry_words", ["words"], postgresql_using="gin", postgresql_with={"fastupdate": "off"}
    )


def _put_vectors_back() -> None:
    kept = sa.table("entry_vector", sa.column("entry_id", sa.String()), sa.column("vector", sa.LargeBinary()))
    found = op.get_bind().execute(sa.text("SELECT entry_id, CAST(vector AS text) FROM entry_search"))
    for some in found.partitions(PORTION):
        rows = [{"entry_id": row[0], "vector": np.array(json.loads(row[1]), dtype="<f4").tobytes()} for row in some]
        op.get_bind().execute(sa.insert(kept), rows)


def _fill_words() -> None:
    entries = sa.table("entry", sa.column("id"), sa.column("project_id"), sa.column("text"))
    put = sa.text(
        "INSERT INTO entry_words (project, entry_id, words)"
        " VALUES (:project_id, :id, array_to_tsvector(CAST(:words AS text[])))"
    )
    for some in op.get_bind().execute(sa.select(entries)).mappings().partitions(PORTION):
        op.get_bind().execute(
            put, [{**row, "words": sorted({word[:LONGEST_WORD] for word in words(row["text"])})} for row in some]
        )
