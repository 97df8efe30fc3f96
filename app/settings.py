"""Read the environment once, into one validated object; the only module that may look at it."""

import ipaddress
import os
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from app.errors import ConfigurationError
from app.schemas.vocabulary import AtCap, Level
from app.strength import weakness

PORT = 8711


class Settings(BaseSettings):
    """All settings, each from the environment variable ``MEMORY_BOUNCER_<NAME>``."""

    model_config = SettingsConfigDict(
        env_prefix="MEMORY_BOUNCER_", env_file=None, env_ignore_empty=True, frozen=True, extra="ignore"
    )

    database_url: str = Field(
        default="", description="URL of an SQLite or PostgreSQL database; empty means SQLite in the data folder."
    )
    data_dir: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("memory-bouncer", appauthor=False)),
        description="Where the SQLite database lies.",
    )
    host: str = Field(default="127.0.0.1", description="Address that `bouncer serve` listens on.")
    port: int = Field(default=PORT, ge=0, le=65535, description="Port that `bouncer serve` listens on.")
    allowed_hosts: list[str] = Field(
        default=["127.0.0.1", "localhost", "[::1]"],
        description="Host names under which requests are accepted (JSON list); guards against DNS rebinding.",
    )
    secret: SecretStr | None = Field(
        default=None,
        description="Secret of the server, under which keys are hashed; needed once there are keys.",
    )
    level: Level = Field(
        default=Level.OFFLINE, description="Level of projects that have none of their own; model needs an opt-in."
    )
    budget_microdollars: int = Field(
        default=0,
        ge=0,
        description="The team's budget a calendar month (UTC) in micro-dollars, if none is set by API; 0 for none.",
    )
    at_cap: AtCap = Field(
        default=AtCap.OFFLINE,
        description="With that budget used up, the offline reviewer answers, nobody does (hold), or all pass (allow).",
    )
    model_calls_per_minute: int = Field(
        default=120, ge=0, description="Most texts a minute that go to the model for one key or project; 0: no limit."
    )
    cascade: Literal["on", "off"] = Field(
        default="on", description="Whether the model is spared what the offline reviewer is nearly certain of."
    )
    anthropic_api_key: SecretStr | None = Field(default=None, description="Key of the second model.")
    anthropic_base_url: str = Field(
        default="https://api.anthropic.com", description="Any server that speaks the Messages API."
    )
    anthropic_headers: dict[str, str] = Field(default={}, description="Further headers for that server (JSON object).")
    model: str = Field(default="claude-haiku-5-5", description="The second model; its price must be known.")
    prices_file: Path | None = Field(default=None, description="Price list to use instead of the shipped one.")
    model_max_tokens: int = Field(default=1024, ge=256, le=8192, description="Most output tokens a judgement may take.")
    model_timeout_seconds: float = Field(
        default=20.0, gt=0, le=120, description="Longest time for a judgement, retries included."
    )
    embeddings_url: str | None = Field(
        default=None, description="Base URL of an OpenAI-compatible embeddings API; empty means the embedded model."
    )
    embeddings_model: str = Field(default="default", description="The embedding model's name there.")
    embeddings_key: SecretStr | None = Field(default=None, description="Key of the embeddings API.")
    pending_minutes: float = Field(
        default=10.0, gt=0, description="How long an approved entry waits for the store's report."
    )
    held_days: float = Field(
        default=14.0, gt=0, description="How long a held text waits for a decision, and a told approval for its store."
    )
    neighbours: int = Field(default=8, ge=1, le=32, description="Most entries shown to a reviewer.")
    passages: int = Field(default=4, ge=0, le=16, description="Most document passages shown to a reviewer.")
    busy_timeout_seconds: float = Field(default=5.0, gt=0, description="How long a wait for the database may last.")
    drain_seconds: float = Field(
        default=8.0,
        ge=0,
        le=120,
        description="How long reviews under way may take when the service is told to stop; then they are held.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("secret")
    @classmethod
    def _strong(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and (fault := weakness(secret.get_secret_value())) is not None:
            raise ValueError(f"{fault}; make one with `openssl rand -hex 32`")
        return secret

    @property
    def has_model(self) -> bool:
        """Whether a second model is configured: a key, a server of one's own, or headers that let in."""
        own_server = self.anthropic_base_url != type(self).model_fields["anthropic_base_url"].default
        return self.anthropic_api_key is not None or own_server or bool(self.anthropic_headers)

    @property
    def exposed(self) -> bool:
        """Whether other machines can reach the address that is listened on."""
        if self.host == "localhost":
            return False
        try:
            return not ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return True

    @property
    def resolved_database_url(self) -> str:
        """The database's URL, with the default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir / 'bouncer.db'}"


def load_settings() -> Settings:
    """Settings from the environment.

    Raises:
        ConfigurationError: a value is unusable; names the variable, never its value.
    """
    try:
        return Settings()
    except ValidationError as exc:
        faults = "; ".join(
            f"MEMORY_BOUNCER_{'_'.join(str(part) for part in fault['loc']).upper()}: {fault['msg']}"
            for fault in exc.errors()
        )
        # `from None`: the cause repeats the rejected values, which may be a key.
        raise ConfigurationError(f"Unusable setting. {faults}") from None
    except SettingsError as exc:
        named = re.search(r'field "(\w+)"', str(exc))
        variable = f"MEMORY_BOUNCER_{named[1].upper()}" if named else "A list or object"
        raise ConfigurationError(f"Unusable setting. {variable}: it must be written as JSON.") from None


@cache
def app_version() -> str:
    """The installed version of the distribution."""
    try:
        return version("memory-bouncer")
    except PackageNotFoundError:
        return "0+unknown"


def resource(*parts: str) -> Path:
    """Path of a file that lies beside the package in a checkout and inside it in a wheel.

    Raises:
        ConfigurationError: the installation lacks the file.
    """
    package = Path(__file__).resolve().parent
    for root in (package.parent, package / "_data"):
        path = root.joinpath(*parts)
        if path.exists() and (root != package.parent or (root / "pyproject.toml").exists()):
            return path
    raise ConfigurationError(f"The installation lacks {'/'.join(parts)}; install memory-bouncer again.")


def claude_folder() -> Path:
    """The folder of Claude Code's own settings."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def child_environment(**changes: str) -> dict[str, str]:
    """The environment with some variables changed, for a program to be started."""
    return {**os.environ, **changes}
