"""Build the app: lifespan, routes, the guard of hosts and origins, and the one place where errors become answers."""

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import api, selfcheck
from app.access import Access, route_of
from app.census import Census
from app.db import open_database, utc_now
from app.embeddings import Embedder, EndpointEmbedder, WordLlamaEmbedder
from app.errors import BouncerError, ConfigurationError, HostRefused, NotModified, Unauthorized, Unavailable, problem
from app.metrics import Metrics
from app.pipeline import Pipeline
from app.reviewers import Reviewer
from app.settings import Settings, app_version

SWEEP_SECONDS = 30.0
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
LONGEST_BODY = 16 * 2**20
PROBLEM_JSON = "application/problem+json"

log = structlog.get_logger(__name__)


def build_app(settings: Settings) -> FastAPI:
    """The service with these settings; its database is opened and brought up to date.

    Raises:
        ConfigurationError: they cannot work.
    """
    pipeline = build_pipeline(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(_sweep_for_ever(pipeline))
        try:
            yield
        finally:
            sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sweeper
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
    for router in api.ROUTERS:
        app.include_router(router)
    app.add_exception_handler(BouncerError, _bouncer_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)
    app.add_middleware(Door, allowed=settings.allowed_hosts, key=settings.service_key)
    app.add_middleware(Access, metrics=pipeline.metrics)
    return app


def build_pipeline(settings: Settings) -> Pipeline:
    """The pipeline with these settings, on the database that they name.

    Raises:
        ConfigurationError: they cannot work.
    """
    model = build_model(settings)
    selfcheck.refuse_useless(settings, model, utc_now())
    database = open_database(settings)
    metrics = Metrics(app_version())
    database.on_error(metrics.database_failed)
    metrics.add(Census(database, settings))
    pipeline = Pipeline(database, settings, _build_embedder(settings), model=model, metrics=metrics)
    with database.write() as session:
        pipeline.index.neighbourhood.check_space(session)
    try:
        database.ping()
        pipeline.sweep()
    except Unavailable as exc:
        raise ConfigurationError(f"The database {database.shown_url} cannot be written: {exc.detail}") from exc
    return pipeline


def _build_embedder(settings: Settings) -> Embedder:
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
    own_server = settings.anthropic_base_url != Settings.model_fields["anthropic_base_url"].default
    if settings.anthropic_api_key is None and not own_server and not settings.anthropic_headers:
        return None
    # Imported here: the SDK takes most of a second to load, and without a key nobody needs it.
    from app.reviewers.anthropic import AnthropicReviewer  # noqa: PLC0415

    return AnthropicReviewer(settings)


async def _sweep_for_ever(pipeline: Pipeline) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        try:
            await asyncio.to_thread(pipeline.sweep)
        except BouncerError as exc:
            log.warning("sweep.failed", problem=exc.slug)


class Door:
    """Refuses foreign host names (DNS rebinding), foreign pages (cross-site requests) and callers without the key."""

    def __init__(self, app: ASGIApp, allowed: list[str], key: SecretStr | None) -> None:
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed)
        self._key = key.get_secret_value().encode() if key else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with a problem."""
        fault = self._fault(scope) if scope["type"] == "http" else None
        if fault is None:
            await self._app(scope, _limited(receive), send)
        else:
            await _answer(fault, scope["path"])(scope, receive, send)

    def _fault(self, scope: Scope) -> BouncerError | None:
        headers = dict(reversed(scope["headers"]))
        if "*" not in self._allowed:
            if _host_name("//" + headers.get(b"host", b"").decode("latin-1")) not in self._allowed:
                return HostRefused("This host name is not ours; MEMORY_BOUNCER_ALLOWED_HOSTS lists those that are.")
            origin = headers.get(b"origin")
            if origin is not None and _host_name(origin.decode("latin-1")) not in self._allowed:
                return HostRefused("Requests from this origin are refused.")
        if self._key is not None and scope["path"] not in OPEN_PATHS:
            given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
            if not hmac.compare_digest(given, self._key):
                return Unauthorized("This service wants its key: set MEMORY_BOUNCER_KEY for the hook.")
        return None


def _limited(receive: Receive) -> Receive:
    """The same messages, but no body longer than ``LONGEST_BODY`` is read into memory."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LONGEST_BODY:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request's body is too long.")
        return message

    return limited


def _host_name(url: str) -> str:
    try:
        name = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


def _answer(error: BouncerError, path: str) -> Response:
    return JSONResponse(
        problem(error.status, error.slug, error.detail, path),
        status_code=error.status,
        headers={"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None,
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
