"""What routes share: the problems that they declare, the parameters that they take."""

from typing import Annotated, Any

from fastapi import Path, Query
from sqlmodel import Session

from app import projects
from app.callers import Caller
from app.schemas.fields import Name
from app.schemas.service import Problem

PROBLEMS = {
    400: "The request makes no sense.",
    401: "There is no key, or no good one.",
    403: "The host or origin is refused, or the role of the caller's key does not include this.",
    404: "There is no such thing.",
    409: "The request contradicts what is stored.",
    413: "The body is too long.",
    429: "Too many wrong keys came from this address.",
    422: "The request does not have the declared form.",
    503: "The service cannot answer now.",
}


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, as OpenAPI declares them."""
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
    return {code: {"description": PROBLEMS[code], "content": content} for code in codes}


UNKNOWN = ""

ID = r"^[0-9a-zA-Z_-]+$"
Id = Annotated[str, Path(min_length=1, max_length=64, pattern=ID)]
Count = Annotated[int, Query(ge=1, le=200, description="Most items in the answer.")]
ProjectPath = Annotated[
    Name,
    Path(
        description="The project's name. A `/` in it is sent as `%2F`; also as it is, but not before `documents`.",
        pattern=r"^[^\n]+$",
    ),
]
Before = Annotated[str | None, Query(max_length=64, pattern=ID, description="Cursor: the `next` of the page before.")]
ProjectName = Annotated[Name | None, Query(description="Only this project's.")]


# What any route may answer whose caller needs a key.
ANYWHERE = (401, 403, 422, 429, 503)


def project_id(session: Session, caller: Caller, name: str | None) -> str | None:
    """Id of the named project: None if none is named, UNKNOWN if the caller sees none of this name."""
    if name is None:
        return None
    known = projects.find(session, caller, name)
    return known.id if known else UNKNOWN
