"""Where keys are made and the audit log is read: in the database, on the server's machine; or over HTTP, from afar."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol, TypeVar

from app import audit_log, keys
from app.callers import LOCAL
from app.cli.remote import ask
from app.db import Database, open_database, utc_now
from app.errors import ConfigurationError
from app.logs import configure_logs
from app.schemas.fields import Model
from app.schemas.keys import AuditPage, KeyIn, KeyMade, KeyOut, KeyPage, RotationIn
from app.settings import Settings

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
        ConfigurationError: the database cannot be opened.
    """
    if url:
        yield _There(url)
        return
    configure_logs("error")  # stdout is the key's
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
        self._url = url

    def create(self, asked: KeyIn) -> KeyMade:
        return self._ask(KeyMade, "POST", "/v1/keys", asked)

    def rotate(self, key_id: str, overlap_hours: int) -> KeyMade:
        return self._ask(KeyMade, "POST", f"/v1/keys/{key_id}/rotate", RotationIn(overlap_hours=overlap_hours))

    def revoke(self, key_id: str) -> KeyOut:
        return self._ask(KeyOut, "DELETE", f"/v1/keys/{key_id}")

    def keys(self, before: str | None) -> KeyPage:
        return self._ask(KeyPage, "GET", "/v1/keys", before=before, count=PAGE)

    def events(self, before: str | None, count: int) -> AuditPage:
        return self._ask(AuditPage, "GET", "/v1/audit-log", before=before, count=count)

    def _ask(
        self, kind: type[Answer], method: str, path: str, body: Model | None = None, **query: str | int | None
    ) -> Answer:
        asked = body.model_dump(mode="json") if body else None
        return kind.model_validate(ask(self._url, method, path, asked, answers=kind, **query))
