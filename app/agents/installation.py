"""Put the hook and the skill into Claude Code's settings, and take them out again; nobody else's lines are touched.

What is ours is told by its handler: its arguments hold the name of the hook's module.
"""

import difflib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from app.agents.claude_code import hook_settings
from app.errors import ConfigurationError
from app.settings import claude_folder, resource
from hooks import store_hygiene_gate as hook

Scope = Literal["user", "project", "local"]
MODULE = "store_hygiene_gate"
HOOK_FILE = f"{MODULE}.py"
SKILL = ("skills", "hygiene", "SKILL.md")
PROJECT_VARIABLE = "${CLAUDE_PROJECT_DIR}"


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

    wanted = [
        _with_text(places.hooks / HOOK_FILE, resource("hooks", HOOK_FILE).read_text(encoding="utf-8")),
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
    removed = [
        _edited(places.settings, _remove_ours),
        _without(places.hooks / HOOK_FILE),
        _without(places.skill) if _is_our_skill(places.skill) else None,
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
                change.path.unlink(missing_ok=True)
                _remove_empty_folders(change.path.parent)
            else:
                _replace(change.path, change.after)
        except OSError as exc:
            raise ConfigurationError(f"Cannot write {change.path}: {exc.strerror}.") from exc


def installed_in(project: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The settings files of all scopes that hold our handlers, with their contents."""
    found = []
    scopes: tuple[Scope, ...] = ("user", "project", "local")
    for scope in scopes:
        path = Places.of(scope, project).settings
        settings = json.loads(_read(path) or "{}") if path.is_file() else {}
        if isinstance(settings, dict) and any(_is_ours(handler) for handler in _handlers(settings)):
            found.append((path, settings))
    return found


def our_matchers(settings: dict[str, Any], event: str) -> list[str]:
    """The matchers under which our handler stands for an event."""
    groups = settings.get("hooks", {}).get(event, [])
    return [str(group.get("matcher", "*")) for group in groups if any(map(_is_ours, group.get("hooks", [])))]


def _handlers(settings: dict[str, Any]) -> list[dict[str, Any]]:
    hooks = settings.get("hooks")
    groups = [group for event in hooks.values() for group in event] if isinstance(hooks, dict) else []
    return [handler for group in groups if isinstance(group, dict) for handler in group.get("hooks", [])]


def _is_ours(handler: object) -> bool:
    return isinstance(handler, dict) and MODULE in json.dumps([handler.get("command"), handler.get("args")])


def _remove_ours(settings: dict[str, Any]) -> None:
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return
    for event, groups in list(hooks.items()):
        kept = []
        for group in groups if isinstance(groups, list) else []:
            others = [handler for handler in group.get("hooks", []) if not _is_ours(handler)]
            if len(others) == len(group.get("hooks", [])):
                kept.append(group)
            elif others:
                kept.append({**group, "hooks": others})
        if kept != groups:
            hooks[event] = kept
            if not kept:
                del hooks[event]
    if not hooks:
        del settings["hooks"]


def _edited(path: Path, edit: Callable[[dict[str, Any]], None]) -> Change:
    before = _read(path)
    try:
        settings = json.loads(before) if before and before.strip() else {}
    except ValueError as exc:
        raise ConfigurationError(f"{path} is not valid JSON ({exc}); repair it first, nothing was changed.") from exc
    if not isinstance(settings, dict) or not isinstance(settings.get("hooks", {}), dict):
        raise ConfigurationError(f"{path} does not hold settings as Claude Code writes them; nothing was changed.")
    original = json.dumps(settings)
    edit(settings)
    if json.dumps(settings) == original:
        return Change(path, before, before)
    if not settings:
        return Change(path, before, None)
    return Change(path, before, json.dumps(settings, indent=_indent(before), ensure_ascii=False) + "\n")


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
    fresh.write_text(text, encoding="utf-8")
    if target.exists():
        shutil.copymode(target, fresh)
    fresh.replace(target)


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
