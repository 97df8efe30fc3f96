"""`bouncer eval` end to end: through the pipeline, to files, and with a model that runs elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.errors import ConfigurationError, Invalid
from app.evaluation.command import Options, compare, run, select
from app.settings import Settings
from tests.support.messages_api import messages_api
from tests.support.pipelines import CLEAR_SLOP, GOOD, SLOP, facts

ENTRY = "Never retry a payment without its idempotency key."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three texts: a good one, slop, and one whose project already has an entry and documents."""
    rows = [
        {"id": "good-1", "text": GOOD[0], "category": "RULE", "verdict": "approve", "facts": {"scope": "pattern"}},
        {"id": "slop-1", "text": SLOP, "category": "NONE", "verdict": "reject", "reasons": ["session_summary"]},
        {
            "id": "twin-1",
            "text": GOOD[1],
            "category": "RULE",
            "verdict": "duplicate",
            "entries": [{"label": "E1", "category": "RULE", "text": ENTRY}],
        },
    ]
    folder = tmp_path / "data"
    (folder / "candidates").mkdir(parents=True)
    lines = "\n".join(json.dumps(row) for row in rows)
    (folder / "candidates" / "shop.jsonl").write_text(lines + "\n", encoding="utf-8")
    return folder


def settings(tmp_path: Path, **more: object) -> Settings:
    return Settings.model_validate({"data_dir": tmp_path / "unused", **more})


def evaluate(options: Options, settings_: Settings) -> tuple[int, list[str]]:
    counted: list[int] = []
    evaluation = run(options, settings_, started=counted.append, progress=lambda: None)
    return counted[0], evaluation.missed


def test_the_offline_reviewer_is_measured_beside_its_baselines(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "out"
    total, missed = evaluate(Options(path=data, out=out, reruns=1), settings(tmp_path))
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert (total, missed) == (6, [])
    assert list(report["runs"]) == ["offline", "gate alone", "cosine alone", "no gate"]
    assert report["runs"]["offline"]["slop_admitted"] == {"count": 0, "of": 1}
    assert report["runs"]["no gate"]["slop_admitted"] == {"count": 1, "of": 1}
    assert report["flips"] == {"count": 0, "of": 3}
    assert "| ↓ Slop admitted |" in (out / "report.md").read_text(encoding="utf-8")
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in html
    assert "http" not in html.replace("http-equiv", "")


def test_nothing_is_written_to_the_configured_database(tmp_path: Path, data: Path) -> None:
    evaluate(Options(path=data), settings(tmp_path))
    assert not (tmp_path / "unused").exists()


def test_a_dry_run_writes_each_request_and_asks_nobody(tmp_path: Path, data: Path) -> None:
    requests = tmp_path / "requests"
    with messages_api() as api:
        own = settings(tmp_path, anthropic_base_url=api.url, anthropic_api_key="sk-test")
        evaluate(Options(path=data, reviewer="anthropic", dry_run=requests), own)
        assert api.requests == []
    written = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in requests.iterdir()}
    assert set(written) == {"good-1", "twin-1"}  # the gate refuses the other without a reviewer
    asked = json.dumps(written["twin-1"])
    assert ENTRY in asked
    assert {"model", "max_tokens", "system", "messages", "output_config"} <= written["good-1"].keys()
    assert "good-1" not in json.dumps(written["good-1"])


def test_replies_from_a_folder_are_scored_and_missing_ones_held(tmp_path: Path, data: Path) -> None:
    replies, out = tmp_path / "replies", tmp_path / "out"
    replies.mkdir()
    found = facts(duplicate_of="E1").model_dump(mode="json")
    (replies / "twin-1.json").write_text(json.dumps(found), encoding="utf-8")
    evaluate(Options(path=data, reviewer="anthropic", replies=replies, out=out), settings(tmp_path))
    results = [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["case"]["id"]: (row["verdict"], row["fault"]) for row in results} == {
        "good-1": ("held", "connection"),
        "slop-1": ("reject", None),
        "twin-1": ("duplicate", None),
    }


