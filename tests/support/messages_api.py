"""A scripted server that speaks the Messages API over a real loopback socket, in a thread of its own.

    with messages_api() as api:
        api.script(error(429, retry_after=1), reply(category="NONE", durable=False))
        settings = Settings(anthropic_base_url=api.url, anthropic_api_key=SecretStr("test"))
        ...
        assert [request.user for request in api.requests]

Each request takes the next step of the script; when the script is used up, the default step answers, for ever. A
step may also be a function from the request to a step, for answers that depend on what was asked.

Steps: `reply`, `refusal`, `truncated`, `error`, `junk`, `drop`, and `slow` or `together` around any of them.
"""

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Tokens:
    """Usage that a reply reports."""

    input: int = 900
    cache_write: int = 0
    cache_read: int = 2_600
    output: int = 180

    @property
    def microdollars(self) -> int:
        """Their cost at the list prices of claude-haiku-5-5, rounded up; reckoned apart from the product's own sum."""
        nano = 100 * self.input + 125 * self.cache_write + 10 * self.cache_read + 500 * self.output
        factor = 5 if self.input + self.cache_write + self.cache_read > 100_000 else 1
        return -(-nano * factor // 1_000)


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def system(self) -> str:
        """The system prompt."""
        return "".join(block["text"] for block in self.body["system"])

    @property
    def user(self) -> str:
        """The user message."""
        content: str = self.body["messages"][0]["content"]
        return content


@dataclass(frozen=True)
class Step:
    """How one request is answered; made by the functions below."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    tokens: Tokens | None = None
    cut: Literal["before", "mid"] | None = None
    wait_before_headers: float = 0.0
    wait_in_body: float = 0.0
    wait_for_others: int = 0


Answer = Step | Callable[[Request], Step]


def facts(**changes: object) -> dict[str, object]:
    """Facts of a good memory as a model writes them, with changes; what is asked of a category is answered."""
    category = changes.get("category", "RULE")
    return {
        "reason": "A clear rule.",
        "category": category,
        "durable": True,
        "self_contained": True,
        "scope": "pattern" if category in ("RULE", "DISCOVERY") else None,
        "gives_why": True if category == "DECISION" else None,
        "single_fact": True,
        "duplicate_of": None,
        "supersedes": None,
        "restates": None,
        "addresses_reader": False,
        "suggested_text": None,
        "confidence": 0.9,
        **changes,
    }


def reply(
    *,
    text: str | None = None,
    tokens: Tokens | None = Tokens(),
    stop_reason: str = "end_turn",
    thinking: bool = False,
    fenced: bool = False,
    **changes: object,
) -> Step:
    """An answer with status 200.

    Args:
        text: what the model writes; the `facts` with the changes if not given.
        tokens: the usage that it reports; none for a server that reports none.
        stop_reason: why the model stopped.
        thinking: whether a thinking block precedes the text.
        fenced: whether the text stands in a code fence with prose around it.
        changes: fields of the facts.
    """
    text = json.dumps(facts(**changes), ensure_ascii=False) if text is None else text
    if fenced:
        text = f"Here is what I found:\n```json\n{text}\n```\nTell me if you need more."
    content: list[dict[str, object]] = [{"type": "text", "text": text}]
    if thinking:
        content.insert(0, {"type": "thinking", "thinking": 'Is it {"category": "NONE"}?', "signature": "c2ln"})
    return _message(content, stop_reason, tokens)


def refusal(category: str | None = "cyber", *, tokens: Tokens | None = Tokens(output=4)) -> Step:
    """The model's safeguards declined."""
    return _message([], "refusal", tokens, stop_details={"type": "refusal", "category": category})


def truncated(*, tokens: Tokens | None = Tokens(output=1_024)) -> Step:
    """The model reached `max_tokens` in the middle of its answer."""
    return _message([{"type": "text", "text": json.dumps(facts())[:80]}], "max_tokens", tokens)


def error(
    status: int,
    *,
    kind: str = "api_error",
    message: str = "Something is wrong.",
    code: str | None = None,
    retry_after: float | str | None = None,
    headers: Mapping[str, str] | None = None,
    tokens: Tokens | None = None,
) -> Step:
    """An error in the API's shape, for instance ``error(529, kind="overloaded_error")``."""
    details = {"error_code": code} if code is not None else None
    told = {"type": kind, "message": message, "details": details}
    body: dict[str, object] = {"type": "error", "error": told, "request_id": "req_1"}
    if tokens is not None:
        body["usage"] = _usage(tokens)
    all_headers = {"request-id": "req_1", **(headers or {})}
    if retry_after is not None:
        all_headers["retry-after"] = str(retry_after)
    return Step(status=status, body=json.dumps(body).encode(), headers=all_headers, tokens=tokens)


def junk(body: bytes = b"<html>It works!</html>", *, content_type: str = "text/html") -> Step:
    """Status 200 with a body that is no message."""
    return Step(body=body, headers={"content-type": content_type})


def drop(*, mid_body: bool = False) -> Step:
    """The connection breaks: before any answer, or in the middle of a reply's body."""
    return replace(reply(), cut="mid" if mid_body else "before", tokens=None)


def slow(step: Step, *, before_headers: float = 0.0, in_body: float = 0.0) -> Step:
    """The step with waits, in seconds."""
    return replace(step, wait_before_headers=before_headers, wait_in_body=in_body)


def together(step: Step, number: int) -> Step:
    """The step, after so many requests have been waiting for their answers at once."""
    return replace(step, wait_for_others=number)


class MessagesApi:
    """The server. Attributes may be read at any time from the test's thread."""

    def __init__(self, default: Answer) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.usage_total_microdollars = 0
        """What the answers that were sent whole cost."""
        self.open_connections = 0
        self.thinking = 0
        """How many requests wait for their answer now, and how many did at the most."""
        self.most_thinking = 0
        self._gathered: dict[int, asyncio.Event] = {}
        self._default = default
        self._script: deque[Answer] = deque()

    def script(self, *answers: Answer) -> None:
        """Answer the next requests so, in this order, after what was scripted before."""
        self._script.extend(answers)

    def clear(self) -> None:
        """Forget the rest of the script: from now on the default answers."""
        self._script.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it ends."""
        self.open_connections += 1
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                answer = self._script.popleft() if self._script else self._default
                step = answer(request) if callable(answer) else answer
                self.thinking += 1
                self._note_crowd()
                try:
                    if not await self._write(step, reader, writer):
                        break
                finally:
                    self.thinking -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_connections -= 1
            writer.close()

    def _note_crowd(self) -> None:
        self.most_thinking = max(self.most_thinking, self.thinking)
        for number, gathered in self._gathered.items():
            if self.most_thinking >= number:
                gathered.set()

    async def _write(self, step: Step, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on after the step."""
        if self.most_thinking < step.wait_for_others:
            await self._gathered.setdefault(step.wait_for_others, asyncio.Event()).wait()
        if await _hung_up(reader, step.wait_before_headers) or step.cut == "before":
            return False
        headers = {"content-type": "application/json", "content-length": str(len(step.body)), **step.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        half = len(step.body) // 2
        writer.write(f"HTTP/1.1 {step.status} -\r\n{head}\r\n".encode() + step.body[:half])
        await writer.drain()
        if await _hung_up(reader, step.wait_in_body) or step.cut == "mid":
            return False
        # Before the last bytes are out, so that a test which has its answer finds it counted.
        self.usage_total_microdollars += step.tokens.microdollars if step.tokens else 0
        writer.write(step.body[half:])
        await writer.drain()
        return True


@contextlib.contextmanager
def messages_api(default: Answer | None = None) -> Iterator[MessagesApi]:
    """A running server; it ends with the block.

    Args:
        default: answers the requests that the script does not; a good memory's facts if not given.
    """
    api = MessagesApi(default or reply())
    loop = asyncio.new_event_loop()
    started, stop = threading.Event(), asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
        api.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await stop.wait()
        server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), name="messages-api")
    thread.start()
    try:
        started.wait()
        yield api
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def _message(content: list[dict[str, object]], stop_reason: str, tokens: Tokens | None, **more: object) -> Step:
    body: dict[str, object] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        **more,
    }
    if tokens is not None:
        body["usage"] = _usage(tokens)
    return Step(body=json.dumps(body, ensure_ascii=False).encode(), tokens=tokens)


def _usage(tokens: Tokens) -> dict[str, object]:
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "output_tokens": tokens.output,
        "service_tier": "standard",
    }


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, or none once the client is done."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, json.loads(body) if body else None)


async def _hung_up(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Wait; whether the client went away meanwhile."""
    if not seconds:
        return False
    try:
        await asyncio.wait_for(reader.read(1), seconds)
    except TimeoutError:
        return False
    return True


def asking_always(model: MessagesApi, **others: str) -> dict[str, str]:
    """Settings of a service that asks the model about every text, as often as it likes and out of a large budget."""
    return {
        "MEMORY_BOUNCER_ANTHROPIC_API_KEY": "test-" + "key-" * 4,
        "MEMORY_BOUNCER_ANTHROPIC_BASE_URL": model.url,
        "MEMORY_BOUNCER_BUDGET_MICRODOLLARS": "100000000000",
        "MEMORY_BOUNCER_CASCADE": "off",
        "MEMORY_BOUNCER_MODEL_CALLS_PER_MINUTE": "0",
        "MEMORY_BOUNCER_LEVEL": "model",
        **others,
    }
