"""Commands `bouncer queue …` and `bouncer withdraw`: what was held, decisions about it, and what they lead to."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from app.cli.console import Json, Url, Yes, out, table_of
from app.cli.remote import ask
from app.errors import Invalid
from app.schemas.queue import HeldPage, OverridePage, WithdrawalOut
from app.schemas.reviews import ReviewOut

PAGE = 200

queue = typer.Typer(
    help="Texts that nobody could judge, and decisions about these and any others.", no_args_is_help=True
)

Project = Annotated[str | None, typer.Option(help="Only this project's.")]
ReviewId = Annotated[str, typer.Argument(metavar="ID", help="The review, or the start of a held one's id.")]
Why = Annotated[str, typer.Option("--reason", help="Why; kept with the decision.")]


@queue.command("list")
def list_held(
    project: Project = None,
    fault: Annotated[str | None, typer.Option(help="Only what is held for this reason.")] = None,
    count: Annotated[int, typer.Option(min=1, max=PAGE, help="Most texts shown.")] = 20,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show the texts that wait for a decision, oldest first."""
    page = ask(url, "GET", "/v1/queue", answers=HeldPage, project=project, fault=fault, count=count)
    if as_json:
        out.print_json(json.dumps(page))
        return
    if not page["items"]:
        out.print("Nothing is held.")
        return
    table = table_of("age", "project", "fault", "tries", "text")
    for item in page["items"]:
        text = " ".join(item["text"].split())[:60]
        fields = (item["review_id"], _age(item["since"]), item["project"], item["fault"], str(item["tries"]), text)
        table.add_row(*map(escape, fields))
    out.print(table)
    total = sum(each["count"] for each in page["counts"])
    kinds = ", ".join(f"{each['fault']} {each['count']}" for each in page["counts"])
    out.print(f"Held in all: {total} ({kinds}).", markup=False)


@queue.command("show")
def show(review: ReviewId, url: Url = None) -> None:
    """Show a review whole, with its text and what was decided about it."""
    out.print_json(json.dumps(ask(url, "GET", f"/v1/reviews/{_whole(review, url)}", answers=ReviewOut)))


@queue.command("approve")
def approve(
    review: ReviewId,
    reason: Why,
    category: Annotated[
        Literal["STATE", "DECISION", "RULE", "DISCOVERY", "QUIRK"] | None, typer.Option(help="What it is.")
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Let a text into the store, whatever its verdict is: the agent is told to store it at its next session's start."""
    _decide(review, url, as_json, verdict="approve", reason=reason, category=category)


@queue.command("reject")
def reject(review: ReviewId, reason: Why, url: Url = None, as_json: Json = False) -> None:
    """Turn a text away, whatever its verdict is: its entry is withdrawn, and what must leave the store is listed."""
    _decide(review, url, as_json, verdict="reject", reason=reason)


@queue.command("rewrite")
def rewrite(
    review: ReviewId,
    reason: Why,
    text: Annotated[str | None, typer.Option(help="A text that passes as it is, for the agent to store.")] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Turn a text away and have it reworked, or give the text that may be stored in its place."""
    _decide(review, url, as_json, verdict="rewrite", reason=reason, suggested_text=text)


@queue.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; an existing file is replaced.")],
    project: Project = None,
    url: Url = None,
) -> None:
    """Write what people decided as labelled texts (JSON Lines), which `bouncer eval FILE` measures the reviewers by."""
    lines: list[str] = []
    after: str | None = None
    while True:
        page = ask(
            url, "GET", "/v1/decisions/overrides", answers=OverridePage, project=project, after=after, count=PAGE
        )
        lines += [json.dumps(item, ensure_ascii=False) for item in page["items"]]
        if (after := page["next"]) is None:
            break
    if not lines:
        raise Invalid("Nobody has decided anything yet, so there is nothing to write.")
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    out.print(f"Decisions written: {len(lines)}.")


def withdraw(
    key: Annotated[str | None, typer.Option(help="Withdraw what the key with this id has let in.")] = None,
    session: Annotated[str | None, typer.Option(help="Withdraw what this session has let in.")] = None,
    project: Project = None,
    reason: Annotated[str, typer.Option(help="Why; kept with it.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list it.")] = False,
    yes: Yes = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Withdraw all memories that came from a key or a session, and list what has to leave the stores."""
    if key is None and session is None:
        raise Invalid("Name a --key or a --session.")
    request = {"key_id": key, "session_id": session, "project": project, "reason": reason}
    if not dry_run and not yes:
        listed = ask(url, "POST", "/v1/withdrawals", {**request, "dry_run": True}, answers=WithdrawalOut)
        typer.confirm(f"Withdraw {listed['changed']} memories?", abort=True)
    done = ask(url, "POST", "/v1/withdrawals", {**request, "dry_run": dry_run}, answers=WithdrawalOut)
    if as_json:
        out.print_json(json.dumps(done))
        return
    out.print(f"{'To be withdrawn' if dry_run else 'Withdrawn'}: {done['changed']} entries.")
    _list_removals(done["items"])


def _decide(review: str, url: str | None, as_json: bool, **decision: str | None) -> None:
    if not (decision["reason"] or "").strip():
        raise Invalid("Say why with --reason: it is kept with the decision, and the agent is told.")
    given = {name: value for name, value in decision.items() if value is not None}
    decided = ask(url, "POST", f"/v1/reviews/{_whole(review, url)}/decision", given, answers=ReviewOut)
    if as_json:
        out.print_json(json.dumps(decided))
        return
    last = decided["decisions"][-1]
    before = last["earlier"]["verdict"] or "not decided"
    out.print(f"{decided['verdict']} (was: {before}).", markup=False)
    if last["telling"] == "due":
        out.print("The agent is told at its next session's start.")
    _list_removals(last["removals"])


def _list_removals(removals: list[dict[str, Any]]) -> None:
    for removal in removals:
        named = removal["store_id"] or removal["key"] or "no id known"
        what = "put the former text back in" if removal["restore"] is not None else "remove from"
        sure = "" if removal["confirmed"] else ", if it is there"
        out.print(f"{what} store {removal['store']} ({named}){sure}: {removal['text']}", markup=False, soft_wrap=True)
        if removal["restore"] is not None:
            out.print(f"  former text: {removal['restore']}", markup=False, soft_wrap=True)


def _whole(review: str, url: str | None) -> str:
    """The id that a person may have shortened, as far as it is one of a held text."""
    if len(review) >= len("0" * 32):
        return review
    items = ask(url, "GET", "/v1/queue", answers=HeldPage, count=PAGE)["items"]
    found = [item["review_id"] for item in items if item["review_id"].startswith(review)]
    if len(found) > 1:
        raise Invalid(f"{len(found)} held texts have an id that begins so; give more of it.")
    return str(found[0]) if found else review


def _age(since: str) -> str:
    minutes = int((datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds() // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} d"
