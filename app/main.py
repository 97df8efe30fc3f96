"""Build the app: lifespan, routes, the door before them, and the one place where errors become answers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from app import api, budget, selfcheck
from app.access import Access, route_of
from app.census import Census
from app.db import open_database, utc_now
from app.door import Door, Doorkeeper
from app.embeddings import Embedder, EndpointEmbedder, WordLlamaEmbedder
from app.errors import (
    BouncerError,
    ConfigurationError,
    NotModified,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    problem,
)
from app.metrics import Metrics
from app.pipeline import Pipeline
from app.queue import Queue
from app.reviewers import Reviewer
from app.settings import Settings, app_version

SWEEP_SECONDS = 30.0
PROBLEM_JSON = "application/problem+json"

log = structlog.get_logger(__name__)


def build_app(settings: Settings, *, now: Callable[[], datetime] = utc_now) -> FastAPI:
    """The service with these settings and this clock; its database is opened and brought up to date.

    Raises:
        ConfigurationError: they cannot work.
    """
    pipeline = build_pipeline(settings, now=now)
    doorkeeper = Doorkeeper(pipeline.index.database, settings)
    doorkeeper.check()
    queue = Queue(pipeline, settings)

    def sweep() -> None:
        pipeline.sweep()
        queue.expire()
        doorkeeper.note_use()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        workers = [
            asyncio.create_task(_for_ever("sweep", lambda: asyncio.to_thread(sweep))),
            asyncio.create_task(_for_ever("reconsider", queue.reconsider)),
        ]
        try:
            yield
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            with contextlib.suppress(BouncerError):
                await asyncio.to_thread(doorkeeper.note_use)
            await pipeline.close()

    app = FastAPI(
        title="Memory Bouncer",
        version=app_version(),
        summary="Judges what coding agents want to remember.",
        lifespan=lifespan,
        docs_url="/docs",
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.pipeline = pipeline
    app.state.doorkeeper = doorkeeper
    app.state.queue = queue
    for router in api.ROUTERS:
        app.include_router(router)
    app.add_exception_handler(BouncerError, _bouncer_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)
    app.add_middleware(Door, allowed=settings.allowed_hosts, keeper=doorkeeper, answer=_answer)
    app.add_middleware(Access, metrics=pipeline.metrics)
    return app


def build_pipeline(settings: Settings, *, now: Callable[[], datetime] = utc_now) -> Pipeline:
    """The pipeline with these settings and this clock, on the database that they name.

    Raises:
        ConfigurationError: they cannot work.
    """
    model = build_model(settings)
    selfcheck.refuse_useless(settings, model, now())
    database = open_database(settings)
    metrics = Metrics(app_version())
    database.on_error(metrics.database_failed)
    metrics.add(Census(database, settings, now=now))
    pipeline = Pipeline(database, settings, build_embedder(settings), model=model, now=now, metrics=metrics)
    if (reason := pipeline.index.neighbourhood.why_in_memory) is not None:
        log.warning("neighbours.in_memory", reason=reason)
    with database.read() as session:
        budgets = budget.overview(session, pipeline.budget_setting, now())
    selfcheck.refuse_without_budget(settings, model, has_budget=bool(budgets))
    try:
        database.ping()
        pipeline.sweep()
    except Unavailable as exc:
        raise ConfigurationError(f"The database {database.shown_url} cannot be written: {exc.detail}") from exc
    return pipeline


def build_embedder(settings: Settings) -> Embedder:
    """The configured embedder.

    Raises:
        ConfigurationError: its server does not answer.
    """
    if settings.embeddings_url is None:
        return WordLlamaEmbedder()
    key = settings.embeddings_key.get_secret_value() if settings.embeddings_key else None
    try:
        return EndpointEmbedder(settings.embeddings_url, settings.embeddings_model, key=key)
    except Unavailable as exc:
        raise ConfigurationError(f"{exc.detail} MEMORY_BOUNCER_EMBEDDINGS_URL is {settings.embeddings_url}.") from exc


def build_model(settings: Settings) -> Reviewer | None:
    """The second model, if one is configured.

    Raises:
        ConfigurationError: its price is not known, or its address is none.
    """
    if not settings.has_model:
        return None
    # Imported here: the SDK takes most of a second to load, and without a key nobody needs it.
    from app.reviewers.anthropic import AnthropicReviewer  # noqa: PLC0415

    return AnthropicReviewer(settings)


async def _for_ever(name: str, work: Callable[[], Awaitable[object]]) -> None:
    """Do the work every now and then; what the database or a provider prevents is done the next time."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        try:
            await work()
        except Exception as exc:
            log.warning("worker.failed", worker=name, problem=getattr(exc, "slug", "internal"), exc_info=True)


def _answer(error: BouncerError, path: str) -> Response:
    headers = None
    if isinstance(error, Unauthorized):
        headers = {"WWW-Authenticate": "Bearer"}
    elif isinstance(error, TooManyRequests):
        headers = {"Retry-After": str(error.retry_after_seconds)}
    return JSONResponse(
        problem(error.status, error.slug, error.detail, path),
        status_code=error.status,
        headers=headers,
        media_type=PROBLEM_JSON,
    )


async def _bouncer_error(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, BouncerError)  # noqa: S101
    if isinstance(exc, NotModified):
        return Response(status_code=exc.status, headers={"ETag": exc.etag})
    if exc.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request.refused", route=route_of(request.scope), problem=exc.slug, detail=exc.detail)
    return _answer(exc, request.url.path)


async def _validation_error(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)  # noqa: S101
    faults = "; ".join(f"{_place(error)}: {error['msg']}" for error in exc.errors())
    body = problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", faults, request.url.path)
    return JSONResponse(body, status_code=HTTPStatus.UNPROCESSABLE_ENTITY, media_type=PROBLEM_JSON)


def _place(error: Mapping[str, Any]) -> str:
    """Where the fault is, in words of ours: rejected values, and names that we did not give, may be private."""
    place = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
    return ".".join(str(part) for part in place)


async def _http_error(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)  # noqa: S101
    slug = HTTPStatus(exc.status_code).phrase.lower().replace(" ", "-")
    body = problem(exc.status_code, slug, str(exc.detail), request.url.path)
    return JSONResponse(body, status_code=exc.status_code, media_type=PROBLEM_JSON, headers=exc.headers)


async def _unexpected_error(request: Request, exc: Exception) -> Response:
    request_id = request.scope.get("request_id", "")
    log.error("request.failed", request=request_id, route=route_of(request.scope), exc_info=exc)
    body = problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "The service failed; its log says more.", request.url.path
    )
    return JSONResponse(
        body,
        status_code=HTTPStatus.INTERNAL_SERVER_ERROR,
        media_type=PROBLEM_JSON,
        headers={"X-Request-ID": request_id},
    )
