"""Routes of entries: the index of what the stores hold."""

from typing import Annotated

from fastapi import APIRouter, Query, status

from app import entries
from app.api.common import ANYWHERE, UNKNOWN, Before, Count, Id, ProjectName, problems, project_id
from app.deps import Decider, PipelineDep, Proposer, Reader
from app.schemas.entries import DeletedOut, DeletedReport, EntryHit, EntryIn, EntryOut, EntryPage
from app.schemas.fields import Name
from app.schemas.vocabulary import Category, EntryStatus

router = APIRouter(responses=problems(*ANYWHERE))


@router.get("/v1/entries", tags=["entries"])
def list_entries(
    caller: Reader,
    pipeline: PipelineDep,
    project: ProjectName = None,
    category: Annotated[Category | None, Query()] = None,
    entry_status: Annotated[EntryStatus | None, Query(alias="status")] = None,
    before: Before = None,
    count: Count = 50,
) -> EntryPage:
    """Entries, newest first."""
    with pipeline.index.database.read() as session:
        if (known := project_id(session, caller, project)) == UNKNOWN:
            return EntryPage(items=[], next=None)
        items = entries.page(
            session, caller, project_id=known, category=category, status=entry_status, before=before, count=count
        )
    return EntryPage(items=items, next=items[-1].id if len(items) == count else None)


@router.post(
    "/v1/entries", tags=["entries"], status_code=status.HTTP_201_CREATED, responses=problems(400, 404, 409, 413)
)
def add_entry(caller: Decider, entry: EntryIn, pipeline: PipelineDep) -> EntryOut:
    """Index a memory that is already in a store, without a review."""
    return pipeline.index.add_entry(caller, entry)


@router.post("/v1/entries/deleted", tags=["entries"], responses=problems(400, 404, 413))
def report_deleted(caller: Proposer, report: DeletedReport, pipeline: PipelineDep) -> DeletedOut:
    """The agent's tool has deleted items from a store: their entries become `deleted`."""
    return DeletedOut(entries=pipeline.index.report_deleted(caller, report))


@router.get("/v1/entries/search", tags=["entries"])
def search_entries(
    caller: Reader,
    pipeline: PipelineDep,
    project: Annotated[Name, Query()],
    query: Annotated[str, Query(min_length=1, max_length=2000)],
    count: Annotated[int, Query(ge=1, le=32)] = 8,
) -> list[EntryHit]:
    """Entries near a text, nearest first."""
    return pipeline.index.search(caller, project, query.replace("\x00", " "), count)


@router.get("/v1/entries/{entry_id}", tags=["entries"], responses=problems(404))
def get_entry(caller: Reader, entry_id: Id, pipeline: PipelineDep) -> EntryOut:
    """One entry."""
    with pipeline.index.database.read() as session:
        return entries.get(session, caller, entry_id)


@router.delete("/v1/entries/{entry_id}", tags=["entries"], responses=problems(404))
def delete_entry(caller: Decider, entry_id: Id, pipeline: PipelineDep) -> EntryOut:
    """Mark an entry deleted, when it was deleted from its store by hand."""
    pipeline.index.delete_entry(caller, entry_id)
    return get_entry(caller, entry_id, pipeline)
