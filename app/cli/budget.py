"""Commands `bouncer budget …`: what reviews by the model may cost, and what they did cost."""

import re
from decimal import Decimal
from http import HTTPMethod
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from app.cli.console import At, Json, out
from app.cli.keys import desk_at, id_of
from app.errors import Invalid, NotFound
from app.schemas.budgets import BudgetIn, BudgetList, BudgetOut, BudgetReport
from app.schemas.fields import Model
from app.schemas.vocabulary import AtCap, BudgetScope, Period
from app.settings import load_settings

MICRODOLLARS = 1_000_000
AMOUNT = re.compile(r"\$?(\d{1,9}(?:\.\d{1,6})?)", re.ASCII)

budget = typer.Typer(
    help="What reviews by the model may cost, and what they did cost. Works on the database of this machine; with "
    "--url, or MEMORY_BOUNCER_URL set, on a service, with an admin's key in MEMORY_BOUNCER_KEY.",
    no_args_is_help=True,
)

Project = Annotated[str | None, typer.Option("--project", help="The budget of this project.")]
Key = Annotated[
    str | None, typer.Option("--key", metavar="ID|NAME", help="The budget of this key; by name if only one has it.")
]
PeriodOption = Annotated[
    Period, typer.Option("--period", help="How long the limit holds; days, weeks and months are calendar ones, UTC.")
]


@budget.command("list")
def budget_list(url: At = None, as_json: Json = False) -> None:
    """Show all budgets with what is spent and left in their current windows."""
    found = BudgetList.model_validate(_ask(BudgetList, HTTPMethod.GET, "/v1/budgets", url))
    if as_json:
        out.print_json(found.model_dump_json())
    elif not found.items:
        out.print("There is no budget, so no review is paid for. Set one with `bouncer budget set`.")
    else:
        _show(found.items)


@budget.command("set")
def budget_set(
    amount: Annotated[str, typer.Argument(metavar="DOLLARS", help="The limit, such as 5 or '$0.50'.")],
    project: Project = None,
    key: Key = None,
    period: PeriodOption = Period.MONTH,
    warn: Annotated[int, typer.Option(min=1, max=100, help="Percent of the limit at which people are warned.")] = 80,
    at_cap: Annotated[
        AtCap,
        typer.Option(help="Without room the offline reviewer answers, nobody does (hold), or all pass (allow)."),
    ] = AtCap.OFFLINE,
    off: Annotated[bool, typer.Option("--off", help="Keep the budget, but switch it off.")] = False,
    url: At = None,
    as_json: Json = False,
) -> None:
    """Set a budget of the team, or of a project or key, or change it; in force at once."""
    scope, subject = _whose(project, key)
    if scope is BudgetScope.KEY:
        with desk_at(url) as desk:
            subject = id_of(desk, str(subject))  # one that names no key would limit nothing
    change = BudgetIn(
        scope=scope,
        subject=subject,
        period=period,
        limit_microdollars=microdollars(amount),
        warn_percent=warn,
        at_cap=at_cap,
        enabled=not off,
    )
    made = BudgetOut.model_validate(_ask(BudgetOut, HTTPMethod.PUT, "/v1/budgets", url, change))
    if as_json:
        out.print_json(made.model_dump_json())
    else:
        _show([made])


@budget.command("remove")
def budget_remove(
    project: Project = None,
    key: Key = None,
    period: PeriodOption = Period.MONTH,
    url: At = None,
    as_json: Json = False,
) -> None:
    """Remove a budget of the team, or of a project or key."""
    scope, subject = _whose(project, key)
    known = BudgetList.model_validate(_ask(BudgetList, HTTPMethod.GET, "/v1/budgets", url)).items
    those = {item.subject: item for item in known if (item.scope, item.period) == (scope, period)}
    if scope is BudgetScope.KEY and subject not in those:
        with desk_at(url) as desk:
            subject = id_of(desk, str(subject))
    found = those.get(subject)
    if found is None:
        raise NotFound("There is no such budget; `bouncer budget list` shows those there are.")
    if found.id is None:
        raise Invalid("The setting MEMORY_BOUNCER_BUDGET_MICRODOLLARS makes this budget; change it there.")
    removed = BudgetOut.model_validate(_ask(BudgetOut, HTTPMethod.DELETE, f"/v1/budgets/{found.id}", url))
    if as_json:
        out.print_json(removed.model_dump_json())
    else:
        out.print(f"Removed: {_name(removed)}.", markup=False)


@budget.command("report")
def budget_report(url: At = None, as_json: Json = False) -> None:
    """Compare the ledger with the windows and with the cost of all reviews. Exit code 1 if they differ."""
    report = BudgetReport.model_validate(_ask(BudgetReport, HTTPMethod.GET, "/v1/budgets/report", url))
    if as_json:
        out.print_json(report.model_dump_json())
    else:
        _tell(report)
    raise typer.Exit(0 if report.consistent else 1)


