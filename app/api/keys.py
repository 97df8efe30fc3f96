"""Routes of keys and of the audit log, for administrators."""

from datetime import timedelta

from fastapi import APIRouter, Response, status

from app import audit_log, keys
from app.api.common import ANYWHERE, Before, Count, Id, problems
from app.deps import Administrator, DoorkeeperDep, PepperDep, PipelineDep
from app.schemas.keys import AuditPage, KeyIn, KeyMade, KeyOut, KeyPage, RotationIn

router = APIRouter(responses=problems(*ANYWHERE))


@router.get("/v1/keys", tags=["keys"])
def list_keys(_: Administrator, pipeline: PipelineDep, before: Before = None, count: Count = 50) -> KeyPage:
    """Keys, newest first, without their secrets; also those that are revoked or expired."""
    with pipeline.index.database.read() as session:
        items = keys.page(session, before=before, count=count)
    return KeyPage(items=items, next=items[-1].id if len(items) == count else None)


@router.post("/v1/keys", tags=["keys"], status_code=status.HTTP_201_CREATED, responses=problems(400, 409, 413))
def create_key(
    caller: Administrator,
    asked: KeyIn,
    pipeline: PipelineDep,
    pepper: PepperDep,
    doorkeeper: DoorkeeperDep,
    response: Response,
) -> KeyMade:
    """Make a key. The answer is the only place that ever shows it. The first key shuts the service to those without."""
    with pipeline.index.database.write() as session:
        made = keys.create(session, pepper, caller, asked, pipeline.index.now())
    doorkeeper.shut()
    response.headers["Cache-Control"] = "no-store"
    return made


@router.post("/v1/keys/{key_id}/rotate", tags=["keys"], responses=problems(400, 404, 409, 413))
def rotate_key(
    caller: Administrator,
    key_id: Id,
    asked: RotationIn,
    pipeline: PipelineDep,
    pepper: PepperDep,
    response: Response,
) -> KeyMade:
    """Give a key a new secret, shown here only; the former one is good for a while as well."""
    overlap = timedelta(hours=asked.overlap_hours)
    with pipeline.index.database.write() as session:
        made = keys.rotate(session, pepper, caller, key_id, overlap, pipeline.index.now())
    response.headers["Cache-Control"] = "no-store"
    return made


@router.delete("/v1/keys/{key_id}", tags=["keys"], responses=problems(404))
def revoke_key(caller: Administrator, key_id: Id, pipeline: PipelineDep) -> KeyOut:
    """Shut a key out, from the next request on and for ever. Doing it twice changes nothing."""
    with pipeline.index.database.write() as session:
        return keys.revoke(session, caller, key_id, pipeline.index.now())


@router.get("/v1/audit-log", tags=["keys"])
def list_audit_log(_: Administrator, pipeline: PipelineDep, before: Before = None, count: Count = 50) -> AuditPage:
    """Administrative changes, newest first: who, when, what, and from what to what."""
    with pipeline.index.database.read() as session:
        items = audit_log.page(session, before=before, count=count)
    return AuditPage(items=items, next=items[-1].id if len(items) == count else None)
