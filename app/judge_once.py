"""Judge one text from the command line: by the running service, else in this process on the same database."""

import asyncio
import os
from urllib.parse import urljoin

import httpx

from app.db import new_id
from app.errors import Invalid, Unavailable
from app.main import build_pipeline
from app.schemas import CallOut, Candidate, ReviewRequest
from app.settings import PORT, Settings
from hooks import store_hygiene_gate as hook

ANSWER_SECONDS = 60.0
CONNECT_SECONDS = 1.0


def judge_once(text: str, *, project: str | None, url: str | None, settings: Settings) -> CallOut:
    """The verdict on a text, with nothing stored.

    Args:
        text: the memory.
        project: its project; None for that of the working folder.
        url: the service to ask; None for the one on this machine if it runs, else this process.
        settings: for judging in this process.

    Raises:
        Invalid: the text is empty or far too long.
        Unavailable: the named service does not answer, or refuses.
        ConfigurationError: this process cannot judge.
    """
    if not text.strip():
        raise Invalid("There is no text to judge.")
    try:
        request = ReviewRequest(
            tool_call_id=f"check-{new_id()}",
            session_id="bouncer-check",
            project=project or hook.project_identity(os.getcwd()),  # noqa: PTH109
            agent="bouncer check",
            candidates=[Candidate(text=text)],
            deadline_seconds=ANSWER_SECONDS,
            dry_run=True,
        )
    except ValueError as exc:
        raise Invalid("The text is longer than any memory may be.") from exc
    try:
        return _ask(url or f"http://127.0.0.1:{PORT}", request, settings)
    except httpx.TransportError as exc:
        if url is not None:
            raise Unavailable(f"No service answers at {url}; start it with `bouncer serve`.") from exc
    return asyncio.run(_judge_here(request, settings))


def _ask(url: str, request: ReviewRequest, settings: Settings) -> CallOut:
    key = settings.service_key
    response = httpx.post(
        urljoin(url, "/v1/reviews"),
        content=request.model_dump_json(),
        headers={"Content-Type": "application/json"}
        | ({"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}),
        timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
        trust_env=False,
    )
    try:
        if response.is_success:
            return CallOut.model_validate_json(response.content)
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        raise Unavailable(f"What answers at {url} is not Memory Bouncer (status {response.status_code}).") from None
    raise Unavailable(f"The service at {url} refused: {detail}")


async def _judge_here(request: ReviewRequest, settings: Settings) -> CallOut:
    pipeline = build_pipeline(settings)
    try:
        return await pipeline.review(request)
    finally:
        await pipeline.close()
