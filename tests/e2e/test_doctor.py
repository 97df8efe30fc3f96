"""`bouncer doctor` tries the door with the installed client: it must see a denial that holds, and one that does not."""

import json
from typing import Any

import pytest

from tests.support.agent_client import Desk, MakeDesk, Programs
from tests.support.service import Service

pytestmark = pytest.mark.e2e


def test_a_sound_installation_is_proven_to_deny(desk: Desk, programs: Programs) -> None:
    code, findings = _doctor(desk, programs)

    assert code == 0, findings
    assert {name: finding["holds"] for name, finding in findings.items()} == dict.fromkeys(findings, True)
    assert "Canary" in findings


@pytest.mark.parametrize("fault", ["matcher", "switched off", "hook gone", "uninstalled"])
def test_a_denial_that_is_not_enforced_is_reported(desk: Desk, programs: Programs, fault: str) -> None:
    settings = json.loads(desk.settings_file.read_text(encoding="utf-8"))
    match fault:
        case "matcher":
            settings["hooks"]["PreToolUse"][0]["matcher"] = "mcp__memory"
            desk.settings_file.write_text(json.dumps(settings), encoding="utf-8")
        case "switched off":
            desk.settings_file.write_text(json.dumps({**settings, "disableAllHooks": True}), encoding="utf-8")
        case "hook gone":
            desk.hook_file.unlink()
        case "uninstalled":
            desk.bouncer("uninstall", "--scope", "project", "--yes")

    code, findings = _doctor(desk, programs)

    assert code == 1
    assert findings["Canary"]["holds"] is False
    assert "NOT ENFORCED" in findings["Canary"]["detail"]


def test_a_service_that_is_down_is_reported_though_the_gate_denies(
    make_desk: MakeDesk, programs: Programs, nobody: str
) -> None:
    desk = make_desk(nobody)

    code, findings = _doctor(desk, programs)

    assert code == 1
    assert (findings["Service"]["holds"], findings["Canary"]["holds"]) == (False, True)


def test_the_canary_leaves_nothing_behind(desk: Desk, programs: Programs, service: Service) -> None:
    _doctor(desk, programs)

    assert desk.memory == {}
    assert desk.journal == []
    assert service.reviews(desk.project_name) == []


def test_without_a_client_nothing_is_claimed(desk: Desk) -> None:
    desk.environment["PATH"] = str(desk.home)

    done = desk.bouncer("doctor", "--json")

    canary = next(finding for finding in json.loads(done.stdout) if finding["name"] == "Canary")
    assert canary["holds"] is None


def _doctor(desk: Desk, programs: Programs) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code of the examination, and what it found, by name."""
    done = desk.bouncer("doctor", "--json", "--client", str(programs.client))
    return done.returncode, {finding["name"]: finding for finding in json.loads(done.stdout)}
