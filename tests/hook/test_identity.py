"""One name for a project, from all its folders, clones and worktrees."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import canonical_remote, project_identity


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Start")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


@pytest.mark.parametrize(
    "url",
    [
        "git@git.example.org:Acme/Billing.git",
        "git@git.example.org:/acme/billing.git/",
        "git.example.org:acme/billing",
        "ssh://git@git.example.org/acme/billing.git",
        "ssh://git@GIT.example.org:2222/acme/billing",
        "git+ssh://git@git.example.org/acme/billing.git",
        "https://git.example.org/acme/billing",
        "https://git.example.org/acme/billing.git/",
        "https://ci:token@git.example.org:8443/acme//billing.git",
        "git://git.example.org/acme/billing.git",
        "HTTPS://git.example.org/acme/billing",
    ],
)
def test_all_spellings_of_a_remote_give_one_name(url: str) -> None:
    assert canonical_remote(url) == "git.example.org/acme/billing"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("ssh://git@ssh.github.com:443/acme/billing.git", "github.com/acme/billing"),
        ("git@ssh.dev.azure.com:v3/acme/app/billing", "dev.azure.com/acme/app/billing"),
        ("https://acme@dev.azure.com/acme/app/_git/billing", "dev.azure.com/acme/app/billing"),
        ("ssh://git@[2001:db8::1]:2222/acme/billing.git", "[2001:db8::1]/acme/billing"),
    ],
)
def test_hosts_with_several_addresses_give_one_name(url: str, name: str) -> None:
    assert canonical_remote(url) == name


def test_folders_clones_and_worktrees_share_the_remote_s_name(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", "git@git.example.org:Acme/billing.git")
    clone = repository(tmp_path / "clone", "https://git.example.org/acme/billing")
    folder = main / "services" / "api"
    folder.mkdir(parents=True)
    git(main, "worktree", "add", "--quiet", str(tmp_path / "feature"))

    names = {project_identity(str(place)) for place in (main, clone, folder, tmp_path / "feature")}

    assert names == {"git.example.org/acme/billing"}


def test_without_a_remote_a_worktree_has_the_name_of_its_main_folder(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "--quiet", str(tmp_path / "feature"))

    assert project_identity(str(tmp_path / "feature")) == project_identity(str(main))
    assert project_identity(str(main)).startswith("main-")


def test_worktrees_of_a_bare_repository_share_its_name(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(tmp_path, "clone", "--quiet", "--bare", str(main), "app.git")
    bare = tmp_path / "app.git"
    git(bare, "remote", "remove", "origin")
    for name in ("one", "two"):
        git(bare, "worktree", "add", "--quiet", str(tmp_path / name), "-b", name)

    names = {project_identity(str(tmp_path / name)) for name in ("one", "two")}

    assert len(names) == 1
    assert names.pop().startswith("app-")


def test_a_remote_that_is_a_folder_gives_clones_one_name_without_the_path(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    for name in ("one", "two"):
        git(tmp_path, "clone", "--quiet", str(main), name)

    names = {project_identity(str(tmp_path / name)) for name in ("one", "two")}

    assert len(names) == 1
    assert str(tmp_path) not in names.pop()


def test_origin_goes_before_other_remotes(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "remote", "add", "fork", "git@git.example.org:ada/billing.git")
    assert project_identity(str(main)) == "git.example.org/ada/billing"
    git(main, "remote", "add", "origin", "git@git.example.org:acme/billing.git")
    assert project_identity(str(main)) == "git.example.org/acme/billing"


def test_submodules_are_projects_of_their_own(tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    main = repository(tmp_path / "main", "git@git.example.org:acme/billing.git")
    git(main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")

    assert project_identity(str(main / "library")) != project_identity(str(main))


def test_the_project_file_s_name_goes_first_and_holds_in_sub_folders(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", "git@git.example.org:acme/billing.git")
    (main / ".bouncer.json").write_text('{"project": " Billing\\n core "}', encoding="utf-8")
    (main / "src").mkdir()

    assert project_identity(str(main / "src")) == "Billing core"


def test_a_project_file_works_without_git_too(tmp_path: Path) -> None:
    (tmp_path / ".bouncer.json").write_text('{"project": "billing"}', encoding="utf-8")
    (tmp_path / "src").mkdir()

    assert project_identity(str(tmp_path / "src")) == "billing"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"project": 5}', '{"project": "  "}', "[" * 100_000])
def test_a_project_file_without_a_name_names_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ".bouncer.json").write_text(content, encoding="utf-8")

    assert project_identity(str(tmp_path)).startswith(f"{tmp_path.name}-")


def test_folders_of_equal_name_are_told_apart_and_stay_so(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "app", tmp_path / "b" / "app"
    one.mkdir(parents=True)
    two.mkdir(parents=True)

    assert project_identity(str(one)) != project_identity(str(two))
    assert project_identity(str(one)) == project_identity(str(one) + "/.")


def test_links_lead_to_the_real_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert project_identity(str(tmp_path / "link")) == project_identity(str(tmp_path / "real"))


@pytest.mark.parametrize("content", ["gitdir: /nowhere", "nonsense", "", "gitdir: ."])
def test_a_damaged_git_file_falls_back_to_a_folder(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content, encoding="utf-8")

    assert project_identity(str(tmp_path))


def test_a_folder_that_is_gone_has_a_name_as_well(tmp_path: Path) -> None:
    assert project_identity(str(tmp_path / "gone")).startswith("gone-")


def test_a_pipe_in_place_of_a_config_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "config")

    assert project_identity(str(tmp_path)).startswith(f"{tmp_path.name}-")


@given(st.text(max_size=60))
def test_any_remote_gives_a_name(url: str) -> None:
    assert "/" in canonical_remote(url)
