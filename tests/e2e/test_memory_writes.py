"""Memory writes through the real client: what is refused, what is stored, and what the agent reads."""

import pytest

from tests.support.agent_client import Desk, MakeDesk
from tests.support.memories import MIGRATIONS, RETRIES, SESSION_SUMMARY, SESSION_SUMMARY_TOO, TIMEZONES
from tests.support.memory_calls import (
    add_observations,
    create_entities,
    create_entity,
    delete_entities,
    delete_observations,
)
from tests.support.scripted_client_model import Call
from tests.support.service import Service

pytestmark = pytest.mark.e2e


def test_without_the_hooks_slop_is_stored(make_desk: MakeDesk, service: Service) -> None:
    desk = make_desk(service.url, scope=None)

    desk.run([create_entity("today", SESSION_SUMMARY)])

    assert desk.memory == {"today": [SESSION_SUMMARY]}


def test_a_session_summary_never_reaches_the_store(desk: Desk) -> None:
    run = desk.run([create_entity("today", SESSION_SUMMARY)])

    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {}


def test_the_agent_reads_the_reason_and_nothing_else(desk: Desk) -> None:
    run = desk.run([create_entity("today", SESSION_SUMMARY)])

    reason = run.refusal(0)
    assert [reason] == [hook.reason for hook in run.hooks_of("PreToolUse")]
    assert "/hygiene" in reason
    assert "python" not in reason
    assert "store_hygiene_gate" not in reason
    assert len(reason) <= 1_500


def test_the_generalised_rewrite_of_a_refused_text_is_stored_and_known(desk: Desk, service: Service) -> None:
    run = desk.run([create_entity("today", SESSION_SUMMARY), create_entity("billing gateway", RETRIES)])

    assert run.result(0).refusal is not None
    assert run.result(1).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}
    [entry] = service.entries(desk.project_name)
    assert (entry["text"], entry["status"]) == (RETRIES, "stored")
    assert entry["store_id"] == "billing gateway"
    assert entry["session_id"] == run.session_id


def test_an_approval_is_said_beside_the_result(desk: Desk) -> None:
    run = desk.run([create_entity("billing gateway", RETRIES)])

    [approval] = run.hooks_of("PreToolUse")
    assert approval.decision is None
    assert approval.context
    assert approval.context in run.heard.context


def test_an_approval_leaves_the_persons_own_permission_rules_in_force(desk: Desk) -> None:
    run = desk.run([create_entity("billing gateway", RETRIES)], allowed=["Read"])

    assert [hook.decision for hook in run.hooks_of("PreToolUse")] == [None]
    assert run.result(0).is_error
    assert desk.memory == {}


def test_a_refusal_holds_where_all_permissions_are_bypassed(desk: Desk) -> None:
    run = desk.run([create_entity("today", SESSION_SUMMARY)], mode="bypassPermissions")

    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {}


def test_of_parallel_calls_only_the_bad_one_is_refused(desk: Desk) -> None:
    run = desk.run([[create_entity("today", SESSION_SUMMARY), create_entity("billing gateway", RETRIES)]])

    assert "[session_summary]" in run.refusal(0)
    assert run.result(1).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}


def test_one_bad_text_refuses_its_call_and_the_good_one_may_come_back(desk: Desk, service: Service) -> None:
    both = create_entities({"billing gateway": [RETRIES], "today": [SESSION_SUMMARY]})

    run = desk.run([both, create_entity("billing gateway", RETRIES)])

    reason = run.refusal(0)
    assert SESSION_SUMMARY[:20] in reason
    assert RETRIES[:20] not in reason
    assert run.result(1).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}
    assert [entry["status"] for entry in service.entries(desk.project_name)] == ["stored"]


def test_a_duplicate_is_refused_and_the_entry_named(desk: Desk, service: Service) -> None:
    desk.run([create_entity("billing gateway", RETRIES)])

    run = desk.run([create_entity("gateway retries", RETRIES)])

    [entry] = service.entries(desk.project_name)
    reason = run.refusal(0)
    assert "[duplicate]" in reason
    assert entry["id"] in reason
    assert "billing gateway" in reason
    assert desk.memory == {"billing gateway": [RETRIES]}


