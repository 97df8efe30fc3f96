"""A secret goes nowhere: not into a request, not into the journal, not into an answer."""

from pathlib import Path

import pytest

from hooks import store_hygiene_gate as hook
from tests.support.canaries import canaries, embedded
from tests.support.hook_runs import event, run, tell, write
from tests.support.scripted_service import ScriptedService

KINDS = {**{kind: (f"The deploy job reads {secret} from a file.", secret) for kind, secret in canaries(11).items()}}
KINDS |= {f"{kind} (embedded)": pair for kind, pair in embedded(12).items()}


def traces(service: ScriptedService) -> str:
    """All that left the hook or was written down by it."""
    written = [path.read_text(encoding="utf-8") for path in Path(hook.state_folder()).rglob("*") if path.is_file()]
    return "".join(written) + "".join(r.target + r.body.decode() + str(r.headers) for r in service.requests)


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_in_a_memory_leaves_no_trace(service: ScriptedService, kind: str) -> None:
    text, secret = KINDS[kind]

    said = tell(write(text, "Something else of more than eight words that is quite all right here."))

    assert "[secret]" in said.reason
    part = max(secret.split("\n"), key=len)
    assert part not in str(said.output)
    assert part not in traces(service)
    assert hook.journal_read(hook.load_config("."))


def test_the_whole_process_keeps_it_too(service: ScriptedService) -> None:
    text, secret = KINDS["npm"]

    said = run(write(text))

    assert said.decision == "deny"
    assert secret not in str(said.output) + said.stderr + traces(service)


@pytest.mark.parametrize(
    "payload",
    [
        lambda text: event("PreToolUse", "Write", {"file_path": "CLAUDE.md", "content": text}),
        lambda text: event("PreToolUse", "Edit", {"file_path": "CLAUDE.md", "old_string": "a", "new_string": text}),
        lambda text: event("PreToolUse", "Bash", {"command": f"echo '{text}' >> CLAUDE.md"}),
        lambda text: event("PreToolUse", "mcp__engram__mem_save", {"title": text, "content": "See the title for it."}),
        lambda text: event("PreToolUse", "mcp__memory__create_entities", {"things": text}),
        lambda text: event("PreToolUse", "mcp__engram__mem_update", {"id": text, "content": "Rotate it every month."}),
    ],
)
def test_wherever_in_a_call_it_is(service: ScriptedService, payload: object) -> None:
    text, secret = KINDS["GitHub classic"]

    said = tell(payload(text))  # type: ignore[operator]

    assert "[secret]" in said.reason
    assert secret not in str(said.output) + traces(service)


def test_a_secret_in_a_deleted_text_is_not_passed_on(service: ScriptedService) -> None:
    text, secret = KINDS["npm"]
    deletions = {"deletions": [{"entityName": "a", "observations": [text]}]}

    tell(event("PostToolUse", "mcp__memory__delete_observations", deletions, tool_response="ok"))

    assert service.paths() == ["/v1/entries/deleted"]
    assert secret not in traces(service)


def test_what_the_service_says_is_redacted_as_well(service: ScriptedService) -> None:
    secret = canaries(13)["npm"]
    service.context = f"Approved; by the way, {secret}"

    assert secret not in str(tell(write("Rotate the tokens of the deploy job on the first of each month.")).output)
