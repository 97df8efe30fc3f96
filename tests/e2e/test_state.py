"""Where things stand is one memory for each project, followed here through the client, the store and a second model."""

import re
from collections.abc import Iterator

import pytest

from tests.support.agent_client import MakeDesk
from tests.support.memories import NEWER_STATE, RETRIES, STATE
from tests.support.memory_calls import add_observations, create_entity, delete_observations
from tests.support.messages_api import Request, Step, messages_api, reply
from tests.support.scripted_client_model import Call, Heard
from tests.support.service import Service, running_service

pytestmark = pytest.mark.e2e

OLDER_TEXT = re.compile(r"remove the older item: “(?P<text>[^”]+)”")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose second model takes texts for STATE that say where things stand."""
    with messages_api(_judge) as api:
        environment = {
            "MEMORY_BOUNCER_LEVEL": "model",
            "MEMORY_BOUNCER_BUDGET_MICRODOLLARS": "1000000",
            "MEMORY_BOUNCER_ANTHROPIC_API_KEY": "sk-test-dummy",
            "MEMORY_BOUNCER_ANTHROPIC_BASE_URL": api.url,
        }
        with running_service(tmp_path_factory.mktemp("service"), environment) as running:
            yield running


def test_a_second_state_is_turned_into_an_update(make_desk: MakeDesk, service: Service) -> None:
    desk = make_desk(service.url)
    desk.run([create_entity("status", STATE), create_entity("gateway", RETRIES)])

    run = desk.run([create_entity("status now", NEWER_STATE)])

    [state] = service.entries(desk.project_name, category="STATE")
    reason = run.refusal(0)
    assert "[second_state]" in reason
    assert state["id"] in reason
    assert STATE in reason
    assert desk.memory == {"status": [STATE], "gateway": [RETRIES]}


def test_the_advice_on_a_second_state_leads_to_one_newer_state(make_desk: MakeDesk, service: Service) -> None:
    desk = make_desk(service.url)
    desk.run([create_entity("status", STATE)])

    run = desk.run([create_entity("status now", NEWER_STATE), add_observations("status", NEWER_STATE), _remove_older])

    assert "[second_state]" in run.refusal(0)
    assert [run.result(number).refusal for number in (1, 2)] == [None, None]
    assert desk.memory == {"status": [NEWER_STATE]}
    [state] = service.entries(desk.project_name)
    assert (state["text"], state["status"], state["version"]) == (NEWER_STATE, "stored", 2)


def _judge(request: Request) -> Step:
    candidate = request.user.rpartition("<candidate")[2]
    return reply(category="STATE" if "Where things stand" in candidate else "RULE")


def _remove_older(heard: Heard) -> Call:
    advice = OLDER_TEXT.search(heard.context)
    assert advice is not None, heard.context
    return delete_observations("status", advice["text"])
