"""Keys of the callers, the audit log, and by whose key each call, review and entry was proposed."""

import sqlalchemy as sa

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

OF_A_KEY = ("call", "review", "entry", "entryversion")
APPEND_ONLY_ON_SQLITE = (
    "CREATE TRIGGER audit_event_stays_{0} BEFORE {0} ON audit_event"
    " BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
)
APPEND_ONLY_ON_POSTGRESQL = """
CREATE FUNCTION audit_event_stays() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
CREATE TRIGGER audit_event_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_event
FOR EACH STATEMENT EXECUTE FUNCTION audit_event_stays();
"""


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("projects", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("secret_hash", sa.String(), nullable=False),
        sa.Column("former_hash", sa.String(), nullable=True),
        sa.Column("former_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("pepper", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
    )
    op.create_table(
        "audit_event",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_event")),
    )
    if op.get_bind().dialect.name == "sqlite":
        for event in ("update", "delete"):
            op.execute(APPEND_ONLY_ON_SQLITE.format(event))
    else:
        op.execute(APPEND_ONLY_ON_POSTGRESQL)
    for table in OF_A_KEY:
        op.add_column(table, sa.Column("key_id", sa.String(), nullable=False, server_default="local"))
    with op.batch_alter_table("call") as batch_op:
        batch_op.drop_constraint(batch_op.f("uq_call_session_id_tool_call_id"), type_="unique")
        batch_op.create_unique_constraint(
            batch_op.f("uq_call_key_id_session_id_tool_call_id"), ["key_id", "session_id", "tool_call_id"]
        )


def downgrade() -> None:
    # A schema that knows no keys knows a session's call once: the first one stays, with its reviews.
    repeated = (
        "SELECT id FROM call WHERE EXISTS (SELECT 1 FROM call earlier WHERE earlier.session_id = call.session_id"
        " AND earlier.tool_call_id = call.tool_call_id AND earlier.id < call.id)"
    )
    for table in ("review", "ledger"):
        op.execute(f"DELETE FROM {table} WHERE call_id IN ({repeated})")  # noqa: S608
    op.execute(f"DELETE FROM call WHERE id IN ({repeated})")  # noqa: S608
    with op.batch_alter_table("call") as batch_op:
        batch_op.drop_constraint(batch_op.f("uq_call_key_id_session_id_tool_call_id"), type_="unique")
        batch_op.create_unique_constraint(batch_op.f("uq_call_session_id_tool_call_id"), ["session_id", "tool_call_id"])
    for table in OF_A_KEY:
        op.drop_column(table, "key_id")
    op.drop_table("audit_event")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_event_stays()")
    op.drop_table("api_key")
