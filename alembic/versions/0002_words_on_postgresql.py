"""The words of the entries on PostgreSQL too, where SQLite has its full-text table."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op
from app.words import words

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

LONGEST_WORD = 200


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.create_table(
        "entry_words",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("entry_id", sa.String(), nullable=False),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.ForeignKeyConstraint(["entry_id"], ["entry.id"], name=op.f("fk_entry_words_entry_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_entry_words")),
    )
    entries = sa.table("entry", sa.column("id"), sa.column("project_id"), sa.column("text"))
    put = sa.text(
        "INSERT INTO entry_words (project, entry_id, words)"
        " VALUES (:project_id, :id, array_to_tsvector(CAST(:words AS text[])))"
    )
    known = op.get_bind().execute(sa.select(entries)).mappings()
    for some in known.partitions(1000):
        op.get_bind().execute(
            put, [{**row, "words": sorted({word[:LONGEST_WORD] for word in words(row["text"])})} for row in some]
        )
    # Without a pending list, which every search would have to read through.
    op.create_index(
        "ix_entry_words_words", "entry_words", ["words"], postgresql_using="gin", postgresql_with={"fastupdate": "off"}
    )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_table("entry_words")