def microdollars(amount: str) -> int:
    """The amount of dollars that a person wrote, in micro-dollars.

    Raises:
        Invalid: it is none.
    """
    found = AMOUNT.fullmatch(amount.strip())
    if found is None:
        raise Invalid(f"{amount} is no amount of dollars; write 5, 0.50 or '$5'.")
    return int(Decimal(found[1]) * MICRODOLLARS)


def dollars(amount: int) -> str:
    """An amount of micro-dollars as people read it: exact, with two decimals at least."""
    whole, _, rest = f"{Decimal(amount) / MICRODOLLARS:.6f}".partition(".")
    return f"${whole}.{rest.rstrip('0').ljust(2, '0')}"


def _whose(project: str | None, key: str | None) -> tuple[BudgetScope, str | None]:
    if project is not None and key is not None:
        raise Invalid("A budget is a project's or a key's; give one of --project and --key.")
    if project is not None:
        return BudgetScope.PROJECT, project
    return (BudgetScope.TEAM, None) if key is None else (BudgetScope.KEY, key)


def _name(item: BudgetOut) -> str:
    whose = f"{item.scope} {item.subject}" if item.subject else item.scope.value
    return f"{whose}, {item.period}" + (" (by setting)" if item.source == "setting" else "")


def _right(*names: str) -> list[Column]:
    return [Column(name, justify="right") for name in names]


def _show(items: list[BudgetOut]) -> None:
    table = Table("budget", *_right("limit", "spent", "reserved", "left", "refused"), "until", "at cap", "", box=None)
    for item in items:
        state = {"ok": "[green]ok[/]", "warned": "[yellow]warned[/]", "at_cap": "[red]at cap[/]"}[item.state]
        table.add_row(
            escape(_name(item)),
            dollars(item.limit_microdollars),
            dollars(item.spent_microdollars),
            dollars(item.reserved_microdollars),
            dollars(item.left_microdollars),
            str(item.refused),
            f"{item.ends_at:%Y-%m-%d}" if item.ends_at else "",
            item.at_cap,
            state if item.enabled else "[dim]off[/]",
        )
    out.print(table)


def _tell(report: BudgetReport) -> None:
    table = Table("scope", "of", "period", "from", *_right("spent", "reserved", "refused"), box=None)
    for window in report.windows:
        table.add_row(
            window.scope,
            escape(window.subject or ""),
            window.period,
            f"{window.starts_at:%Y-%m-%d}" if window.starts_at else "",
            dollars(window.spent_microdollars),
            dollars(window.reserved_microdollars),
            str(window.refused),
        )
    if report.windows:
        out.print(table)
    out.print(f"Paid calls: {report.calls}. They cost {dollars(report.cost_microdollars)}.")
    if report.consistent:
        out.print("Ledger, windows and the cost of the reviews agree.")
    for difference in report.differences:
        kind, ledger = difference.what.replace("_", " "), difference.ledger_microdollars
        found = f"the ledger has {ledger}, the other record {difference.other_microdollars} micro-dollars"
        out.print(f"DIFFERS: {kind} {difference.id}: {found}.", markup=False, soft_wrap=True)


# --- the database of this machine, or a service ---------------------------------------------------------------------


def _ask(kind: type[Model], method: HTTPMethod, path: str, url: str | None, change: BudgetIn | None = None) -> Any:
    """What the routes of budgets answer; without a URL on the database of this machine, in this process.

    Raises:
        NotFound: there is no such budget.
        Invalid: the service refuses, or the address is none.
        Unavailable: the service does not answer.
    """
    if not url:
        return _ask_database(method, path, change)
    from app.cli.remote import ask  # noqa: PLC0415 - loads slowly

    return ask(url, method, path, change.model_dump(mode="json") if change else None, answers=kind)


def _ask_database(method: HTTPMethod, path: str, change: BudgetIn | None) -> Any:
    from app import budget as budgets  # noqa: PLC0415 - the database layer loads slowly
    from app.callers import LOCAL  # noqa: PLC0415
    from app.db import open_database, utc_now  # noqa: PLC0415
    from app.logs import configure_logs  # noqa: PLC0415

    configure_logs("error")
    settings = load_settings()
    database = open_database(settings)
    setting, now = budgets.Setting.of(settings), utc_now()
    try:
        with database.write() as session:
            if change is not None:
                return budgets.put(session, LOCAL, setting, change, now)
            if method is HTTPMethod.DELETE:
                return budgets.remove(session, LOCAL, setting, path.rpartition("/")[2], now)
            if path.endswith("/report"):
                return budgets.report(session)
            return BudgetList(items=budgets.overview(session, setting, now))
    finally:
        database.close()
