"""A stand-in for the review service: a real HTTP server on loopback that answers as a test tells it to.

with scripted_service() as service:
    service.verdicts = ["rewrite"]
    …
    assert service.requests[-1].path == "/v1/reviews"
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Reply = bytes | tuple[int, Any]


class Request:
    """One request that came in."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        """Take the request apart."""
        self.method, self.target, self.headers, self.body = method, target, headers, body
        parts = urlsplit(target)
        self.path = parts.path
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class ScriptedService:
    """What the service knows and says.

    Attributes:
        verdicts: for each text of the next calls, in turn; the last one is kept.
        context: what an approved call is told.
        faults: the fault of each held text.
        delay: seconds before any answer.
        raw: if given, the bytes that are sent in place of any answer.
        statuses: an HTTP status for a path, in place of its answer.
        policy: what `GET /v1/policy` gives.
        news: the decisions that the agent has not been told of.
    """

    def __init__(self) -> None:
        """Approve everything, at once."""
        self.url = ""
        self.requests: list[Request] = []
        self.reviews: list[dict[str, Any]] = []
        self.verdicts = ["approve"]
        self.context: str | None = None
        self.fault: str | None = None
        self.delay = 0.0
        self.raw: bytes | None = None
        self.statuses: dict[str, int] = {}
        self.news: list[Any] = []
        self.etag = '"1"'
        self.policy: dict[str, Any] = {
            "level": "offline",
            "minimum_words": 8,
            "maximum_characters": 4000,
            "reasons": {},
        }

    def paths(self, method: str = "POST") -> list[str]:
        """Paths of the requests of one method, in order."""
        return [request.path for request in self.requests if request.method == method]

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        self.requests.append(request)
        time.sleep(self.delay)
        if self.raw is not None:
            return self.raw
        if request.path in self.statuses:
            return self.statuses[request.path], {"title": "scripted"}
        if (request.method, request.path) == ("POST", "/v1/reviews"):
            return 200, self._review(request.json)
        if (request.method, request.path) == ("GET", "/v1/reviews"):
            same = {name: request.query.get(name) for name in ("session_id", "tool_call_id")}
            items = [review for review in self.reviews if all(review[name] == same[name] for name in same)]
            return 200, {"items": items[::-1], "next": None}
        if request.path == "/v1/policy":
            return (304, None) if request.headers.get("if-none-match") == self.etag else (200, self.policy)
        return 200, {"items": self.news, "more": 0} if request.path == "/v1/decisions/news" else {}

    def _review(self, call: dict[str, Any]) -> dict[str, Any]:
        reviews = []
        for position, candidate in enumerate(call["candidates"]):
            verdict = self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]
            reviews.append(
                {
                    "id": f"r{len(self.reviews) + position}",
                    "tool_call_id": call["tool_call_id"],
                    "session_id": call["session_id"],
                    "position": position,
                    "key": candidate.get("key"),
                    "text": candidate["text"],
                    "verdict": verdict,
                    "reasons": ["too_specific"] if verdict == "rewrite" else [],
                    "message": f"Message {position}: {verdict}.",
                    "fault": self.fault if verdict == "held" else None,
                }
            )
        self.reviews += reviews
        worst = next((review["verdict"] for review in reviews if review["verdict"] != "approve"), "approve")
        return {"verdict": worst, "reviews": reviews, "context": self.context, "replayed": False}


def _handler(service: ScriptedService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = service.answer(Request(self.command, self.path, headers, body))
            with contextlib.suppress(OSError):
                self.wfile.write(reply if isinstance(reply, bytes) else _http(*reply, service.etag))

        do_GET = do_POST = do_PUT = _any  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _http(status: int, content: Any, etag: str) -> bytes:
    body = b"" if content is None else json.dumps(content).encode()
    head = f"HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\nETag: {etag}\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


@contextlib.contextmanager
def scripted_service(
    configure: Callable[[ScriptedService], None] | None = None, service: ScriptedService | None = None
) -> Iterator[ScriptedService]:
    """Run a scripted service on a free port: a plain one, unless another is given."""
    service = service or ScriptedService()
    if configure:
        configure(service)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(service))
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
