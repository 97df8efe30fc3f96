"""What the service needs to know of memory stores; the hook's tool map is the one list of them."""

from functools import cache

from app.schemas import Operation
from hooks import store_hygiene_gate as hook


@cache
def can_update(store: str) -> bool:
    """Whether the store has a tool that updates an item in place; unknown stores are taken to have none."""
    return any(row["store"] == store and row.get("operation") == Operation.UPDATE.value for row in hook.TOOLS)
