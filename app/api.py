"""JSON routes: parse, call, return."""

from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Path, Query, Response, status
from sqlmodel import Session

from app import entries, gate, native_hook, projects, reviews
from app.deps import PipelineDep, SettingsDep
from app.errors import NotModified
from app.schemas import (
    CallOut,
    Category,
    DeletedOut,
    DeletedReport,
    DocumentsIn,
    DocumentsOut,
    EntryHit,
    EntryIn,
    EntryOut,
    EntryPage,
    EntryStatus,
    Health,
    Name,
    PolicyOut,
    Problem,
    ProjectIn,
    ProjectOut,
    ReviewOut,
    ReviewPage,
    ReviewRequest,
    StoredReport,
    Verdict,
)
from app.settings import app_version

PROBLEMS = {
    400: "The request makes no sense.",
    401: "The service's key is missing.",
    403: "The host or origin is refused.",
    404: "There is no such thing.",
    409: "The request contradicts what is stored.",
    413: "The body is too long.",
    422: "The request does not have the declared form.",
    503: "The service cannot answer now.",
}


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, as OpenAPI declares them."""
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
    return {code: {"description": PROBLEMS[code], "content": content} for code in codes}


open_router = APIRouter(responses=problems(403))
router = APIRouter(responses=problems(401, 403, 422, 503))

UNKNOWN = ""

Id = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[0-9a-zA-Z_-]+$")]
Count = Annotated[int, Query(ge=1, le=200, description="Most items in the answer.")]
ProjectPath = Annotated[
    Name, Path(description="The project's name; a `/` in it is sent as `%2F` or as it is.", pattern=r"^[^\n]+$")
]
Before = Annotated[str | None, Query(max_length=64, description="Cursor: the `next` of the page before.")]
ProjectName = Annotated[Name | None, Query(description="Only this project's.")]


@router.post("/v1/reviews", tags=["reviews"], responses=problems(400, 409, 413))
async def review(request: ReviewRequest, pipeline: PipelineDep) -> CallOut:
    """Judge one memory tool call. The same `tool_call_id` in the same session gets the same answer again."""
    return await pipeline.review(request)


@router.get("/v1/reviews", tags=["reviews"])
def list_reviews(
    pipeline: PipelineDep,
    project: ProjectName = None,
    session_id: Annotated[Name | None, Query()] = None,
    tool_call_id: Annotated[Name | None, Query()] = None,
    verdict: Annotated[Verdict | None, Query()] = None,
    before: Before = None,
    count: Count = 50,
) -> ReviewPage:
    """Decided reviews, newest first."""
    with pipeline.index.database.read() as session:
        if (project_id := _project_id(session, project)) == UNKNOWN:
            return ReviewPage(items=[], next=None)
        items = reviews.page(
            session,
            project_id=project_id,
            session_id=session_id,
            tool_call_id=tool_call_id,
            verdict=verdict,
            before=before,
            count=count,
        )
    return ReviewPage(items=items, next=items[-1].id if len(items) == count else None)


@router.get("/v1/reviews/{review_id}", tags=["reviews"], responses=problems(404))
def get_review(review_id: Id, pipeline: PipelineDep) -> ReviewOut:
    """One review."""
    with pipeline.index.database.read() as session:
        return reviews.get(session, review_id)


@router.post("/v1/reviews/{review_id}/stored", tags=["reviews"], responses=problems(400, 404, 413))
def report_stored(review_id: Id, report: StoredReport, pipeline: PipelineDep) -> ReviewOut:
    """The agent's tool has stored the text: its entry becomes `stored`. Saying it twice changes nothing."""
    pipeline.index.report_stored(review_id, report.store_id)
    return get_review(review_id, pipeline)


@router.post("/v1/reviews/{review_id}/failed", tags=["reviews"], responses=problems(404))
def report_failed(review_id: Id, pipeline: PipelineDep) -> ReviewOut:
    """The agent's tool did not store the text: its entry refuses nobody any more."""
    pipeline.index.report_failed(review_id)
    return get_review(review_id, pipeline)


@router.post("/v1/hooks/claude-code", tags=["hooks"], responses=problems(400, 409, 413))
async def claude_code_hook(
    event: Annotated[dict[str, Any], Body()], pipeline: PipelineDep, project: ProjectName = None
) -> dict[str, Any]:
    """Claude Code's native `type: http` hook: the hook's own JSON in, its decision out; `{}` for no opinion."""
    return await native_hook.answer(event, project, pipeline)


