# syntax=docker/dockerfile:1
FROM python:3.13-slim AS build
RUN pip install --no-cache-dir uv==0.13.9
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
WORKDIR /src
# Dependencies first: they change less often than the code.
COPY pyproject.toml README.md LICENSE ./
RUN --mount=type=cache,target=/root/.cache/uv uv sync --no-dev --extra postgres --no-install-project
COPY alembic alembic
COPY app app
COPY hooks hooks
COPY prompts prompts
COPY skills skills
RUN --mount=type=cache,target=/root/.cache/uv uv sync --no-dev --extra postgres --no-editable

FROM python:3.13-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/memory-bouncer bouncer
COPY --from=build /src/.venv /src/.venv
ENV PATH=/src/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MEMORY_BOUNCER_HOST=0.0.0.0 \
    MEMORY_BOUNCER_DATA_DIR=/var/lib/memory-bouncer
USER 10001
VOLUME /var/lib/memory-bouncer
EXPOSE 8711
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen(u.Request('http://127.0.0.1:8711/readyz', headers={'Host': 'localhost'}), timeout=2)"]
# Listening beyond the container needs MEMORY_BOUNCER_SECRET and a key (`keys create`); without, it refuses to start.
ENTRYPOINT ["bouncer"]
CMD ["serve"]