def test_what_the_cascade_spares_and_loses_is_told_beside_the_model(tmp_path: Path, data: Path) -> None:
    clear = {"id": "slop-2", "text": CLEAR_SLOP, "category": "NONE", "verdict": "reject"}
    with (data / "candidates" / "shop.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(clear) + "\n")
    replies, out = tmp_path / "replies", tmp_path / "out"
    replies.mkdir()
    for case in ("good-1", "slop-2", "twin-1"):
        (replies / f"{case}.json").write_text(json.dumps(facts().model_dump(mode="json")), encoding="utf-8")
    evaluate(Options(path=data, reviewer="anthropic", replies=replies, out=out), settings(tmp_path))
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    spared = report["spared"]
    assert spared["not_asked"] == {"count": 1, "of": 3}
    assert spared["differs"] == spared["gained"] == spared["right"] == {"count": 1, "of": 1}
    assert spared["lost"] == spared["rewrites"] == {"count": 0, "of": 1}
    assert spared["cached"] == {"count": 2, "of": 2}
    assert report["runs"]["anthropic"]["asked_model"] == {"count": 3, "of": 4}
    assert report["runs"]["anthropic, cascade"]["asked_model"] == {"count": 2, "of": 4}


def test_without_the_cascade_there_is_nothing_to_tell_of_it(tmp_path: Path, data: Path) -> None:
    replies, out = tmp_path / "replies", tmp_path / "out"
    replies.mkdir()
    evaluate(Options(path=data, reviewer="anthropic", replies=replies, out=out), settings(tmp_path, cascade="off"))
    assert json.loads((out / "report.json").read_text(encoding="utf-8"))["spared"] is None


def test_an_unusable_reply_is_held_as_it_would_be_live(tmp_path: Path, data: Path) -> None:
    replies, out = tmp_path / "replies", tmp_path / "out"
    replies.mkdir()
    found = facts(duplicate_of="E7").model_dump(mode="json")
    (replies / "good-1.json").write_text(json.dumps(found), encoding="utf-8")
    (replies / "twin-1.json").write_text("It looks fine to me.", encoding="utf-8")
    evaluate(Options(path=data, reviewer="anthropic", replies=replies, out=out), settings(tmp_path))
    results = [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["case"]["id"]: row["fault"] for row in results if row["fault"]} == {
        "good-1": "unknown_label",
        "twin-1": "not_json",
    }


def test_a_missed_bar_is_reported(tmp_path: Path, data: Path) -> None:
    file = tmp_path / "bars.json"
    file.write_text('[{"measure": "duplicates_found", "at": "least", "value": 0.5}]', encoding="utf-8")
    _, missed = evaluate(Options(path=data, bars=file), settings(tmp_path))
    assert missed == ["Duplicates found: –, should be at least 50.0%"]


def test_two_runs_are_compared_over_the_cases_that_both_judged(tmp_path: Path, data: Path) -> None:
    evaluate(Options(path=data, out=tmp_path / "one"), settings(tmp_path))
    evaluate(Options(path=data, out=tmp_path / "two", limit=2), settings(tmp_path))
    report = compare(tmp_path / "one", tmp_path / "two")
    assert (list(report.runs), report.cases) == (["one", "two"], 2)
    assert report.flips is not None
    assert report.flips.count == 0


def test_comparing_with_no_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="holds no results"):
        compare(tmp_path, tmp_path)


@pytest.mark.parametrize(("group", "chosen"), [("sh?p", 3), ("!sh?p", 0), ("shop-*", 0), ("!bakery", 3)])
def test_projects_are_chosen_by_a_pattern_or_left_out_by_it(data: Path, group: str, chosen: int) -> None:
    if chosen:
        assert len(select(Options(path=data, group=group))) == chosen
    else:
        with pytest.raises(Invalid, match="No labelled text is left"):
            select(Options(path=data, group=group))


def test_options_that_leave_nothing_are_an_error(tmp_path: Path, data: Path) -> None:
    with pytest.raises(Invalid, match="No labelled text is left"):
        evaluate(Options(path=data, suites=("attacks",)), settings(tmp_path))


@pytest.mark.parametrize("own", [{}, {"anthropic_api_key": "sk-test"}, {"budget_microdollars": 5_000_000}])
def test_a_model_that_would_never_be_asked_is_not_evaluated(data: Path, tmp_path: Path, own: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="never be asked"):
        evaluate(Options(path=data, reviewer="anthropic"), settings(tmp_path, **own))


def test_a_field_that_a_labelled_text_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"text": "x"}\n', encoding="utf-8")
    with pytest.raises(Invalid, match="line 1: there is no 'id'"):
        evaluate(Options(path=tmp_path / "mine.jsonl"), settings(tmp_path))
