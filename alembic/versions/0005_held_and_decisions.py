"""What is held waits in a queue of its own; decisions after a review; entries that nobody reviewed."""

import sqlalchemy as sa

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

LASTING = (
    "repeated_refusals", "suspicious", "not_json", "schema_violation", "unknown_label", "quote_not_found", "refusal",
    "truncated", "bad_request",
)  # fmt: skip


def upgrade() -> None:
    op.create_table(
        "held",
        sa.Column("review_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_held_project_id")),
        sa.ForeignKeyConstraint(["review_id"], ["review.id"], name=op.f("fk_held_review_id")),
        sa.PrimaryKeyConstraint("review_id", name=op.f("pk_held")),
    )
    op.create_index(op.f("ix_held_project_id"), "held", ["project_id"])
    op.create_index(op.f("ix_held_retry_at"), "held", ["retry_at"])
    op.create_index("ix_held_fault_since", "held", ["fault", "since"])
    op.create_table(
        "decision",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("review_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("decided_by", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=True),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("suggested_text", sa.Text(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=True),
        sa.Column("earlier", sa.JSON(), nullable=False),
        sa.Column("removals", sa.JSON(), nullable=False),
        sa.Column("pass_hash", sa.String(), nullable=True),
        sa.Column("telling", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_decision_project_id")),
        sa.ForeignKeyConstraint(["review_id"], ["review.id"], name=op.f("fk_decision_review_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
    )
    op.create_index(op.f("ix_decision_review_id"), "decision", ["review_id"])
    for name, columns, condition in (
        ("ix_decision_due", ["project_id"], sa.text("telling = 'due'")),
        ("ix_decision_pass", ["project_id", "pass_hash"], sa.text("pass_hash IS NOT NULL")),
    ):
        op.create_index(name, "decision", columns, sqlite_where=condition, postgresql_where=condition)
    op.add_column("call", sa.Column("dry_run", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("entry", sa.Column("unreviewed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(op.f("ix_entry_review_id"), "entry", ["review_id"])
    op.create_index(op.f("ix_entryversion_review_id"), "entryversion", ["review_id"])
    _queue_what_is_held()


def _queue_what_is_held() -> None:
    review = sa.table("review", *map(sa.column, ("id", "project_id", "fault", "decided_at", "verdict")))
    held = sa.table("held", *map(sa.column, ("review_id", "project_id", "fault", "since", "retry_at", "tries")))
    fault = sa.func.coalesce(review.c.fault, "interrupted")
    retry_at = sa.case((fault.in_(LASTING), sa.null()), else_=review.c.decided_at)
    known = sa.select(
        review.c.id, review.c.project_id, fault, review.c.decided_at, retry_at, sa.literal_column("0")
    ).where(review.c.verdict == "held")
    op.execute(sa.insert(held).from_select([column.name for column in held.columns], known))


def downgrade() -> None:
    op.execute("UPDATE review SET verdict = 'held' WHERE verdict = 'expired'")
    op.execute("UPDATE entry SET status = 'deleted' WHERE status = 'withdrawn'")
    op.execute("UPDATE entryversion SET status = 'superseded' WHERE status = 'withdrawn'")
    op.drop_index(op.f("ix_entryversion_review_id"), "entryversion")
    op.drop_index(op.f("ix_entry_review_id"), "entry")
    op.drop_column("entry", "unreviewed")
    op.drop_column("call", "dry_run")
    op.drop_table("decision")
    op.drop_table("held")