@router.get("/v1/entries", tags=["entries"])
def list_entries(
    pipeline: PipelineDep,
    project: ProjectName = None,
    category: Annotated[Category | None, Query()] = None,
    entry_status: Annotated[EntryStatus | None, Query(alias="status")] = None,
    before: Before = None,
    count: Count = 50,
) -> EntryPage:
    """Entries, newest first."""
    with pipeline.index.database.read() as session:
        if (project_id := _project_id(session, project)) == UNKNOWN:
            return EntryPage(items=[], next=None)
        items = entries.page(
            session, project_id=project_id, category=category, status=entry_status, before=before, count=count
        )
    return EntryPage(items=items, next=items[-1].id if len(items) == count else None)


@router.post("/v1/entries", tags=["entries"], status_code=status.HTTP_201_CREATED, responses=problems(400, 409, 413))
def add_entry(entry: EntryIn, pipeline: PipelineDep) -> EntryOut:
    """Index a memory that is already in a store, without a review."""
    return pipeline.index.add_entry(entry)


@router.post("/v1/entries/deleted", tags=["entries"], responses=problems(400, 413))
def report_deleted(report: DeletedReport, pipeline: PipelineDep) -> DeletedOut:
    """The agent's tool has deleted items from a store: their entries become `deleted`."""
    return DeletedOut(entries=pipeline.index.report_deleted(report))


@router.get("/v1/entries/search", tags=["entries"])
def search_entries(
    pipeline: PipelineDep,
    project: Annotated[Name, Query()],
    query: Annotated[str, Query(min_length=1, max_length=2000)],
    count: Annotated[int, Query(ge=1, le=32)] = 8,
) -> list[EntryHit]:
    """Entries near a text, nearest first."""
    return pipeline.index.search(project, query.replace("\x00", " "), count)


@router.get("/v1/entries/{entry_id}", tags=["entries"], responses=problems(404))
def get_entry(entry_id: Id, pipeline: PipelineDep) -> EntryOut:
    """One entry."""
    with pipeline.index.database.read() as session:
        return entries.get(session, entry_id)


@router.delete("/v1/entries/{entry_id}", tags=["entries"], responses=problems(404))
def delete_entry(entry_id: Id, pipeline: PipelineDep) -> EntryOut:
    """Mark an entry deleted, when it was deleted from its store by hand."""
    pipeline.index.delete_entry(entry_id)
    return get_entry(entry_id, pipeline)


@router.get("/v1/policy", tags=["policy"], responses={304: {"description": "Unchanged since the given ETag."}})
def get_policy(
    pipeline: PipelineDep,
    settings: SettingsDep,
    response: Response,
    project: Annotated[Name, Query()],
    if_none_match: Annotated[str | None, Header()] = None,
) -> PolicyOut:
    """What a hook needs to know of a project's policy; an ETag spares the repeated answer."""
    with pipeline.index.database.read() as session:
        known = projects.find(session, project)
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


@router.put("/v1/projects/{project:path}/documents", tags=["projects"], responses=problems(400, 404, 413))
def put_documents(project: ProjectPath, sent: DocumentsIn, pipeline: PipelineDep) -> DocumentsOut:
    """Make the project's documents these. Hashes alone suffice for known texts; the answer names those wanted."""
    return pipeline.index.put_documents(project, sent.documents)


@router.put("/v1/projects/{project:path}", tags=["projects"], responses=problems(400, 404, 413))
def put_project(project: ProjectPath, change: ProjectIn, pipeline: PipelineDep) -> ProjectOut:
    """Set a project's level: `gate`, `offline`, or `model` (the opt-in to the paid second model)."""
    return pipeline.index.set_level(project, change.level)


@open_router.get("/healthz", tags=["operation"])
def healthz() -> Health:
    """The process lives."""
    return Health(status="ok", version=app_version())


@open_router.get("/readyz", tags=["operation"], responses=problems(503))
def readyz(pipeline: PipelineDep) -> Health:
    """The service can judge: its database answers."""
    pipeline.index.database.ping()
    return Health(status="ok", version=app_version(), checks={"database": "ok"})


def _project_id(session: Session, name: str | None) -> str | None:
    """Id of the named project: None if none is named, UNKNOWN if there is no such project."""
    if name is None:
        return None
    known = projects.find(session, name)
    return known.id if known else UNKNOWN
