"""The description is true: it accepts what it allows, refuses what it forbids, and answers as it declares."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from app import door
from tests.support.http_service import call
from tests.support.pipelines import GOOD
from tests.support.team import Team, bearer

pytestmark = pytest.mark.usefixtures("patient")

REFUSALS = ["400", "404", "405", "409", "413", "422"]
# A form cannot say that a hash is its text's, that no secret stands in a text, that an admin's key is unbound, or which
# fields go together.
MEANING_MATTERS = (
    "/v1/projects/{project}/documents",
    "/v1/entries",
    "/v1/keys",
    "/v1/budgets",
    "/v1/reviews/{review_id}/decision",
    "/v1/withdrawals",
)


@pytest.fixture(scope="session")
def described(keyed: Team) -> schemathesis.BaseSchema:
    """The description as a running service gives it that wants keys; asked with an admin's."""
    header = bearer(keyed.root["key"])
    keyed.anybody.post("/v1/reviews", json=call(GOOD[0], project="described"), headers=header)
    refusals = {"negative_data_rejection": {"expected-statuses": REFUSALS}}
    config = schemathesis.config.SchemathesisConfig.from_dict(
        {"checks": refusals, "generation": {"with-security-parameters": False}}
    )
    return schemathesis.openapi.from_url(f"{keyed.anybody.base_url}/openapi.json", config=config, headers=header)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_one_that_the_description_declares(
    described: schemathesis.BaseSchema, keyed: Team, subtests: pytest.Subtests, mode: GenerationMode
) -> None:
    for result in described.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if mode is GenerationMode.NEGATIVE and not [*operation.iter_parameters(), *operation.body]:
            continue  # it takes nothing that could be wrong
        with subtests.test(operation.label):

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
            def answer_is_declared(case: schemathesis.Case[Any]) -> None:
                case.call_and_validate(
                    headers=bearer(keyed.root["key"]),
                    excluded_checks=[positive_data_acceptance] if case.path in MEANING_MATTERS else [],
                )

            answer_is_declared()


def test_nothing_of_the_interface_is_left_undescribed(http: httpx.Client) -> None:
    paths = http.get("/openapi.json").json()["paths"]
    for path, operations in paths.items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path} says nothing of itself"
            assert "200" in operation["responses"] or "201" in operation["responses"], path


def test_errors_are_declared_as_problems_and_nothing_else(http: httpx.Client) -> None:
    for operations in http.get("/openapi.json").json()["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status[0] in "45":
                    assert list(response["content"]) == ["application/problem+json"]
                    assert "type" in response["content"]["application/problem+json"]["schema"]["properties"]


def test_no_server_error_is_expected(http: httpx.Client) -> None:
    declared = {
        status
        for operations in http.get("/openapi.json").json()["paths"].values()
        for operation in operations.values()
        for status in operation["responses"]
    }
    assert "500" not in declared


def test_what_wants_a_key_says_so_and_nothing_else_does(keyed: Team) -> None:
    description = keyed.anybody.get("/openapi.json", headers=bearer(keyed.root["key"])).json()
    assert description["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for path, operations in description["paths"].items():
        for operation in operations.values():
            assert operation.get("security") == ([{"key": []}] if path not in door.OPEN_PATHS else None), path
