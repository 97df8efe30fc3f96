"""Settings: who may set what, and that nothing wrong in them is a crash."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks import store_hygiene_gate as hook
from hooks.store_hygiene_gate import Config, load_config
from tests.support.hook_runs import LESSON, tell, write
from tests.support.scripted_service import ScriptedService


def user_file(**settings: Any) -> Path:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "memory-bouncer" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


def project_file(folder: Path, **settings: Any) -> None:
    (folder / ".bouncer.json").write_text(json.dumps(settings), encoding="utf-8")


def load(project: Path) -> Config:
    return load_config(str(project))


def test_nothing_needs_to_be_set(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_BOUNCER_URL")

    config = load(project)

    assert (config.url, config.on_failure, config.deadline_seconds) == ("http://127.0.0.1:8711", "allow", 8)
    assert (config.reminder, config.problems, config.broken) == ("on", [], "")


def test_the_environment_goes_before_the_user_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user_file(url="http://127.0.0.1:1", key="from-file", deadline_seconds=3, on_failure="hold")
    monkeypatch.setenv("MEMORY_BOUNCER_URL", "http://127.0.0.1:2")
    monkeypatch.setenv("MEMORY_BOUNCER_DEADLINE", "4.5")

    config = load(project)

    assert (config.url, config.key) == ("http://127.0.0.1:2", "from-file")
    assert (config.deadline_seconds, config.on_failure) == (4.5, "hold")


def test_the_user_file_may_lie_elsewhere(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.json").write_text('{"reminder": "off"}', encoding="utf-8")
    monkeypatch.setenv("MEMORY_BOUNCER_CONFIG", str(tmp_path / "mine.json"))

    assert load(project).reminder == "off"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("URL", "127.0.0.1:8711"),
        ("URL", "ftp://127.0.0.1"),
        ("URL", "http://"),
        ("URL", "http://user:pw@host"),
        ("URL", "http://host:port"),
        ("URL", "http://host\r\nX: y"),
        ("KEY", "two words"),
        ("KEY", "line\nbreak"),
        ("KEY", "schlüssel"),
        ("ON_FAILURE", "crash"),
        ("DEADLINE", "soon"),
        ("DEADLINE", "0"),
        ("DEADLINE", "1e9"),
        ("DEADLINE", "nan"),
        ("REMINDER", "maybe"),
        ("LEVEL", "extreme"),
    ],
)
def test_an_unfit_value_is_left_out_and_named_without_being_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.delenv("MEMORY_BOUNCER_URL")
    monkeypatch.setenv(f"MEMORY_BOUNCER_{variable}", value)

    config = load(project)

    [problem] = config.problems
    assert f"MEMORY_BOUNCER_{variable}" in problem
    assert "must be" in problem
    assert variable != "KEY" or value not in problem
    assert (config.url, config.key, config.deadline_seconds) == (Config.url, "", Config.deadline_seconds)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://127.0.0.1:8711", ("http", "127.0.0.1", 8711, "")),
        ("http://localhost/", ("http", "localhost", 80, "")),
        ("https://bouncer.example.org/team/", ("https", "bouncer.example.org", 443, "/team")),
        ("http://[::1]:8711", ("http", "::1", 8711, "")),
        ("http://[::1]", ("http", "::1", 80, "")),
    ],
)
def test_addresses_are_taken_apart(url: str, parts: tuple[str, str, int, str]) -> None:
    assert hook.split_url(url) == parts


def test_a_project_may_name_itself_add_patterns_and_raise_the_floor(project: Path) -> None:
    project_file(project, project="billing", minimum_words=12, patterns=[{"id": "wip", "pattern": r"\bwip\b"}])

    config = load(project)

    assert (config.project, config.minimum_words, config.problems) == ("billing", 12, [])
    assert "[session_summary]" in tell(write(f"WIP {LESSON}")).reason


def test_a_project_cannot_lower_the_floor(project: Path) -> None:
    project_file(project, minimum_words=1, project=5)

    config = load(project)
    assert config.minimum_words == 8
    assert [problem.partition(": ")[2] for problem in config.problems] == [
        "a project may only raise minimum_words, which stays 8",
        "project must be a name, and is ignored",
    ]


def test_a_project_cannot_raise_the_floor_beyond_reason(project: Path) -> None:
    project_file(project, minimum_words=10_000)

    config = load(project)

    assert config.minimum_words == 8
    assert config.problems


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "http://127.0.0.1:9"},
        {"key": "stolen"},
        {"on_failure": "deny"},
        {"deadline_seconds": 60},
        {"disabled_rules": ["pr-merged"]},
        {"tools": [{"tool": "create_entities", "operation": "ignore"}]},
        {"maximum_characters": 30_000},
        {"level": "gate"},
        {"reminder": "off"},
    ],
)
def test_a_project_may_set_nothing_else_and_it_is_said(
    project: Path, service: ScriptedService, settings: dict[str, Any]
) -> None:
    before = vars(load(project))
    project_file(project, project=before["project"], **settings)

    after = vars(load(project))

    [problem] = after.pop("problems")
    assert next(iter(settings)) in problem
    assert after == {name: value for name, value in before.items() if name != "problems"}
    assert next(iter(settings)) in tell({"hook_event_name": "SessionStart", "cwd": str(project)}).context


def test_own_patterns_refuse_with_their_reason(project: Path) -> None:
    user_file(patterns=[{"id": "tickets", "pattern": r"\bJIRA-\d+", "reason": "too_specific"}])

    assert "[too_specific]" in tell(write(f"JIRA-12: {LESSON}")).reason
    assert load(project).problems == []


def test_own_patterns_do_not_fire_on_what_is_mentioned(service: ScriptedService) -> None:
    user_file(patterns=["lunch"])

    assert (
        tell(write("Never write “lunch” into the calendar of the team, it has a template for that.")).decision is None
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "",
        "x*",
        "(a+)+b",
        "(?:a|b*)*c",
        "a" * 501,
        5,
        None,
        {"id": "x"},
        {"pattern": "x", "reason": "boring"},
        [[]],
    ],
)
def test_a_bad_pattern_is_left_out_and_named(project: Path, pattern: object) -> None:
    user_file(patterns=[pattern])

    config = load(project)

    assert config.user_rules == ()
    assert len(config.problems) == 1
    assert "pattern" in config.problems[0]


def test_a_slow_pattern_is_skipped_and_said(service: ScriptedService) -> None:
    user_file(patterns=[r"(x|xx)+y.*(z|zz)+!"])

    said = tell(write(f"{LESSON} {'x' * 60}"))

    assert said.decision is None
    assert "took too long" in said.context


def test_a_project_cannot_keep_the_hook_busy_with_patterns(project: Path) -> None:
    project_file(project, patterns=[f"pattern-{number}" for number in range(10_000)])

    config = load(project)

    assert len(config.user_rules) == 100
    assert "left out" in config.problems[0]


def test_without_a_home_nothing_is_written_into_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it gives where no home is known
    monkeypatch.setenv("XDG_STATE_HOME", "relative")

    said = tell(write("PR merged"))
    tell({"hook_event_name": "PreToolUse", "tool_name": "Skill", "tool_input": {"skill": "hygiene"}})

    assert "could not be kept in the journal" in said.context
    assert list(project.iterdir()) == []


def test_rules_can_be_switched_off_and_on(project: Path, service: ScriptedService) -> None:
    user_file(disabled_rules=["pr-merged"], enabled_rules=["change-line"])

    assert tell(write(f"PR merged: {LESSON}")).decision is None
    changed = tell(write("Fixed the retries of the billing gateway and those of the mailer."))
    assert "[session_summary]" in changed.reason


def test_a_rule_of_no_known_name_is_said(project: Path) -> None:
    user_file(disabled_rules=["pr-mergd"])

    assert "pr-mergd" in load(project).problems[0]


def test_own_tools_are_read(service: ScriptedService) -> None:
    user_file(tools=[{"tool": "keep", "store": "notes", "texts": "note.body", "key": "note.name"}])
    payload = write() | {"tool_name": "mcp__notes__keep", "tool_input": {"note": {"body": LESSON, "name": "retries"}}}

    assert tell(payload).decision is None

    request = service.requests[-1].json
    assert (request["store"], request["candidates"]) == ("notes", [{"text": LESSON, "key": "retries"}])


@pytest.mark.parametrize(
    "row", [5, {}, {"tool": "keep"}, {"tool": "keep", "texts": 5}, {"tool": "k", "operation": "burn"}]
)
def test_a_bad_row_is_left_out_and_named(project: Path, row: object) -> None:
    user_file(tools=[row])

    config = load(project)

    assert config.tools == hook.TOOLS
    assert len(config.problems) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", "5", "\x00", "[" * 100_000])
def test_a_broken_user_file_means_defaults_and_the_agent_is_told(
    project: Path, service: ScriptedService, content: str
) -> None:
    user_file().write_text(content, encoding="utf-8")

    assert load(project).on_failure == "allow"
    assert "config.json" in tell(write(LESSON)).context


def test_a_setting_of_no_known_name_is_named(project: Path) -> None:
    user_file(on_faliure="deny")

    assert "on_faliure" in load(project).problems[0]


def test_the_service_s_policy_is_used_where_the_user_says_nothing(project: Path, service: ScriptedService) -> None:
    service.policy |= {"minimum_words": 12, "level": "gate", "reasons": {"too_short": "Our team wants twelve words."}}
    tell({"hook_event_name": "SessionStart", "cwd": str(project), "session_id": "s"})

    said = tell(write("one two three four five six seven eight nine ten eleven"))

    assert "Our team wants twelve words." in said.reason
    user_file(minimum_words=8, level="offline")
    assert tell(write("one two three four five six seven eight nine ten eleven")).decision is None
    assert service.paths()[-1] == "/v1/reviews"


@given(
    st.dictionaries(
        st.sampled_from(
            ["url", "key", "on_failure", "deadline_seconds", "patterns", "tools", "disabled_rules", "level"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["tool", "id"]), inner, max_size=2)
            ),
            max_leaves=6,
        ),
    )
)
def test_any_user_file_gives_sound_settings(settings: dict[str, Any]) -> None:
    path = user_file(**settings)
    config = load_config("/", {"MEMORY_BOUNCER_CONFIG": str(path), "HOME": "/nowhere"})

    assert config.on_failure in ("allow", "hold", "ask", "deny")
    assert 0.5 <= config.deadline_seconds <= 60
    assert all(isinstance(problem, str) for problem in config.problems)
    hook.split_url(config.url)
