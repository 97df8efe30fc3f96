"""Whatever is done in whatever order, the database holds what a plain model of it says."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from app.budget import Payer, Reservation, window_start
from app.schemas.vocabulary import Period
from tests.support.purse import LEASE, Purse

Name = tuple[str | None, Period]

SUBJECTS = (None, "p", "q")
NAMES = st.tuples(st.sampled_from(SUBJECTS), st.sampled_from(list(Period)))
AMOUNTS = st.integers(1, 400)


@dataclass
class Window:
    """A window of the model."""

    spent: int = 0
    reserved: int = 0


@dataclass
class Held:
    """A reservation of the model."""

    reservation: Reservation
    amount: int
    windows: list[Window]
    until: object
    state: str = "open"


@dataclass
class Model:
    """What the budgets hold, in plain words."""

    limits: dict[Name, int] = field(default_factory=dict)
    windows: dict[tuple[Name, object], Window] = field(default_factory=dict)

    def window(self, name: Name, now: object) -> Window:
        return self.windows.setdefault((name, window_start(name[1], now)), Window())  # type: ignore[arg-type]


class AnyOrder(RuleBasedStateMachine):
    """Reserve, settle, release, expire, let time pass, set and remove limits."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="bouncer-purse-")
        self.purse = Purse(f"sqlite:///{Path(self.folder.name, 'bouncer.db')}")
        self.model = Model()
        self.all_held: list[Held] = []

    def teardown(self) -> None:
        self.purse.database.close()
        self.folder.cleanup()

    @rule(name=NAMES, limit=st.integers(0, 1_000))
    def put(self, name: Name, limit: int) -> None:
        self.purse.put(limit, name[1], project=name[0])
        self.model.limits[name] = limit

    @rule(name=NAMES)
    def remove(self, name: Name) -> None:
        if name in self.model.limits:
            self.purse.remove(self.purse.the(name[1], name[0]).id)
            del self.model.limits[name]

    @rule(target=held, project=st.sampled_from(["p", "q", "other"]), amount=AMOUNTS)
    def reserve(self, project: str, amount: int) -> Held | None:
        now = self.purse.now
        covers = [name for name in self.model.limits if name[0] in (None, project)]
        windows = [self.model.window(name, now) for name in covers]
        fits = [
            window.spent + window.reserved + amount <= self.model.limits[name]
            for name, window in zip(covers, windows, strict=True)
        ]
        reservation = self.purse.reserve(amount, Payer(project))
        assert isinstance(reservation, Reservation) == (bool(covers) and all(fits))
        if not isinstance(reservation, Reservation):
            return None
        for window in windows:
            window.reserved += amount
        made = Held(reservation, amount, windows, now + LEASE)
        self.all_held.append(made)
        return made

    @rule(held=held, share=st.floats(0, 1))
    def settle(self, held: Held | None, share: float) -> None:
        if held is None:
            return
        cost = round(held.amount * share)
        self.purse.settle(held.reservation, cost)
        for window in held.windows:
            window.spent += cost if held.state != "settled" else 0
            window.reserved -= held.amount if held.state == "open" else 0
        held.state = "settled"

    @rule()
    def expire(self) -> None:
        late = [held for held in self.all_held if held.state == "open" and held.until < self.purse.now]  # type: ignore[operator]
        assert self.purse.expire() == len(late)
        for held in late:
            held.state = "lapsed"
            for window in held.windows:
                window.reserved -= held.amount

    @rule(seconds=st.sampled_from([1, 61, 3_600, 86_400, 7 * 86_400, 31 * 86_400]))
    def pass_(self, seconds: int) -> None:
        self.purse.pass_(seconds=seconds)

    @invariant()
    def the_sums_are_the_models(self) -> None:
        shown = {(out.subject, out.period): out for out in self.purse.all()}
        assert {name: out.limit_microdollars for name, out in shown.items()} == self.model.limits
        for name, out in shown.items():
            window = self.model.window(name, self.purse.now)
            assert (out.spent_microdollars, out.reserved_microdollars) == (window.spent, window.reserved)
        assert all(window.spent >= 0 and window.reserved >= 0 for window in self.model.windows.values())

    @invariant()
    def the_windows_are_the_sum_of_the_ledger(self) -> None:
        # No review is on record here, so only what windows and ledger say can differ.
        assert [d for d in self.purse.report().differences if d.what != "call"] == []


AnyOrder.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase
