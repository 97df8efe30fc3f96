"""The command `bouncer`. Each command prints its result or one line saying what is wrong and what to do."""

import errno
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.syntax import Syntax
from rich.table import Column, Table

from app.errors import BouncerError, Invalid, NotFound, Unavailable
from app.settings import app_version, load_settings
from hooks import store_hygiene_gate as hook

if TYPE_CHECKING:
    from app.agents.installation import Change

app = typer.Typer(
    name="bouncer",
    help="Memory Bouncer stands at the door of a coding agent's memory and turns slop away.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
journal = typer.Typer(help="Texts that the hook denied, held or let through unreviewed.", no_args_is_help=True)
app.add_typer(journal, name="journal")
LONGEST_LINE = 110
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ScopeOption = Annotated[
    Literal["user", "project", "local"],
    typer.Option(help="Your own settings, the project's shared ones, or your private ones for the project."),
]
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
def demo() -> None:
    """Show the door at work: starts a service of its own, offers it four memories through the hook, and stops."""
    from app.demo import play  # noqa: PLC0415

    out.print("Starting a service of its own on a free port …")
    for scene in play():
        mark = "[green]stored[/]" if scene.stored else "[red]turned away[/]"
        out.print(f"\n[bold]{scene.title}[/]: {mark}")
        out.print(f"  the agent offers: {escape(scene.text)}", style="dim", soft_wrap=True)
        out.print(f"  the agent reads:  {escape(scene.told)}", soft_wrap=True)
    out.print("\nNext: `bouncer init` puts the hook into Claude Code, `bouncer serve` starts the service.")


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


@app.command()
def init(
    scope: ScopeOption = "user",
    yes: Yes = False,
) -> None:
    """Put the hook and the /hygiene skill into Claude Code's settings, after showing what would change."""
    from app.agents import installation  # noqa: PLC0415

    config = hook.load_config(str(Path.cwd()))
    changes = installation.install(scope, Path.cwd(), python="python3", config=config)
    _carry_out(changes, yes=yes, nothing="All is in place already.")
    out.print("Start the service with `bouncer serve`, and see with `bouncer doctor` whether the door is shut.")


@app.command()
def uninstall(
    scope: ScopeOption = "user",
    yes: Yes = False,
) -> None:
    """Take the hook and the skill out of Claude Code's settings again, and leave nothing behind."""
    from app.agents import installation  # noqa: PLC0415

    _carry_out(installation.uninstall(scope, Path.cwd()), yes=yes, nothing="Nothing of Memory Bouncer is installed.")
    config = hook.load_config(str(Path.cwd()))
    kept = [path for path in (hook.journal_path(config), str(load_settings().data_dir)) if Path(path).exists()]
    if kept:
        out.print("Your texts are kept; delete them yourself if you like: " + ", ".join(kept), soft_wrap=True)


@app.command()
def doctor(
    client: Annotated[str | None, typer.Option(help="Claude Code's program, if it is not on the search path.")] = None,
    no_client: Annotated[bool, typer.Option("--no-client", help="Do not fire the canary.")] = False,
    as_json: Json = False,
) -> None:
    """Try every part, and prove with a canary through the agent client that a denial holds. Exit code 1 on faults."""
    from app.doctor import examine  # noqa: PLC0415

    findings = []
    with nullcontext() if as_json else err.status("Trying every part …"):
        for finding in examine(Path.cwd(), client=client, with_client=not no_client):
            findings.append(finding)
            if not as_json:
                mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]–[/]"}[finding.holds]
                out.print(f"{mark} [bold]{finding.name}[/]:", end=" ")
                out.print(finding.detail, markup=False, soft_wrap=True)
    if as_json:
        out.print_json(json.dumps([asdict(finding) for finding in findings]))
    raise typer.Exit(1 if any(finding.holds is False for finding in findings) else 0)


