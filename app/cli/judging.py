"""Commands that judge: `serve`, `demo`, `check`, `eval`."""

import errno
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from app.cli.console import Json, Url, err, out, progress
from app.errors import Invalid
from app.settings import app_version, load_settings


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; beyond this machine only with keys.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the SQLite database.")] = None,
) -> None:
    """Run the service: on this machine and with the offline reviewer unless configured otherwise."""
    given = {"host": host, "port": port, "data_dir": data_dir}
    settings = load_settings().model_copy(update={name: value for name, value in given.items() if value is not None})
    from app.server import run  # noqa: PLC0415 - the server loads slowly; `bouncer --help` need not wait for it

    def announce(url: str) -> None:
        if err.is_terminal:
            err.print(f"Memory Bouncer {app_version()} listens on {url} (Ctrl-C stops it).")

    run(settings, started=announce)


def demo() -> None:
    """Show the door at work: starts a service of its own, offers it four memories through the hook, and stops."""
    from app.demo import play  # noqa: PLC0415

    out.print("Starting a service of its own on a free port …")
    for scene in play():
        mark = "[green]stored[/]" if scene.stored else "[red]turned away[/]"
        out.print(f"\n[bold]{scene.title}[/]: {mark}")
        out.print(f"  the agent offers: {escape(scene.text)}", style="dim", soft_wrap=True)
        out.print(f"  the agent reads:  {escape(scene.told)}", soft_wrap=True)
    out.print(
        "\nNext: `bouncer init` puts the hook into Claude Code, `bouncer serve` starts the service.", soft_wrap=True
    )


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


def evaluate(
    path: Annotated[Path, typer.Argument(help="A folder of labelled texts, or one JSON Lines file.")],
    reviewer: Annotated[Literal["offline", "anthropic"], typer.Option(help="Who judges.")] = "offline",
    split: Annotated[Literal["train", "development", "test"] | None, typer.Option(help="Only this part.")] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help="Only this suite, such as candidates; may be repeated.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Only projects (attacks: ideas) of this pattern: 'shop-*', '!shop-*' for others."),
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
            group=group,
            limit=limit,
            reruns=reruns,
            dry_run=dry_run,
            replies=replies,
            out=out_folder,
            bars=bars,
        )
        with progress(quiet=as_json) as bar:
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


def _candidate_text(given: str) -> str:
    try:
        if given == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        if not given:
            return given  # which would name this folder
        path = Path(given)
        if not path.exists():
            return given
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise Invalid(f"{'What came on stdin' if given == '-' else given} is no text in UTF-8.") from exc
    except ValueError:
        return given  # holds what no file name may hold
    except OSError as exc:
        if exc.errno == errno.ENAMETOOLONG:
            return given
        raise Invalid(f"Cannot read {given}: {exc.strerror}.") from exc
