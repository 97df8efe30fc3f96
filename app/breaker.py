"""The breaker: keeps a runaway agent, or a provider that is down, from being asked again and again.

Two rules. No key and no project has the model asked more often than so many times in a clock minute. After several
failures of the model's service in a row it is left alone for a while; then a single call tries whether it is back.

The state is the process's own: of several replicas each counts for itself. It is used from one event loop, and so
needs no lock.
"""

from collections import Counter
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Literal

from app.schemas.judging import Fault

FAILURES = 5
WITHIN = timedelta(minutes=1)
COOL_DOWN = timedelta(seconds=30)

# What says that the service is down or wants to be left alone. A timeout is none where the caller had little time.
OUTAGES = frozenset({Fault.UPSTREAM_ERROR, Fault.OVERLOADED, Fault.RATE_LIMITED, Fault.CONNECTION, Fault.TIMEOUT})


class Breaker:
    """Lets calls to the model through, or says why not."""

    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        calls_per_minute: int = 0,
        failures: int = FAILURES,
        cool_down: timedelta = COOL_DOWN,
    ) -> None:
        """Begin with everything let through.

        Args:
            now: the clock.
            calls_per_minute: most calls in a clock minute for each caller; 0 for no limit.
            failures: so many failures in a row, within a minute, open the circuit; 0 leaves it closed for ever.
            cool_down: how long it stays open before a call tries again.
        """
        self._now = now
        self._limit = calls_per_minute
        self._failures = failures
        self._cool_down = cool_down
        self._minute: datetime | None = None
        self._calls: Counter[str] = Counter()
        self._failed_at: list[datetime] = []
        self._open_until: datetime | None = None

    @property
    def state(self) -> Literal["closed", "open", "half_open"]:
        """Whether the model's service is asked, left alone, or due to be tried."""
        if self._open_until is None:
            return "closed"
        return "open" if self._is_cooling(self._now()) else "half_open"

    def admit(self, callers: Collection[str], calls: int) -> Fault | None:
        """Let so many calls through that are made for all these callers at once; or why not.

        What was let through is counted: give it back if it is not used after all.
        """
        now = self._now()
        if self._open_until is not None and self._is_cooling(now):
            return Fault.CIRCUIT_OPEN
        if self._is_too_often(callers, calls, now):
            return Fault.TOO_MANY_CALLS
        self._calls.update(dict.fromkeys(callers, calls))
        if self._open_until is not None:
            self._open_until = now + self._cool_down  # one tries, and the others wait for what it learns
        return None

    def give_back(self, callers: Collection[str], calls: int) -> None:
        """The calls that were let through are not made."""
        for caller in callers:
            self._calls[caller] = max(0, self._calls[caller] - calls)
        if self._open_until is not None:
            self._open_until = self._now()

    def learn(self, fault: Fault | None) -> None:
        """What came of a call: any answer closes the circuit, several outages in a row open it."""
        now = self._now()
        if fault not in OUTAGES:
            self._failed_at.clear()
            self._open_until = None
            return
        self._failed_at = [at for at in self._failed_at if timedelta(0) <= now - at < WITHIN] + [now]
        if self._failures and (self._open_until is not None or len(self._failed_at) >= self._failures):
            self._open_until = now + self._cool_down

    def _is_cooling(self, now: datetime) -> bool:
        # A clock that was set back must not keep it open for longer.
        return self._open_until is not None and now < self._open_until <= now + self._cool_down

    def _is_too_often(self, callers: Collection[str], calls: int, now: datetime) -> bool:
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        if minute != self._minute:
            self._minute = minute
            self._calls.clear()
        if not self._limit:
            return False
        return any(self._calls[caller] and self._calls[caller] + calls > self._limit for caller in callers)
