"""What the service says of itself: errors, and whether it is well."""

from typing import Literal

from pydantic import BaseModel, Field

from app.schemas.fields import Model


class Problem(BaseModel):
    """An error (RFC 9457). ``type`` is stable; ``detail`` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


class Health(Model):
    """Whether the service lives, or is ready, and why not."""

    status: Literal["ok", "unavailable"]
    version: str
    checks: dict[str, str] = Field(default={})
