"""The door of the service: what must hold of a request before any route sees it.

It refuses foreign host names (DNS rebinding), foreign pages (cross-site requests) and callers without a good key; it
says who the caller is, and lets no body through that is too long. What is not named open is shut, also a path that
there is not.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import keys
from app.callers import LOCAL, Caller
from app.db import Database, utc_now
from app.errors import BouncerError, ConfigurationError, HostRefused, TooManyRequests, Unauthorized, Unavailable
from app.settings import Settings

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
LONGEST_BODY = 16 * 2**20

# How long a service without keys may not notice that its first one was made by another process.
LOOK_EVERY_SECONDS = 1.0

# A misconfigured hook tries its wrong key once a tool call; more than this in a minute is guessing, or a loop.
WRONG_KEYS_ALLOWED = 20
WRONG_KEYS_SECONDS = 60
MOST_ADDRESSES = 10_000

log = structlog.get_logger(__name__)


class WrongKeys:
    """Counts wrong keys by the address that they come from, in this process, in windows of a minute.

    Only the bearers of wrong keys are sent away by it; a good key is let in whatever else comes from its address, which
    a whole office may share. Guessing is hopeless by the keys' length; this tells a caller to stop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def count(self, address: str) -> None:
        """Count one more.

        Raises:
            TooManyRequests: there were too many in this window.
        """
        now = self._clock()
        end, number = self._windows.pop(address, (0.0, 0))
        if now >= end:
            end, number = now + WRONG_KEYS_SECONDS, 0
        self._windows[address] = (end, number + 1)
        if len(self._windows) > MOST_ADDRESSES:
            self._windows.popitem(last=False)
        if number >= WRONG_KEYS_ALLOWED:
            raise TooManyRequests("Too many wrong keys came from this address.", max(1, round(end - now)))


class Doorkeeper:
    """Tells from a request's key who the caller is. No answer is kept: a revoked key is out with the next request.

    A service that listens on this machine only, and in whose database there has never been a key, is open to whoever
    sits at the machine. The first key shuts it, here at once, and within a second where another process made it.
    """

    def __init__(self, database: Database, settings: Settings, *, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._pepper = keys.Pepper(settings.secret) if settings.secret else None
        self._now = now
        self._exposed = settings.exposed
        self._shut = settings.exposed
        self._looked = float("-inf")
        self._used: dict[str, datetime] = {}
        self._noted: dict[str, datetime] = {}
        self._wrong = WrongKeys()

    def check(self) -> None:
        """See to it that a service that wants keys can let somebody in.

        Raises:
            ConfigurationError: it could not, and why.
        """
        with self._database.read() as session:
            self._shut = self._shut or keys.exist(session)
            if not self._shut:
                return
            try:
                keys.check_usable(session, self.pepper, self._now())
            except ConfigurationError as exc:
                why = "It listens beyond this machine" if self._exposed else "There are keys in its database"
                raise ConfigurationError(f"{why}, so the service wants keys. {exc.detail}") from exc

    @property
    def pepper(self) -> keys.Pepper:
        """The server's secret.

        Raises:
            ConfigurationError: none is configured.
        """
        if self._pepper is None:
            raise ConfigurationError(keys.NO_PEPPER)
        return self._pepper

    async def caller(self, authorization: str, address: str) -> Caller:
        """Who asks.

        Raises:
            Unauthorized: there is no key, or no good one.
            TooManyRequests: too many that are not good came from this address.
            Unavailable: the database does not answer.
        """
        if not self._shut and time.monotonic() - self._looked < LOOK_EVERY_SECONDS:
            return LOCAL
        caller = await run_in_threadpool(self._caller, authorization)
        if caller is not None:
            return caller
        if not authorization:
            raise Unauthorized("This service wants a key: set MEMORY_BOUNCER_KEY for the hook.")
        self._wrong.count(address)
        raise Unauthorized("This key is malformed, unknown, expired or revoked; ask your administrator for another.")

    def shut(self) -> None:
        """A key has been made here."""
        self._shut = True

    def note_use(self) -> None:
        """Write down in which hour keys were used; not within a request, which need not wait for it.

        Raises:
            Unavailable: the database does not answer.
        """
        used, self._used = self._used, {}
        if used:
            with self._database.write() as session:
                keys.note_use(session, used)
            self._noted |= used

    def _caller(self, authorization: str) -> Caller | None:
        with self._database.read() as session:
            if not self._shut:
                if not keys.exist(session):
                    self._looked = time.monotonic()
                    return LOCAL
                self._shut = True
            if self._pepper is None:
                log.error("keys.no_secret", hint=keys.NO_PEPPER)
                return None
            scheme, _, given = authorization.partition(" ")
            given = given.strip() if scheme.lower() == "bearer" else ""
            caller = keys.identify(session, self._pepper, given, self._now())
        if caller is not None:
            hour = self._now().replace(minute=0, second=0, microsecond=0)
            if self._noted.get(caller.key_id) != hour:
                self._used[caller.key_id] = hour
        return caller


class Door:
    """The middleware before all routes."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        allowed: Iterable[str],
        keeper: Doorkeeper,
        answer: Callable[[BouncerError, str], Response],
    ) -> None:
        """Guard an app.

        Args:
            app: what lies behind the door.
            allowed: host names under which requests are accepted; ``*`` for all.
            keeper: says who the caller is.
            answer: the response to an error and a path.
        """
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed)
        self._keeper = keeper
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or answer it with a problem."""
        if scope["type"] == "http":
            try:
                await self._admit(scope)
            except BouncerError as fault:
                if isinstance(fault, Unavailable):
                    log.warning("door.unavailable", detail=fault.detail)
                await self._answer(fault, scope["path"])(scope, receive, send)
                return
        await self._app(scope, _limited(receive), send)

    async def _admit(self, scope: Scope) -> None:
        headers = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}
        if "*" not in self._allowed:
            if _host_name("//" + headers.get(b"host", "")) not in self._allowed:
                raise HostRefused("This host name is not ours; MEMORY_BOUNCER_ALLOWED_HOSTS lists those that are.")
            origin = headers.get(b"origin")
            if origin is not None and _host_name(origin) not in self._allowed:
                raise HostRefused("Requests from this origin are refused.")
        if scope["path"] not in OPEN_PATHS:
            address = scope["client"][0] if scope.get("client") else ""
            caller = await self._keeper.caller(headers.get(b"authorization", ""), address)
            scope["state"] = {**scope.get("state", {}), "caller": caller}


def _limited(receive: Receive) -> Receive:
    """The same messages, but no body longer than ``LONGEST_BODY`` is read into memory."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LONGEST_BODY:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request's body is too long.")
        return message

    return limited


def _host_name(url: str) -> str:
    try:
        name = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name
