"""Where commands write, and the options that several of them take."""

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]
At = Annotated[
    str | None,
    typer.Option("--url", envvar="MEMORY_BOUNCER_URL", help="A service; empty for the database of this machine."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Url = Annotated[
    str | None, typer.Option(envvar="MEMORY_BOUNCER_URL", help="The service; by default the one on this machine.")
]


def progress(*, quiet: bool) -> Progress:
    """A bar on stderr that goes when the work is done; none where nobody watches, or where it is not wanted."""
    return Progress(console=err, transient=True, disable=quiet or not err.is_terminal)


def table_of(*columns: str) -> Table:
    """A plain table of things with ids; what has no room goes on in the next line, and is never cut off."""
    return Table(
        Column("id", no_wrap=True), *(Column(name, overflow="fold") for name in columns), box=None, pad_edge=False
    )
