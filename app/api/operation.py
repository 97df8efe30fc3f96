"""Routes for whoever runs the service; they need no key, so that they answer while the database is away."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from app.api.common import problems
from app.deps import PipelineDep
from app.errors import Unavailable
from app.schemas.service import Health
from app.settings import app_version

router = APIRouter(responses=problems(403))


@router.get("/healthz", tags=["operation"])
def healthz() -> Health:
    """The process lives."""
    return Health(status="ok", version=app_version())


@router.get("/readyz", tags=["operation"], responses=problems(503))
def readyz(pipeline: PipelineDep) -> Health:
    """The service can judge: its database answers, and it is not about to stop."""
    if pipeline.in_flight.stopping:
        raise Unavailable("The service is stopping.")
    pipeline.index.database.ping()
    return Health(status="ok", version=app_version(), checks={"database": "ok"})


@router.get(
    "/metrics",
    tags=["operation"],
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
def metrics(pipeline: PipelineDep) -> Response:
    """What happened in this process, in Prometheus' text format. No label holds a name or a text."""
    return Response(pipeline.metrics.page(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
