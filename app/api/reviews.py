"""Routes of reviews: judge a tool call, and hear what became of it."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query

from app import native_hook, reviews
from app.api.common import ANYWHERE, UNKNOWN, Before, Count, Id, ProjectName, problems, project_id
from app.deps import PipelineDep, Proposer, Reader
from app.schemas.fields import Name
from app.schemas.reviews import CallOut, ReviewOut, ReviewPage, ReviewRequest, StoredReport
from app.schemas.vocabulary import Verdict

router = APIRouter(responses=problems(*ANYWHERE))


@router.post("/v1/reviews", tags=["reviews"], responses=problems(400, 404, 409, 413))
async def review(caller: Proposer, request: ReviewRequest, pipeline: PipelineDep) -> CallOut:
    """Judge one memory tool call. The same `tool_call_id` in the same session gets the same answer again."""
    return await pipeline.review(caller, request)


@router.get("/v1/reviews", tags=["reviews"])
def list_reviews(
    caller: Reader,
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
        if (known := project_id(session, caller, project)) == UNKNOWN:
            return ReviewPage(items=[], next=None)
        items = reviews.page(
            session,
            caller,
            project_id=known,
            session_id=session_id,
            tool_call_id=tool_call_id,
            verdict=verdict,
            before=before,
            count=count,
        )
    return ReviewPage(items=items, next=items[-1].id if len(items) == count else None)


@router.get("/v1/reviews/{review_id}", tags=["reviews"], responses=problems(404))
def get_review(caller: Reader, review_id: Id, pipeline: PipelineDep) -> ReviewOut:
    """One review."""
    with pipeline.index.database.read() as session:
        return reviews.get(session, caller, review_id)


@router.post("/v1/reviews/{review_id}/stored", tags=["reviews"], responses=problems(400, 404, 413))
def report_stored(caller: Proposer, review_id: Id, report: StoredReport, pipeline: PipelineDep) -> ReviewOut:
    """The agent's tool has stored the text: its entry becomes `stored`. Saying it twice changes nothing."""
    pipeline.index.report_stored(caller, review_id, report.store_id)
    return get_review(caller, review_id, pipeline)


@router.post("/v1/reviews/{review_id}/failed", tags=["reviews"], responses=problems(404))
def report_failed(caller: Proposer, review_id: Id, pipeline: PipelineDep) -> ReviewOut:
    """The agent's tool did not store the text: its entry refuses nobody any more."""
    pipeline.index.report_failed(caller, review_id)
    return get_review(caller, review_id, pipeline)


@router.post("/v1/hooks/claude-code", tags=["hooks"], responses=problems(400, 404, 409, 413))
async def claude_code_hook(
    caller: Proposer, event: Annotated[dict[str, Any], Body()], pipeline: PipelineDep, project: ProjectName = None
) -> dict[str, Any]:
    """Claude Code's native `type: http` hook: the hook's own JSON in, its decision out; `{}` for no opinion."""
    return await native_hook.answer(caller, event, project, pipeline)
