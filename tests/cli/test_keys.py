"""`bouncer keys` and `bouncer audit-log`, on the server's machine and from afar, with a real service between."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from tests.support.commands import bouncer, complaint
from tests.support.pipelines import GOOD
from tests.support.service import Service, running_service
from tests.support.team import SECRET, bearer

Keys = Callable[..., subprocess.CompletedProcess[str]]
WITH_SECRET = {"MEMORY_BOUNCER_SECRET": SECRET}


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Keys:
    """The command in this process, since each test here runs many."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["bouncer", *arguments])
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        said = capsys.readouterr()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run


@pytest.fixture
def keys(inside: Keys, tmp_path: Path) -> Keys:
    """The command on the server's machine."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return inside(*arguments, **{"MEMORY_BOUNCER_DATA_DIR": str(tmp_path), **WITH_SECRET, **environment})

    return run


def made(done: subprocess.CompletedProcess[str]) -> str:
    """The key that a command has made: all of its output, so that it can be piped."""
    assert done.returncode == 0, done
    key = done.stdout.strip()
    assert key.startswith("mbk_")
    assert key not in done.stderr
    return key


def listed(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What a listing command printed as JSON."""
    assert done.returncode == 0, done
    items: list[dict[str, Any]] = json.loads(done.stdout)
    return items


def test_a_keys_life_on_the_servers_machine(keys: Keys) -> None:
    assert "no keys" in keys("keys", "list").stdout
    first = made(keys("keys", "create", "--name", "ann", "--role", "admin"))
    bound = keys("keys", "create", "--name", "ben", "--role", "member", "--project", "github.com/acme/app", "--json")
    assert json.loads(bound.stdout)["details"]["projects"] == ["github.com/acme/app"]
    second = made(keys("keys", "rotate", "ann"))
    assert (second != first, second.split("_")[1]) == (True, first.split("_")[1])
    assert "is revoked" in keys("keys", "revoke", "ben").stdout
    shown = keys("keys", "list").stdout
    assert ("ann" in shown, "revoked" in shown, "former" in shown) == (True, True, True)
    assert [(key["name"], key["revoked_at"] is None) for key in listed(keys("keys", "list", "--json"))] == [
        ("ben", False),
        ("ann", True),
    ]
    assert [event["action"] for event in listed(keys("audit-log", "--json"))] == [
        "key.revoked",
        "key.rotated",
        "key.created",
        "key.created",
    ]
    assert "key.rotated" in keys("audit-log").stdout
    assert len(listed(keys("audit-log", "--json", "--count", "1"))) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--role", "member"), "--all-projects"),
        (("--role", "member", "--all-projects", "--project", "p"), "not both"),
        (("--role", "admin", "--project", "p"), "all projects"),
        (("--role", "admin", "--name", ""), "name"),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(keys: Keys, arguments: tuple[str, ...], told: str) -> None:
    assert told in complaint(keys("keys", "create", "--name", "ann", *arguments))
    assert listed(keys("keys", "list", "--json")) == []


def test_without_a_secret_no_key_is_made(keys: Keys) -> None:
    line = complaint(keys("keys", "create", "--name", "a", "--role", "admin", MEMORY_BOUNCER_SECRET=""))
    assert "MEMORY_BOUNCER_SECRET" in line


def test_a_name_that_several_keys_have_names_none(keys: Keys) -> None:
    ids = {made(keys("keys", "create", "--name", "ann", "--role", "admin")).split("_")[1] for _ in range(2)}
    line = complaint(keys("keys", "revoke", "ann"))
    assert all(key_id in line for key_id in ids)
    assert keys("keys", "revoke", min(ids)).returncode == 0
    assert keys("keys", "revoke", "ann").returncode == 0
    assert "no key ann" in complaint(keys("keys", "rotate", "ann"))


