"""Listen: check the address, set up the logs, and run the app under uvicorn."""

import errno
import ipaddress
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
import uvicorn

from app.errors import ConfigurationError
from app.main import build_app
from app.settings import Settings

GRACE_SECONDS = 30


def run(settings: Settings, *, started: Callable[[str], None]) -> None:
    """Serve until stopped; ``started`` is called with the URL once requests are answered.

    Raises:
        ConfigurationError: the address cannot be used, or the settings cannot work.
    """
    check_exposure(settings)
    configure_logs(settings.log_level)
    listener = _listen(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        build_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    _Server(config, lambda: started(f"http://{shown}:{port}")).run(sockets=[listener])


@contextmanager
def serve_in_background(settings: Settings) -> Iterator[str]:
    """Serve in a thread of this process for as long as the context lasts; gives the URL.

    Raises:
        ConfigurationError: the address cannot be used, or the settings cannot work.
    """
    listener = _listen(settings.host, settings.port)
    ready = threading.Event()
    config = uvicorn.Config(build_app(settings), log_level="error", access_log=False)
    server = _Server(config, ready.set)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    try:
        ready.wait(GRACE_SECONDS)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def check_exposure(settings: Settings) -> None:
    """Refuse to be reachable from other machines without a key.

    Raises:
        ConfigurationError: the address is not this machine's own and no key is set.
    """
    if settings.service_key is None and not is_loopback(settings.host):
        raise ConfigurationError(
            f"{settings.host} can be reached from other machines: set MEMORY_BOUNCER_SERVICE_KEY to a secret of at "
            "least 24 characters (and MEMORY_BOUNCER_KEY to the same for the hooks), or listen on 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def configure_logs(level: str) -> None:
    """One line of JSON for each event, on stderr; texts of memories are in none of them."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


class _Server(uvicorn.Server):
    """Uvicorn, telling when it answers."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell."""
        await super().startup(sockets=sockets)
        if self.started:
            self._announce()


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
