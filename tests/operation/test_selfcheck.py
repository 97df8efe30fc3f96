"""Settings that would make the service useless are refused at start, in one line that says what to do."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.errors import ConfigurationError
from app.main import build_model, build_pipeline
from app.schemas.vocabulary import Level
from app.selfcheck import faults
from app.settings import Settings
from tests.support.purse import Purse

NOW = datetime(2026, 3, 14, tzinfo=UTC)
KEY = SecretStr("test-" + "key-" * 4)


def said(now: datetime = NOW, **changes: Any) -> list[str]:
    """The faults of these settings."""
    settings = Settings.model_validate(changes)
    return list(faults(settings, build_model(settings), now))


def test_the_defaults_are_useful() -> None:
    assert said() == []


def test_each_level_with_what_it_needs_is_useful() -> None:
    assert said(level="gate") == []
    assert said(level="model", anthropic_api_key=KEY, budget_microdollars=5_000_000) == []
    assert said(anthropic_api_key=KEY) == [], "a project may opt in, and a budget may come"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"level": "model"}, "MEMORY_BOUNCER_ANTHROPIC_API_KEY"),
        ({"anthropic_api_key": KEY, "budget_microdollars": 100}, "is 100, but a single review may cost"),
        ({"allowed_hosts": []}, "MEMORY_BOUNCER_ALLOWED_HOSTS"),
    ],
)
def test_what_cannot_work_is_named(changes: dict[str, Any], words: str) -> None:
    (fault,) = said(**changes)
    assert words in fault
    assert "\n" not in fault


@pytest.mark.parametrize("year", [1970, 2024, 2101])
def test_a_clock_that_is_absurd_is_named(year: int) -> None:
    (fault,) = said(datetime(year, 1, 1, tzinfo=UTC))
    assert str(year) in fault


def test_a_model_of_ones_own_that_costs_nothing_needs_no_budget(tmp_path: Path) -> None:
    free = {"date": "2026-01-01", "source": "own", "models": {"own": dict.fromkeys(
        ("input", "output", "cache_write", "cache_read"), 0)}}  # fmt: skip
    prices = tmp_path / "prices.json"
    prices.write_text(str(free).replace("'", '"'), encoding="utf-8")
    own: dict[str, Any] = {
        "level": "model",
        "anthropic_base_url": "http://127.0.0.1:1",
        "model": "own",
        "prices_file": prices,
    }
    assert said(**own) == []
    build_pipeline(Settings.model_validate({"data_dir": tmp_path, **own})).index.database.close()


def test_level_model_for_all_without_any_budget_is_refused_until_one_is_set(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, level=Level.MODEL, anthropic_api_key=KEY)
    with pytest.raises(ConfigurationError, match="bouncer budget set"):
        build_pipeline(settings)
    purse = Purse(settings.resolved_database_url)
    purse.put(1_000_000, enabled=False)
    purse.database.close()
    build_pipeline(settings).index.database.close()  # switched off is not forgotten


def test_nothing_is_made_where_the_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        build_pipeline(Settings(data_dir=tmp_path / "data", allowed_hosts=[]))
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    build_pipeline(Settings(data_dir=tmp_path)).index.database.close()
    with sqlite3.connect(tmp_path / "bouncer.db") as database:
        database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    url = f"sqlite:///file:{tmp_path / 'bouncer.db'}?mode=ro&uri=true"
    with pytest.raises(ConfigurationError, match=r"cannot be written|Cannot open"):
        build_pipeline(Settings(database_url=url))
