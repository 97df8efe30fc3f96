"""Judge one text from the command line: by the service, else in this process on the same database."""

import asyncio
import time
from pathlib import Path

from pydantic import ValidationError

from app.callers import LOCAL
from app.db import new_id
from app.errors import Invalid, Unavailable
from app.logs import configure_logs
from app.main import build_pipeline
from app.schemas.reviews import CallOut, Candidate, ReviewRequest
from app.settings import Settings
from hooks import store_hygiene_gate as hook

ANSWER_SECONDS = 30.0


def judge_once(text: str, *, project: str | None, url: str | None, settings: Settings) -> CallOut:
    """The verdict on a text, with nothing stored.

    Args:
        text: the memory.
        project: its project; None for that of the working folder.
        url: the service to ask; None for the one that the hook would ask, else this process if that is not running.
        settings: for judging in this process.

    Raises:
        Invalid: the text is empty or far too long, or the address is none.
        Unavailable: the named service does not answer, or refuses.
        ConfigurationError: this process cannot judge.
    """
    if not text.strip():
        raise Invalid("There is no text to judge.")
    config = hook.load_config(str(Path.cwd()))
    if url is not None:
        try:
            hook.split_url(url)
        except ValueError as exc:
            raise Invalid(f"{url} is no address of a service: it {exc}.") from exc
        config.url = url
    try:
        request = ReviewRequest(
            tool_call_id=f"check-{new_id()}",
            session_id="bouncer-check",
            project=project or config.project,
            agent="bouncer check",
            candidates=[Candidate(text=text)],
            deadline_seconds=ANSWER_SECONDS,
            dry_run=True,
        )
    except ValidationError as exc:
        wrong = {str(fault["loc"][0]) for fault in exc.errors()}
        if "project" in wrong:
            raise Invalid("The project's name must have 1 to 512 characters.") from exc
        raise Invalid("The text is longer than any memory may be.") from exc
    try:
        return _ask(config, request)
    except hook.ServiceFailure as failure:
        hints = {
            401: "Set MEMORY_BOUNCER_KEY to your key.",
            404: f"Your key is not bound to the project {request.project}.",
        }
        hint = hints.get(failure.status, "Is `bouncer serve` running?")
        if url is not None or failure.status:
            raise Unavailable(f"No verdict from {config.url}: {failure}. {hint}") from failure
    return asyncio.run(_judge_here(request, settings))


def _ask(config: hook.Config, request: ReviewRequest) -> CallOut:
    end = time.monotonic() + ANSWER_SECONDS
    answer, _ = hook.call_service(config, "POST", "/v1/reviews", request.model_dump(mode="json"), end)
    try:
        return CallOut.model_validate(answer)
    except ValidationError:
        raise Unavailable(f"What answers at {config.url} is not this version of Memory Bouncer.") from None


async def _judge_here(request: ReviewRequest, settings: Settings) -> CallOut:
    configure_logs("error")
    pipeline = build_pipeline(settings)
    try:
        return await pipeline.review(LOCAL, request)
    finally:
        await pipeline.close()
