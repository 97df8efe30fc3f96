"""Budgets on a database without a pipeline: reserve, settle and look, each in a transaction of its own."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from app import budget
from app.budget import NoRoom, Payer, Reservation, Setting
from app.callers import LOCAL
from app.db import Database, new_id
from app.models import Call, Project
from app.schemas.budgets import BudgetIn, BudgetOut, BudgetReport
from app.schemas.vocabulary import AtCap, BudgetScope, Period

NOW = datetime(2026, 3, 31, 23, 59, tzinfo=UTC)  # a Tuesday
LEASE = timedelta(minutes=1)
HERE = Payer(project="p")


class Purse:
    """The budgets of a database, with a clock that stands still at ``now`` until it is moved."""

    def __init__(self, database_url: str, *, setting: int = 0, at_cap: AtCap = AtCap.OFFLINE) -> None:
        """Open the database; ``setting`` is the limit of the budget that a setting makes."""
        self.database = Database(database_url)
        self.database.migrate()
        self.setting = Setting(setting, at_cap)
        self.now = NOW
        with self.database.write() as session:
            if session.get(Project, "p") is None:
                session.add(Project(id="p", name="p", created_at=NOW))

    def put(
        self,
        limit: int,
        period: Period = Period.MONTH,
        *,
        project: str | None = None,
        key: str | None = None,
        **more: Any,
    ) -> BudgetOut:
        """Set a budget: the team's, if no project or key is named."""
        scope = BudgetScope.PROJECT if project else BudgetScope.KEY if key else BudgetScope.TEAM
        change = BudgetIn(scope=scope, subject=project or key, period=period, limit_microdollars=limit, **more)
        with self.database.write() as session:
            return budget.put(session, LOCAL, self.setting, change, self.now)

    def remove(self, budget_id: str | None) -> BudgetOut:
        """Forget a budget."""
        assert budget_id is not None
        with self.database.write() as session:
            return budget.remove(session, LOCAL, self.setting, budget_id, self.now)

    def reserve(self, amount: int, payer: Payer = HERE) -> Reservation | NoRoom:
        """Set an amount aside for a new call, or say why not."""
        call = Call(
            id=new_id(), project_id="p", session_id="s", tool_call_id=new_id(), request_hash="", created_at=self.now
        )
        try:
            with self.database.write() as session:
                session.add(call)
                session.flush()
                return budget.reserve(
                    session,
                    self.setting,
                    call_id=call.id,
                    payer=payer,
                    amount=amount,
                    now=self.now,
                    open_until=self.now + LEASE,
                )
        except NoRoom as no_room:
            return no_room

    def granted(self, amount: int, payer: Payer = HERE) -> Reservation:
        """A reservation that must be granted."""
        reservation = self.reserve(amount, payer)
        assert isinstance(reservation, Reservation), reservation
        return reservation

    def refused(self, amount: int, payer: Payer = HERE) -> NoRoom:
        """A refusal, which is counted as the pipeline counts it."""
        no_room = self.reserve(amount, payer)
        assert isinstance(no_room, NoRoom)
        with self.database.write() as session:
            budget.note_refusal(session, no_room)
        return no_room

    def settle(self, reservation: Reservation, cost: int) -> list[str]:
        """Settle a reservation; names of the budgets that warn."""
        with self.database.write() as session:
            return [cover.name for cover in budget.settle(session, reservation, cost=cost, now=self.now)]

    def expire(self) -> int:
        """Free what nobody settled in time."""
        with self.database.write() as session:
            return budget.expire(session, self.now)

    def pass_(self, **time: float) -> None:
        """Let time go by, as `timedelta` takes it."""
        self.now += timedelta(**time)

    def all(self) -> list[BudgetOut]:
        """All budgets."""
        with self.database.read() as session:
            return budget.overview(session, self.setting, self.now)

    def the(self, period: Period = Period.MONTH, subject: str | None = None) -> BudgetOut:
        """The budget of that period and subject."""
        return next(out for out in self.all() if (out.period, out.subject) == (period, subject))

    def sums(self, period: Period = Period.MONTH, subject: str | None = None) -> tuple[int, int]:
        """What is spent and reserved in the current window of a budget."""
        out = self.the(period, subject)
        return out.spent_microdollars, out.reserved_microdollars

    def report(self) -> BudgetReport:
        """Whether all records agree."""
        with self.database.read() as session:
            return budget.report(session)

    def execute(self, statement: str) -> None:
        """Change the database by hand."""
        with self.database.write() as session:
            session.execute(text(statement))
