"""Imports run one way, and what is foreign comes in at one place each."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "app").rglob("*.py"))

# Lowest first. A module imports only from layers below its own, never from a neighbour in its layer.
LAYERS = (
    {"errors", "ranking", "schemas", "strength", "words"},
    {"dialects", "in_flight", "logs", "metrics", "settings"},
    {"db"},
    {"models"},
    {"callers"},
    {"audit_log"},
    {
        "breaker",
        "budget",
        "embeddings",
        "gate",
        "keys",
        "passages",
        "policy",
        "prices",
        "projects",
        "prompts",
        "stores",
        "verdict_cache",
    },
    {"cases", "space"},
    {"decisions", "documents", "entries", "held", "messages", "neighbours", "reviewers"},
    {"reviews", "rounds", "selfcheck"},
    {"index", "reindex"},
    {"pipeline"},
    {"queue"},
    {"access", "audit", "census", "door", "evaluation", "native_hook"},
    {"deps"},
    {"api", "web"},
    {"main"},
    {"server"},
    {"agents", "judge_once"},
    {"backup", "demo", "doctor"},
    {"cli"},
    {"__main__"},
)
LAYER_OF = {name: number for number, layer in enumerate(LAYERS) for name in layer}

# Who may import what is foreign; everything else is free.
AT_ONE_PLACE = {
    "fastapi": {"main", "deps", "api", "server", "web"},
    "starlette": {"access", "main", "deps", "door", "api", "web"},
    "uvicorn": {"server"},
    "anthropic": {"reviewers.anthropic"},
    "wordllama": {"embeddings"},
    "detect_secrets": {"gate"},
    "alembic": {"db"},
    "typer": {"cli", "evaluation.command"},
}
WITHOUT_INPUT_OR_OUTPUT = {"errors", "policy", "schemas", "strength", "words"}
QUIET = {
    "__future__",
    "collections",
    "dataclasses",
    "datetime",
    "enum",
    "functools",
    "http",
    "itertools",
    "math",
    "re",
    "typing",
}


def name_of(path: Path) -> str:
    """The module's name below `app`: ``reviewers.anthropic``."""
    parts = path.relative_to(ROOT / "app").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Full names of what a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path: Path) -> set[str]:
    """First parts of the names of the modules of ours that a module imports."""
    return {parts[1] for name in imports(path) if (parts := name.split("."))[0] == "app" and len(parts) > 1}


def attributes(path: Path) -> Iterator[str]:
    """All dotted names that a module uses: ``os.environ``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_below(path: Path) -> None:
    mine = name_of(path).partition(".")[0]
    if not mine:
        return
    assert mine in LAYER_OF, f"give app.{mine} its layer here and in docs/architecture.md"
    for other in own_imports(path) - {mine}:
        assert LAYER_OF[other] < LAYER_OF[mine], f"app.{mine} imports app.{other}, which is not below it"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_what_is_foreign_is_imported_at_its_one_place(path: Path) -> None:
    for name in imports(path):
        allowed = AT_ONE_PLACE.get(name.partition(".")[0])
        mine = name_of(path)
        assert allowed is None or {mine, mine.partition(".")[0]} & allowed, f"{mine} imports {name}"


@pytest.mark.parametrize(
    "path", [path for path in MODULES if name_of(path).partition(".")[0] in WITHOUT_INPUT_OR_OUTPUT], ids=name_of
)
def test_what_is_pure_imports_nothing_that_reads_or_writes(path: Path) -> None:
    for name in imports(path):
        first = name.partition(".")[0]
        known = first in {"app", "pydantic"} or any(name.startswith(quiet) for quiet in QUIET) or first == "unicodedata"
        assert known, f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_settings_look_at_the_environment(path: Path) -> None:
    looks = {name for name in attributes(path) if name in {"os.environ", "os.getenv", "os.environb"}}
    assert not looks or name_of(path) == "settings"


EDGE = {"api", "web", "cli", "main", "deps", "native_hook"}


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path).partition(".")[0] in EDGE], ids=name_of)
def test_the_edge_asks_no_questions_of_the_database_itself(path: Path) -> None:
    assert not {"sqlmodel.select", "sqlalchemy.select", "sqlalchemy.text"} & set(imports(path))


def test_each_layer_has_its_place_once() -> None:
    assert sum(map(len, LAYERS)) == len(LAYER_OF)


# --- the hook -----------------------------------------------------------------------------------------------------

HOOKS = sorted((ROOT / "hooks").glob("*.py"))


@pytest.mark.parametrize("path", HOOKS, ids=lambda path: path.name)
def test_a_hook_needs_the_standard_library_only(path: Path) -> None:
    for name in imports(path):
        first = name.partition(".")[0]
        assert first in sys.stdlib_module_names or first == "__future__", f"{path.name} imports {name}"


@pytest.mark.parametrize("path", HOOKS, ids=lambda path: path.name)
def test_a_hook_is_written_in_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_the_migrations_are_no_package() -> None:
    """It would hide the library of the same name."""
    assert not (ROOT / "alembic" / "__init__.py").exists()
