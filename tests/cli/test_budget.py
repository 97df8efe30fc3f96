"""`bouncer budget`: amounts as people write them, by the service or on its database."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.budget import dollars, microdollars
from app.errors import Invalid
from tests.support.commands import bouncer, complaint
from tests.support.service import running_service
from tests.support.team import SECRET

NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("written", "amount"),
    [("5", 5_000_000), ("$5", 5_000_000), ("0.50", 500_000), (" $0.000001 ", 1), ("0", 0), ("1000000", 10**12)],
)
def test_dollars_are_read_exactly(written: str, amount: int) -> None:
    assert microdollars(written) == amount


@pytest.mark.parametrize("written", ["", "$", "-1", "1e3", "5 EUR", "0.0000001", "1,5", "٥", "NaN"])
def test_what_is_no_amount_is_refused(written: str) -> None:
    with pytest.raises(Invalid):
        microdollars(written)


@given(st.integers(0, 10**14))
def test_what_is_shown_can_be_written_again(amount: int) -> None:
    assert microdollars(dollars(amount)) == amount


def shown(*arguments: str, **environment: str) -> Any:
    """What a command prints as JSON."""
    done = bouncer("budget", *arguments, "--json", **environment)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_budgets_are_set_listed_and_removed_on_the_database_of_this_machine(tmp_path: Path) -> None:
    here = {"MEMORY_BOUNCER_DATA_DIR": str(tmp_path)}
    assert "no budget" in bouncer("budget", "list", **here).stdout
    team = shown("set", "$5", **here)
    assert (team["scope"], team["period"], team["limit_microdollars"]) == ("team", "month", 5_000_000)
    shown("set", "0.5", "--project", "github.com/acme/app", "--period", "day", "--at-cap", "hold", **here)
    text = bouncer("budget", "list", **here)
    assert "$5.00" in text.stdout
    assert "project github.com/acme/app, day" in text.stdout
    assert "bouncer budget list" in bouncer("budget", "remove", "--project", "k", **here).stderr
    shown("remove", **here)
    assert [item["scope"] for item in shown("list", **here)["items"]] == ["project"]


def test_a_keys_budget_is_for_a_key_that_there_is_by_id_or_name(tmp_path: Path) -> None:
    here = {"MEMORY_BOUNCER_DATA_DIR": str(tmp_path), "MEMORY_BOUNCER_SECRET": SECRET}
    made = json.loads(bouncer("keys", "create", "--name", "ben", "--role", "admin", "--json", **here).stdout)["details"]
    assert shown("set", "5", "--key", "ben", **here)["subject"] == made["id"]
    assert shown("set", "6", "--key", made["id"], **here)["limit_microdollars"] == 6_000_000
    assert "no key ban" in complaint(bouncer("budget", "set", "5", "--key", "ban", **here))
    shown("remove", "--key", "ben", **here)
    assert shown("list", **here)["items"] == []


def test_the_settings_budget_is_listed_and_cannot_be_removed(tmp_path: Path) -> None:
    here = {"MEMORY_BOUNCER_DATA_DIR": str(tmp_path), "MEMORY_BOUNCER_BUDGET_MICRODOLLARS": "7"}
    assert [item["source"] for item in shown("list", **here)["items"]] == ["setting"]
    assert "MEMORY_BOUNCER_BUDGET_MICRODOLLARS" in bouncer("budget", "remove", **here).stderr


def test_a_service_that_is_named_is_asked(tmp_path: Path) -> None:
    with running_service(tmp_path / "service") as service:
        there = {"MEMORY_BOUNCER_URL": service.url, "MEMORY_BOUNCER_DATA_DIR": str(tmp_path / "not-here")}
        shown("set", "1", "--project", "p1", "--period", "total", **there)
        assert [item["subject"] for item in service.get("/v1/budgets")["items"]] == ["p1"]
        shown("remove", "--project", "p1", "--period", "total", **there)
        assert service.get("/v1/budgets")["items"] == []
    assert not (tmp_path / "not-here").exists()


def test_a_service_that_was_named_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = bouncer("budget", "set", "5", "--url", NOWHERE, MEMORY_BOUNCER_DATA_DIR=str(tmp_path / "d"))
    assert "does not answer" in complaint(done)
    assert not (tmp_path / "d").exists()


def test_a_project_and_a_key_at_once_are_an_error() -> None:
    assert "one of --project and --key" in complaint(bouncer("budget", "set", "5", "--project", "p", "--key", "k"))


def test_the_report_fails_if_the_records_differ(tmp_path: Path) -> None:
    here = {"MEMORY_BOUNCER_DATA_DIR": str(tmp_path)}
    done = bouncer("budget", "report", **here)
    assert (done.returncode, "agree" in done.stdout) == (0, True)
    with sqlite3.connect(tmp_path / "bouncer.db") as database:
        database.execute(
            "INSERT INTO budget_window (id, scope, subject, period, starts_at, spent, reserved, refused, wanted)"
            " VALUES ('w', 'team', '', 'day', '2026-03-01 00:00:00.000000', 7, 0, 0, 0)"
        )
    database.close()
    done = bouncer("budget", "report", **here)
    assert done.returncode == 1
    assert "DIFFERS: window spent w: the ledger has 0, the other record 7 micro-dollars." in done.stdout
