"""Find out whether the door is really shut: every part is tried, not looked at."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from app.agents import canary
from app.agents.claude_code import launcher_command, tool_matcher
from app.agents.installation import Places, installed_in, our_matchers
from app.db import utc_now
from app.errors import ConfigurationError
from app.main import build_model
from app.selfcheck import refuse_useless
from app.settings import app_version, child_environment, load_settings
from hooks import store_hygiene_gate as hook

SECONDS = 10.0


@dataclass(frozen=True)
class Finding:
    """One thing that was tried: whether it holds, and what to do if not. None for what could not be tried."""

    name: str
    holds: bool | None
    detail: str


def examine(project: Path, *, client: str | None, with_client: bool = True) -> Iterator[Finding]:
    """Try each part in turn, the cheap ones first.

    Args:
        project: the folder whose settings apply.
        client: the agent client; None for the one on the search path.
        with_client: whether to fire the canary through it.
    """
    config = hook.load_config(str(project))
    yield _python()
    yield _configuration(config)
    yield from _installation(project, config)
    yield _settings()
    yield _service(config)
    if with_client:
        yield _canary(client or canary.find_client(), project)


def _python() -> Finding:
    found = shutil.which("python3")
    if found is None:
        return Finding("Python", False, "There is no python3 on the search path; the hook cannot run without it.")
    asked = "import sys; print('.'.join(map(str, sys.version_info[:3])), sys.version_info >= (3, 9))"
    version = _tried([found, "-I", "-S", "-c", asked]).stdout.split()
    if version[1:] != ["True"]:
        return Finding(
            "Python", False, f"python3 is {version[0] if version else 'broken'}; the hook needs 3.9 or newer."
        )
    return Finding("Python", True, f"{found} is {version[0]}")


def _configuration(config: hook.Config) -> Finding:
    if config.problems:
        return Finding("Hook configuration", False, "; ".join(config.problems))
    if config.level == "gate" and not config.rules and not config.user_rules and not config.minimum_words:
        hint = "the level is gate, and every rule of the gate is switched off: nothing but secrets could be denied."
        return Finding("Hook configuration", False, hint)
    return Finding("Hook configuration", True, f"project {config.project}, on failure: {config.on_failure}")


def _installation(project: Path, config: hook.Config) -> Iterator[Finding]:
    try:
        installed = installed_in(project)
    except ConfigurationError as exc:
        yield Finding("Hook settings", False, exc.detail)
        return
    if not installed:
        hint = "No settings file holds the hook; run `bouncer init`, or install the plugin (then this is no fault)."
        yield Finding("Hook settings", None, hint)
        return
    expected = tool_matcher(config.tools, "Skill")
    for path, settings in installed:
        matchers = our_matchers(settings, "PreToolUse")
        if settings.get("disableAllHooks"):
            yield Finding("Hook settings", False, f"{path} has disableAllHooks set: no hook runs.")
        elif matchers != [expected]:
            hint = f"The matcher in {path} is not the one that covers all known tools; run `bouncer init` again."
            yield Finding("Hook settings", False, hint)
        else:
            yield Finding("Hook settings", True, str(path))
    yield _hook_file(project)


def _hook_file(project: Path) -> Finding:
    scopes = ("user", "project")
    for folder in (Places.of(scope, project).hooks for scope in scopes):  # type: ignore[arg-type]
        if not (folder / "store_hygiene_gate.py").is_file():
            continue
        event = {
            "hook_event_name": "PreToolUse",
            "session_id": "doctor",
            "cwd": str(project),
            "tool_name": canary.TOOL,
            "tool_input": {"entities": [{"name": "canary", "entityType": "canary", "observations": [canary.TEXT]}]},
        }
        with tempfile.TemporaryDirectory(prefix="bouncer-doctor-") as state:
            command = [*launcher_command(folder), "--exit-code"]
            done = _tried(command, input=json.dumps(event), env=child_environment(XDG_STATE_HOME=state))
        if done.returncode == 2 and "session_summary" in done.stderr:
            return Finding("Hook file", True, f"{folder} denies slop")
        return Finding("Hook file", False, f"The hook in {folder} did not deny the canary; run `bouncer init` again.")
    return Finding("Hook file", False, "The hook's file is gone; run `bouncer init` again.")


def _tried(command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """What a command did; one that does not start or does not end has failed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **more)
    except (OSError, subprocess.TimeoutExpired) as exc:
        return subprocess.CompletedProcess(command, returncode=1, stdout="", stderr=str(exc))


def _settings() -> Finding:
    """What `bouncer serve` would say to the settings in this environment."""
    try:
        settings = load_settings()
        refuse_useless(settings, build_model(settings), utc_now())
    except ConfigurationError as exc:
        return Finding("Service settings", False, exc.detail)
    return Finding("Service settings", True, f"level {settings.level}")


def _service(config: hook.Config) -> Finding:
    if config.level == "gate":
        return Finding("Service", True, "not used: the level is gate")
    try:
        health, _ = hook.call_service(config, "GET", "/readyz", None, time.monotonic() + SECONDS)
        wanted = "/v1/policy?" + urlencode({"project": config.project})
        hook.call_service(config, "GET", wanted, None, time.monotonic() + SECONDS)
    except hook.ServiceFailure as failure:
        hints = {
            401: "It wants a key: set MEMORY_BOUNCER_KEY to yours. If it is set, it is wrong, expired or revoked.",
            404: f"Your key is not bound to the project {config.project}.",
        }
        hint = f"{failure}. {hints.get(failure.status, 'Start it with `bouncer serve`.')}"
        return Finding("Service", False, hint)
    version = health.get("version")
    if version is None:
        return Finding("Service", False, f"What answers at {config.url} is not Memory Bouncer.")
    if version != app_version():
        return Finding("Service", False, f"{config.url} runs {version}, this is {app_version()}.")
    return Finding("Service", True, f"{config.url} is ready")


def _canary(client: str | None, project: Path) -> Finding:
    if client is None:
        return Finding(
            "Canary", None, "Claude Code is not on the search path; name it with --client to prove a denial."
        )
    flight = canary.fly(client, project)
    if flight.denied:
        return Finding("Canary", True, "the client asked, the hook denied, nothing reached the memory server")
    if flight.stored:
        return Finding(
            "Canary",
            False,
            "NOT ENFORCED: slop reached the memory server. The hook did not run or was not heeded: check the matcher, "
            "`disableAllHooks`, and that the settings are in the scope of this folder.",
        )
    why = flight.failure or ("the call was not made" if not flight.called else "it was refused, but not by the hook")
    return Finding("Canary", False, f"The canary proves nothing: {why}.")
