"""Keys and the audit log."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from app.schemas.fields import WHOLE, Model, Name, storable
from app.schemas.vocabulary import Role

LONGEST_LIFE_DAYS = 3650
LONGEST_OVERLAP_HOURS = 24 * 30


class KeyIn(Model):
    """A key to be made."""

    name: Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1, max_length=100)] = Field(
        description="Whose key it is, for people."
    )
    role: Role
    projects: Annotated[list[Name], Field(min_length=1, max_length=200)] | None = Field(
        description="Names of the projects that the key is bound to; null for all. An admin's key is bound to none."
    )
    expires_in_days: Annotated[int, Field(ge=1, le=LONGEST_LIFE_DAYS), WHOLE] | None = Field(
        default=None, description="Null for never."
    )


class KeyOut(Model):
    """A key without its secret, which nobody can show again."""

    id: str
    name: str
    role: Role
    projects: list[str] | None = Field(description="Names of the projects that it is bound to; null for all.")
    created_by: str = Field(description="Id of the key that made it; `local` for the command on the server's machine.")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    former_until: datetime | None = Field(description="Until when the secret before the last rotation is good as well.")
    used_at: datetime | None = Field(description="When it was last used, to the hour.")


class KeyMade(Model):
    """A new key, or a known one with its new secret. The only time that the secret is shown."""

    key: str = Field(repr=False, description="To be set as MEMORY_BOUNCER_KEY; nobody can show it again.")
    details: KeyOut


class RotationIn(Model):
    """How a key gets a new secret."""

    overlap_hours: Annotated[int, Field(ge=0, le=LONGEST_OVERLAP_HOURS), WHOLE] = Field(
        default=24, description="How long the former secret is good as well."
    )


class KeyPage(Model):
    """Keys, newest first; ``next`` is the cursor of the following page."""

    items: list[KeyOut]
    next: str | None


class AuditEventOut(Model):
    """An administrative change."""

    id: str
    at: datetime
    key_id: str = Field(description="Id of the key that did it; `local` where none was needed.")
    action: str = Field(description="The thing and what was done to it, such as `key.revoked`.")
    subject: str = Field(description="Id or name of the thing.")
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditPage(Model):
    """Lines of the audit log, newest first; ``next`` is the cursor of the following page."""

    items: list[AuditEventOut]
    next: str | None
