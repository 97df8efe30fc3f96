"""First schema."""

import sqlalchemy as sa

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "budget_window",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("period", sa.String(), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_window")),
        sa.UniqueConstraint("scope", "period", "starts_at", name=op.f("uq_budget_window_scope_period_starts_at")),
    )
    op.create_table(
        "embedding_space",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embedding_space")),
    )
    op.create_table(
        "project",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("documents_revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "call",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("tool_call_id", sa.String(), nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("open_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_call_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_call")),
        sa.UniqueConstraint("session_id", "tool_call_id", name=op.f("uq_call_session_id_tool_call_id")),
    )
    with op.batch_alter_table("call", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_call_open_until"), ["open_until"], unique=False)
        batch_op.create_index(batch_op.f("ix_call_project_id"), ["project_id"], unique=False)

    op.create_table(
        "document",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_document_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document")),
        sa.UniqueConstraint("project_id", "path", name=op.f("uq_document_project_id_path")),
    )
    op.create_table(
        "entry",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("store_id", sa.String(), nullable=True),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("agent", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_entry_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entry")),
    )
    with op.batch_alter_table("entry", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_entry_expires_at"), ["expires_at"], unique=False)
        batch_op.create_index("ix_entry_project_id_id", ["project_id", "id"], unique=False)
        batch_op.create_index("ix_entry_project_id_revision", ["project_id", "revision"], unique=False)
        batch_op.create_index("ix_entry_store_store_id", ["project_id", "store", "store_id"], unique=False)
        batch_op.create_index("ix_entry_text_hash", ["project_id", "text_hash"], unique=False)
        batch_op.create_index(
            "uq_entry_live_text",
            ["project_id", "text_hash"],
            unique=True,
            sqlite_where=sa.text("status IN ('pending', 'stored')"),
            postgresql_where=sa.text("status IN ('pending', 'stored')"),
        )
        batch_op.create_index(
            "uq_entry_one_state",
            ["project_id"],
            unique=True,
            sqlite_where=sa.text("category = 'STATE' AND status IN ('pending', 'stored')"),
            postgresql_where=sa.text("category = 'STATE' AND status IN ('pending', 'stored')"),
        )

    op.create_table(
        "entry_vector",
        sa.Column("entry_id", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["entry_id"], ["entry.id"], name=op.f("fk_entry_vector_entry_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_entry_vector")),
    )
    op.create_table(
        "entryversion",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("entry_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("store_id", sa.String(), nullable=True),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["entry_id"], ["entry.id"], name=op.f("fk_entryversion_entry_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entryversion")),
        sa.UniqueConstraint("entry_id", "version", name=op.f("uq_entryversion_entry_id_version")),
    )
    with op.batch_alter_table("entryversion", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_entryversion_entry_id"), ["entry_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_entryversion_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "ledger",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("window_id", sa.String(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["call_id"], ["call.id"], name=op.f("fk_ledger_call_id")),
        sa.ForeignKeyConstraint(["window_id"], ["budget_window.id"], name=op.f("fk_ledger_window_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger")),
    )
    with op.batch_alter_table("ledger", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_ledger_call_id"), ["call_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_ledger_expires_at"), ["expires_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_ledger_window_id"), ["window_id"], unique=False)

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

    op.create_table(
        "review",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("tool_call_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=True),
        sa.Column("store", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("store_id", sa.String(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.String(), nullable=False),
        sa.Column("hygiene_read", sa.Boolean(), nullable=False),
        sa.Column("reminder", sa.Boolean(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=True),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("suggested_text", sa.Text(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("entry_id", sa.String(), nullable=True),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("reviewer", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=True),
        sa.Column("fault_detail", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("prompt_hash", sa.String(), nullable=True),
        sa.Column("cache_key", sa.String(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("cache_write_tokens", sa.Integer(), nullable=False),
        sa.Column("cache_read_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("cost_microdollars", sa.BigInteger(), nullable=False),
        sa.Column("latency_ms", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["call_id"], ["call.id"], name=op.f("fk_review_call_id")),
        sa.ForeignKeyConstraint(["entry_id"], ["entry.id"], name=op.f("fk_review_entry_id")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_review_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review")),
    )
    with op.batch_alter_table("review", schema=None) as batch_op:
        batch_op.create_index("ix_review_cache_key", ["cache_key"], unique=False)
        batch_op.create_index(batch_op.f("ix_review_call_id"), ["call_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_review_entry_id"), ["entry_id"], unique=False)
        batch_op.create_index("ix_review_project_id_id", ["project_id", "id"], unique=False)
        batch_op.create_index("ix_review_session_id_verdict", ["session_id", "verdict"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("review", schema=None) as batch_op:
        batch_op.drop_index("ix_review_session_id_verdict")
        batch_op.drop_index("ix_review_project_id_id")
        batch_op.drop_index(batch_op.f("ix_review_entry_id"))
        batch_op.drop_index(batch_op.f("ix_review_call_id"))
        batch_op.drop_index("ix_review_cache_key")

    op.drop_table("review")
    with op.batch_alter_table("passage", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_passage_document_id"))

    op.drop_table("passage")
    with op.batch_alter_table("ledger", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ledger_window_id"))
        batch_op.drop_index(batch_op.f("ix_ledger_expires_at"))
        batch_op.drop_index(batch_op.f("ix_ledger_call_id"))

    op.drop_table("ledger")
    with op.batch_alter_table("entryversion", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_entryversion_expires_at"))
        batch_op.drop_index(batch_op.f("ix_entryversion_entry_id"))

    op.drop_table("entryversion")
    op.drop_table("entry_vector")
    with op.batch_alter_table("entry", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_entry_one_state",
            sqlite_where=sa.text("category = 'STATE' AND status IN ('pending', 'stored')"),
            postgresql_where=sa.text("category = 'STATE' AND status IN ('pending', 'stored')"),
        )
        batch_op.drop_index(
            "uq_entry_live_text",
            sqlite_where=sa.text("status IN ('pending', 'stored')"),
            postgresql_where=sa.text("status IN ('pending', 'stored')"),
        )
        batch_op.drop_index("ix_entry_text_hash")
        batch_op.drop_index("ix_entry_store_store_id")
        batch_op.drop_index("ix_entry_project_id_revision")
        batch_op.drop_index("ix_entry_project_id_id")
        batch_op.drop_index(batch_op.f("ix_entry_expires_at"))

    op.drop_table("entry")
    op.drop_table("document")
    with op.batch_alter_table("call", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_call_project_id"))
        batch_op.drop_index(batch_op.f("ix_call_open_until"))

    op.drop_table("call")
    op.drop_table("project")
    op.drop_table("embedding_space")
    op.drop_table("budget_window")
