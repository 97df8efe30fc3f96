"""Fire a canary through the installed agent client: a memory that must be denied, offered to a server of our own.

The client, its settings and its hooks are the real ones; only the model is played, by a scripted Messages API on
loopback that makes one tool call and then ends. Whether the denial holds is read from what reached the server.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from app.settings import child_environment

SECONDS = 60.0
SERVER, TOOL = "memory", "mcp__memory__create_entities"
TEXT = "Session complete, all tasks done. This is the canary of `bouncer doctor`, not to be kept."
CALL_ID = "toolu_bouncer_canary"


@dataclass(frozen=True)
class Flight:
    """What became of a canary: whether the call was made, whether it reached the server, and what the model read."""

    called: bool
    stored: bool
    told: str
    failure: str | None = None

    @property
    def denied(self) -> bool:
        """Whether a hook of ours turned the memory away."""
        return self.called and not self.stored and "session_summary" in self.told


def find_client() -> str | None:
    """The agent client on the search path."""
    return shutil.which("claude")


def fly(client: str, folder: Path) -> Flight:
    """Let the client try to store the canary in a folder, under whatever settings apply there."""
    with tempfile.TemporaryDirectory(prefix="bouncer-canary-") as scratch, _model() as model:
        reached = Path(scratch) / "reached.jsonl"
        server = {
            "command": sys.executable,
            "args": ["-I", str(Path(__file__).with_name("canary_server.py")), str(reached)],
        }
        servers = Path(scratch) / "mcp.json"
        servers.write_text(json.dumps({"mcpServers": {SERVER: server}}), encoding="utf-8")
        failure = _run(client, folder, servers, model.url, Path(scratch) / "state")
        stored = reached.is_file()
        return Flight(called=model.called, stored=stored, told=model.told, failure=failure)


def _run(client: str, folder: Path, servers: Path, url: str, state: Path) -> str | None:
    environment = child_environment(
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_API_KEY="canary",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_TELEMETRY="1",
        # The canary is no memory of anybody's: it goes to no journal but its own.
        XDG_STATE_HOME=str(state),
    )
    command = [client, "-p", "Store the canary.", "--mcp-config", str(servers), "--strict-mcp-config"]
    command += ["--allowedTools", TOOL, "--output-format", "json", "--no-session-persistence"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the client did not end within {SECONDS:.0f} s"
    except OSError as exc:
        return f"the client does not start: {exc.strerror}"
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return f"the client ended with status {done.returncode}: {said[-1][:300] if said else 'no output'}"
    return None


class _Model:
    """The scripted model: calls the tool once, and keeps what it is told."""

    def __init__(self) -> None:
        self.url = ""
        self.called = False
        self.told = ""

    def answer(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Content blocks for a request."""
        if not body.get("tools"):
            return [{"type": "text", "text": "ok"}]
        results = [
            block
            for message in body.get("messages", [])
            for block in (message["content"] if isinstance(message.get("content"), list) else [])
            if block.get("type") == "tool_result"
        ]
        if results:
            self.told = json.dumps(results, ensure_ascii=False)
            return [{"type": "text", "text": "Done."}]
        self.called = True
        entity = {"name": "canary", "entityType": "canary", "observations": [TEXT]}
        return [{"type": "tool_use", "id": CALL_ID, "name": TOOL, "input": {"entities": [entity]}}]


@contextlib.contextmanager
def _model() -> Iterator[_Model]:
    model = _Model()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = SECONDS

        def do_HEAD(self) -> None:
            self._send(404, "text/plain", b"")

        do_GET = do_HEAD  # noqa: N815 - the name that http.server calls

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.split("?")[0] != "/v1/messages":
                self._send(404, "application/json", b"{}")
                return
            blocks = model.answer(body)
            if body.get("stream"):
                self._send(200, "text/event-stream", "".join(_events(blocks)).encode())
            else:
                self._send(200, "application/json", json.dumps(_message(blocks)).encode())

        def log_message(self, *_: object) -> None:
            pass

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()


def _message(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_canary", "type": "message", "role": "assistant", "model": "canary", "content": blocks}
    return {**message, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def _events(blocks: list[dict[str, Any]]) -> Iterator[str]:
    """The message as the server-sent events of a streamed reply."""
    message = _message(blocks)
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        yield _event("content_block_start", index=index, content_block=start)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": 1})
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
