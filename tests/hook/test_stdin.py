"""Whatever comes in on stdin: a valid answer in time, status 0, and never an approval or an accidental denial."""

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.agents.claude_code import launcher_command
from hooks import store_hygiene_gate as hook
from tests.support.hook_runs import HOOKS, LESSON, SLOP, event, run, tell, write
from tests.support.scripted_service import ScriptedService

ODD = [
    b"",
    b" \n",
    b"nonsense",
    b"\xff\xfe\x00",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"1" * 100_000,
    b'{"hook_event_name": 5}',
    b'{"hook_event_name": "PreToolUse"}',
    b'{"hook_event_name": "PreToolUse", "tool_name": []}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "mcp__memory__create_entities", "tool_input": 5}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": {"file_path": 5}}',
    b'{"hook_event_name": "PostToolUse", "tool_name": "store_memory"}',
    b'{"hook_event_name": "SessionStart", "session_id": {}, "cwd": []}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "store_memory", "tool_input": {"things": "\\ud800"}}',
    json.dumps(write(f"{LESSON} \ud800")).encode(),
    json.dumps(write(LESSON)).encode() * 2,
]


@pytest.mark.parametrize("content", ODD)
def test_odd_input_is_answered_and_denies_nothing(content: bytes, service: ScriptedService) -> None:
    said = run(content)

    assert said.exit_code == 0
    assert said.decision is None
    assert said.stderr == ""


def test_a_huge_text_is_refused_like_any_that_is_too_long() -> None:
    assert "[too_long]" in run(write("word " * 1_000_000)).reason


def test_a_huge_ordinary_call_passes_unnoticed() -> None:
    assert run(event("PreToolUse", "Write", {"file_path": "a.txt", "content": "x" * 8_000_000})).output == {}


def test_an_event_without_end_is_not_read_for_ever() -> None:
    assert "failed" in str(run(b'{"a": "' + b"x" * 20_000_000 + b'"}').output["systemMessage"])


def test_control_characters_and_a_byte_order_mark_are_let_pass() -> None:
    content = b"\xef\xbb\xbf" + json.dumps(write("PR merged\t\x01")).replace("\\t", "\t").encode()

    assert run(content).decision == "deny"


def test_stdin_that_stays_open_behind_the_event_is_answered_at_once() -> None:
    process = subprocess.Popen(
        launcher_command(HOOKS, sys.executable),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(json.dumps(write(SLOP)).encode())
        process.stdin.flush()
        assert b'"deny"' in process.stdout.read()


def test_stdin_that_never_ends_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b'{"hook_event_name": "PreToolUse", "tool')
    started = time.monotonic()

    name, said = hook.answer(started - hook.Config.deadline_seconds + 0.5, lambda: hook.read_payload(reader))

    os.close(writer)
    os.close(reader)
    assert (name, said.decision) == ("", "")
    assert "deadline" in said.fault
    assert time.monotonic() - started < 5


def test_without_alarms_it_is_given_up_on_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "arm", lambda _: None)  # as on Windows
    reader, writer = os.pipe()
    started = time.monotonic()

    name, said = hook.answer(started - hook.Config.deadline_seconds + 0.5, lambda: hook.read_payload(reader))

    os.close(writer)
    assert (name, said.decision) == ("", "")
    assert "deadline" in said.fault
    assert time.monotonic() - started < 5


def test_without_alarms_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "arm", lambda _: None)

    assert tell(write(SLOP)).decision == "deny"
    assert "ValueError" in hook.answer(time.monotonic(), lambda: hook.loads("nonsense"))[1].fault


def test_in_a_thread_there_is_no_alarm_and_no_fault(service: ScriptedService) -> None:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(tell(write(SLOP))))
    thread.start()
    thread.join()

    assert answers[0].decision == "deny"


def test_an_agent_that_has_gone_away_is_no_fault() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        launcher_command(HOOKS, sys.executable),
        input=json.dumps(write(SLOP)).encode(),
        stdout=writer,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
        check=False,
    )

    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


names = st.sampled_from(["PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionStart", "Stop", ""])
tools = st.sampled_from([*(str(row["tool"]) for row in hook.TOOLS), "Write", "Edit", "Bash", "Skill", "Read", ""])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from([LESSON, SLOP]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["content", "text", "entities", "observations", "name", "file_path", "command", "skill", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
payloads = st.fixed_dictionaries(
    {},
    optional={
        "hook_event_name": names | values,
        "tool_name": tools | values,
        "tool_input": values,
        "tool_response": values,
        "session_id": values,
        "tool_use_id": values,
        "agent_id": values,
        "turn_id": values,
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payloads | values)
def test_any_event_gets_a_valid_answer(payload: object) -> None:
    output = tell(payload).output

    json.dumps(output, allow_nan=False)
    assert set(output) <= {"hookSpecificOutput", "systemMessage"}
    specific = output.get("hookSpecificOutput", {"hookEventName": "x"})
    assert specific["hookEventName"]
    assert specific.get("permissionDecision") in (None, "deny")
    assert not any(isinstance(payload, dict) and "RuntimeError" in str(value) for value in output.values())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | payloads.map(lambda payload: json.dumps(payload).encode()))
def test_any_bytes_get_a_valid_answer_from_the_whole_process(content: bytes) -> None:
    said = run(content)

    assert (said.exit_code, said.stderr) == (0, "")
    assert said.decision in (None, "deny")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_json_is_read_and_written_as_the_standard_library_does(value: object) -> None:
    assert hook.loads(json.dumps(value)) == value
    assert json.loads(hook.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a': 1}", "1 2", "nul", '"a', "[" * 100_000])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        hook.loads(text)
