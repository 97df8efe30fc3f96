"""Commands `bouncer docs …`: the project's documents, as the hook sends them at the start of a session."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from app.cli.console import Json, Url, err, out, progress
from app.errors import Invalid, Unavailable
from hooks import store_hygiene_gate as hook

docs = typer.Typer(help="The project's documents, which memories are compared with.", no_args_is_help=True)

LONGEST_SECONDS = 600.0
ANSWER_SECONDS = 10.0
TRIES = 5
BUSY = 503
UNAUTHORIZED = 401

Project = Annotated[str | None, typer.Option(help="The project's name; by default the one of this folder.")]


@docs.command("sync")
def docs_sync(project: Project = None, url: Url = None, as_json: Json = False) -> None:
    """Send the documents that have changed to the service, and have it forget those that are gone."""
    config = _config(project, url)
    _refuse_if_kept_back(config)
    with progress(quiet=as_json) as bar:
        task = bar.add_task("Sending documents", total=None)
        documents, sent, passages = _sync(config, lambda done, wanted: bar.update(task, completed=done, total=wanted))
    kept = [document for document in documents if not document.why]
    left_out = [{"path": document.path, "why": document.why} for document in documents if document.why]
    if as_json:
        result = {"project": config.project, "documents": len(kept), "sent": sent, "passages": passages}
        out.print_json(json.dumps(result | {"left_out": left_out}))
        return
    number = "1 document" if len(kept) == 1 else f"{len(kept)} documents"
    end = f" {len(left_out)} left out: see `bouncer docs list`." if left_out else ""
    out.print(
        f"{number} of {config.project}: {sent} sent, {max(len(kept) - sent, 0)} known already;"
        f" memories are compared with {passages} passages.{end}",
        markup=False,
        soft_wrap=True,
    )


@docs.command("list")
def docs_list(project: Project = None, url: Url = None, as_json: Json = False) -> None:
    """Show which files are documents, why others are left out, and what the service holds of them."""
    config = _config(project, url)
    try:
        documents = hook.digest_documents(config, time.monotonic() + LONGEST_SECONDS)
    except TimeoutError as exc:
        raise Unavailable("Looking through the project's folders took too long.") from exc
    held, fault = _held(config)
    rows = [_row(document, held) for document in documents]
    gone = held.keys() - {document.path for document in documents}
    rows += [
        {"path": path, "bytes": None, "state": "at the service only"} | _passages(held, path) for path in sorted(gone)
    ]
    if as_json:
        out.print_json(json.dumps({"project": config.project, "fault": fault or None, "documents": rows}))
        return
    table = Table("document", Column("KB", justify="right"), "state", Column("passages", justify="right"), box=None)
    for row in rows:
        size = "" if row["bytes"] is None else f"{row['bytes'] / 1024:.1f}"
        passages = "" if row["passages"] is None else str(row["passages"])
        table.add_row(escape(str(row["path"])), size, escape(str(row["state"])), passages)
    out.print(table if rows else f"{config.project} has no documents.", markup=False)
    if fault:
        err.print(f"bouncer: what the service holds is not known: {fault}.", markup=False, soft_wrap=True)


def _config(project: str | None, url: str | None) -> hook.Config:
    config = hook.load_config(str(Path.cwd()))
    if url is not None:
        try:
            hook.split_url(url)
        except ValueError as exc:
            raise Invalid(f"{url} is no address of a service: it {exc}.") from exc
        config.url = url
    config.project = project or config.project
    return config


def _refuse_if_kept_back(config: hook.Config) -> None:
    if why := hook.keeps_documents_back(config):
        raise Invalid(f"Nothing was sent: {why}.")
    try:
        hook.refresh_policy(config, time.monotonic() + ANSWER_SECONDS)
    except hook.ServiceFailure as failure:
        raise _unavailable(failure) from failure
    if why := hook.keeps_documents_back(config):
        raise Invalid(f"Nothing was sent: {why}.")


def _sync(config: hook.Config, told: Any) -> tuple[list[hook.Document], int, int]:
    """Send what is wanted, and come again as long as the service is busy with the documents of others."""
    end, before, done = time.monotonic() + LONGEST_SECONDS, 0, 0

    def progress(through: int, wanted: int) -> None:
        nonlocal done
        done = before + through
        told(done, before + wanted)

    for tries_left in reversed(range(TRIES)):
        try:
            documents, _, passages = hook.sync_documents(config, end, progress)
        except hook.ServiceFailure as failure:
            if failure.status != BUSY or not tries_left:
                raise _unavailable(failure) from failure
            before = done
            time.sleep(1)
        except TimeoutError as exc:
            raise Unavailable("Not all documents were sent in time; the next call goes on from here.") from exc
        else:
            return documents, done, passages
    raise AssertionError


def _unavailable(failure: hook.ServiceFailure) -> Unavailable:
    hint = "Set MEMORY_BOUNCER_KEY to its key." if failure.status == UNAUTHORIZED else "Is `bouncer serve` running?"
    return Unavailable(f"Documents could not be sent: {failure}. {hint}")


def _held(config: hook.Config) -> tuple[dict[str, tuple[str, int]], str]:
    """What the service holds: each path with its hash and number of passages; and why that is not known."""
    path = hook.documents_path(config)
    try:
        answer, _ = hook.call_service(config, "GET", path, None, time.monotonic() + ANSWER_SECONDS)
        rows: Any = answer["documents"]
        return {row["path"]: (row["sha256"], row["passages"]) for row in rows}, ""
    except hook.ServiceFailure as failure:
        return {}, str(failure)
    except (KeyError, TypeError):
        return {}, f"what answers at {config.url} is not this version of Memory Bouncer"


def _row(document: hook.Document, held: dict[str, tuple[str, int]]) -> dict[str, Any]:
    digest = held.get(document.path, ("", 0))[0]
    state = document.why or {"": "not sent yet", document.digest: "sent"}.get(digest, "changed since it was sent")
    return {"path": document.path, "bytes": document.size, "state": state} | _passages(held, document.path)


def _passages(held: dict[str, tuple[str, int]], path: str) -> dict[str, int | None]:
    return {"passages": held[path][1] if path in held else None}
