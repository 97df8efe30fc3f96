"""A service that wants keys, over real HTTP, with clients for whoever needs one.

with team(tmp_path) as ours:
    ben = ours.client(Role.MEMBER, "github.com/acme/app")
    assert ben.get("/v1/reviews").status_code == 200
"""

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from app.schemas.vocabulary import Role
from tests.support.http_service import http_service

SECRET = secrets.token_hex(32)


def bearer(key: str) -> dict[str, str]:
    """The header that brings a key."""
    return {"Authorization": f"Bearer {key}"}


class Team:
    """A running service, the key of its first admin, and further keys on demand."""

    def __init__(self, anybody: httpx.Client, clients: contextlib.ExitStack) -> None:
        """Shut an open service by making its first key.

        Args:
            anybody: a client of the service without a key.
            clients: closes those that are made here.
        """
        self.anybody = anybody
        self._clients = clients
        self.root = self._made(Role.ADMIN, {})

    def made(self, role: Role, *projects: str, **more: Any) -> dict[str, Any]:
        """A new key with its details; bound to the projects, or to none if none are given."""
        return self._made(role, bearer(self.root["key"]), *projects, **more)

    def client(self, role: Role, *projects: str) -> httpx.Client:
        """A client with a new key."""
        return self.holder(self.made(role, *projects)["key"])

    def holder(self, key: str) -> httpx.Client:
        """A client with this key."""
        client = httpx.Client(base_url=self.anybody.base_url, timeout=30, trust_env=False, headers=bearer(key))
        return self._clients.enter_context(client)

    def _made(self, role: Role, headers: dict[str, str], *projects: str, **more: Any) -> dict[str, Any]:
        asked = {"name": f"a {role}", "role": role, "projects": list(projects) or None, **more}
        response = self.anybody.post("/v1/keys", json=asked, headers=headers)
        assert response.status_code == 201, response.text
        made: dict[str, Any] = response.json()
        return made


@contextlib.contextmanager
def team(folder: Path, **settings: Any) -> Iterator[Team]:
    """A running service that wants keys, on a database of its own; ends with the block."""
    with http_service(folder, secret=SECRET, **settings) as anybody, contextlib.ExitStack() as clients:
        yield Team(anybody, clients)
