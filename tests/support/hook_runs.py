"""Runs of the hook: in this process, or as the agent starts it; and the events that it is told."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.agents.claude_code import launcher_command
from hooks import store_hygiene_gate as hook

HOOKS = Path(__file__).parents[2] / "hooks"
LESSON = "Retries of the billing gateway must carry the same idempotency key, or customers are charged twice."
LESSON_TOO = "The exporter reads the ledger at local midnight, so shift all of its cut-off times to UTC before use."
SLOP = "Session complete: all of the retry work is finished and the branch can be reviewed by somebody else now."


@dataclass(frozen=True)
class Said:
    """What a run of the hook said."""

    output: dict[str, Any]
    exit_code: int = 0
    stderr: str = ""

    @property
    def decision(self) -> str | None:
        """The permission decision."""
        return self._specific.get("permissionDecision")

    @property
    def reason(self) -> str:
        """The reason of the decision."""
        return str(self._specific.get("permissionDecisionReason", ""))

    @property
    def context(self) -> str:
        """What the agent is told beside the call."""
        return str(self._specific.get("additionalContext", ""))

    @property
    def _specific(self) -> dict[str, Any]:
        return dict(self.output.get("hookSpecificOutput", {}))


def event(name: str, tool: str = "", tool_input: object = None, **more: object) -> dict[str, Any]:
    """An event in Claude Code's shape."""
    fields: dict[str, Any] = {"hook_event_name": name, "session_id": "session-1", "cwd": os.getcwd()}  # noqa: PTH109
    if tool:
        fields |= {"tool_name": tool, "tool_input": tool_input, "tool_use_id": "toolu_1"}
    return fields | more


def write(*texts: str, name: str = "billing gateway", **more: object) -> dict[str, Any]:
    """The announcement that texts are to be stored in the memory server, as observations of one entity."""
    entity = {"name": name, "entityType": "note", "observations": list(texts)}
    return event("PreToolUse", "mcp__memory__create_entities", {"entities": [entity]}, **more)


def tell(payload: object) -> Said:
    """Run the hook in this process on an event."""
    name, said = hook.answer(time.monotonic(), lambda: payload)
    return Said(hook.render(name, said))


def run(
    payload: object,
    environment: Mapping[str, str] | None = None,
    *,
    python: str = sys.executable,
    hooks: Path = HOOKS,
    arguments: Sequence[str] = (),
    command: Sequence[str] = (),
) -> Said:
    """Run the hook as a process, as the agent does; its output must be one JSON object or nothing."""
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("XDG_", "MEMORY_BOUNCER_", "HOME"))}
    done = subprocess.run(
        [*(command or launcher_command(hooks, python)), *arguments],
        input=content,
        capture_output=True,
        env={"PATH": os.environ["PATH"], **kept, **(environment or {})},
        timeout=30,
        check=False,
    )
    output = json.load(io.BytesIO(done.stdout)) if done.stdout.strip() else {}
    assert isinstance(output, dict)
    return Said(output, done.returncode, done.stderr.decode())


def journal() -> list[dict[str, Any]]:
    """What the journal of this test keeps."""
    return hook.journal_read(hook.load_config(os.getcwd()))  # noqa: PTH109
