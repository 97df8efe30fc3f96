"""At the start of a session the project's documents reach the service: which they are, and how they are sent."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hooks import store_hygiene_gate as hook
from tests.support.canaries import canaries
from tests.support.hook_runs import LESSON, Said, event, journal, run, tell, write
from tests.support.scripted_service import Request, ScriptedService, scripted_service
from tests.support.service import Service, running_service

FACT = "The ferry's modem counts its channels from one, so channel zero stays silent."


def write_files(folder: Path, *paths: str, text: str = FACT) -> None:
    """Write files of one text."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def found(folder: Path) -> dict[str, str]:
    """What is found from a folder: each path with why it is left out."""
    config = hook.load_config(str(folder))
    return {document.path: document.why for document in hook.find_documents(config, time.monotonic() + 30)}


def sent_from(folder: Path) -> set[str]:
    """Paths of what would be sent from a folder."""
    return {path for path, why in found(folder).items() if not why}


def start() -> Said:
    """Start a session, in a process of its own."""
    return run(event("SessionStart", source="startup"))


def puts(service: ScriptedService) -> list[Request]:
    """The requests that sent documents."""
    return [request for request in service.requests if request.method == "PUT"]


# --- which ----------------------------------------------------------------------------------------------------------


def test_readmes_instructions_and_docs_are_found_wherever_they_lie(project: Path) -> None:
    wanted = {
        *("README.md", "readme", "README.zh-CN.md", "CLAUDE.md", "AGENTS.md", "GEMINI.md", "CONTRIBUTING.rst"),
        *("docs/a.md", "docs/deep/down/b.rst", "docs/c.TXT", "doc/übersicht.adoc", "packages/core/docs/d.md"),
        *("packages/core/README.md", "services/api/CLAUDE.md", ".github/CONTRIBUTING.md", ".claude/CLAUDE.md"),
    }
    others = ["main.py", "notes.md", "README.py", "CHANGELOG.md"]
    others += ["docs/logo.svg", "docs/requirements.txt", "docs/Makefile"]
    write_files(project, *wanted, *others)
    (project / ".git").mkdir()
    assert sent_from(project) == wanted
    assert sent_from(project / "docs" / "deep") == wanted


@pytest.mark.parametrize(
    "folder",
    ["node_modules/x", "a/.git", ".venv/lib", "vendor", "dist", "a/Build", "target/docs", "third_party", ".hidden",
     "tests/fixtures", "packages/node_modules/y/docs"],
)  # fmt: skip
def test_folders_of_others_are_not_entered(project: Path, folder: str) -> None:
    write_files(project, f"{folder}/README.md", f"{folder}/docs/a.md", "README.md")
    assert found(project) == {"README.md": ""}


@pytest.mark.parametrize("mark", [".git", "pyvenv.cfg", "CACHEDIR.TAG"])
def test_a_folder_that_is_marked_as_something_of_its_own_is_not_entered(project: Path, mark: str) -> None:
    write_files(project, "README.md", "other/README.md", f"other/{mark}", "other/docs/a.md")
    assert found(project) == {"README.md": ""}


def test_what_git_ignores_is_left_out(project: Path) -> None:
    write_files(project, "README.md", "docs/a.md", "docs/private/b.md", "docs/draft-c.md", "sub/README.md", "docs/d.md")
    (project / ".gitignore").write_text("private/\ndraft-*\n", encoding="utf-8")
    (project / "sub/.gitignore").write_text("*\n", encoding="utf-8")
    (project / ".git/info").mkdir(parents=True)
    (project / ".git/info/exclude").write_text("/docs/d.md\n", encoding="utf-8")
    assert sent_from(project) == {"README.md", "docs/a.md"}
    assert found(project)["docs/draft-c.md"] == "is ignored by git"
    assert not any(path.startswith("docs/private") for path in found(project))


