"""Where keys are made and the audit log is read: in the database, on the server's machine; or over HTTP, from afar."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import urlencode

from pydantic import ValidationError

from app import audit_log, keys
from app.callers import LOCAL
from app.db import Database, open_database, utc_now
from app.errors import ConfigurationError, Invalid, Unavailable
from app.schemas import AuditPage, KeyIn, KeyMade, KeyOut, KeyPage, Model, RotationIn
from app.settings import Settings
from hooks import store_hygiene_gate as hook

ANSWER_SECONDS = 30.0
PAGE = 200

Answer = TypeVar("Answer", bound=Model)


class KeyDesk(Protocol):
    """What can be done at either place."""

    def create(self, asked: KeyIn) -> KeyMade:
        """Make a key."""
        ...

    def rotate(self, key_id: str, overlap_hours: int) -> KeyMade:
        """Give a key a new secret."""
        ...

    def revoke(self, key_id: str) -> KeyOut:
        """Shut a key out."""
        ...

    def keys(self, before: str | None) -> KeyPage:
        """A page of keys, newest first."""
        ...

    def events(self, before: str | None, count: int) -> AuditPage:
        """A page of the audit log, newest first."""
        ...


@contextmanager
def key_desk(url: str | None, settings: Settings) -> Iterator[KeyDesk]:
    """The service at the address, asked with the hook's key; or without one the database of the settings.

    Raises:
        Invalid: the address is none.
        ConfigurationError: the database cannot be opened.
    """
    if url:
        yield _There(url)
        return
    database = open_database(settings)
    try:
        yield _Here(database, settings)
    finally:
        database.close()


class _Here:
    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._secret = settings.secret

    @property
    def _pepper(self) -> keys.Pepper:
        if self._secret is None:
            raise ConfigurationError(keys.NO_PEPPER)
        return keys.Pepper(self._secret)

    def create(self, asked: KeyIn) -> KeyMade:
        with self._database.write() as session:
            return keys.create(session, self._pepper, LOCAL, asked, utc_now())

    def rotate(self, key_id: str, overlap_hours: int) -> KeyMade:
        with self._database.write() as session:
            return keys.rotate(session, self._pepper, LOCAL, key_id, timedelta(hours=overlap_hours), utc_now())

    def revoke(self, key_id: str) -> KeyOut:
        with self._database.write() as session:
            return keys.revoke(session, LOCAL, key_id, utc_now())

    def keys(self, before: str | None) -> KeyPage:
        with self._database.read() as session:
            items = keys.page(session, before=before, count=PAGE)
        return KeyPage(items=items, next=items[-1].id if len(items) == PAGE else None)

    def events(self, before: str | None, count: int) -> AuditPage:
        with self._database.read() as session:
            items = audit_log.page(session, before=before, count=count)
        return AuditPage(items=items, next=items[-1].id if len(items) == count else None)


class _There:
    def __init__(self, url: str) -> None:
        self._config = hook.load_config(str(Path.cwd()))
        try:
            hook.split_url(url)
        except ValueError as exc:
            raise Invalid(f"{url} is no address of a service: it {exc}.") from exc
        self._config.url = url

    def create(self, asked: KeyIn) -> KeyMade:
        return self._ask(KeyMade, "POST", "/v1/keys", asked)

    def rotate(self, key_id: str, overlap_hours: int) -> KeyMade:
        return self._ask(KeyMade, "POST", f"/v1/keys/{key_id}/rotate", RotationIn(overlap_hours=overlap_hours))

    def revoke(self, key_id: str) -> KeyOut:
        return self._ask(KeyOut, "DELETE", f"/v1/keys/{key_id}")

    def keys(self, before: str | None) -> KeyPage:
        return self._ask(KeyPage, "GET", "/v1/keys?" + _query(before, PAGE))

    def events(self, before: str | None, count: int) -> AuditPage:
        return self._ask(AuditPage, "GET", "/v1/audit-log?" + _query(before, count))

    def _ask(self, kind: type[Answer], method: str, path: str, body: Model | None = None) -> Answer:
        end = time.monotonic() + ANSWER_SECONDS
        sent = body.model_dump(mode="json") if body else None
        try:
            answer, _ = hook.call_service(self._config, method, path, sent, end)
            return kind.model_validate(answer)
        except hook.ServiceFailure as failure:
            raise Unavailable(f"{failure}. {_HINTS.get(failure.status, '')}".strip()) from failure
        except ValidationError:
            # `from None`: the cause repeats what was answered, which may be a key.
            raise Unavailable(f"What answers at {self._config.url} is not this version of Memory Bouncer.") from None


_HINTS = {
    400: "The key of an admin is for all projects.",
    401: "Set MEMORY_BOUNCER_KEY to an admin's key, or work on the server's machine, without --url.",
    403: "MEMORY_BOUNCER_KEY must be an admin's key.",
    404: "There is no key with this id.",
    409: "The key is revoked or expired, or the service has no MEMORY_BOUNCER_SECRET.",
}


def _query(before: str | None, count: int) -> str:
    return urlencode({"count": count, **({"before": before} if before else {})})
