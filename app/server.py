"""Listen: set up the logs, and run the app under uvicorn."""

import errno
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import FrameType

import structlog
import uvicorn
from fastapi import FastAPI

from app.db import utc_now
from app.errors import ConfigurationError
from app.in_flight import InFlight
from app.logs import configure_logs
from app.main import build_app
from app.settings import Settings, app_version

log = structlog.get_logger(__name__)

START_SECONDS = 30
# For requests other than reviews, once those have been drained.
GRACE_SECONDS = 5


def run(settings: Settings, *, started: Callable[[str], None], now: Callable[[], datetime] = utc_now) -> None:
    """Serve by this clock until stopped; the log, and ``started``, are told the URL once requests are answered.

    Raises:
        ConfigurationError: the address cannot be used, or the settings cannot work.
    """
    configure_logs(settings.log_level)
    app = build_app(settings, now=now)  # before anybody can knock: it refuses to be exposed without a key
    listener = _listen(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"

    def announce() -> None:
        # A warning, so that no level hides it: with port 0 nobody else knows the address.
        log.warning("listening", url=url, version=app_version(), process=os.getpid())
        started(url)

    _Server(app, settings, announce).run(sockets=[listener])


@contextmanager
def serve_in_background(settings: Settings) -> Iterator[str]:
    """Serve in a thread of this process for as long as the context lasts; gives the URL.

    Raises:
        ConfigurationError: the address cannot be used, or the settings cannot work.
    """
    listener = _listen(settings.host, settings.port)
    ready = threading.Event()
    server = _Server(build_app(settings), settings, ready.set)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    try:
        ready.wait(START_SECONDS)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


class _Server(uvicorn.Server):
    """Uvicorn, telling when it answers, and letting reviews end before it goes."""

    def __init__(self, app: FastAPI, settings: Settings, announce: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,  # app.logs hears it
                access_log=False,  # app.access writes it
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._in_flight: InFlight = app.state.pipeline.in_flight
        self._drain_seconds = settings.drain_seconds
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell."""
        await super().startup(sockets=sockets)
        if self.started:
            self._announce()

    async def main_loop(self) -> None:
        """Serve until told to stop; then go on listening, no longer ready, until the reviews under way have ended."""
        await super().main_loop()
        await self._in_flight.drain(self._drain_seconds)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order, which is a success where a supervisor asked for it; a second Ctrl-C stops at once."""
        if self.should_exit and sig == signal.SIGINT:
            self._in_flight.hurry()
        super().handle_exit(sig, frame)
        if sig == signal.SIGTERM:
            self._captured_signals.remove(sig)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the address.

    Raises:
        ConfigurationError: it cannot, and why.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise ConfigurationError(f"Cannot listen on {host}: {exc.strerror or exc}.") from exc
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as exc:
        listener.close()
        if exc.errno == errno.EADDRINUSE:
            hint = "is taken: is the service running already? Choose another with --port (0 takes a free one)."
        elif exc.errno == errno.EACCES:
            hint = "may not be used by this account: choose one above 1023 with --port."
        else:
            hint = f"cannot be used: {exc.strerror or exc}."
        raise ConfigurationError(f"Port {port} on {host} {hint}") from exc
    return listener
