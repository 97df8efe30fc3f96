"""What the service needs to know of memory stores; the hook's tool map is the one list of them."""

from functools import cache

from app.schemas.vocabulary import Operation
from hooks import store_hygiene_gate as hook

FILES = "files"


@cache
def can_update(store: str) -> bool:
    """Whether the store has a tool that updates an item in place; unknown stores are taken to have none."""
    # A memory in a file is updated with the file tools, which are in no tool map.
    return store == FILES or any(
        row["store"] == store and row.get("operation") == Operation.UPDATE.value for row in hook.TOOLS
    )
