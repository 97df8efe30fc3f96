"""Budgets: reserve before a paid call, settle to the true cost after it. Money is integer micro-dollars.

A reservation draws on one window of every budget that covers the call, in all of them or in none. In each it is one
conditional UPDATE, so the sum of what is spent and reserved cannot pass the limit however many threads, processes or
replicas try at once. Windows are taken in the order of their ids, always, so that nobody waits in a circle.

A reservation stays with the windows in which it was made, even if it is settled in the next ones: their room was
tested and granted, and the next window's was not.

What a crash leaves reserved is freed when the reservation lapses. A cost that arrives after that still counts.
"""

from app.budget.administration import overview, put, remove
from app.budget.report import report
from app.budget.spending import NoRoom, Reservation, expire, note_refusal, reserve, settle
from app.budget.windows import Cover, Payer, Setting, covering, strictest, window_end, window_start

__all__ = [
    "Cover",
    "NoRoom",
    "Payer",
    "Reservation",
    "Setting",
    "covering",
    "expire",
    "note_refusal",
    "overview",
    "put",
    "remove",
    "report",
    "reserve",
    "settle",
    "strictest",
    "window_end",
    "window_start",
]
