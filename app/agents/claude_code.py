"""Claude Code's side: the hook settings that put the gate before its memory tools.

`hooks/hooks.json` of the plugin and what `bouncer init` writes both come from here.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from hooks.store_hygiene_gate import FILE_TOOLS, SHELL_TOOLS, TOOLS, Config

PLUGIN_HOOKS = "${CLAUDE_PLUGIN_ROOT}/hooks"

# CPython ends with status 2 if its script is missing, which the agent takes for a denial of every call. This imports
# the hook instead (and keeps it compiled), and where that fails says so and lets the call go ahead.
LAUNCHER = """\
import os, sys
try:
    sys.path.insert(0, sys.argv[1])
    from store_hygiene_gate import main
    status = main(sys.argv[2:])
except BaseException as error:
    status, told = 0, (
        f"Memory writes are not being checked: the Memory Bouncer hook in {sys.argv[1]} does not start"
        f" ({type(error).__name__}). Reinstall the plugin, or run `bouncer init` again."
    )
    try:
        import json
        text = sys.stdin.read()
        event = json.loads(text)
        silent = event["hook_event_name"] in ("UserPromptSubmit", "SessionEnd")
        ordinary = event.get("tool_name") in ("Bash", "PowerShell", "Write", "Edit", "MultiEdit")
        if not silent and (".md" in text or not ordinary):
            context = {"hookEventName": event["hook_event_name"], "additionalContext": told}
            print(json.dumps({"systemMessage": told, "hookSpecificOutput": context}), flush=True)
    except BaseException:
        pass
os._exit(status)
"""


def launcher_command(hooks_folder: Path | str, python: str = "python3") -> list[str]:
    """Return the command, as program and arguments, that runs the hook of a folder and never denies by accident."""
    return [python, "-I", "-S", "-c", LAUNCHER, str(hooks_folder)]


def tool_matcher(tools: Iterable[Mapping[str, object]] = TOOLS, *others: str) -> str:
    """Return the pattern of the tools that the hook wants to see, with those named in `others`."""
    memory = sorted({str(row["tool"]) for row in tools if row.get("operation") != "ignore"})
    return f"^({'|'.join((*FILE_TOOLS, *SHELL_TOOLS, *others))})$|^(mcp__.+__)?({'|'.join(memory)})$"


def hook_settings(
    hooks_folder: Path | str = PLUGIN_HOOKS,
    *,
    python: str = "python3",
    tools: Iterable[Mapping[str, object]] = TOOLS,
    on_failure: str = Config.on_failure,
    deadline_seconds: float = Config.deadline_seconds,
) -> dict[str, list[dict[str, object]]]:
    """Return the `hooks` block of Claude Code's settings.

    The agent's own timeout leaves the hook two seconds more than its deadline. With the policies that must not let an
    unjudged memory pass, a hook that fails or is cut off blocks the call too.
    """
    program, *arguments = launcher_command(hooks_folder, python)
    handler: dict[str, object] = {
        "type": "command",
        "command": program,
        "args": arguments,
        "timeout": math.ceil(deadline_seconds) + 2,
    }
    before = {**handler, "onFailure": "block"} if on_failure in ("hold", "deny") else handler
    tools = list(tools)
    return {
        "PreToolUse": [{"matcher": tool_matcher(tools, "Skill"), "hooks": [before]}],
        "PostToolUse": [{"matcher": tool_matcher(tools), "hooks": [handler]}],
        "PostToolUseFailure": [{"matcher": tool_matcher(tools), "hooks": [handler]}],
        "SessionStart": [{"hooks": [handler]}],
        # What the person refused is known by then at the latest: the client has no event for it.
        "UserPromptSubmit": [{"hooks": [handler]}],
        "SessionEnd": [{"hooks": [handler]}],
    }
