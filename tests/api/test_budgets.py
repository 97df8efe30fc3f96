"""Budgets over HTTP."""

from typing import Any

import httpx
import pytest


def put(http: httpx.Client, project: str, **more: Any) -> httpx.Response:
    body = {"scope": "project", "subject": project, "period": "week", "limit_microdollars": 5_000_000, **more}
    return http.put("/v1/budgets", json=body)


def test_a_budget_is_set_listed_changed_and_removed(http: httpx.Client, project: str) -> None:
    made = put(http, project).json()
    assert (made["limit_microdollars"], made["left_microdollars"], made["state"]) == (5_000_000, 5_000_000, "ok")
    changed = put(http, project, limit_microdollars=1, at_cap="hold").json()
    assert (changed["id"], changed["limit_microdollars"], changed["at_cap"]) == (made["id"], 1, "hold")
    assert changed in http.get("/v1/budgets").json()["items"]
    assert http.delete(f"/v1/budgets/{made['id']}").json() == changed
    assert http.delete(f"/v1/budgets/{made['id']}").status_code == 404
    assert project not in http.get("/v1/budgets").text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"subject": None}, 400),
        ({"scope": "team"}, 400),
        ({"limit_microdollars": -1}, 422),
        ({"limit_microdollars": 10**15 + 1}, 422),
        ({"limit_microdollars": 0.5}, 422),
        ({"warn_percent": 0}, 422),
        ({"at_cap": "shrug"}, 422),
        ({"period": "year"}, 422),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(
    http: httpx.Client, project: str, change: dict[str, Any], status: int
) -> None:
    assert put(http, project, **change).status_code == status
    assert project not in http.get("/v1/budgets").text


def test_the_report_says_that_all_records_agree(http: httpx.Client) -> None:
    report = http.get("/v1/budgets/report").json()
    assert (report["consistent"], report["differences"]) == (True, [])
