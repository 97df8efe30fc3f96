"""Show the door at work: the real service on a free port, the real hook, and four memories of an invented agent."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.agents.claude_code import launcher_command
from app.logs import configure_logs
from app.server import serve_in_background
from app.settings import Settings, child_environment
from hooks import store_hygiene_gate as hook

SECONDS = 30.0
RULE = (
    "Run the database migrations before the workers start: workers read the schema once, at boot, and crash on the "
    "first row of a newer one. Seen when release 2.4 was rolled back."
)
SCENES: tuple[tuple[str, str], ...] = (
    ("A session summary", "Session complete! All tasks done, tests are green, PR merged and pushed to main."),
    ("A rule with its reason, the incident cited at the end", RULE),
    ("The same rule once more, from another session", RULE),
    ("Where the project stands", "In progress: the move to PostgreSQL is half done; next up is the freeze of the API."),
)


@dataclass(frozen=True)
class Scene:
    """One memory write: what the agent offers, and what it is told."""

    title: str
    text: str
    stored: bool
    told: str


def play() -> Iterator[Scene]:
    """Offer each memory through the hook, and say what became of it. Everything is gone afterwards."""
    configure_logs("error")
    with (
        tempfile.TemporaryDirectory(prefix="bouncer-demo-") as folder,
        serve_in_background(Settings(data_dir=Path(folder) / "data", port=0)) as url,
    ):
        for number, (title, text) in enumerate(SCENES, start=1):
            said = _offer(text, number, Path(folder), url)
            denied = said.get("permissionDecision") == "deny"
            told = said.get("permissionDecisionReason" if denied else "additionalContext", "")
            yield Scene(title, text, stored=not denied, told=told)


def _offer(text: str, number: int, folder: Path, url: str) -> dict[str, str]:
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": f"demo-{number}",
        "cwd": str(folder),
        "tool_name": "mcp__memory__create_entities",
        "tool_use_id": f"demo-call-{number}",
        "tool_input": {"entities": [{"name": "demo", "entityType": "memory", "observations": [text]}]},
    }
    done = subprocess.run(
        launcher_command(Path(hook.__file__).parent),
        input=json.dumps(event),
        env=child_environment(MEMORY_BOUNCER_URL=url, XDG_STATE_HOME=str(folder), XDG_CONFIG_HOME=str(folder)),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    answer: dict[str, str] = json.loads(done.stdout or "{}").get("hookSpecificOutput", {})
    return answer
