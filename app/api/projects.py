"""Routes of projects: their policy and level."""

from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from app import gate, projects
from app.api.common import ANYWHERE, ProjectPath, problems
from app.deps import Administrator, PipelineDep, Reader, SettingsDep
from app.errors import NotModified
from app.schemas.fields import Name
from app.schemas.projects import PolicyOut, ProjectIn, ProjectOut

router = APIRouter(responses=problems(*ANYWHERE))


@router.get(
    "/v1/policy",
    tags=["policy"],
    responses={304: {"description": "Unchanged since the given ETag."}, **problems(404)},
)
def get_policy(
    caller: Reader,
    pipeline: PipelineDep,
    settings: SettingsDep,
    response: Response,
    project: Annotated[Name, Query()],
    if_none_match: Annotated[str | None, Header()] = None,
) -> PolicyOut:
    """What a hook needs to know of a project's policy; an ETag spares the repeated answer."""
    caller.check(project)
    with pipeline.index.database.read() as session:
        known = projects.find(session, caller, project)
    policy = PolicyOut(
        project=project,
        level=(known.level if known else None) or settings.level,
        minimum_words=gate.MINIMUM_WORDS,
        maximum_characters=gate.MAXIMUM_CHARACTERS,
        reasons={reason.value: text for reason, text in gate.REASONS.items()},
    )
    etag = f'"{sha256(policy.model_dump_json().encode()).hexdigest()[:32]}"'
    if etag in (known.strip().removeprefix("W/") for known in (if_none_match or "").split(",")):
        raise NotModified(etag)
    response.headers["ETag"] = etag
    return policy


@router.put("/v1/projects/{project:path}", tags=["projects"], responses=problems(400, 404, 413))
def put_project(caller: Administrator, project: ProjectPath, change: ProjectIn, pipeline: PipelineDep) -> ProjectOut:
    """Set a project's level: `gate`, `offline`, or `model` (the opt-in to the paid second model)."""
    return pipeline.index.set_level(caller, project, change.level)
