"""The project's documents, sent when a session starts: what they say already is no memory."""

import pytest

from tests.support.agent_client import Desk, MakeDesk
from tests.support.memories import MIGRATIONS, RETRIES, TIMEZONES
from tests.support.memory_calls import create_entity
from tests.support.service import Service

pytestmark = pytest.mark.e2e

RESTATED = "`ingest` stores raw pages before it parses them, so that a new parser can be replayed over old crawls."
README = """# Importer

It reads ferry timetables.

## Storage

What comes in is kept. ingest stores **raw pages** before it parses them,
so that a new `parser` can be replayed over old crawls. Nothing is thrown away.
"""


def test_what_the_readme_says_is_refused_and_what_it_does_not_say_is_stored(desk: Desk, service: Service) -> None:
    (desk.project / "README.md").write_text(README, encoding="utf-8")

    run = desk.run([create_entity("pages", f"- {RESTATED}"), create_entity("gateway", RETRIES)])

    reason = run.refusal(0)
    assert "[restates_document]" in reason
    assert "README.md" in reason
    assert "Storage" in reason
    assert run.result(1).refusal is None
    assert desk.memory == {"gateway": [RETRIES]}
    [document] = service.get(f"/v1/projects/{desk.project_name}/documents")["documents"]
    assert (document["path"], document["passages"]) == ("README.md", 2)


def test_when_the_readme_changes_its_passages_follow_with_the_next_session(desk: Desk) -> None:
    readme = desk.project / "README.md"
    readme.write_text(README, encoding="utf-8")
    desk.run(["Nothing to store today."])
    readme.write_text(f"# Importer\n\n## Schema\n\n{MIGRATIONS}\n", encoding="utf-8")

    run = desk.run([create_entity("pages", RESTATED), create_entity("schema", MIGRATIONS)])

    assert run.result(0).refusal is None
    assert "Schema" in run.refusal(1)
    assert desk.memory == {"pages": [RESTATED]}


def test_with_the_service_down_a_session_starts_all_the_same(make_desk: MakeDesk, nobody: str) -> None:
    desk = make_desk(nobody)
    (desk.project / "README.md").write_text(README, encoding="utf-8")

    run = desk.run([create_entity("events", TIMEZONES)])

    [start] = run.hooks_of("SessionStart")
    assert "refuses connections" in start.context
    assert desk.memory == {"events": [TIMEZONES]}


def test_the_command_sends_them_during_a_session(desk: Desk) -> None:
    desk.run(["Nothing to store today."])
    (desk.project / "docs").mkdir()
    (desk.project / "docs/storage.md").write_text(README, encoding="utf-8")

    done = desk.bouncer("docs", "sync")

    assert done.stdout.startswith("1 document of"), done
    listed = desk.bouncer("docs", "list").stdout
    assert "docs/storage.md" in listed
    assert [path.name for path in desk.project.iterdir() if path.name not in (".claude", "docs")] == []
