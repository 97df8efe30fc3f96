"""The command `bouncer`. Each command prints its result or one line saying what is wrong and what to do."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.errors import BouncerError
from app.settings import app_version, load_settings

app = typer.Typer(
    name="bouncer",
    help="Memory Bouncer stands at the door of a coding agent's memory and turns slop away.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]
Url = Annotated[
    str | None, typer.Option(envvar="MEMORY_BOUNCER_URL", help="The service; by default the one on this machine.")
]


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        out.print(f"memory-bouncer {app_version()}")
        raise typer.Exit


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; beyond this machine only with a key.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the SQLite database.")] = None,
) -> None:
    """Run the service: on this machine and with the offline reviewer unless configured otherwise."""
    given = {"host": host, "port": port, "data_dir": data_dir}
    settings = load_settings().model_copy(update={name: value for name, value in given.items() if value is not None})
    from app.server import run  # noqa: PLC0415 - the server loads slowly; `bouncer --help` need not wait for it

    run(settings, started=lambda url: err.print(f"Memory Bouncer {app_version()} listens on {url} (Ctrl-C stops it)."))


@app.command()
def check(
    text: Annotated[str, typer.Argument(metavar="TEXT|FILE|-", help="The memory: a text, a file, or - for stdin.")],
    project: Annotated[str | None, typer.Option(help="The project; by default the one of this folder.")] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Judge one text without storing anything. Exit code 0 if it would be approved, 1 if not."""
    from app.judge_once import judge_once  # noqa: PLC0415 - loads the whole service

    answer = judge_once(_candidate_text(text), project=project, url=url, settings=load_settings())
    if as_json:
        out.print_json(answer.model_dump_json())
    else:
        review = answer.reviews[0]
        colour = {"approve": "green", "held": "yellow"}.get(answer.verdict, "red")
        category = f" as {review.category}" if review.category else ""
        out.print(f"[bold {colour}]{answer.verdict}[/]{category} [dim](reviewer: {review.reviewer})[/]")
        out.print(review.message if answer.verdict != "approve" else answer.context or review.message, markup=False)
    raise typer.Exit(0 if answer.verdict == "approve" else 1)


def _candidate_text(given: str) -> str:
    if given == "-":
        return sys.stdin.read()
    try:
        path = Path(given)
        return path.read_text(encoding="utf-8") if path.is_file() else given
    except (OSError, ValueError):  # a long text is no file name; a file that is no text says so below
        return given


def main() -> None:
    """Run a command; what goes wrong is one line on stderr and exit code 2."""
    try:
        app()
    except BouncerError as exc:
        err.print(f"bouncer: {exc.detail}", markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
