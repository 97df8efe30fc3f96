"""Where commands write, and the options that several of them take."""

from typing import Annotated

import typer
from rich.console import Console

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Url = Annotated[
    str | None, typer.Option(envvar="MEMORY_BOUNCER_URL", help="The service; by default the one on this machine.")
]
