"""The command `bouncer`. Each command prints its result or one line saying what is wrong and what to do."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from app.cli.agents import doctor, init, uninstall
from app.cli.budget import budget
from app.cli.console import err, out
from app.cli.documents import docs
from app.cli.journal import journal
from app.cli.judging import check, demo, evaluate, serve
from app.cli.keys import audit_log, keys
from app.cli.operation import backup, reindex, restore
from app.cli.queue import queue, withdraw
from app.errors import BouncerError
from app.settings import app_version

app = typer.Typer(
    name="bouncer",
    help="Memory Bouncer stands at the door of a coding agent's memory and turns slop away.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (serve, demo, check, init, uninstall, doctor, backup, restore, reindex, withdraw):
    app.command()(command)
app.command(name="eval")(evaluate)
app.command(name="audit-log")(audit_log)
app.add_typer(journal, name="journal")
app.add_typer(docs, name="docs")
app.add_typer(keys, name="keys")
app.add_typer(queue, name="queue")
app.add_typer(budget, name="budget")


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        out.print(f"memory-bouncer {app_version()}")
        raise typer.Exit


def main() -> None:
    """Run a command; what goes wrong is one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A kept text may hold half a surrogate pair, and a terminal may know ASCII only: neither ends a command.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="bouncer")
    except BouncerError as exc:
        err.print(f"bouncer: {exc.detail}", markup=False, soft_wrap=True)
        sys.exit(2)
    except OSError as exc:
        named = f"{exc.filename}: " if exc.filename else ""
        err.print(f"bouncer: {named}{exc.strerror or exc}", markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
