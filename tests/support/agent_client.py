"""The real agent client at a desk of its own: a fresh home and project, a real memory server, and a scripted model.

    desk = Desk(programs, tmp_path, environment={"MEMORY_BOUNCER_URL": service.url})
    desk.bouncer("init", "--scope", "project", "--yes")
    run = desk.run([Call("mcp__memory__create_entities", {...})])
    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {}

What an agent would see and what its memory holds is all that a test needs to look at: the model's side of the
conversation (`Run.heard`), the memory server's own file (`Desk.memory`), and every answer of every hook (`Run.hooks`).
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hooks.store_hygiene_gate import project_identity
from tests.support.scripted_client_model import Conversation, Heard, Script, ScriptedModel, ToolResult, scripted_model
from tests.support.service import BOUNCER

RUN_SECONDS = 60.0
PROMPT = "Keep what you have learnt here."
ALLOWED_TOOLS = ("mcp__memory", "Agent", "Bash", "Edit", "Read", "Skill", "Write")
SEARCH_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True)
class Programs:
    """Where the installed programs lie."""

    client: Path
    node: Path
    memory_server: Path


@dataclass(frozen=True)
class HookRun:
    """One run of a hook, as the client reports it."""

    event: str
    matched: str
    stdout: str
    stderr: str
    exit_code: int | None
    outcome: str

    @property
    def decision(self) -> str | None:
        """The permission decision, if it made one."""
        decision = self._output.get("permissionDecision")
        assert decision is None or isinstance(decision, str)
        return decision

    @property
    def reason(self) -> str:
        """The reason of its decision."""
        return str(self._output.get("permissionDecisionReason", ""))

    @property
    def context(self) -> str:
        """What it said to the model beside the tool call."""
        return str(self._output.get("additionalContext", ""))

    @property
    def _output(self) -> dict[str, Any]:
        output: dict[str, Any] = json.loads(self.stdout or "{}").get("hookSpecificOutput", {})
        return output


@dataclass(frozen=True)
class Run:
    """One run of the client, from its start to its end."""

    session_id: str
    model: ScriptedModel
    hooks: tuple[HookRun, ...]

    @property
    def conversation(self) -> Conversation:
        """The main conversation, not a subagent's."""
        return self.model[PROMPT]

    @property
    def heard(self) -> Heard:
        """What the main model was told."""
        return self.conversation.heard

    def result(self, number: int) -> ToolResult:
        """The answer to the main model's call of this number, counted from 0."""
        return self.conversation.result(number)

    def refusal(self, number: int) -> str:
        """The reason that a hook refused this call with; fails if it was not refused."""
        result = self.result(number)
        assert result.refusal is not None, result
        return result.refusal

    def hooks_of(self, event: str) -> list[HookRun]:
        """The runs of hooks at one event, in order."""
        return [hook for hook in self.hooks if hook.event == event]


MakeDesk: TypeAlias = "Callable[..., Desk]"


