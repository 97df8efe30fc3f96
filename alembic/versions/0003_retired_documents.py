"""Documents that are gone are kept for a while, in case they come back.

Documents and passages are made anew, empty: hooks send them again at the next start of a session.
"""

import sqlalchemy as sa

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _drop()
    _create(
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
    )
    with op.batch_alter_table("document", schema=None) as batch_op:
        batch_op.create_index(
            "uq_document_current_path",
            ["project_id", "path"],
            unique=True,
            sqlite_where=sa.text("retired_at IS NULL"),
            postgresql_where=sa.text("retired_at IS NULL"),
        )
        batch_op.create_index("ix_document_project_id_retired_at", ["project_id", "retired_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_document_retired_at"), ["retired_at"], unique=False)


def downgrade() -> None:
    _drop()
    _create(sa.UniqueConstraint("project_id", "path", name=op.f("uq_document_project_id_path")))


def _drop() -> None:
    op.drop_table("passage")
    op.drop_table("document")


def _create(*more: sa.Column[object] | sa.UniqueConstraint) -> None:
    op.create_table(
        "document",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_document_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document")),
        *more,
    )
    op.create_table(
        "passage",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("heading", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["document.id"], name=op.f("fk_passage_document_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passage")),
    )
    with op.batch_alter_table("passage", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_passage_document_id"), ["document_id"], unique=False)
