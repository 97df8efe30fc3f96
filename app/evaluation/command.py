"""`bouncer eval`: judge labelled texts, put the baselines beside them, report, and hold the bars."""

import json
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from app.db import utc_now
from app.embeddings import Embedder, WordLlamaEmbedder
from app.errors import ConfigurationError, Invalid
from app.evaluation import bars, baselines, report, score
from app.evaluation.data import Labelled, Split, Suite, load
from app.evaluation.recorded import DryRun, Recorded, Remembering
from app.evaluation.run import Judged, evaluate, offer
from app.reviewers import Reviewer
from app.schemas.fields import Model
from app.settings import Settings

RESULTS = "results.jsonl"
REPLAYED_BUDGET = 1
_JUDGED = TypeAdapter(Judged)


class Options(Model):
    """What to evaluate, with whom, and where the results go."""

    path: Path
    reviewer: Literal["offline", "anthropic"] = "offline"
    split: Split | None = None
    suites: tuple[Suite, ...] = ()
    group: str | None = None
    limit: int | None = None
    reruns: int = 0
    dry_run: Path | None = None
    replies: Path | None = None
    out: Path | None = None
    bars: Path | None = None


class Evaluation(Model):
    """A report with the bars that its run missed."""

    report: report.Report
    missed: list[str]