def test_links_lead_nowhere(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write_files(outside, "secret.md", "docs/a.md")
    write_files(project, "AGENTS.md", "src/x.py")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (project / "README.md").symlink_to(outside / "secret.md")
    (project / "docs").symlink_to(outside / "docs")
    (project / "src/loop").symlink_to(project)
    assert found(project) == {"AGENTS.md": "", "CLAUDE.md": "is a link", "README.md": "is a link"}


def test_files_in_which_an_agent_keeps_memories_are_no_documents(project: Path) -> None:
    write_files(project, "docs/memory-bank/context.md", "docs/a.md")
    assert found(project) == {"docs/a.md": "", "docs/memory-bank/context.md": "holds memories"}


def test_what_is_too_large_is_left_out_before_it_is_read(project: Path) -> None:
    write_files(project, "docs/a.md", text="x" * (hook.LARGEST_DOCUMENT + 1))
    write_files(project, "docs/b.md", text="x" * hook.LARGEST_DOCUMENT)
    assert found(project) == {"docs/a.md": "is larger than 256 KB", "docs/b.md": ""}


def test_of_too_many_those_further_up_are_taken(project: Path) -> None:
    write_files(
        project, "README.md", *(f"docs/{number:03}.md" for number in range(hook.MOST_DOCUMENTS + 5)), "z/README.md"
    )
    why = found(project)
    assert sum(not reason for reason in why.values()) == hook.MOST_DOCUMENTS
    assert (why["README.md"], why["docs/000.md"], why["docs/204.md"]) == ("", "", "comes after 200 others")


def test_the_whole_is_bounded(project: Path) -> None:
    write_files(project, *(f"docs/{number:02}.md" for number in range(20)), text="x" * hook.LARGEST_DOCUMENT)
    why = found(project)
    assert [path for path, reason in why.items() if reason] == [f"docs/{number}.md" for number in range(16, 20)]
    assert why["docs/16.md"] == "comes after 4 MB of others"


def test_a_huge_tree_is_looked_into_only_so_far(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "_MOST_ENTRIES", 50)
    write_files(project, "README.md", "docs/a.md", *(f"src/{number}/README.md" for number in range(100)))
    assert (
        {"README.md", "docs/a.md"}
        <= set(found(project))
        < {f"src/{number}/README.md" for number in range(100)}
        | {
            "README.md",
            "docs/a.md",
        }
    )


def test_a_deep_tree_ends_somewhere(project: Path) -> None:
    write_files(project, "docs/" + "d/" * 60 + "a.md", "docs/" + "d/" * 5 + "a.md")
    assert found(project) == {"docs/" + "d/" * 5 + "a.md": ""}


def test_the_home_folder_is_no_project(
    monkeypatch: pytest.MonkeyPatch, project: Path, service: ScriptedService
) -> None:
    write_files(project, "README.md")
    monkeypatch.setenv("HOME", str(project))
    start()
    assert "/v1/policy" in service.paths("GET")
    assert puts(service) == []


def test_what_cannot_be_read_is_said_to_be_so(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(project, "README.md", "docs/a.md", "locked/README.md")
    real_open, real_scan = os.open, os.scandir

    def refuse(real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def refusing(path: Any, *more: Any) -> Any:
            if str(path).endswith(name):
                raise PermissionError(13, "Permission denied")
            return real(path, *more)

        return refusing

    monkeypatch.setattr(os, "open", refuse(real_open, "project/README.md"))
    monkeypatch.setattr(os, "scandir", refuse(real_scan, "locked/"))
    documents = hook.digest_documents(hook.load_config(str(project)), time.monotonic() + 30)
    assert {d.path: d.why for d in documents} == {"README.md": "cannot be read (Permission denied)", "docs/a.md": ""}


def test_files_that_vanish_or_change_kind_meanwhile_are_left_out(project: Path) -> None:
    write_files(project, "README.md", "docs/a.md", "docs/b.md", "docs/c.md")
    config = hook.load_config(str(project))
    documents = {document.path: document for document in hook.find_documents(config, time.monotonic() + 30)}
    (project / "README.md").unlink()
    (project / "docs/a.md").unlink()
    os.mkfifo(project / "docs/a.md")
    (project / "docs/b.md").unlink()
    (project / "docs/b.md").symlink_to("c.md")

    texts = {path: hook.read_document(config, document) for path, document in documents.items()}

    assert texts == {"README.md": "", "docs/a.md": "", "docs/b.md": "", "docs/c.md": FACT}
    assert documents["docs/a.md"].why == "is no file"
    assert documents["docs/b.md"].why.startswith("cannot be read")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Größe".encode("latin-1"), "Gr\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}e"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        (b"two\r\nlines", "two\nlines"),
        ("wide".encode("utf-16"), ""),
        (b"\x89PNG\0\0", ""),
        (b"", ""),
    ],
)
def test_any_bytes_give_a_text_or_none(project: Path, content: bytes, text: str) -> None:
    (project / "README.md").write_bytes(content)
    [document] = hook.digest_documents(hook.load_config(str(project)), time.monotonic() + 30)
    assert hook.read_document(hook.load_config(str(project)), document) == text
    assert document.why == ("is no text" if b"\0" in content else "")
    assert document.digest == ("" if document.why else sha256(text.encode()).hexdigest())


