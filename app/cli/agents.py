"""Commands about the agents on this machine: `init`, `uninstall`, `doctor`."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.syntax import Syntax

from app.cli.console import Json, Yes, err, out
from app.settings import load_settings
from hooks import store_hygiene_gate as hook

if TYPE_CHECKING:
    from app.agents.installation import Change

LONGEST_LINE = 110

ScopeOption = Annotated[
    Literal["user", "project", "local"],
    typer.Option(help="Your own settings, the project's shared ones, or your private ones for the project."),
]


def init(
    scope: ScopeOption = "user",
    yes: Yes = False,
) -> None:
    """Put the hook and the /hygiene skill into Claude Code's settings, after showing what would change."""
    from app.agents import installation  # noqa: PLC0415

    config = hook.load_config(str(Path.cwd()))
    changes = installation.install(scope, Path.cwd(), python="python3", config=config)
    _carry_out(changes, yes=yes, nothing="All is in place already.")
    out.print(
        "Start the service with `bouncer serve`, and see with `bouncer doctor` whether the door is shut.",
        soft_wrap=True,
    )


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
            out.print(Syntax("\n".join(lines), "diff", background_color="default", word_wrap=True))
        else:
            out.print(f"{'remove' if change.after is None else 'write'} {change.path}", markup=False, soft_wrap=True)
    if not yes and not typer.confirm("Make these changes?", default=True):
        raise typer.Exit(1)
    installation.apply(list(changes))
    out.print("Done.")
