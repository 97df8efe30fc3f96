"""Entries: the index of approved memories, from `pending` through `stored` to `superseded`, `deleted` or `withdrawn`.

Functions that write want the project's lock (`projects.lock`) held by the surrounding transaction.
"""

from app.entries.finding import (
    count_by_status,
    get,
    is_known,
    live_state,
    named,
    out,
    page,
    project_of,
    reference,
    rival,
    texts_after,
    texts_since,
    twin,
    with_twin,
)
from app.entries.proposing import Proposal, add, add_all, add_stored, propose_version, renew
from app.entries.removing import delete, mark_deleted, withdraw
from app.entries.settling import confirm, expire, lapsed_projects, let_go, mark_reviewed

__all__ = [
    "Proposal",
    "add",
    "add_all",
    "add_stored",
    "confirm",
    "count_by_status",
    "delete",
    "expire",
    "get",
    "is_known",
    "lapsed_projects",
    "let_go",
    "live_state",
    "mark_deleted",
    "mark_reviewed",
    "named",
    "out",
    "page",
    "project_of",
    "propose_version",
    "reference",
    "renew",
    "rival",
    "texts_after",
    "texts_since",
    "twin",
    "with_twin",
    "withdraw",
]
