"""Claude Code's native `type: http` hook: the client posts its hook event, and is answered in its own protocol."""

from typing import Any

from app.pipeline import Pipeline


async def answer(event: dict[str, Any], pipeline: Pipeline) -> dict[str, Any]:
    return {}
