"""Put the hook and the skill into Claude Code's settings, and take them out again; nobody else's settings change.

What is ours is told by its handler: its arguments hold the name of the hook's module.
"""

import difflib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import platformdirs
from pydantic import BaseModel, TypeAdapter, ValidationError

from app.agents.claude_code import hook_settings
from app.errors import ConfigurationError
from app.settings import claude_folder, resource
from hooks import store_hygiene_gate as hook

Scope = Literal["user", "project", "local"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
MODULE = "store_hygiene_gate"
HOOK_FILE = f"{MODULE}.py"
# Beside the hook: the settings files that there were not before, which go again if nothing else has come into them.
MADE_FILE = "settings-made-by-init.txt"
SKILL = ("skills", "hygiene", "SKILL.md")
PROJECT_VARIABLE = "${CLAUDE_PROJECT_DIR}"


class _Group(BaseModel):
    hooks: list[dict[str, Any]]


class _Hooks(BaseModel):
    hooks: dict[str, list[_Group]] = {}


_SETTINGS = TypeAdapter(_Hooks)


@dataclass(frozen=True)
class Change:
    """A file as it is and as it would be; None where there is none."""

    path: Path
    before: str | None
    after: str | None

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        return "".join(
            difflib.unified_diff(
                (self.before or "").splitlines(keepends=True),
                (self.after or "").splitlines(keepends=True),
                str(self.path) if self.before is not None else "/dev/null",
                str(self.path) if self.after is not None else "/dev/null",
            )
        )


@dataclass(frozen=True)
class Places:
    """Where things go for a scope: the settings file, the skill, and the folder of the hook."""

    settings: Path
    skill: Path
    hooks: Path
    named: str

    @classmethod
    def of(cls, scope: Scope, project: Path) -> "Places":
        """The places of a scope.

        Args:
            scope: the person's own settings, the project's shared ones, or the project's private ones.
            project: the project's folder.
        """
        if scope == "project":
            base = project / ".claude"
            hooks = base / "hooks" / "memory-bouncer"
            named = f"{PROJECT_VARIABLE}/.claude/hooks/memory-bouncer"
            return cls(base / "settings.json", base / Path(*SKILL), hooks, named)
        base = claude_folder() if scope == "user" else project / ".claude"
        hooks = Path(platformdirs.user_data_dir("memory-bouncer", appauthor=False)) / "hooks"
        settings = base / ("settings.json" if scope == "user" else "settings.local.json")
        return cls(settings, base / Path(*SKILL), hooks, str(hooks))


def install(scope: Scope, project: Path, *, python: str, config: hook.Config) -> list[Change]:
    """The changes that put hook and skill in place; none if all is as it should be.

    Raises:
        ConfigurationError: a file cannot be read, or is no JSON object.
    """
    places = Places.of(scope, project)
    ours = hook_settings(
        places.named,
        python=python,
        tools=config.tools,
        on_failure=config.on_failure,
        deadline_seconds=config.deadline_seconds,
    )

    def add(settings: dict[str, Any]) -> None:
        _remove_ours(settings)
        for event, groups in ours.items():
            settings.setdefault("hooks", {}).setdefault(event, []).extend(groups)

    made = _made(places)
    if _read(places.settings) is None:
        made = made | {_name_in_made(scope, places)}
    wanted = [
        _with_lines(places.hooks / MADE_FILE, made),
        _with_text(places.hooks / HOOK_FILE, Path(hook.__file__).read_text(encoding="utf-8")),
        _skill(places.skill),
        _edited(places.settings, add),
    ]
    return [change for change in wanted if change is not None and change.before != change.after]


def uninstall(scope: Scope, project: Path) -> list[Change]:
    """The changes that take hook and skill away; none if nothing of ours is there.

    Raises:
        ConfigurationError: a file cannot be read, or is no JSON object.
    """
    places = Places.of(scope, project)
    shared = [Places.of(other, project) for other in SCOPES if other != scope and _is_installed(other, project)]
    made, name = _made(places), _name_in_made(scope, places)
    removed = [
        _edited(places.settings, _remove_ours, made_by_us=name in made),
        _with_lines(places.hooks / MADE_FILE, made - {name}),
        # What another scope still uses stays.
        None if places.hooks in [other.hooks for other in shared] else _without(places.hooks / HOOK_FILE),
        None
        if places.skill in [other.skill for other in shared] or not _is_our_skill(places.skill)
        else _without(places.skill),
    ]
    return [change for change in removed if change is not None and change.before != change.after]


def apply(changes: list[Change]) -> None:
    """Make the changes; each file is replaced whole, and emptied folders of ours go.

    Raises:
        ConfigurationError: a file cannot be written.
    """
    for change in changes:
        try:
            if change.after is None:
                change.path.resolve().unlink(missing_ok=True)  # a link to a dotfiles folder stays a link
                _remove_empty_folders(change.path.parent)
            else:
                _replace(change.path, change.after)
        except OSError as exc:
            raise ConfigurationError(f"Cannot write {change.path}: {exc.strerror}.") from exc


def installed_in(project: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The settings files of all scopes that hold our handlers, with their contents.

    Raises:
        ConfigurationError: a file cannot be read, or is no JSON object.
    """
    found = []
    # Each once: a home folder's own settings and those of a project in it are the same file.
    for path in dict.fromkeys(Places.of(scope, project).settings for scope in SCOPES):
        settings = _settings(path, _read(path))
        if any(_is_ours(handler) for handler in _handlers(settings)):
            found.append((path, settings))
    return found


def _is_installed(scope: Scope, project: Path) -> bool:
    path = Places.of(scope, project).settings
    return any(_is_ours(handler) for handler in _handlers(_settings(path, _read(path))))


def our_matchers(settings: dict[str, Any], event: str) -> list[str]:
    """The matchers under which our handler stands for an event."""
    groups = settings.get("hooks", {}).get(event, [])
    return [str(group.get("matcher", "*")) for group in groups if any(map(_is_ours, group.get("hooks", [])))]


def _handlers(settings: dict[str, Any]) -> list[dict[str, Any]]:
    groups = [group for event in settings.get("hooks", {}).values() for group in event]
    return [handler for group in groups for handler in group["hooks"]]


def _is_ours(handler: dict[str, Any]) -> bool:
    # Every launcher, of whatever version, imports the module; a command that only names the file is somebody else's.
    return any(f"from {MODULE} import main" in str(argument) for argument in handler.get("args") or [])


def _remove_ours(settings: dict[str, Any]) -> None:
    hooks = settings.get("hooks")
    if hooks is None:
        return
    for event, groups in list(hooks.items()):
        kept = []
        for group in groups:
            others = [handler for handler in group["hooks"] if not _is_ours(handler)]
            if len(others) == len(group["hooks"]):
                kept.append(group)
            elif others:
                kept.append({**group, "hooks": others})
        if kept != groups:
            hooks[event] = kept
            if not kept:
                del hooks[event]
    if not hooks:
        del settings["hooks"]


def _made(places: Places) -> frozenset[str]:
    return frozenset((_read(places.hooks / MADE_FILE) or "").splitlines())


def _name_in_made(scope: Scope, places: Places) -> str:
    # A project's hook is shared with others, at whose desks the project lies elsewhere.
    return places.settings.name if scope == "project" else str(places.settings)


def _with_lines(path: Path, lines: frozenset[str]) -> Change:
    return Change(path, _read(path), "".join(f"{line}\n" for line in sorted(lines)) or None)


def _edited(path: Path, edit: Callable[[dict[str, Any]], None], *, made_by_us: bool = False) -> Change:
    before = _read(path)
    settings = _settings(path, before)
    original = json.dumps(settings)
    edit(settings)
    if json.dumps(settings) == original:
        return Change(path, before, before)
    if not settings and made_by_us:
        return Change(path, before, None)
    return Change(path, before, json.dumps(settings, indent=_indent(before), ensure_ascii=False) + "\n")


def _settings(path: Path, text: str | None) -> dict[str, Any]:
    """The settings in a file's text, with hooks of the form that the client takes; empty where there is none."""
    try:
        settings = json.loads(text) if text and text.strip() else {}
    except ValueError as exc:
        raise ConfigurationError(f"{path} is not valid JSON ({exc}); repair it first, nothing was changed.") from exc
    try:
        _SETTINGS.validate_python(settings)
    except ValidationError as exc:
        fault = exc.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the whole"
        raise ConfigurationError(
            f"{path} does not hold settings as Claude Code takes them ({where}: {fault['msg']}); nothing was changed."
        ) from exc
    checked: dict[str, Any] = settings
    return checked


def _indent(text: str | None) -> int | str:
    for line in (text or "").splitlines()[1:]:
        lead = line[: len(line) - len(line.lstrip())]
        if lead:
            return lead if "\t" in lead else len(lead)
    return 2


def _skill(path: Path) -> Change | None:
    if path.exists() and not _is_our_skill(path):
        return None  # somebody's own skill of the same name stays
    return _with_text(path, resource(*SKILL).read_text(encoding="utf-8"))


def _is_our_skill(path: Path) -> bool:
    return "source: memory-bouncer" in (_read(path) or "")


def _with_text(path: Path, text: str) -> Change:
    return Change(path, _read(path), text)


def _without(path: Path) -> Change:
    return Change(path, _read(path), None)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"Cannot read {path}: {getattr(exc, 'strerror', None) or 'it is no text'}.") from exc


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # a link to a dotfiles folder stays a link
    fresh = target.with_name(target.name + ".memory-bouncer-new")
    try:
        fresh.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, fresh)
        fresh.replace(target)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _remove_empty_folders(folder: Path) -> None:
    cache = folder / "__pycache__"
    if folder.name in ("hooks", "memory-bouncer") and cache.is_dir():
        for compiled in cache.glob(f"{MODULE}.*.pyc"):
            compiled.unlink()
    for name in (cache, folder, *list(folder.parents)[:2]):
        if name.is_dir() and name.name in ("__pycache__", "hooks", "hygiene", "skills", "memory-bouncer", ".claude"):
            try:
                name.rmdir()
            except OSError:
                return  # not empty: others use it
