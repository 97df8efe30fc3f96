"""Every setting is documented, and nothing is documented that is none."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

from app.errors import ConfigurationError
from app.settings import Settings, load_settings
from hooks import store_hygiene_gate as hook

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SERVICE, HOOK = PAGE.split("\n## The hook\n")
ROWS = {
    cells[0].strip("`"): cells[1]
    for line in SERVICE.splitlines()
    if line.startswith("| `MEMORY_BOUNCER_") and (cells := [cell.strip() for cell in line.strip("|").split("|")])
}


def variable(name: str) -> str:
    """The environment variable of a setting of the service."""
    return f"MEMORY_BOUNCER_{name.upper()}"


def test_the_page_lists_the_services_settings_and_no_others() -> None:
    assert list(ROWS) == [variable(name) for name in Settings.model_fields]


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_page_tells_the_true_default(name: str) -> None:
    default: Any = Settings.model_fields[name].default
    told = ROWS[variable(name)]
    if default in (None, "", PydanticUndefined):
        assert not told.startswith("`"), "a default that cannot be written is told in words"
    else:
        written = default if isinstance(default, str) else json.dumps(default)
        assert told == f"`{re.sub(r'[.]0$', '', written)}`"


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] in ([], ["log_level"])


def test_the_page_lists_the_hooks_settings() -> None:
    for name in (*hook._SETTINGS, "patterns", "enabled_rules", "disabled_rules", "tools"):
        assert f"`{name}`" in HOOK, name
    for name in ("url", "key", "on_failure", "deadline", "reminder", "level", "documents", "config"):
        assert f"`{variable(name)}`" in HOOK, name


def test_the_page_tells_the_hooks_true_defaults() -> None:
    config = hook.Config()
    for line in HOOK.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if line.startswith("| ") and (name := cells[1]) in ("url", "on_failure", "deadline_seconds", "reminder"):
            assert cells[2] == f"{getattr(config, name)}".removesuffix(".0")
        if line.startswith("| ") and cells[1] in ("minimum_words", "maximum_characters"):
            assert cells[2] == str(getattr(config, cells[1]))


@pytest.mark.parametrize("path", ["README.md", "docs", "compose.yaml", "Dockerfile", "SECURITY.md", "CONTRIBUTING.md"])
def test_no_page_names_a_setting_that_there_is_not(path: str) -> None:
    known = {*ROWS, *re.findall(r"`(MEMORY_BOUNCER_\w+)`", HOOK)}
    place = ROOT / path
    files = sorted(place.glob("*.md")) if place.is_dir() else [place] if place.exists() else []
    for file in files:
        assert set(re.findall(r"MEMORY_BOUNCER_[A-Z_]*[A-Z]", file.read_text(encoding="utf-8"))) <= known


# --- reading the environment --------------------------------------------------------------------------------------


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_PORT", "9000")
    monkeypatch.setenv("MEMORY_BOUNCER_ALLOWED_HOSTS", '["bouncer.internal"]')
    settings = load_settings()
    assert (settings.port, settings.allowed_hosts) == (9000, ["bouncer.internal"])


def test_a_variable_that_is_set_to_nothing_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose files hand on what their user did not set."""
    for name in Settings.model_fields:
        monkeypatch.setenv(variable(name), "")
    assert load_settings() == Settings()
    assert load_settings().anthropic_api_key is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "xyzzy"), ("SECRET", "xyzzy"), ("ALLOWED_HOSTS", "xyzzy"), ("LEVEL", "xyzzy"), ("PORT", "70000")],
)
def test_an_unusable_value_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"MEMORY_BOUNCER_{name}", value)
    with pytest.raises(ConfigurationError) as raised:
        load_settings()
    assert f"MEMORY_BOUNCER_{name}" in raised.value.detail
    assert value not in raised.value.detail
    assert raised.value.__cause__ is None


def test_the_default_data_folder_is_the_users() -> None:
    assert load_settings().resolved_database_url.endswith("/.local/share/memory-bouncer/bouncer.db")