class Desk:
    """A home, a project folder and a memory server's file, at which the client may be run many times."""

    def __init__(
        self,
        programs: Programs,
        root: Path,
        *,
        plugin: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Set the desk up, without any hooks but those of the plugin.

        Args:
            programs: the installed programs.
            root: a folder for all of it, which need not exist.
            plugin: the folder of a plugin to load.
            environment: further variables for the client, and so for its hooks.
        """
        self.home = root / "home"
        self.project = root / "project"
        self.memory_file = root / "memory.jsonl"
        self.environment = dict(environment or {})
        self.runs: list[Run] = []
        self._programs = programs
        self._plugin = plugin
        self._servers = root / "mcp.json"
        for folder in (self.home, self.project):
            folder.mkdir(parents=True)
        self._servers.write_text(json.dumps({"mcpServers": {"memory": self._memory_server()}}), encoding="utf-8")

    @property
    def project_name(self) -> str:
        """The name under which the service knows the project."""
        return project_identity(str(self.project))

    @property
    def memory(self) -> dict[str, list[str]]:
        """What the memory server has written to its file: each entity's observations."""
        if not self.memory_file.exists():
            return {}
        items = [json.loads(line) for line in self.memory_file.read_text(encoding="utf-8").splitlines() if line]
        return {item["name"]: item["observations"] for item in items if item["type"] == "entity"}

    @property
    def memory_folder(self) -> Path:
        """The folder in which the client keeps memories of its own about the project."""
        return self.home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(self.project)) / "memory"

    @property
    def journal(self) -> list[dict[str, Any]]:
        """The records in the hook's journal, oldest first."""
        path = self.home / ".local/state/memory-bouncer/journal.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    @property
    def settings_file(self) -> Path:
        """The project's settings of the client."""
        return self.project / ".claude/settings.json"

    @property
    def hook_file(self) -> Path:
        """The hook that is installed for the project."""
        return self.project / ".claude/hooks/memory-bouncer/store_hygiene_gate.py"

    def bouncer(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run our own command line in the project's folder, as the person at this desk would."""
        return subprocess.run(
            [*BOUNCER, *arguments],
            cwd=self.project,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )

    def run(
        self,
        script: Script,
        *,
        subagents: Mapping[str, Script] | None = None,
        cwd: Path | None = None,
        allowed: Sequence[str] = ALLOWED_TOOLS,
        mode: str = "manual",
    ) -> Run:
        """Run the client in a new session until it is done.

        Args:
            script: what the model does.
            subagents: the scripts of the subagents that it starts, by their prompts.
            cwd: the folder to work in, instead of the project's.
            allowed: tools that need no permission.
            mode: the client's permission mode.
        """
        with scripted_model({PROMPT: script, **(subagents or {})}) as model:
            events = self._talk(
                model.url, cwd or self.project, ["--allowedTools", ",".join(allowed), "--permission-mode", mode]
            )
        run = Run(
            session_id=next(event["session_id"] for event in events if event.get("subtype") == "init"),
            model=model,
            hooks=tuple(_hook_run(event) for event in events if event.get("subtype") == "hook_response"),
        )
        self.runs.append(run)
        return run

    def _memory_server(self) -> dict[str, Any]:
        return {
            "command": str(self._programs.node),
            "args": [str(self._programs.memory_server)],
            "env": {"MEMORY_FILE_PATH": str(self.memory_file)},
        }

    def _talk(self, model_url: str, cwd: Path, permissions: Sequence[str]) -> list[dict[str, Any]]:
        command = [str(self._programs.client), "-p", PROMPT]
        command += ["--output-format", "stream-json", "--verbose", "--include-hook-events"]
        command += ["--mcp-config", str(self._servers), "--strict-mcp-config", *permissions]
        if self._plugin is not None:
            command += ["--plugin-dir", str(self._plugin)]
        output, complaints = _bounded(command, cwd, self._environment(ANTHROPIC_BASE_URL=model_url))
        events: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
        ends = [event["is_error"] for event in events if event["type"] == "result"]
        assert ends, f"The client did not come to an end:\n{complaints}\n{output}"
        assert not any(ends), f"The client failed:\n{complaints}\n{output}"
        return events

    def _environment(self, **more: str) -> dict[str, str]:
        """All that the programs get to see of this machine's environment."""
        return {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(SEARCH_PATH),
            "LANG": "C.UTF-8",
            "CLAUDE_CODE_TMPDIR": str(self.home),
            "ANTHROPIC_API_KEY": "sk-test-dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
            **self.environment,
            **more,
        }


def find_programs(modules: Path) -> Programs:
    """The programs in an installed `node_modules` folder.

    Raises:
        FileNotFoundError: one is not there.
    """
    clients = sorted(modules.glob("@anthropic-ai/claude-code-*/claude"))
    server = modules / "@modelcontextprotocol/server-memory/dist/index.js"
    node = shutil.which("node")
    if not clients or not server.is_file() or node is None:
        raise FileNotFoundError(f"The client, the memory server or node is missing beside {modules}.")
    return Programs(client=clients[0], node=Path(node), memory_server=server)


def _bounded(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """What a command writes to stdout and stderr; it is ended, with all that it started, when its time is up."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            return process.communicate(timeout=RUN_SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def _hook_run(event: Mapping[str, Any]) -> HookRun:
    _, _, matched = event["hook_name"].partition(":")
    return HookRun(
        event=event["hook_event"],
        matched=matched,
        stdout=event["stdout"],
        stderr=event["stderr"],
        exit_code=event.get("exit_code"),
        outcome=event["outcome"],
    )