@app.command(name="eval")
def evaluate(
    path: Annotated[Path, typer.Argument(help="A folder of labelled texts, or one JSON Lines file.")],
    reviewer: Annotated[Literal["offline", "anthropic"], typer.Option(help="Who judges.")] = "offline",
    split: Annotated[Literal["train", "development", "test"] | None, typer.Option(help="Only this part.")] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help="Only this suite, such as candidates; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many texts, evenly spread.")] = None,
    reruns: Annotated[int, typer.Option(min=0, help="Judge so many times again and count flips.")] = 0,
    dry_run: Annotated[
        Path | None, typer.Option(help="Write the model's requests to this folder and ask nobody.")
    ] = None,
    replies: Annotated[Path | None, typer.Option(help="Take the model's replies from this folder.")] = None,
    out_folder: Annotated[Path | None, typer.Option("--out", help="Folder for the report and the results.")] = None,
    bars: Annotated[Path | None, typer.Option(help="Exit with 1 if the run misses one of these bars.")] = None,
    against: Annotated[Path | None, typer.Option(help="Compare the results in PATH with those in this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Measure the judgement on labelled texts, through the real pipeline, with the baselines beside it."""
    from app.evaluation import command, report  # noqa: PLC0415

    if against is not None:
        made, missed = command.compare(against, path), []
    else:
        options = command.Options(
            path=path,
            reviewer=reviewer,
            split=split,
            suites=tuple(suite or ()),
            limit=limit,
            reruns=reruns,
            dry_run=dry_run,
            replies=replies,
            out=out_folder,
            bars=bars,
        )
        with Progress(console=err, transient=True, disable=as_json) as bar:
            task = bar.add_task("Judging", total=None)
            evaluation = command.run(
                options,
                load_settings(),
                started=lambda total: bar.update(task, total=total),
                progress=lambda: bar.advance(task),
            )
        made, missed = evaluation.report, evaluation.missed
    if as_json:
        out.print_json(made.model_dump_json())
    else:
        out.print(report.markdown(made), markup=False, soft_wrap=True)
    for line in missed:
        err.print(f"missed: {line}", markup=False, soft_wrap=True)
    raise typer.Exit(1 if missed else 0)


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
    table = Table(Column("id", no_wrap=True), "when", "event", "outcome", "reasons", "text", box=None, pad_edge=False)
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
    return hook.journal_read(hook.load_config(str(Path.cwd())))[::-1]


def _carry_out(changes: "Sequence[Change]", *, yes: bool, nothing: str) -> None:
    from app.agents import installation  # noqa: PLC0415

    if not changes:
        out.print(nothing)
        return
    for change in changes:
        if change.path.suffix == ".json":
            # The launcher's program text makes lines that nobody can review; their beginnings say which they are.
            lines = [
                line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
                for line in change.diff.splitlines()
            ]
            out.print(Syntax("\n".join(lines), "diff", background_color="default"))
        else:
            out.print(f"{'remove' if change.after is None else 'write'} {change.path}", markup=False, soft_wrap=True)
    if not yes and not typer.confirm("Make these changes?", default=True):
        raise typer.Exit(1)
    installation.apply(list(changes))
    out.print("Done.")


def _candidate_text(given: str) -> str:
    if given == "-":
        return sys.stdin.read()
    try:
        path = Path(given)
        if not path.exists():
            return given
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise Invalid(f"{given} is no text file.") from exc
    except ValueError:
        return given  # holds what no file name may hold
    except OSError as exc:
        if exc.errno == errno.ENAMETOOLONG:
            return given
        raise Invalid(f"Cannot read {given}: {exc.strerror}.") from exc


def main() -> None:
    """Run a command; what goes wrong is one line on stderr and exit code 2."""
    try:
        app(prog_name="bouncer")
    except BouncerError as exc:
        err.print(f"bouncer: {exc.detail}", markup=False, soft_wrap=True)
        sys.exit(2)
    except OSError as exc:
        err.print(f"bouncer: {exc.strerror or exc}", markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
