"""Commands `bouncer journal …`: the texts that the hook kept."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from app.cli.console import Json, out, table_of
from app.errors import NotFound, Unavailable
from hooks import store_hygiene_gate as hook

journal = typer.Typer(help="Texts that the hook denied, held or let through unreviewed.", no_args_is_help=True)


@journal.command("list")
def journal_list(
    count: Annotated[int, typer.Option(min=1, help="Most records shown.")] = 20,
    as_json: Json = False,
) -> None:
    """Show the newest texts that were denied, held or let through unreviewed."""
    records = _journal_records()[:count]
    if as_json:
        out.print_json(json.dumps(records))
        return
    if not records:
        out.print("The journal is empty.")
        return
    table = table_of("when", "event", "outcome", "reasons", "text")
    for record in records:
        shown = [str(record.get(name, "")) for name in ("id", "at", "event", "outcome")]
        reasons = record.get("reasons")
        listed = ", ".join(map(str, reasons)) if isinstance(reasons, list) else ""
        text = " ".join(str(record.get("text", "")).split())
        table.add_row(*(escape(value) for value in (*shown, listed, text[:80])))
    out.print(table)


@journal.command("show")
def journal_show(
    record_id: Annotated[str, typer.Argument(metavar="ID", help="The record, or the start of its id.")],
) -> None:
    """Show one record with its whole text."""
    found = [record for record in _journal_records() if str(record.get("id", "")).startswith(record_id)]
    if not found:
        raise NotFound(f"The journal has no record {record_id}; `bouncer journal list` shows those it has.")
    out.print_json(json.dumps(found[0]))


@journal.command("flush")
def journal_flush(
    seconds: Annotated[float, typer.Option(min=1, help="Longest time to take.")] = 120.0,
) -> None:
    """Send the texts that nobody reviewed to the service, now that it runs."""
    config = hook.load_config(str(Path.cwd()))
    sent, left = hook.journal_flush(config, seconds)
    if left:
        raise Unavailable(f"{sent} texts sent, {left} still wait: is the service at {config.url} running?")
    out.print(f"Texts sent: {sent}." if sent else "Nothing waits in the journal.")


def _journal_records() -> list[dict[str, object]]:
    config = hook.load_config(str(Path.cwd()))
    with suppress(FileNotFoundError), Path(hook.journal_path(config)).open(encoding="utf-8"):
        pass  # the hook takes a journal that cannot be read for an empty one; a person is told
    return hook.journal_read(config)[::-1]
