"""Routes for whoever runs the service; they need no key."""

from fastapi import APIRouter

from app.api.common import problems
from app.deps import PipelineDep
from app.schemas import Health
from app.settings import app_version

router = APIRouter(responses=problems(403))


@router.get("/healthz", tags=["operation"])
def healthz() -> Health:
    """The process lives."""
    return Health(status="ok", version=app_version())


@router.get("/readyz", tags=["operation"], responses=problems(503))
def readyz(pipeline: PipelineDep) -> Health:
    """The service can judge: its database answers."""
    pipeline.index.database.ping()
    return Health(status="ok", version=app_version(), checks={"database": "ok"})
