"""The service over real HTTP in a thread of this process, with short ways to talk to it."""

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from app.server import serve_in_background
from app.settings import Settings

_calls = itertools.count(1)


def call(*texts: str, project: str, session: str = "s1", call_id: str | None = None, **more: Any) -> dict[str, Any]:
    """The JSON of a memory tool call, under a fresh call id unless one is given."""
    return {
        "tool_call_id": call_id or f"http-call-{next(_calls)}",
        "session_id": session,
        "project": project,
        "store": "memory",
        "tool": "create_entities",
        "agent": "claude-code",
        "candidates": [{"text": text} for text in texts],
        **more,
    }


@contextlib.contextmanager
def http_service(folder: Path, **settings: Any) -> Iterator[httpx.Client]:
    """A client of a running service on a database of its own; ends with the block."""
    configured = Settings.model_validate({"data_dir": folder, "port": 0, **settings})
    with (
        serve_in_background(configured) as url,
        httpx.Client(base_url=url, timeout=30, trust_env=False) as client,
    ):
        yield client
