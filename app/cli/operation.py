"""Commands for whoever runs the service: `backup`, `restore`, `reindex`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import Json, out, progress
from app.settings import Settings, load_settings

if TYPE_CHECKING:
    from app.backup import Copied

DataDir = Annotated[Path | None, typer.Option(help="Folder of the SQLite database.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    data_dir: DataDir = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Copy the SQLite database to a file, consistent even while the service runs."""
    from app.backup import backup as copy  # noqa: PLC0415

    copied = _with_progress(
        "Copying", as_json, lambda told: copy(_settings(data_dir), file, force=force, progress=told)
    )
    _tell(copied, as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `bouncer backup` wrote.")],
    data_dir: DataDir = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Put a backup in the place of the SQLite database; stop the service first."""
    from app.backup import restore as put_back  # noqa: PLC0415

    copied = _with_progress(
        "Restoring", as_json, lambda told: put_back(_settings(data_dir), file, force=force, progress=told)
    )
    _tell(copied, as_json)


def reindex(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Embed all entries and documents anew with the configured embedder; resumes, and services may run meanwhile.

    Services that run with the former embedder go on until the end, and then have to be restarted with the new one.
    """
    from app.db import open_database  # noqa: PLC0415
    from app.main import build_embedder  # noqa: PLC0415 - loads the whole service
    from app.reindex import reindex as embed_anew  # noqa: PLC0415

    settings = _settings(data_dir)
    embedder = build_embedder(settings)
    database = open_database(settings)
    try:
        with progress(quiet=as_json) as bar:
            task = bar.add_task("Embedding", total=None)
            done = embed_anew(database, embedder, lambda done, total: bar.update(task, completed=done, total=total))
    finally:
        database.close()
    if as_json:
        out.print_json(json.dumps(done.__dict__))
        return
    held = f"{done.entries} entries and {done.passages} passages are indexed with {done.model} ({done.dimension})"
    news = f"{done.embedded} texts were embedded; restart the services." if done.embedded else "Nothing was to be done."
    out.print(f"{held}. {news}", markup=False, soft_wrap=True)


def _settings(data_dir: Path | None) -> Settings:
    from app.logs import configure_logs  # noqa: PLC0415 - loads slowly

    configure_logs("error")
    settings = load_settings()
    return settings if data_dir is None else settings.model_copy(update={"data_dir": data_dir, "database_url": ""})


def _with_progress(what: str, quiet: bool, work: "Callable[[Callable[[int, int], None]], Copied]") -> "Copied":
    with progress(quiet=quiet) as bar:
        task = bar.add_task(what, total=None)
        return work(lambda done, total: bar.update(task, completed=done, total=total))


def _tell(copied: "Copied", as_json: bool) -> None:
    if as_json:
        fields = {**copied.__dict__, "path": str(copied.path)}
        fields["replaced"] = str(copied.replaced) if copied.replaced else None
        out.print_json(json.dumps(fields))
        return
    what = f"{copied.projects} projects, {copied.entries} entries, {copied.reviews} reviews"
    out.print(f"{copied.path}: {what}, {copied.size / 2**20:.1f} MB", markup=False, soft_wrap=True)
    if copied.replaced:
        out.print(f"What was there before is kept as {copied.replaced}", markup=False, soft_wrap=True)
