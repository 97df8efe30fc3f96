"""Routes of what comes after a review: the held queue, decisions, what the agents are told, and withdrawal."""

from typing import Annotated

from fastapi import APIRouter, Query

from app import held
from app.api.common import ANYWHERE, ID, UNKNOWN, Count, Id, ProjectName, problems, project_id
from app.deps import Administrator, Decider, PipelineDep, Proposer, QueueDep, Reader
from app.schemas.fields import Name
from app.schemas.judging import Fault
from app.schemas.queue import DecisionIn, HeldPage, News, OverridePage, ToldIn, WithdrawalIn, WithdrawalOut
from app.schemas.reviews import ReviewOut

router = APIRouter(responses=problems(*ANYWHERE))

After = Annotated[str | None, Query(max_length=64, pattern=ID, description="Cursor: the `next` of the page before.")]


@router.get("/v1/queue", tags=["queue"])
def list_held(
    caller: Reader,
    pipeline: PipelineDep,
    project: ProjectName = None,
    fault: Annotated[Fault | None, Query()] = None,
    after: After = None,
    count: Count = 50,
) -> HeldPage:
    """Texts that wait for a decision, oldest first, and how many wait for which reason."""
    with pipeline.index.database.read() as session:
        if (known := project_id(session, caller, project)) == UNKNOWN:
            return HeldPage(items=[], counts=[], next=None)
        items = held.page(session, caller, project_id=known, fault=fault, after=after, count=count)
        counts = held.counts(session, caller, known)
    return HeldPage(items=items, counts=counts, next=items[-1].review_id if len(items) == count else None)


@router.post("/v1/reviews/{review_id}/decision", tags=["queue"], responses=problems(400, 404, 413))
def decide(caller: Decider, review_id: Id, decision: DecisionIn, queue: QueueDep) -> ReviewOut:
    """Let a person's word hold for a review, whatever its verdict is. The agent is told at its next session's start."""
    return queue.decide(caller, review_id, decision)


@router.get("/v1/decisions/news", tags=["queue"])
def get_news(
    caller: Proposer,
    queue: QueueDep,
    project: Annotated[Name, Query()],
    agent: Annotated[Name, Query()],
    count: Annotated[int, Query(ge=1, le=200)] = 50,
) -> News:
    """Decisions that this agent has not been told of, oldest first; told again until it says that it was told."""
    return queue.news(caller, project, agent, count)


@router.post("/v1/decisions/told", tags=["queue"], responses=problems(400, 413))
def report_told(caller: Proposer, told: ToldIn, queue: QueueDep) -> ToldIn:
    """The agent has been told of these decisions. Saying it twice changes nothing."""
    queue.told(caller, told.decisions)
    return told


@router.get("/v1/decisions/overrides", tags=["queue"])
def list_overrides(
    caller: Decider, queue: QueueDep, project: ProjectName = None, after: After = None, count: Count = 50
) -> OverridePage:
    """What people decided, as labelled texts for an evaluation, oldest first; secrets are redacted."""
    return queue.overrides(caller, project, after, count)


@router.post("/v1/withdrawals", tags=["queue"], responses=problems(400, 413))
def withdraw(caller: Administrator, withdrawal: WithdrawalIn, queue: QueueDep) -> WithdrawalOut:
    """Withdraw all memories that came from a key or a session, and list what has to leave the stores for it."""
    return queue.withdraw(caller, withdrawal)
