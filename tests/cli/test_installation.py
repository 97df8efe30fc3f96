"""`bouncer init` and `uninstall`: hook and skill come and go, and nobody else's settings are touched."""

import errno
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.agents import installation
from app.agents.installation import Places, Scope
from app.errors import ConfigurationError
from hooks.store_hygiene_gate import load_config

SCOPES: tuple[Scope, ...] = get_args(Scope)
FOREIGN: dict[str, Any] = {
    "model": "opus",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo ß"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def install(scope: Scope, project: Path) -> list[installation.Change]:
    changes = installation.install(scope, project, python="python3", config=load_config(str(project)))
    installation.apply(changes)
    return changes


def uninstall(scope: Scope, project: Path) -> list[installation.Change]:
    changes = installation.uninstall(scope, project)
    installation.apply(changes)
    return changes


def files(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*")}


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_installed_can_be_found_and_a_second_time_changes_nothing(scope: Scope, project: Path) -> None:
    assert {change.path.name for change in install(scope, project)} == {
        "store_hygiene_gate.py",
        "SKILL.md",
        "settings-made-by-init.txt",
        Places.of(scope, project).settings.name,
    }
    ((path, _),) = installation.installed_in(project)
    assert path == Places.of(scope, project).settings
    assert install(scope, project) == []


@pytest.mark.parametrize("scope", SCOPES)
def test_uninstall_leaves_nothing_behind(scope: Scope, project: Path) -> None:
    before = files(project, Path.home())
    install(scope, project)
    uninstall(scope, project)
    left = files(project, Path.home()) - before
    assert {path for path in left if path.is_file()} == set()
    assert uninstall(scope, project) == []


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("text", ["", "{}", "{\n}\n"])
def test_an_empty_settings_file_that_was_there_before_stays(scope: Scope, project: Path, text: str) -> None:
    path = Places.of(scope, project).settings
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    install(scope, project)
    uninstall(scope, project)
    assert json.loads(path.read_text(encoding="utf-8")) == {}
    assert [file for file in files(project, Path.home()) if file.is_file()] == [path]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_settings_file_that_init_made_stays_if_somebody_else_writes_into_it(scope: Scope, project: Path) -> None:
    path = Places.of(scope, project).settings
    install(scope, project)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model": "opus"}), encoding="utf-8")
    uninstall(scope, project)
    assert json.loads(path.read_text(encoding="utf-8")) == {"model": "opus"}


def test_settings_of_a_home_that_is_the_project_are_found_once() -> None:
    install("user", Path.home())
    assert [path for path, _ in installation.installed_in(Path.home())] == [Path.home() / ".claude/settings.json"]


@pytest.mark.parametrize("scope", SCOPES)
def test_other_peoples_settings_stay_as_they_are(scope: Scope, project: Path) -> None:
    path = Places.of(scope, project).settings
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(FOREIGN, indent=4, ensure_ascii=False), encoding="utf-8")
    install(scope, project)
    installed = json.loads(path.read_text(encoding="utf-8"))
    assert installed["model"] == "opus"
    assert installed["hooks"]["Stop"] == FOREIGN["hooks"]["Stop"]
    assert installed["hooks"]["PreToolUse"][0] == FOREIGN["hooks"]["PreToolUse"][0]
    assert '\n    "model"' in path.read_text(encoding="utf-8")
    uninstall(scope, project)
    assert json.loads(path.read_text(encoding="utf-8")) == FOREIGN


def test_a_handler_of_ours_beside_a_foreign_one_goes_alone(project: Path) -> None:
    install("local", project)
    path = Places.of("local", project).settings
    settings_ = json.loads(path.read_text(encoding="utf-8"))
    foreign = {"type": "command", "command": "true"}
    settings_["hooks"]["PreToolUse"][0]["hooks"].append(foreign)
    path.write_text(json.dumps(settings_), encoding="utf-8")
    uninstall("local", project)
    (group,) = json.loads(path.read_text(encoding="utf-8"))["hooks"]["PreToolUse"]
    assert group["hooks"] == [foreign]


def test_somebodys_own_hygiene_skill_stays(project: Path) -> None:
    skill = Places.of("project", project).skill
    skill.parent.mkdir(parents=True)
    skill.write_text("# My own", encoding="utf-8")
    install("project", project)
    uninstall("project", project)
    assert skill.read_text(encoding="utf-8") == "# My own"


def test_an_older_version_of_ours_is_replaced(project: Path) -> None:
    install("user", project)
    hook = Places.of("user", project).hooks / "store_hygiene_gate.py"
    hook.write_text("# old", encoding="utf-8")
    (change,) = install("user", project)
    assert (change.path, change.before) == (hook, "# old")


def test_settings_behind_a_link_stay_behind_it(project: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    link = Places.of("user", project).settings
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    install("user", project)
    assert link.is_symlink()
    assert "store_hygiene_gate" in real.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 3}', "null"])
def test_settings_that_make_no_sense_are_refused_untouched(project: Path, text: str) -> None:
    path = Places.of("project", project).settings
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"settings\.json"):
        install("project", project)
    assert path.read_text(encoding="utf-8") == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=8).filter(lambda name: name != "hooks"), JSON, min_size=1, max_size=4))
def test_any_settings_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, foreign: dict[str, Any]) -> None:
    project = tmp_path_factory.mktemp("project")
    path = Places.of("project", project).settings
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(foreign), encoding="utf-8")
    install("project", project)
    uninstall("project", project)
    assert json.loads(path.read_text(encoding="utf-8")) == foreign


def test_settings_that_cannot_be_written_leave_no_half_made_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    path = Places.of("project", project).settings
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(ConfigurationError, match="Operation not permitted"):
        installation.apply([installation.Change(path, None, "{}")])
    assert list(path.parent.iterdir()) == []


def test_uninstalling_one_scope_leaves_what_another_uses(project: Path) -> None:
    install("user", project)
    install("project", project)
    install("local", project)
    uninstall("local", project)
    assert (Places.of("user", project).hooks / "store_hygiene_gate.py").is_file()
    assert Places.of("project", project).skill.is_file()
    uninstall("user", project)
    assert not Places.of("user", project).hooks.exists()


def test_a_foreign_hook_that_only_names_our_file_stays(project: Path) -> None:
    path = Places.of("user", project).settings
    path.parent.mkdir(parents=True)
    foreign = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo store_hygiene_gate.py"}]}]}}
    path.write_text(json.dumps(foreign), encoding="utf-8")
    install("user", project)
    uninstall("user", project)
    assert json.loads(path.read_text(encoding="utf-8")) == foreign


def test_settings_behind_a_link_to_nothing_leave_the_link(project: Path, tmp_path: Path) -> None:
    link = Places.of("user", project).settings
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "dotfiles.json")
    install("user", project)
    uninstall("user", project)
    assert link.is_symlink()
    assert not (tmp_path / "dotfiles.json").exists()


@pytest.mark.parametrize("hooks", [{"PreToolUse": {}}, {"PreToolUse": [1, None]}, {"PreToolUse": [{"hooks": 5}]}])
def test_hooks_of_another_form_are_refused_untouched(project: Path, hooks: object) -> None:
    path = Places.of("project", project).settings
    path.parent.mkdir(parents=True)
    text = json.dumps({"hooks": hooks})
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"settings\.json"):
        install("project", project)
    with pytest.raises(ConfigurationError, match=r"settings\.json"):
        installation.installed_in(project)
    assert path.read_text(encoding="utf-8") == text
