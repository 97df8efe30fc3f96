"""A scripted model for the agent client: it speaks the Messages API, streamed, over a real loopback socket.

    with scripted_model({"Remember this.": [Call("mcp__memory__create_entities", {...}), "Done."]}) as model:
        ...  # run the client with ANTHROPIC_BASE_URL=model.url and the prompt "Remember this."
        assert "[session_summary]" in model["Remember this."].result(0).text

A script belongs to a prompt, so that subagents, which the client starts with prompts of their own, are told apart. It
is a list of turns; a turn is what the model says, a call, or several of them in one message. A turn may also be a
function of what the model has heard so far, for an agent that follows the advice it is given. The turn to play
follows from the number of tool results in the request, so a repeated request is answered alike. Where a script ends
the model says "Done."
"""

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, TypeAlias

IDLE_SECONDS = 30
REFUSAL = re.compile(r"\APreToolUse:\S+ hook error: (?P<reason>.*)\Z", re.DOTALL)

_numbers = count(1)


@dataclass(frozen=True)
class Call:
    """A tool call of the model; each has an id of its own, as the real API's calls have."""

    tool: str
    input: Mapping[str, Any]
    id: str = field(default_factory=lambda: f"toolu_{next(_numbers):06}")


@dataclass(frozen=True)
class ToolResult:
    """What the client answered to one call, as the model reads it."""

    call_id: str
    text: str
    is_error: bool

    @property
    def refusal(self) -> str | None:
        """The reason that a hook refused the call with, without the client's lead; None if it did not."""
        found = REFUSAL.match(self.text) if self.is_error else None
        return found["reason"] if found else None


@dataclass(frozen=True)
class Heard:
    """All that the model has been told so far: the results of its calls, and whatever else the client put in."""

    results: tuple[ToolResult, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def context(self) -> str:
        """Everything but the tool results: prompts, reminders, and the additional context of hooks."""
        return "\n".join(self.notes)


Turn: TypeAlias = "str | Call | Sequence[str | Call] | Callable[[Heard], Turn]"
Script: TypeAlias = Sequence[Turn]


class Conversation:
    """One scripted conversation, and what the model heard in it."""

    def __init__(self, script: Script) -> None:
        self.heard = Heard()
        self._script = script
        self._played: list[list[str | Call]] = []

    @property
    def calls(self) -> list[Call]:
        """The calls made so far, in order."""
        return [block for turn in self._played for block in turn if isinstance(block, Call)]

    def result(self, number: int) -> ToolResult:
        """The answer to the call of this number, counted from 0; fails if the model never got it."""
        call = self.calls[number]
        for result in self.heard.results:
            if result.call_id == call.id:
                return result
        raise AssertionError(f"The client never answered call {number}, {call}.")

    def answer(self, messages: list[dict[str, Any]]) -> list[str | Call]:
        """The blocks of the turn that follows these messages."""
        self.heard = _heard(messages)
        place = answered = 0
        while place < len(self._played) and answered < len(self.heard.results):
            answered += sum(isinstance(block, Call) for block in self._played[place])
            place += 1
        while place >= len(self._played):
            self._played.append(self._resolved(len(self._played)))
        return self._played[place]

    def _resolved(self, place: int) -> list[str | Call]:
        turn: Turn = self._script[place] if place < len(self._script) else "Done."
        while callable(turn):
            turn = turn(self.heard)
        return [turn] if isinstance(turn, str | Call) else list(turn)


class ScriptedModel:
    """The running server: its URL, and the conversation of each prompt."""

    def __init__(self, url: str, scripts: Mapping[str, Script]) -> None:
        self.url = url
        self.failures: list[Exception] = []
        self._conversations = {prompt: Conversation(script) for prompt, script in scripts.items()}
        self._lock = threading.Lock()

    def __getitem__(self, prompt: str) -> Conversation:
        return self._conversations[prompt]

    def answer(self, body: Mapping[str, Any]) -> list[str | Call]:
        """The blocks that answer a request; "ok" to side requests, which come without tools."""
        if not body.get("tools"):
            return ["ok"]
        opening = "\n".join(_texts(body["messages"][0]["content"]))
        with self._lock:
            try:
                return self._conversation(opening).answer(body["messages"])
            except Exception as error:  # noqa: BLE001 - whatever it is, the test's own thread raises it at the end
                self.failures.append(error)
        return ["I am lost."]

    def _conversation(self, opening: str) -> Conversation:
        for prompt, conversation in self._conversations.items():
            if prompt in opening:
                return conversation
        raise AssertionError(f"There is no script for the prompt {opening!r}.")


@contextlib.contextmanager
def scripted_model(scripts: Mapping[str, Script]) -> Iterator[ScriptedModel]:
    """Run the model with a script for each prompt; raises at the end what went wrong in one, or for want of one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        model = ScriptedModel(f"http://127.0.0.1:{server.server_port}", scripts)
        server.daemon_threads = False  # so that closing waits for answers under way
        server.model = model  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
    if model.failures:
        raise model.failures[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def do_HEAD(self) -> None:
        """Answer the client's look whether there is anybody."""
        self._send(404, "text/plain", b"")

    do_GET = do_HEAD  # noqa: N815 - the name that http.server calls

    def do_POST(self) -> None:
        """Answer a request for a message, streamed or whole."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith("/v1/messages?") and self.path != "/v1/messages":
            self._send(404, "application/json", b'{"type": "error", "error": {"type": "not_found_error"}}')
            return
        message = _message(str(body.get("model")), self.server.model.answer(body))  # type: ignore[attr-defined]
        if body.get("stream"):
            events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _events(message))
            self._send(200, "text/event-stream", events.encode())
        else:
            self._send(200, "application/json", json.dumps(message).encode())

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _message(model: str, blocks: Sequence[str | Call]) -> dict[str, Any]:
    called = any(isinstance(block, Call) for block in blocks)
    return {
        "id": f"msg_{next(_numbers):06}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [
            {"type": "text", "text": block}
            if isinstance(block, str)
            else {"type": "tool_use", "id": block.id, "name": block.tool, "input": dict(block.input)}
            for block in blocks
        ],
        "stop_reason": "tool_use" if called else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The message in the pieces that the API streams it in."""
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start, delta = (
                block | {"input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": 5},
    }
    yield {"type": "message_stop"}


def _heard(messages: list[dict[str, Any]]) -> Heard:
    results: list[ToolResult] = []
    notes: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            continue
        content = message["content"]
        notes += _texts(content)
        if isinstance(content, str):
            continue
        results += (
            ToolResult(
                call_id=block["tool_use_id"],
                text="\n".join(_texts(block.get("content", ""))),
                is_error=bool(block.get("is_error")),
            )
            for block in content
            if block["type"] == "tool_result"
        )
    return Heard(tuple(results), tuple(notes))


def _texts(content: str | list[dict[str, Any]]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]
