"""What the database holds, counted for the metrics: held texts, entries, the budget.

Counted when somebody asks, but so seldom that it takes a hundredth of the time at most, however large the tables are.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app import budget, entries, held
from app.callers import LOCAL
from app.db import Database, utc_now
from app.errors import BouncerError
from app.schemas.budgets import BudgetOut
from app.settings import Settings

LEAST_SECONDS = 5.0
REST = 100
"""How many times as long as the last count took none is made after it."""


class Census(Collector):
    """Counts rows for Prometheus; without a database that answers it only says so."""

    def __init__(self, database: Database, settings: Settings, *, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._settings = settings
        self._now = now
        self._counting = threading.Lock()
        self._counted: list[Metric] = []
        self._next = 0.0

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: registering must not ask the database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The latest counts; made anew if it is time, and if no other scrape is at it."""
        if time.monotonic() >= self._next and self._counting.acquire(blocking=False):
            try:
                started = time.monotonic()
                self._counted = self._count()
                ended = time.monotonic()
                self._next = ended + max(LEAST_SECONDS, REST * (ended - started))
            finally:
                self._counting.release()
        return self._counted

    def _count(self) -> list[Metric]:
        up = GaugeMetricFamily("bouncer_database_up", "Whether the database answered the latest count.")
        try:
            with self._database.read() as session:
                waiting = held.counts(session, LOCAL)
                by_status = entries.count_by_status(session)
                budgets = budget.overview(session, budget.Setting.of(self._settings), self._now())
        except BouncerError:
            up.add_metric((), 0)
            return [up]
        up.add_metric((), 1)
        sizes = GaugeMetricFamily("bouncer_held", "Texts that wait for a decision.", labels=("fault",))
        for each in waiting:
            sizes.add_metric((each.fault.value,), each.count)
        oldest = GaugeMetricFamily("bouncer_held_oldest_seconds", "Age of the oldest text that waits for a decision.")
        ages = [(self._now() - each.oldest).total_seconds() for each in waiting]
        oldest.add_metric((), max(0.0, *ages) if ages else 0.0)
        statuses = GaugeMetricFamily("bouncer_entries", "Entries of the index.", labels=("status",))
        for status, number in by_status.items():
            statuses.add_metric((status,), number)
        return [up, sizes, oldest, statuses, *_money(budgets)]


def _money(budgets: list[BudgetOut]) -> list[Metric]:
    """Sums over the budgets of each scope and period, since a label must not hold the names of projects or keys."""
    in_force = [out for out in budgets if out.enabled]
    money: Counter[tuple[str, str, str]] = Counter()
    refused: Counter[tuple[str, str]] = Counter()
    for out in in_force:
        for what in ("limit", "spent", "reserved"):
            money[out.scope.value, out.period.value, what] += getattr(out, f"{what}_microdollars")
        refused[out.scope.value, out.period.value] += out.refused
    states = Counter({"ok": 0, "warned": 0, "at_cap": 0})
    states.update(out.state for out in in_force)
    sums = GaugeMetricFamily(
        "bouncer_budget_microdollars", "The budgets' current windows.", labels=("scope", "period", "what")
    )
    refusals = GaugeMetricFamily(
        "bouncer_budget_refused", "Calls that found no room in the current windows.", labels=("scope", "period")
    )
    by_state = GaugeMetricFamily("bouncer_budgets", "Budgets by how they stand.", labels=("state",))
    for family, counts in ((sums, money), (refusals, refused)):
        for labels, number in counts.items():
            family.add_metric(labels, number)
    for state, number in states.items():
        by_state.add_metric((state,), number)
    return [sums, refusals, by_state]