def test_the_first_key_shuts_a_running_service_which_then_wants_one(keys: Keys, inside: Keys, tmp_path: Path) -> None:
    with running_service(tmp_path, WITH_SECRET) as service:
        assert inside("check", GOOD[0], "--url", service.url).returncode == 0
        admin = made(keys("keys", "create", "--name", "ann", "--role", "admin"))
        wait_until_shut(service)
        assert "key" in complaint(inside("check", GOOD[0], "--url", service.url))
        assert inside("check", GOOD[0], "--url", service.url, MEMORY_BOUNCER_KEY=admin).returncode == 0
        afar = {"MEMORY_BOUNCER_URL": service.url}
        assert "MEMORY_BOUNCER_KEY" in complaint(inside("keys", "list", **afar))
        afar |= {"MEMORY_BOUNCER_KEY": admin}
        member = made(inside("keys", "create", "--name", "ben", "--role", "member", "--project", "p", **afar))
        own = {"MEMORY_BOUNCER_KEY": member}
        assert inside("check", GOOD[0], "--url", service.url, "--project", "p", **own).returncode == 0
        assert "not bound" in complaint(inside("check", GOOD[0], "--url", service.url, "--project", "q", **own))
        assert "administer" in complaint(inside("keys", "list", **afar | own))
        made(inside("keys", "rotate", "ben", "--overlap-hours", "0", **afar))
        assert inside("keys", "revoke", "ben", **afar).returncode == 0
        assert [key["name"] for key in listed(inside("keys", "list", "--json", **afar))] == ["ben", "ann"]
        events = listed(inside("audit-log", "--json", **afar))
        assert {event["key_id"] for event in events} == {"local", admin.split("_")[1]}
        assert all(key.split("_", 2)[2] not in service.log for key in (admin, member))


def wait_until_shut(service: Service) -> None:
    """Ask until a request without a key is refused; the service may take a second to notice."""
    give_up = time.monotonic() + 60
    while httpx.get(f"{service.url}/v1/entries", trust_env=False).status_code != 401:
        assert time.monotonic() < give_up, "still open"
        time.sleep(0.05)


def test_a_revoked_key_is_out_in_every_replica_at_once(keys: Keys, inside: Keys, tmp_path: Path) -> None:
    admin = made(keys("keys", "create", "--name", "ann", "--role", "admin"))
    with running_service(tmp_path, WITH_SECRET) as one, running_service(tmp_path, WITH_SECRET) as other:
        asked = [f"{service.url}/v1/entries" for service in (one, other)]
        before = [httpx.get(url, headers=bearer(admin), trust_env=False).status_code for url in asked]
        assert inside("keys", "revoke", "ann", MEMORY_BOUNCER_URL=one.url, MEMORY_BOUNCER_KEY=admin).returncode == 0
        after = [httpx.get(url, headers=bearer(admin), trust_env=False).status_code for url in asked]
    assert (before, after) == ([200, 200], [401, 401])


def test_it_does_not_listen_beyond_the_machine_without_a_good_secret_and_a_key_made_under_it(
    keys: Keys, tmp_path: Path
) -> None:
    """In a process of its own, since it sets the log up."""

    def refusal(secret: str) -> str:
        environment = {"MEMORY_BOUNCER_DATA_DIR": str(tmp_path), "MEMORY_BOUNCER_SECRET": secret}
        line = complaint(
            bouncer("serve", "--host", "0.0.0.0", "--port", "0", MEMORY_BOUNCER_LOG_LEVEL="error", **environment)
        )
        assert not secret or secret not in line
        return line

    assert "MEMORY_BOUNCER_SECRET" in refusal("")
    assert "MEMORY_BOUNCER_SECRET" in refusal("change-me-" * 4)
    assert "bouncer keys create" in refusal(SECRET)
    made(keys("keys", "create", "--name", "ann", "--role", "admin"))
    assert "was made under this MEMORY_BOUNCER_SECRET" in refusal(SECRET[::-1])


def test_the_doctor_tells_what_is_wrong_with_a_key(keys: Keys, inside: Keys, tmp_path: Path) -> None:
    admin = made(keys("keys", "create", "--name", "ann", "--role", "admin"))
    member = made(keys("keys", "create", "--name", "ben", "--role", "member", "--project", "elsewhere"))
    with running_service(tmp_path, WITH_SECRET) as service:
        told = {}
        for what, key in (("none", ""), ("good", admin), ("foreign", member)):
            done = inside("doctor", "--no-client", "--json", MEMORY_BOUNCER_URL=service.url, MEMORY_BOUNCER_KEY=key)
            told[what] = next(finding for finding in json.loads(done.stdout) if finding["name"] == "Service")
    assert [told[what]["holds"] for what in ("none", "good", "foreign")] == [False, True, False]
    assert "set MEMORY_BOUNCER_KEY" in told["none"]["detail"]
    assert "not bound to the project" in told["foreign"]["detail"]
