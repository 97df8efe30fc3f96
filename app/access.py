"""Notes each request: one line in the log, one count in the metrics, and an id that ties all its lines together.

The id is the trace id of the caller's `traceparent` header (W3C Trace Context) or a fresh one; it comes back as
`X-Request-ID`. Of the request itself only the method and the template of its route are kept: paths hold names of
projects, and query strings what was searched for.
"""

import re
import secrets
import time
from http import HTTPMethod

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.metrics import Metrics

log = structlog.get_logger(__name__)

# Asked for every few seconds by machines.
ROUTINE = frozenset({"/healthz", "/readyz", "/metrics"})
METHODS = frozenset(method.value for method in HTTPMethod)
TRACEPARENT = re.compile(rb"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
HUNG_UP = 499
"""Status under which a request is noted whose client went away before it was answered; none that is ever sent."""


class Access:
    """The outermost part of the app."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note how it ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["request_id"] = request_id = _trace_id(scope)
        status = HUNG_UP
        noted = False
        started = time.perf_counter()

        def note() -> None:
            nonlocal noted
            if not noted:
                noted = True
                self._note(scope, status, time.perf_counter() - started)

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            elif not message.get("more_body", False):
                note()  # before the end is sent: who has the whole answer finds it counted
            await send(message)

        with structlog.contextvars.bound_contextvars(request=request_id):
            try:
                await self._app(scope, receive, noting)
            except Exception:
                status = 500
                raise
            finally:
                note()

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        route = route_of(scope)
        self._metrics.answered(method, route, status, seconds)
        note = log.debug if route in ROUTINE and status < 400 else log.info
        note("request", method=method, route=route, status=status, ms=round(seconds * 1_000, 1))


def route_of(scope: Scope) -> str:
    """The template of the route that a request took."""
    return getattr(scope.get("route"), "path", None) or "unknown"


def _trace_id(scope: Scope) -> str:
    given = next((value for name, value in scope["headers"] if name == b"traceparent"), b"")
    found = TRACEPARENT.fullmatch(given)
    return found[1].decode() if found else secrets.token_hex(16)
