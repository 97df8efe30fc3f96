"""Labelled texts are read as the format says, and faults are named by file and line."""

import json
from pathlib import Path

import pytest

from app.errors import Invalid
from app.evaluation.data import Split, Suite, load, split_of
from app.schemas.vocabulary import Verdict

DATA = Path(__file__).parents[2] / "evals" / "data"


def test_the_shipped_data_has_what_a_judgement_must_be_measured_on() -> None:
    cases = load(DATA)
    count = {suite: sum(case.suite is suite for case in cases) for suite in Suite}
    pairs = [case for case in cases if case.suite is Suite.DUPLICATES]
    exact = [case for case in pairs if case.kind in ("number", "version", "name", "negation", "direction", "contrast")]
    candidates = [case for case in cases if case.suite is Suite.CANDIDATES]
    assert count[Suite.CANDIDATES] >= 1500
    assert (count[Suite.DUPLICATES] >= 500, len(exact) >= 200) == (True, True)
    assert count[Suite.DOCUMENTS] >= 150
    assert (count[Suite.ATTACKS] >= 250, count[Suite.BENIGN] >= 150) == (True, True)
    assert sum(case.lang != "en" for case in candidates) >= len(candidates) / 10


def test_no_project_is_on_two_sides() -> None:
    sides: dict[str, set[Split]] = {}
    for case in load(DATA):
        if case.suite is not Suite.ATTACKS:
            sides.setdefault(case.project, set()).add(case.split)
    assert all(len(splits) == 1 for splits in sides.values())
    assert {split_of(project) for project in sides} == set(Split)


def test_ids_are_unique() -> None:
    ids = [case.id for case in load(DATA)]
    assert len(ids) == len(set(ids))


def test_a_single_file_is_read_as_candidates(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    row = {"id": "a", "text": "Use tabs.", "category": "RULE", "verdict": "approve"}
    file.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    (case,) = load(file)
    assert (case.suite, case.project, case.verdict) == (Suite.CANDIDATES, "mine", Verdict.APPROVE)


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_a_line_ends_only_where_json_lines_do(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "mine.jsonl"
    row = {"id": "a", "text": f"Use{mark}tabs.", "category": "RULE", "verdict": "approve"}
    file.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [case.text for case in load(file)] == [row["text"]]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": "a"}', '{"id": "a", "text": "x", "category": "NOTE", "verdict": "approve"}']
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("\n" + line + "\n", encoding="utf-8")
    with pytest.raises(Invalid, match=r"mine\.jsonl, line 2: "):
        load(file)


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no labelled texts"):
        load(tmp_path)
    with pytest.raises(Invalid, match="no file or folder"):
        load(tmp_path / "absent")
