"""Claude Code's native `type: http` hook: the client posts its hook event, and is answered in its own protocol.

It needs no file on the client's machine, and so has neither the local gate nor the journal, and sees MCP tools only:
what a file tool adds can be told only beside the file.
"""

import asyncio
from hashlib import sha256
from typing import Any

from pydantic import ValidationError

from app.callers import Caller
from app.index import Index
from app.pipeline import Pipeline
from app.schemas.entries import DeletedReport
from app.schemas.judging import FOR_A_PERSON
from app.schemas.reviews import CallOut, Candidate, ReviewRequest
from app.schemas.vocabulary import Operation, Verdict
from hooks import store_hygiene_gate as hook

LOCAL_TOOLS = frozenset({*hook.FILE_TOOLS, *hook.SHELL_TOOLS})
UNREADABLE = "This memory was not reviewed: the call's arguments have no known form."


async def answer(caller: Caller, event: dict[str, Any], project: str | None, pipeline: Pipeline) -> dict[str, Any]:
    """The decision on a hook event, in the client's protocol; empty for no opinion. It never approves.

    Args:
        caller: whose agent it is.
        event: the client's JSON, unchanged.
        project: the project's name; None takes it from the event's folder, which the service must then be able to see.
        pipeline: judges.

    Raises:
        NotFound: the project is none of the caller's.
    """
    tool, name = event.get("tool_name"), event.get("hook_event_name")
    if not isinstance(tool, str) or tool in LOCAL_TOOLS:
        return {}
    call = hook.extract(tool, event.get("tool_input"), "")
    if call is None:
        return {}
    named = project if project is not None else await asyncio.to_thread(_project, event)
    if name == "PreToolUse" and call.operation != "delete":
        return await _before(caller, event, call, named, pipeline)
    if name in ("PostToolUse", "PostToolUseFailure"):
        await asyncio.to_thread(_after, caller, event, call, named, pipeline.index)
    return {}


async def _before(
    caller: Caller, event: dict[str, Any], call: hook.Call, project: str, pipeline: Pipeline
) -> dict[str, Any]:
    try:
        request = ReviewRequest(
            tool_call_id=_call_id(event),
            session_id=_session(event),
            project=project,
            agent="claude-code",
            agent_id=event.get("agent_id") or None,
            store=call.store,
            tool=str(event.get("tool_name")),
            operation=Operation(call.operation),
            candidates=[
                Candidate(text=c.text, key=c.key or None, store_id=c.store_id or None) for c in call.candidates
            ],
        )
    except ValidationError:
        return _says(additionalContext=UNREADABLE)
    return _decision(await pipeline.review(caller, request))


def _decision(said: CallOut) -> dict[str, Any]:
    refused = [
        review
        for review in said.reviews
        if review.verdict not in (Verdict.APPROVE, Verdict.HELD) or review.fault in FOR_A_PERSON
    ]
    if refused:
        told = [(review.text, review.message) for review in refused]
        reason = hook.denial(told, len(said.reviews) - len(refused), alone=len(said.reviews) == 1)
        return _says(permissionDecision="deny", permissionDecisionReason=reason)
    held = [review.message for review in said.reviews if review.verdict is Verdict.HELD]
    context = f"This memory was not reviewed. {held[0]}" if held else said.context
    return _says(additionalContext=context) if context else {}


def _after(caller: Caller, event: dict[str, Any], call: hook.Call, project: str, index: Index) -> None:
    if call.operation == "delete":
        if event.get("hook_event_name") == "PostToolUse":
            index.report_deleted(
                caller,
                DeletedReport(
                    project=project,
                    store=call.store,
                    store_ids=[c.store_id for c in call.candidates if c.store_id],
                    keys=[c.key for c in call.candidates if c.key and not c.text],
                    texts=[c.text for c in call.candidates if c.text],
                ),
            )
        return
    through = index.let_through(caller, _session(event), _call_id(event))
    ids = hook.reported_ids(event.get("tool_response"))
    taken = hook.keys_taken(event["tool_name"], event.get("tool_response"))
    for place, review in enumerate(through):
        skipped = taken is not None and review.key not in taken
        if skipped or event.get("hook_event_name") == "PostToolUseFailure":
            index.report_failed(caller, review.id)
        else:
            store_id = ids[place] if len(ids) == len(through) else review.store_id or review.key
            index.report_stored(caller, review.id, store_id)


def _says(**fields: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


def _project(event: dict[str, Any]) -> str:
    folder = event.get("cwd")
    return hook.project_identity(folder) if isinstance(folder, str) and folder else "unknown"


def _session(event: dict[str, Any]) -> str:
    return hook.machine_word(event.get("session_id")) or "unknown"


def _call_id(event: dict[str, Any]) -> str:
    given = hook.machine_word(event.get("tool_use_id"))
    return (
        given or sha256(repr((_session(event), event.get("tool_name"), event.get("tool_input"))).encode()).hexdigest()
    )
