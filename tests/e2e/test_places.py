"""Wherever the hooks are installed and wherever the client is started: the same gate, and the same project."""

import subprocess
from pathlib import Path

import pytest

from hooks.store_hygiene_gate import project_identity
from tests.support.agent_client import Desk, MakeDesk
from tests.support.memories import RETRIES, SESSION_SUMMARY
from tests.support.memory_calls import create_entity
from tests.support.scripted_client_model import Call
from tests.support.service import Service

pytestmark = pytest.mark.e2e

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize("scope", ["user", "project", "local"])
def test_each_scope_of_installation_gates(make_desk: MakeDesk, service: Service, scope: str) -> None:
    desk = make_desk(service.url, scope=scope)

    run = desk.run([create_entity("today", SESSION_SUMMARY)])

    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {}


def test_a_linked_worktree_is_gated_and_belongs_to_the_same_project(desk: Desk, service: Service) -> None:
    worktree = _worktree(desk.project)

    run = desk.run([create_entity("today", SESSION_SUMMARY), create_entity("gateway", RETRIES)], cwd=worktree)

    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {"gateway": [RETRIES]}
    [entry] = service.entries("git.example.org/acme/billing")
    assert entry["text"] == RETRIES
    assert project_identity(str(desk.project)) == project_identity(str(worktree)) == entry["project"]


def test_what_the_main_checkout_stored_is_a_duplicate_in_a_worktree(desk: Desk) -> None:
    worktree = _worktree(desk.project, remote="https://git.example.org/acme/ledger.git")
    desk.run([create_entity("gateway", RETRIES)])

    run = desk.run([create_entity("gateway retries", RETRIES)], cwd=worktree)

    assert "[duplicate]" in run.refusal(0)


def test_hooks_in_the_persons_own_settings_gate_every_folder(make_desk: MakeDesk, service: Service) -> None:
    # The client reads a project's settings only when it is started in the project's top folder.
    desk = make_desk(service.url, scope="user")
    _worktree(desk.project, remote="https://git.example.org/acme/subfolders.git")
    folder = desk.project / "services" / "billing"
    folder.mkdir(parents=True)

    run = desk.run([create_entity("today", SESSION_SUMMARY), create_entity("gateway", RETRIES)], cwd=folder)

    assert "[session_summary]" in run.refusal(0)
    assert desk.memory == {"gateway": [RETRIES]}
    assert [entry["text"] for entry in service.entries("git.example.org/acme/subfolders")] == [RETRIES]


def test_the_plugin_gates_as_the_settings_do(make_desk: MakeDesk, service: Service) -> None:
    desk = make_desk(service.url, plugin=CHECKOUT)

    run = desk.run([create_entity("today", SESSION_SUMMARY), create_entity("billing gateway", RETRIES)])

    assert "[session_summary]" in run.refusal(0)
    assert run.result(1).refusal is None
    assert desk.memory == {"billing gateway": [RETRIES]}
    [entry] = service.entries(desk.project_name)
    assert (entry["text"], entry["status"]) == (RETRIES, "stored")


@pytest.mark.parametrize(("plugin", "skill"), [(None, "hygiene"), (CHECKOUT, "memory-bouncer:hygiene")])
def test_the_hygiene_skill_comes_along_and_its_use_is_noted(
    make_desk: MakeDesk, service: Service, plugin: Path | None, skill: str
) -> None:
    desk = make_desk(service.url, plugin=plugin)

    run = desk.run([Call("Skill", {"skill": skill}), create_entity("billing gateway", RETRIES)])

    assert not run.result(0).is_error
    assert service.rows(f"SELECT hygiene_read FROM review WHERE session_id = '{run.session_id}'") == [(1,)]


def test_what_is_uninstalled_gates_no_more(desk: Desk) -> None:
    desk.bouncer("uninstall", "--scope", "project", "--yes")

    run = desk.run([create_entity("today", SESSION_SUMMARY)])

    assert run.hooks == ()
    assert desk.memory == {"today": [SESSION_SUMMARY]}


def test_a_session_starts_with_what_is_worth_keeping(desk: Desk) -> None:
    run = desk.run(["Nothing to store today."])

    [start] = run.hooks_of("SessionStart")
    assert "/hygiene" in start.context
    assert len(start.context) <= 600
    assert start.context in run.heard.context


def _worktree(project: Path, remote: str = "git@git.example.org:Acme/billing.git") -> Path:
    """Make the project a repository that has a linked worktree, and return that."""
    linked = project.with_name(f"{project.name}-feature")
    for command in (
        ["init", "--quiet"],
        ["remote", "add", "origin", remote],
        ["add", "."],
        [
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.org",
            "commit",
            "--quiet",
            "--allow-empty",
            "--message=Start",
        ],
        ["worktree", "add", "--quiet", str(linked)],
    ):
        subprocess.run(["git", "-C", str(project), *command], check=True)
    return linked
