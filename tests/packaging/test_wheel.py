"""A built wheel holds all that the commands need, outside any checkout."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 300


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installer would."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on the search path")
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([uv, "build", "--wheel", "--quiet", "--out-dir", str(out), str(ROOT)], check=True, timeout=SECONDS)
    (wheel,) = out.glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def bouncer(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command, with this environment's dependencies and without the checkout."""
    program = f"import sys; sys.path.insert(0, {str(site)!r}); from app.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_demo_runs_from_the_wheel(site: Path, tmp_path: Path) -> None:
    done = bouncer(site, tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": turned away") == 2


def test_init_installs_hook_and_skill_from_the_wheel(site: Path, tmp_path: Path) -> None:
    done = bouncer(site, tmp_path, "init", "--yes", "--scope", "project")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".claude" / "hooks" / "memory-bouncer" / "store_hygiene_gate.py").is_file()
    assert (tmp_path / ".claude" / "skills" / "hygiene" / "SKILL.md").is_file()
    assert json.loads((tmp_path / ".claude" / "settings.json").read_text(encoding="utf-8"))["hooks"]


def test_an_evaluation_reports_from_the_wheel(site: Path, tmp_path: Path) -> None:
    row = {
        "id": "a",
        "text": "Money is integer cents, since floats lost one.",
        "category": "RULE",
        "verdict": "approve",
    }
    (tmp_path / "mine.jsonl").write_text(json.dumps(row), encoding="utf-8")
    done = bouncer(site, tmp_path, "eval", "mine.jsonl", "--out", "report")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report" / "report.html").is_file()