def select(options: Options) -> list[Labelled]:
    """The cases that the options choose.

    Raises:
        Invalid: there are none.
    """
    cases = [
        case
        for case in load(options.path)
        if (options.split is None or case.split is options.split)
        and (not options.suites or case.suite in options.suites)
        and (options.group is None or _fits(case.group, options.group))
    ]
    if options.limit is not None:
        cases = cases[:: max(1, len(cases) // options.limit)][: options.limit]
    if not cases:
        raise Invalid("No labelled text is left with these options.")
    return cases


def _fits(group: str, pattern: str) -> bool:
    wanted = pattern.removeprefix("!")
    return fnmatchcase(group, wanted) is (wanted == pattern)


def run(
    options: Options, settings: Settings, *, started: Callable[[int], None], progress: Callable[[], None]
) -> Evaluation:
    """Carry out an evaluation, and write its files.

    Args:
        options: what to do.
        settings: for the pipeline, and for the second model where it is asked.
        started: told how many judgements will be made.
        progress: called after each.

    Raises:
        Invalid: the data, the options or the bars make no sense.
        ConfigurationError: the second model is asked for, but not configured.
    """
    cases = select(options)
    checked = bars.load_bars(options.bars) if options.bars else []
    embedder = WordLlamaEmbedder()
    settings, model = _model(options, cases, settings)
    cascades = model is not None and options.dry_run is None and settings.cascade == "on"
    started(len(cases) * (1 + options.reruns + cascades * 2))
    # The cascade is measured against what the model says of every text, so the model is first asked about each.
    alone = settings.model_copy(update={"cascade": "off"})
    asked = [Remembering(model()) if model else None for _ in range(1 + options.reruns)]
    runs = [evaluate(cases, settings=alone, embedder=embedder, model=one, progress=progress) for one in asked]
    offered = (
        offer(cases, 2, settings=settings, embedder=embedder, model=asked[0], progress=progress) if cascades else []
    )
    made = _report(options, cases, runs, offered, embedder)
    if options.out is not None:
        _write(options.out, made, runs[0])
    return Evaluation(report=made, missed=bars.missed(checked, options.reviewer, made.runs))


def compare(first: Path, second: Path) -> report.Report:
    """Two earlier runs side by side, over the cases that both judged.

    Raises:
        Invalid: a folder holds no results, or they have no case in common.
    """
    one, two = _read(first), _read(second)
    common = {j.case.id for j in one} & {j.case.id for j in two}
    if not common:
        raise Invalid("These runs have no case in common.")
    one, two = ([j for j in run if j.case.id in common] for run in (one, two))
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    return _assemble(
        f"{names[0]} against {names[1]}",
        two,
        {names[0]: score.score(one), names[1]: score.score(two)},
        flips=score.flips(one, two),
    )


def _model(
    options: Options, cases: Sequence[Labelled], settings: Settings
) -> tuple[Settings, Callable[[], Reviewer] | None]:
    if options.reviewer == "offline":
        return settings, None
    if (
        options.dry_run is None
        and options.replies is None
        and not (settings.has_model and settings.budget_microdollars)
    ):
        raise ConfigurationError(
            "The model would never be asked: set MEMORY_BOUNCER_BUDGET_MICRODOLLARS, and "
            "MEMORY_BOUNCER_ANTHROPIC_API_KEY or (for a server of your own) MEMORY_BOUNCER_ANTHROPIC_BASE_URL; "
            "or use --dry-run or --replies."
        )
    # Imported here: the SDK loads slowly, and the offline evaluation does without it.
    from app.prompts import draw_nonce  # noqa: PLC0415
    from app.reviewers.anthropic import AnthropicReviewer  # noqa: PLC0415

    if options.dry_run is None and options.replies is None:
        return settings, lambda: AnthropicReviewer(settings)
    renders = AnthropicReviewer(settings)
    free = settings.model_copy(update={"budget_microdollars": REPLAYED_BUDGET})
    if options.dry_run is not None:
        folder = options.dry_run
        return free, lambda: DryRun(renders, cases, folder, draw_nonce)
    assert options.replies is not None  # noqa: S101
    replies = options.replies
    if not replies.is_dir():
        raise Invalid(f"There is no folder of replies {replies}.")
    return free, lambda: Recorded(renders, cases, replies)


def _report(
    options: Options,
    cases: Sequence[Labelled],
    runs: list[list[Judged]],
    offered: list[list[Judged]],
    embedder: Embedder,
) -> report.Report:
    development = baselines.development(load(options.path))
    scores = {
        options.reviewer: score.score(runs[0]),
        **({f"{options.reviewer}, cascade": score.score(offered[0])} if offered else {}),
        "gate alone": score.score(baselines.gate_alone(cases)),
        "cosine alone": score.score(baselines.cosine_alone(cases, development, embedder)),
        "no gate": score.score(baselines.no_gate(cases)),
    }
    split = f", {options.split} split" if options.split else ""
    notes = []
    if len(runs) > 1:
        shares = [value for again in runs[1:] if (value := score.flips(runs[0], again).value) is not None]
        notes.append(f"Flips over {len(runs) - 1} reruns, mean: {statistics.mean(shares):.1%}.")
    return _assemble(
        f"Evaluation of {options.path.name}{split}",
        runs[0],
        scores,
        flips=score.flips(runs[0], runs[1]) if len(runs) > 1 else None,
        rules=baselines.rule_hits(cases),
        spared=score.spared(runs[0], *offered) if offered else None,
        notes=notes,
    )


def _assemble(
    title: str,
    judged: Sequence[Judged],
    runs: dict[str, score.Scores],
    *,
    flips: score.Share | None = None,
    rules: Sequence[report.RuleHits] = (),
    spared: score.Spared | None = None,
    notes: Sequence[str] = (),
) -> report.Report:
    reviewers = Counter(j.reviewer for j in judged)
    return report.Report(
        title=title,
        made_at=utc_now(),
        cases=len(judged),
        reviewer=", ".join(f"{name} {count}" for name, count in reviewers.most_common()),
        model=next((j.model for j in judged if j.model), None),
        prompt_hash=next((j.prompt_hash for j in judged if j.prompt_hash), None),
        runs=runs,
        confusion=report.tabulate(judged),
        reasons=score.by_reason(judged),
        groups=score.groups(judged),
        rules=list(rules),
        faults=dict(Counter(j.fault.value for j in judged if j.fault)),
        flips=flips,
        spared=spared,
        notes=list(notes),
    )


def _write(folder: Path, made: report.Report, judged: Sequence[Judged]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(report.markdown(made), encoding="utf-8")
    (folder / "report.html").write_text(report.html(made), encoding="utf-8")
    (folder / "report.json").write_text(made.model_dump_json(indent=1) + "\n", encoding="utf-8")
    lines = (json.dumps(_JUDGED.dump_python(j, mode="json"), ensure_ascii=False) for j in judged)
    (folder / RESULTS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(folder: Path) -> list[Judged]:
    try:
        lines = (folder / RESULTS).read_text(encoding="utf-8").split("\n")
        return [_JUDGED.validate_json(line) for line in lines if line]
    except (OSError, ValueError) as exc:
        raise Invalid(f"{folder} holds no results of an earlier `bouncer eval --out`.") from exc
