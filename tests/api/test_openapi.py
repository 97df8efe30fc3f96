"""The description is true: it accepts what it allows, refuses what it forbids, and answers as it declares."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.http_service import call
from tests.support.pipelines import GOOD

REFUSALS = ["400", "404", "405", "409", "413", "422"]
# A form cannot say that a hash is its text's, or that no secret stands in a text.
MEANING_MATTERS = ("/v1/projects/{project}/documents", "/v1/entries")


@pytest.fixture(scope="session")
def described(http: httpx.Client) -> schemathesis.BaseSchema:
    """The description as the running service gives it."""
    http.post("/v1/reviews", json=call(GOOD[0], project="described"))
    refusals = {"negative_data_rejection": {"expected-statuses": REFUSALS}}
    config = schemathesis.config.SchemathesisConfig.from_dict({"checks": refusals})
    return schemathesis.openapi.from_url(f"{http.base_url}/openapi.json", config=config)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_one_that_the_description_declares(
    described: schemathesis.BaseSchema, subtests: pytest.Subtests, mode: GenerationMode
) -> None:
    for result in described.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if mode is GenerationMode.NEGATIVE and not operation.path.startswith("/v1/"):
            continue  # it takes nothing that could be wrong
        with subtests.test(operation.label):
            given(case=operation.as_strategy(generation_mode=mode))(_answer_is_declared)()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def _answer_is_declared(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(excluded_checks=[positive_data_acceptance] if case.path in MEANING_MATTERS else [])


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
