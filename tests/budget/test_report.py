"""The report finds every difference between ledger, windows and reviews, and no other."""

from pathlib import Path

import pytest

from app import budget
from app.schemas.budgets import BudgetReport
from tests.support.pipelines import COST, GOOD, Bench, ScriptedReviewer


@pytest.fixture
async def spent(tmp_path: Path, database_url: str) -> Bench:
    """A bench after two paid reviews."""
    bench = Bench(
        tmp_path, database_url=database_url, model=ScriptedReviewer(), level="model", budget_microdollars=10**6
    )
    for text in GOOD[:2]:
        await bench.review(text)
    return bench


def report(bench: Bench) -> BudgetReport:
    with bench.database.read() as session:
        return budget.report(session)


async def test_what_agrees_is_said_to_agree(spent: Bench) -> None:
    found = report(spent)
    assert (found.consistent, found.differences, found.calls, found.cost_microdollars) == (True, [], 2, 2 * COST)
    assert [(w.scope, w.period, w.spent_microdollars) for w in found.windows] == [("team", "month", 2 * COST)]
    await spent.close()


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE budget_window SET spent = spent + 1", "window_spent"),
        ("UPDATE budget_window SET reserved = reserved + 1", "window_reserved"),
        ("UPDATE review SET cost_microdollars = cost_microdollars - 1 WHERE text LIKE 'Never%'", "call"),
        ("DELETE FROM ledger", "call"),
    ],
)
async def test_a_difference_is_found_and_named(spent: Bench, damage: str, what: str) -> None:
    spent.execute(damage)
    found = report(spent)
    assert not found.consistent
    assert what in {difference.what for difference in found.differences}
    await spent.close()


async def test_a_reservation_that_is_charged_unevenly_is_found(spent: Bench) -> None:
    spent.execute(
        "INSERT INTO budget_window (id, scope, subject, period, starts_at, spent, reserved, refused, wanted)"
        " SELECT 'w', 'project', 'p', 'month', starts_at, 0, 0, 0, 0 FROM budget_window"
    )
    spent.execute(
        "INSERT INTO ledger (id, reservation_id, window_id, call_id, reserved, settled, created_at)"
        " SELECT 'l', reservation_id, 'w', call_id, reserved, 0, created_at FROM ledger ORDER BY id LIMIT 1"
    )
    assert [difference.what for difference in report(spent).differences] == ["reservation"]
    await spent.close()