NAMES = st.one_of(
    st.sampled_from(
        ["README.md", "docs", "a", "src", ".git", ".gitignore", "node_modules", "CLAUDE.md", "doc", ".hidden"]
    ),
    st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=12),
    st.binary(min_size=1, max_size=8).map(lambda raw: os.fsdecode(raw.replace(b"/", b"_").replace(b"\0", b"_"))),
)
TREES = st.recursive(
    st.one_of(st.binary(max_size=40), st.sampled_from(["link:..", "link:/etc", "link:README.md", "fifo"])),
    lambda inner: st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)


def plant(folder: str, tree: dict[str, Any]) -> None:
    """Make a tree of files."""
    for name, what in tree.items():
        path = os.path.join(folder, name)  # noqa: PTH118 - names need not be text
        if name in (".", ".."):
            continue
        if isinstance(what, dict):
            os.mkdir(path)  # noqa: PTH102
            plant(path, what)
        elif isinstance(what, bytes):
            with open(path, "wb") as file:  # noqa: PTH123
                file.write(what)
        elif what == "fifo":
            os.mkfifo(path)
        else:
            os.symlink(what.partition(":")[2], path)  # noqa: PTH211


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(NAMES, TREES, max_size=6))
def test_whatever_the_tree_only_sound_files_inside_it_are_sent(tree: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plant(folder, tree)
        config = hook.Config()
        config.top, config.state = os.path.realpath(folder), os.path.join(folder, "state")  # noqa: PTH118
        documents = [d for d in hook.digest_documents(config, time.monotonic() + 30) if not d.why]
        for document in documents:
            path = Path(config.top) / document.path
            assert path.resolve() == path
            assert path.is_file()
            assert document.path.encode().decode().isprintable()
            assert not {".git", "node_modules", ".hidden"}.intersection(document.path.split("/"))
        assert len({document.path for document in documents}) == len(documents)
        again = [d for d in hook.digest_documents(config, time.monotonic() + 30) if not d.why]
        assert [(d.path, d.digest) for d in again] == [(d.path, d.digest) for d in documents]


# --- what git ignores -----------------------------------------------------------------------------------------------

PARTS = st.text("ab.*?[]!-", min_size=1, max_size=5)
LINES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "!", "/"]),
    st.lists(st.one_of(PARTS, st.just("**")), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/", "/**"]),
    st.sampled_from(["", "", " ", "\\ "]),
)
PATHS = st.lists(st.text("ab.-", min_size=1, max_size=3).filter(lambda part: part.strip(".")), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository without a file."""
    if shutil.which("git") is None:
        pytest.skip("git is missing")
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def ignored_by_git(repository: Path, lines: list[str], path: str) -> bool:
    """What git says of a file, or of a folder with a `/` at its end."""
    (repository / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
    command = ["git", "-C", str(repository), "-c", "core.excludesFile=", "check-ignore", "-q", "--no-index", "--", path]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def ignored_by_us(lines: list[str], path: str) -> bool:
    """What the walk makes of it: a folder that is ignored is not entered."""
    globs = hook.read_globs(lines)
    folders = itertools.accumulate(path.split("/")[:-1], lambda above, name: f"{above}/{name}")
    return any(hook.matches_globs(globs, f"{folder}/") for folder in folders) or hook.matches_globs(globs, path)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(LINES, max_size=3), PATHS.map("/".join))
@example(["*", "!a"], "a")
@example(["a/**/b"], "a/b")
@example(["**/b"], "a/a/b")
@example(["/a"], "b/a")
@example(["a/"], "a")
@example(["[!a]"], "b")
@example(["[a-b]b"], "bb")
@example(["a**b"], "aab")
@example(["b/*"], "b/a/a")
@example(["**", "!/**"], "a/a")
@example(["/**"], "a")
def test_a_file_is_ignored_where_git_ignores_it(repository: Path, lines: list[str], path: str) -> None:
    assert ignored_by_us(lines, path) == ignored_by_git(repository, lines, path), (lines, path)


# --- what the project and the person say ----------------------------------------------------------------------------


def test_the_projects_file_may_name_further_documents_and_take_some_out(project: Path) -> None:
    write_files(project, "README.md", "docs/a.md", "docs/old/b.md", "adr/0001.md", "adr/x/y.toml", "notes.md", ".env")
    globs = ["/adr/**", "!docs/old/", "!docs/old/**", "NOTES.md", ".env"]
    (project / ".bouncer.json").write_text(json.dumps({"documents": globs}), encoding="utf-8")
    assert sent_from(project) == {"README.md", "docs/a.md", "adr/0001.md", "adr/x/y.toml", "notes.md"}
    assert hook.load_config(str(project)).problems == []


@pytest.mark.parametrize("value", [5, {}, [5], "", ["a", None], None])
def test_an_unusable_wish_for_documents_is_reported(project: Path, value: object) -> None:
    (project / ".bouncer.json").write_text(json.dumps({"documents": value}), encoding="utf-8")
    assert ["documents must be" in problem for problem in hook.load_config(str(project)).problems] == [True]


def test_a_project_without_documents_says_so_to_the_service(project: Path, service: ScriptedService) -> None:
    write_files(project, "README.md")
    (project / ".bouncer.json").write_text('{"documents": false}', encoding="utf-8")
    start()
    assert [request.json for request in puts(service)] == [{"documents": []}]


def test_a_person_may_keep_all_documents_back(
    project: Path, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(project, "README.md")
    monkeypatch.setenv("MEMORY_BOUNCER_DOCUMENTS", "off")
    start()
    assert puts(service) == []


def test_a_project_at_level_gate_sends_nothing_even_if_it_is_so_only_since_now(
    project: Path, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(project, "README.md")
    service.policy |= {"level": "gate"}
    start()
    assert service.paths("GET") == ["/v1/decisions/news", "/v1/policy"]
    monkeypatch.setenv("MEMORY_BOUNCER_LEVEL", "gate")
    start()
    assert puts(service) == []


# --- sending to a service that is played ----------------------------------------------------------------------------


class Wanting(ScriptedService):
    """A service that wants what it has not seen, or fails where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.failing = 0

    def answer(self, request: Request) -> Any:
        """Take the texts; want those that are missing."""
        if request.method != "PUT":
            return super().answer(request)
        self.requests.append(request)
        documents = request.json["documents"]
        if self.failing and any("text" in document for document in documents):
            self.failing -= 1
            return 503, {"title": "busy"}
        self.texts |= {document["sha256"]: document["text"] for document in documents if "text" in document}
        wanted = [document["path"] for document in documents if document["sha256"] not in self.texts]
        return 200, {"wanted": wanted, "passages": len(self.texts)}


@pytest.fixture
def wanting(monkeypatch: pytest.MonkeyPatch, project: Path) -> Iterator[Wanting]:
    """A service that wants documents."""
    del project
    service = Wanting()
    with scripted_service(service=service):
        monkeypatch.setenv("MEMORY_BOUNCER_URL", service.url)
        yield service


def test_hashes_go_first_and_texts_once(project: Path, wanting: Wanting) -> None:
    write_files(project, "README.md", "docs/a.md")
    assert "QUIRK" in start().context
    assert "QUIRK" in start().context

    first, second, third = (request.json["documents"] for request in puts(wanting))
    digest = sha256(FACT.encode()).hexdigest()
    assert first == third == [{"path": path, "sha256": digest} for path in ("README.md", "docs/a.md")]
    assert [document["text"] for document in second] == [FACT, FACT]
    assert puts(wanting)[0].path == f"/v1/projects/{hook.project_identity(str(project))}/documents"


def test_many_texts_go_in_portions_and_each_request_names_all(project: Path, wanting: Wanting) -> None:
    for number in range(7):
        write_files(project, f"docs/{number}.md", text=f"{number} " * 45_000)
    hook.sync_documents(hook.load_config(str(project)), time.monotonic() + 30)
    assert [len(request.json["documents"]) for request in puts(wanting)] == [7] * len(puts(wanting))
    assert [sum("text" in d for d in request.json["documents"]) for request in puts(wanting)] == [0, 3, 3, 1]


def test_what_was_sent_before_a_fault_is_not_sent_again(project: Path, wanting: Wanting) -> None:
    for number in range(7):
        write_files(project, f"docs/{number}.md", text=f"{number} " * 45_000)
    wanting.failing = 1
    assert "QUIRK" in start().context
    assert wanting.texts == {}
    start()
    assert len(wanting.texts) == 7
    wanting.requests.clear()
    start()
    assert [sum("text" in d for d in request.json["documents"]) for request in puts(wanting)] == [0]


def test_secrets_in_documents_do_not_leave_the_machine(project: Path, wanting: Wanting) -> None:
    secret = canaries()["GitHub classic"]
    write_files(project, "README.md", text=f"# Access\n\nThe token of the billing gateway is {secret}, keep it.")
    start()
    assert len(wanting.texts) == 1
    assert not any(secret.encode() in request.body for request in wanting.requests)
    assert "[redacted " in next(iter(wanting.texts.values()))


def test_a_file_is_read_again_only_after_it_changed(
    project: Path, wanting: Wanting, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(project, "README.md", "docs/a.md")
    for path in ("README.md", "docs/a.md"):
        os.utime(project / path, (1, 1))
    start()
    read: list[str] = []
    real = hook.read_document

    def noting(config: hook.Config, document: hook.Document) -> str:
        read.append(document.path)
        return real(config, document)

    monkeypatch.setattr(hook, "read_document", noting)
    config = hook.load_config(str(project))
    hook.digest_documents(config, time.monotonic() + 30)
    assert read == []
    (project / "README.md").write_text("Something else.", encoding="utf-8")
    hook.digest_documents(config, time.monotonic() + 30)
    hook.digest_documents(config, time.monotonic() + 30)
    assert read == ["README.md", "README.md"], "a file that changed just now is not trusted to its time"


def test_nothing_is_written_to_the_project(project: Path, wanting: Wanting) -> None:
    write_files(project, "README.md")
    start()
    assert [path.name for path in project.iterdir()] == ["README.md"]


# --- when things go wrong -------------------------------------------------------------------------------------------


def test_without_a_service_a_session_starts_without_looking_at_documents(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(project, "README.md")
    monkeypatch.setattr(hook, "find_documents", lambda *_: pytest.fail("documents were looked for"))
    assert "refuses connections" in tell(event("SessionStart", source="startup")).context


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 500, 503])
def test_a_service_that_wants_no_documents_is_not_said_to_be_down(
    project: Path, service: ScriptedService, status: int
) -> None:
    write_files(project, "README.md")
    service.statuses[f"/v1/projects/{hook.project_identity(str(project))}/documents"] = status
    said = start()
    assert "QUIRK" in said.context
    assert "cannot be reviewed" not in said.context


def test_a_walk_that_never_ends_does_not_hold_the_session_up(
    project: Path, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(project, "README.md")
    monkeypatch.setattr(hook, "_DOCUMENTS_SECONDS", 0.2)
    monkeypatch.setattr(hook, "find_documents", lambda *_: time.sleep(60))
    said = tell(event("SessionStart", source="startup"))
    assert "QUIRK" in said.context
    assert puts(service) == []


def test_when_time_is_up_nothing_is_said_to_be_gone(
    project: Path, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(project, "README.md", "docs/a.md")
    monkeypatch.setattr(hook, "_DOCUMENTS_SECONDS", -1)
    tell(event("SessionStart", source="startup"))
    assert puts(service) == []


# --- sending to the real service ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The real service."""
    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running


def held(service: Service, project: Path) -> dict[str, int]:
    """Documents at the service, with their numbers of passages."""
    answer = service.get(f"/v1/projects/{hook.project_identity(str(project))}/documents")
    return {document["path"]: document["passages"] for document in answer["documents"]}


def test_the_service_follows_the_project_from_session_to_session(
    project: Path, real: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", real.url)
    write_files(project, "README.md", "docs/a.md", "docs/ü b.md")
    start()
    assert held(real, project) == {"README.md": 1, "docs/a.md": 1, "docs/ü b.md": 1}

    (project / "docs/a.md").unlink()
    (project / "README.md").write_text(f"# One\n\n{FACT}\n\n# Two\n\n{LESSON}", encoding="utf-8")
    start()
    assert held(real, project) == {"README.md": 2, "docs/ü b.md": 1}

    (project / "README.md").unlink()
    (project / "docs/ü b.md").unlink()
    start()
    assert held(real, project) == {}


def test_what_the_readme_says_is_refused_with_file_and_heading(
    project: Path, real: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_URL", real.url)
    (project / "README.md").write_text(f"# Payments\n\n## Retries\n\n{LESSON}\n", encoding="utf-8")
    start()
    said = run(write(LESSON))
    assert said.decision == "deny"
    assert "README.md" in said.reason
    assert "Retries" in said.reason
    assert [entry["event"] for entry in journal()] == ["denied"]
