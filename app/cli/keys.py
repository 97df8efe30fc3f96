"""Commands `bouncer keys …` and `bouncer audit-log`: who may use the service, and who changed what."""

import json
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError
from rich.markup import escape

from app.cli.console import At, Json, err, out, table_of
from app.errors import Conflict, Invalid, NotFound
from app.schemas.keys import LONGEST_LIFE_DAYS, LONGEST_OVERLAP_HOURS, KeyIn, KeyMade, KeyOut
from app.schemas.vocabulary import Role
from app.settings import load_settings

if TYPE_CHECKING:
    from app.cli.key_desk import KeyDesk

keys = typer.Typer(
    help="Keys of the service's callers. Works on the database of this machine; with --url, or MEMORY_BOUNCER_URL set, "
    "on a service, with an admin's key in MEMORY_BOUNCER_KEY.",
    no_args_is_help=True,
)

Which = Annotated[str, typer.Argument(metavar="ID|NAME", help="The key's id, or its name if only one has it.")]


@keys.command("create")
def create(
    name: Annotated[str, typer.Option(help="Whose key it is.")],
    role: Annotated[Role, typer.Option(help="member: propose and read; reviewer: also decide; admin: everything.")],
    project: Annotated[
        list[str] | None, typer.Option(help="A project that the key is bound to; may be repeated.")
    ] = None,
    all_projects: Annotated[bool, typer.Option("--all-projects", help="A member's key for every project.")] = False,
    days: Annotated[int | None, typer.Option(min=1, max=LONGEST_LIFE_DAYS, help="Good for so many days.")] = None,
    url: At = None,
    as_json: Json = False,
) -> None:
    """Make a key and show it, once."""
    if project and all_projects:
        raise Invalid("Bind the key to projects, or give it all of them, not both.")
    if role is Role.MEMBER and not project and not all_projects:
        raise Invalid("Bind a member's key with --project NAME, or say --all-projects.")
    try:
        asked = KeyIn(name=name, role=role, projects=project or None, expires_in_days=days)
    except ValidationError as exc:
        raise Invalid("The name must have 1 to 100 characters, each project's 1 to 512, of at most 200.") from exc
    with desk_at(url) as desk:
        _show_made(desk.create(asked), as_json=as_json)


@keys.command("list")
def list_(url: At = None, as_json: Json = False) -> None:
    """Show all keys, without their secrets."""
    with desk_at(url) as desk:
        known = _all(desk)
    if as_json:
        out.print_json(json.dumps([key.model_dump(mode="json") for key in known]))
        return
    if not known:
        out.print("There are no keys; a service on this machine is open to whoever sits at it.")
        return
    table = table_of("name", "role", "projects", "state", "last used")
    for key in known:
        projects = "all" if key.projects is None else ", ".join(key.projects)
        used = f"{key.used_at:%Y-%m-%d %H}h" if key.used_at else "never"
        table.add_row(*(escape(cell) for cell in (key.id, key.name, key.role, projects, _state(key), used)))
    out.print(table)


@keys.command("rotate")
def rotate(
    which: Which,
    overlap_hours: Annotated[
        int, typer.Option(min=0, max=LONGEST_OVERLAP_HOURS, help="How long the former secret is good as well.")
    ] = 24,
    url: At = None,
    as_json: Json = False,
) -> None:
    """Give a key a new secret and show it, once."""
    with desk_at(url) as desk:
        _show_made(desk.rotate(id_of(desk, which), overlap_hours), as_json=as_json)


@keys.command("revoke")
def revoke(which: Which, url: At = None, as_json: Json = False) -> None:
    """Shut a key out, from the next request on and for ever."""
    with desk_at(url) as desk:
        key = desk.revoke(id_of(desk, which))
    if as_json:
        out.print_json(key.model_dump_json())
    else:
        out.print(f"The key {key.id} of {key.name} is revoked.", markup=False, soft_wrap=True)


def audit_log(
    count: Annotated[int, typer.Option(min=1, max=200, help="Most lines shown.")] = 50,
    before: Annotated[str | None, typer.Option(metavar="ID", help="Only lines older than this one.")] = None,
    url: At = None,
    as_json: Json = False,
) -> None:
    """Show who changed what: keys, levels, budgets, decisions, deletions; newest first."""
    with desk_at(url) as desk:
        events = desk.events(before, count).items
    if as_json:
        out.print_json(json.dumps([event.model_dump(mode="json") for event in events]))
        return
    if not events:
        out.print("Nothing has been changed.")
        return
    for event in events:
        out.print(
            f"{event.at:%Y-%m-%d %H:%M:%S}  {event.key_id}  {event.action}  {event.subject}",
            markup=False,
            soft_wrap=True,
        )
        for word, given in (("before", event.before), ("after", event.after)):
            if given:
                out.print(f"    {word}: {json.dumps(given, ensure_ascii=False)}", markup=False, soft_wrap=True)


def desk_at(url: str | None) -> "AbstractContextManager[KeyDesk]":
    """The desk of a service, or of this machine's database."""
    from app.cli.key_desk import key_desk  # noqa: PLC0415 - loads the database's library

    return key_desk(url, load_settings())


def _show_made(made: KeyMade, *, as_json: bool) -> None:
    if as_json:
        out.print_json(made.model_dump_json())
        return
    # The key alone on stdout, so that it can be piped into a store of secrets.
    err.print(f"The key of {made.details.name} ({made.details.role}), shown only now:", markup=False, soft_wrap=True)
    out.print(made.key, markup=False, soft_wrap=True)
    err.print("The hook takes it from MEMORY_BOUNCER_KEY, or from `key` in its configuration file.", soft_wrap=True)


def _all(desk: "KeyDesk") -> list[KeyOut]:
    page = desk.keys(None)
    known = list(page.items)
    while page.next is not None:
        page = desk.keys(page.next)
        known += page.items
    return known


def id_of(desk: "KeyDesk", which: str) -> str:
    """The id of a key that a person names by its id or, if only one has it, its name.

    Raises:
        NotFound: there is no such key.
        Conflict: several have the name.
    """
    known = _all(desk)
    if any(key.id == which for key in known):
        return which
    named = [key.id for key in known if key.name == which and key.revoked_at is None]
    if not named:
        raise NotFound(f"There is no key {which}; `bouncer keys list` shows those there are.")
    if len(named) > 1:
        raise Conflict(f"Several keys are named {which}; name one by its id: {', '.join(named)}.")
    return named[0]


def _state(key: KeyOut) -> str:
    now = datetime.now(UTC)
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    if key.expires_at and key.expires_at <= now:
        return f"expired {key.expires_at:%Y-%m-%d}"
    if key.former_until and now < key.former_until:
        return f"good; its former secret until {key.former_until:%Y-%m-%d %H:%M}"
    return f"good until {key.expires_at:%Y-%m-%d}" if key.expires_at else "good"
