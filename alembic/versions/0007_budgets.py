"""Budgets as rows, for the team, a project or a key; a reservation may draw on several windows."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "budget",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("period", sa.String(), nullable=False),
        sa.Column("limit_microdollars", sa.BigInteger(), nullable=False),
        sa.Column("warn_percent", sa.Integer(), nullable=False),
        sa.Column("at_cap", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget")),
        sa.UniqueConstraint("scope", "subject", "period", name=op.f("uq_budget_scope_subject_period")),
    )
    with _ledger_aside():
        with op.batch_alter_table("budget_window") as window:
            window.add_column(sa.Column("subject", sa.String(), nullable=False, server_default=""))
            window.add_column(sa.Column("refused", sa.Integer(), nullable=False, server_default="0"))
            window.add_column(sa.Column("wanted", sa.BigInteger(), nullable=False, server_default="0"))
            window.add_column(sa.Column("warned_at", sa.DateTime(timezone=True), nullable=True))
            window.drop_constraint("uq_budget_window_scope_period_starts_at", type_="unique")
            window.create_unique_constraint(
                op.f("uq_budget_window_scope_subject_period_starts_at"), ["scope", "subject", "period", "starts_at"]
            )
        with op.batch_alter_table("budget_window") as window:
            for name in ("subject", "refused", "wanted"):
                window.alter_column(name, server_default=None)
        op.execute("UPDATE budget_window SET scope = 'team' WHERE scope = 'global'")
        _create_ledger(
            sa.Column("reservation_id", sa.String(), nullable=False),
            sa.Column("open_until", sa.DateTime(timezone=True), nullable=True),
            indexed=("call_id", "open_until", "reservation_id", "window_id"),
        )
        op.execute(
            "INSERT INTO ledger"
            " (id, reservation_id, window_id, call_id, reserved, settled, created_at, settled_at, open_until)"
            " SELECT id, id, window_id, call_id, reserved, settled, created_at, settled_at,"
            " CASE WHEN settled IS NULL THEN expires_at END FROM ledger_aside"
        )


def downgrade() -> None:
    with _ledger_aside():
        # The version before knows the team's month alone.
        op.execute("DELETE FROM budget_window WHERE scope <> 'team' OR period <> 'month'")
        op.execute("UPDATE budget_window SET scope = 'global'")
        with op.batch_alter_table("budget_window") as window:
            window.drop_constraint("uq_budget_window_scope_subject_period_starts_at", type_="unique")
            for name in ("subject", "refused", "wanted", "warned_at"):
                window.drop_column(name)
            window.create_unique_constraint(
                op.f("uq_budget_window_scope_period_starts_at"), ["scope", "period", "starts_at"]
            )
        _create_ledger(
            sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
            indexed=("call_id", "expires_at", "window_id"),
        )
        op.execute(
            "INSERT INTO ledger (id, window_id, call_id, reserved, settled, created_at, settled_at, expires_at)"
            " SELECT id, window_id, call_id, reserved,"
            " CASE WHEN settled IS NULL AND open_until IS NULL THEN 0 ELSE settled END,"
            " created_at, settled_at, coalesce(open_until, created_at)"
            " FROM ledger_aside WHERE window_id IN (SELECT id FROM budget_window)"
        )
    op.drop_table("budget")


@contextmanager
def _ledger_aside() -> Iterator[None]:
    """Keep the ledger's rows in a table without references, since SQLite changes no table that others refer to."""
    op.execute("CREATE TABLE ledger_aside AS SELECT * FROM ledger")
    op.drop_table("ledger")
    yield
    op.drop_table("ledger_aside")


def _create_ledger(*columns: sa.Column[object], indexed: tuple[str, ...]) -> None:
    op.create_table(
        "ledger",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("window_id", sa.String(), nullable=False),
        sa.Column("call_id", sa.String(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        *columns,
        sa.ForeignKeyConstraint(["call_id"], ["call.id"], name=op.f("fk_ledger_call_id")),
        sa.ForeignKeyConstraint(["window_id"], ["budget_window.id"], name=op.f("fk_ledger_window_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger")),
    )
    for column in indexed:
        op.create_index(op.f(f"ix_ledger_{column}"), "ledger", [column])
