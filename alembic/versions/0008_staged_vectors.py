"""Where a reindex stages the vectors of the embedder that it goes over to."""

import sqlalchemy as sa

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "staged_vector",
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("text_hash", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("item_id", name=op.f("pk_staged_vector")),
    )


def downgrade() -> None:
    op.drop_table("staged_vector")
    # A reindex that was under way begins anew.
    op.execute("DELETE FROM embedding_space WHERE id <> 1")
