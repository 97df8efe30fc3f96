"""Budgets are set, changed, switched off and removed, in force at once; the setting makes the simple one."""

import pytest

from app import audit_log, budget
from app.callers import LOCAL
from app.errors import Invalid, NotFound
from app.schemas.budgets import BudgetIn
from app.schemas.vocabulary import AtCap, BudgetScope, Period
from tests.support.purse import Purse


def with_setting(purse: Purse, limit: int) -> Purse:
    """The same database with a service whose setting makes a budget."""
    return Purse(purse.database.engine.url.render_as_string(hide_password=False), setting=limit)


def test_a_budget_is_shown_as_it_was_set(purse: Purse) -> None:
    made = purse.put(5, Period.WEEK, project="p", warn_percent=50, at_cap=AtCap.HOLD)
    assert (made.scope, made.subject, made.period, made.limit_microdollars) == ("project", "p", "week", 5)
    assert (made.warn_percent, made.at_cap, made.enabled, made.source) == (50, "hold", True, "api")
    assert purse.all() == [made]


def test_setting_it_again_changes_it(purse: Purse) -> None:
    made, changed = purse.put(5), purse.put(7, at_cap=AtCap.ALLOW)
    assert (changed.id, changed.limit_microdollars, changed.at_cap) == (made.id, 7, AtCap.ALLOW)
    assert len(purse.all()) == 1


def test_a_lowered_limit_stops_new_calls_at_once_and_a_raised_one_lets_them_pass(purse: Purse) -> None:
    purse.put(1_000)
    running = purse.granted(600)
    purse.put(500)
    purse.refused(1)
    purse.settle(running, 550)
    assert (purse.sums(), purse.the().left_microdollars) == ((550, 0), 0)
    purse.refused(1)
    purse.put(551)
    purse.granted(1)
    purse.refused(1)


def test_a_budget_that_is_switched_off_neither_covers_nor_limits(purse: Purse) -> None:
    purse.put(10, enabled=False)
    assert purse.refused(1).covers == []
    purse.put(100, project="p")
    purse.granted(50)
    assert purse.sums() == (0, 0)


def test_what_was_spent_is_not_forgotten_with_the_budget(purse: Purse) -> None:
    made = purse.put(100)
    running = purse.granted(60)
    assert purse.remove(made.id).reserved_microdollars == 60
    assert purse.all() == []
    assert purse.refused(1).covers == []
    purse.settle(running, 60)
    purse.put(100)
    assert purse.sums() == (60, 0)


def test_each_change_is_in_the_audit_log(purse: Purse) -> None:
    made = purse.put(5)
    purse.put(7)
    purse.remove(made.id)
    with purse.database.read() as session:
        events = audit_log.page(session)[::-1]
    assert [(event.action, event.subject, event.key_id) for event in events] == [
        ("budget.set", made.id, "local"),
        ("budget.set", made.id, "local"),
        ("budget.removed", made.id, "local"),
    ]
    limits = [[(told or {}).get("limit_microdollars") for told in (event.before, event.after)] for event in events]
    assert limits == [[None, 5], [5, 7], [7, None]]


def test_an_unknown_budget_cannot_be_removed(purse: Purse) -> None:
    with pytest.raises(NotFound):
        purse.remove("0190aaaa")


@pytest.mark.parametrize(("scope", "subject"), [("team", "p"), ("project", None), ("key", None)])
def test_a_budget_names_its_subject_unless_it_is_the_teams(
    purse: Purse, scope: BudgetScope, subject: str | None
) -> None:

    change = BudgetIn(scope=scope, subject=subject, period=Period.DAY, limit_microdollars=1)
    with pytest.raises(Invalid), purse.database.write() as session:
        budget.put(session, LOCAL, purse.setting, change, purse.now)


# --- the setting --------------------------------------------------------------------------------------------------


def test_the_setting_makes_the_teams_month_budget(purse: Purse) -> None:
    simple = with_setting(purse, 100)
    (out,) = simple.all()
    assert (out.id, out.source, out.scope, out.period, out.limit_microdollars) == (
        None,
        "setting",
        "team",
        "month",
        100,
    )
    simple.settle(simple.granted(100), 85)
    simple.refused(16)
    assert (simple.sums(), simple.the().state) == ((85, 0), "at_cap")
    simple.database.close()


def test_other_budgets_stand_beside_the_settings(purse: Purse) -> None:
    simple = with_setting(purse, 100)
    simple.put(1_000, project="p")
    simple.put(10, Period.DAY)
    simple.granted(10)
    simple.refused(1)
    assert simple.sums() == simple.sums(subject="p") == simple.sums(Period.DAY) == (0, 10)
    simple.database.close()


def test_a_month_budget_set_by_api_takes_the_settings_place_with_all_that_was_spent(purse: Purse) -> None:
    simple = with_setting(purse, 100)
    simple.settle(simple.granted(100), 60)
    made = simple.put(200)
    assert [out.source for out in simple.all()] == ["api"]
    assert simple.sums() == (60, 0)
    simple.granted(140)
    simple.remove(made.id)
    assert [out.source for out in simple.all()] == ["setting"]
    simple.database.close()


def test_the_settings_budget_can_be_switched_off_by_api(purse: Purse) -> None:
    simple = with_setting(purse, 100)
    simple.put(100, enabled=False)
    assert simple.refused(1).covers == []
    simple.database.close()