def test_refusals_in_a_row_all_hold(desk: Desk) -> None:
    run = desk.run(
        [
            create_entity("first", SESSION_SUMMARY),
            create_entity("second", SESSION_SUMMARY_TOO),
            [create_entity("third", SESSION_SUMMARY), create_entity("fourth", SESSION_SUMMARY_TOO)],
        ]
    )

    assert all(run.refusal(number) for number in range(4))
    assert desk.memory == {}


def test_a_subagent_is_gated_and_named(desk: Desk, service: Service) -> None:
    prompt = "Write down what you found out."
    start = Call("Agent", {"description": "notes", "prompt": prompt, "subagent_type": "general-purpose"})

    run = desk.run(
        [start], subagents={prompt: [create_entity("today", SESSION_SUMMARY), create_entity("gateway", RETRIES)]}
    )

    assert "[session_summary]" in (run.model[prompt].result(0).refusal or "")
    assert desk.memory == {"gateway": [RETRIES]}
    [review] = service.reviews(desk.project_name)
    assert review["agent_id"]


def test_a_secret_goes_nowhere(desk: Desk, service: Service) -> None:
    secret = "ghp_" + "7hQ2mXv9KpLw4RtZb8Nc" + "3JfYd6Gs1TaEuVxk"

    run = desk.run([create_entity("forge", f"The release job signs in to the forge with {secret} kept in its vault.")])

    assert "[secret]" in run.refusal(0)
    assert secret not in run.refusal(0)
    assert desk.memory == {}
    assert secret not in str(desk.journal)
    assert not any(secret.encode() in path.read_bytes() for path in service.data_dir.glob("*"))


def test_observations_added_and_removed_one_by_one_are_followed(desk: Desk, service: Service) -> None:
    run = desk.run(
        [
            create_entity("lessons", RETRIES),
            add_observations("lessons", MIGRATIONS, TIMEZONES),
            add_observations("lessons", SESSION_SUMMARY),
            delete_observations("lessons", MIGRATIONS),
        ]
    )

    assert "[session_summary]" in run.refusal(2)
    assert desk.memory == {"lessons": [RETRIES, TIMEZONES]}
    entries = {entry["text"]: entry["status"] for entry in service.entries(desk.project_name)}
    assert entries == {RETRIES: "stored", MIGRATIONS: "deleted", TIMEZONES: "stored"}


def test_what_was_deleted_may_be_stored_again(desk: Desk, service: Service) -> None:
    run = desk.run(
        [create_entity("lessons", RETRIES), delete_entities("lessons"), create_entity("billing gateway", RETRIES)]
    )

    assert run.result(2).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}
    statuses = sorted(entry["status"] for entry in service.entries(desk.project_name))
    assert statuses == ["deleted", "stored"]


def test_what_the_store_rejected_refuses_nobody(desk: Desk) -> None:
    run = desk.run([add_observations("no such entity", RETRIES)])
    assert run.result(0).is_error

    run = desk.run([create_entity("billing gateway", RETRIES)])

    assert run.result(0).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}


def test_what_the_store_silently_ignored_is_not_taken_for_stored(desk: Desk) -> None:
    # The memory server leaves an entity of a known name as it is, and reports success.
    run = desk.run(
        [
            create_entity("lessons", RETRIES),
            create_entity("lessons", MIGRATIONS),
            add_observations("lessons", MIGRATIONS),
        ]
    )

    assert [run.result(number).refusal for number in range(3)] == [None, None, None]
    assert desk.memory == {"lessons": [RETRIES, MIGRATIONS]}


def test_what_the_person_does_not_permit_refuses_nobody_from_then_on(desk: Desk, service: Service) -> None:
    run = desk.run([create_entity("billing gateway", RETRIES)], allowed=["Read"])
    assert run.result(0).is_error

    [entry] = service.entries(desk.project_name)

    assert entry["status"] == "unconfirmed"
