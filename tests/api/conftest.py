"""One service for all tests here; each test has a project of its own in it."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from app import door
from tests.support.http_service import http_service
from tests.support.postgres import Postgres
from tests.support.team import Team, team

_projects = itertools.count(1)


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def http(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with ExitStack() as stack:
        settings = {}
        if request.param == "postgresql":
            server: Postgres = request.getfixturevalue("postgres")
            settings["database_url"] = stack.enter_context(server.database())
        yield stack.enter_context(http_service(tmp_path_factory.mktemp("service"), **settings))


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def keyed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A service that wants keys."""
    with ExitStack() as stack:
        settings = {}
        if request.param == "postgresql":
            server: Postgres = request.getfixturevalue("postgres")
            settings["database_url"] = stack.enter_context(server.database())
        yield stack.enter_context(team(tmp_path_factory.mktemp("keyed"), **settings))


@pytest.fixture
def project() -> str:
    return f"github.com/acme/app-{next(_projects)}"


@pytest.fixture
def problem() -> Callable[[httpx.Response], dict[str, object]]:
    """Checks that a response is a problem (RFC 9457) and gives its body."""

    def check(response: httpx.Response) -> dict[str, object]:
        assert response.headers["content-type"] == "application/problem+json"
        body: dict[str, object] = response.json()
        assert set(body) == {"type", "title", "status", "detail", "instance"}
        assert body["status"] == response.status_code
        assert str(body["type"]).startswith("urn:memory-bouncer:problem:")
        assert body["detail"]
        return body

    return check


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests bring as many wrong keys as they like."""
    monkeypatch.setattr(door, "WRONG_KEYS_ALLOWED", 10**6)
