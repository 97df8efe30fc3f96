"""Ask the running service, for commands that work on what it keeps."""

from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from app.errors import Invalid, NotFound, Unavailable
from app.schemas.fields import Model
from hooks import store_hygiene_gate as hook

SECONDS = 60.0
WRONG = {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY}


def ask(
    url: str | None, method: str, path: str, body: object = None, *, answers: type[Model], **query: str | int | None
) -> Any:
    """The service's answer to one request, as JSON.

    Args:
        url: the service; None for the one that the hook would ask.
        method: of the request.
        path: of the request.
        body: sent as JSON, if there is one.
        answers: the shape of the answer.
        query: parameters; what is None is left out.

    Raises:
        NotFound: there is no such thing.
        Invalid: the service refuses the request as it is, or the address is none.
        Unavailable: it does not answer, wants a key, or is something else.
    """
    config = hook.load_config(str(Path.cwd()))
    base = url or config.url
    asked = {name: value for name, value in query.items() if value is not None}
    headers = {"Authorization": f"Bearer {config.key}"} if config.key else {}
    try:
        hook.split_url(base)
        answer = httpx.request(
            method,
            base.rstrip("/") + path,
            params=asked,
            json=body,
            headers=headers,
            timeout=SECONDS,
            trust_env=False,
        )
    except ValueError as exc:
        raise Invalid(f"{base} is no address of a service: it {exc}.") from exc
    except httpx.HTTPError as exc:
        raise Unavailable(f"{base} does not answer. Is `bouncer serve` running?") from exc
    try:
        given = answer.json()
        if answer.is_success:
            answers.model_validate(given)
            return given
        detail = str(given["detail"])
    except (ValueError, KeyError, TypeError):
        # `from None`: the cause repeats what was answered, which may be a key.
        raise Unavailable(f"What answers at {base} is not this version of Memory Bouncer.") from None
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise NotFound(detail)
    raise Invalid(detail) if answer.status_code in WRONG else Unavailable(detail)
