"""For every test: no way out of this machine, and an environment that knows nothing of the person who runs it."""

import ipaddress
import os
import sys
from pathlib import Path

import pytest
import structlog

pytest_plugins = ["tests.support.postgres"]
PRIVATE = ("MEMORY_BOUNCER_", "ANTHROPIC_", "XDG_")
FOLDERS = {
    "HOME": "",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}


def _only_loopback(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse connections to other machines; an audit hook, because no library can go round it."""
    if event != "socket.connect":
        return
    address = arguments[1]
    if not isinstance(address, tuple) or _is_loopback(str(address[0])):
        return
    raise AssertionError(f"a test tried to connect to {address}")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


sys.addaudithook(_only_loopback)


@pytest.fixture(autouse=True)
def _silent_logs() -> None:
    """Services in threads of a test run write no log, as pytest swaps the streams under them; those in processes do.

    Anew for each test: a command run in this process sets its own least level.
    """
    structlog.reset_defaults()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No settings or keys of the person, and a home folder that is empty."""
    for name in os.environ:
        if name.upper().startswith(PRIVATE) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    home: Path = tmp_path_factory.mktemp("home")
    for name, folder in FOLDERS.items():
        monkeypatch.setenv(name, str(home / folder))
