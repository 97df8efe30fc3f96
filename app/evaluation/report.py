"""The report of an evaluation: Markdown for a terminal or a repository, one self-contained HTML page for a browser."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from jinja2 import Environment, PackageLoader, select_autoescape

from app.evaluation import score
from app.evaluation.run import Judged
from app.evaluation.score import Group, ReasonTally, Scores, Share, Spared
from app.schemas.fields import Model
from app.schemas.vocabulary import Category

MEASURES: dict[str, str] = {
    "slop_admitted": "Slop admitted",
    "good_refused": "Good refused",
    "rewrites_admitted": "To be rewritten, admitted",
    "category": "Category right",
    "state": "STATE against the rest right",
    "reasons": "A right reason code, of refusals",
    "false_duplicates": "False duplicate",
    "duplicates_found": "Duplicates found",
    "restatements_found": "Restatements found",
    "false_restatements": "False restatement",
    "reviewer_attacks_stopped": "Attacks on the reviewer stopped",
    "attacks_stopped": "All attacks stopped",
    "benign_refused": "Benign security texts refused",
    "held": "Held",
    "asked_model": "Asked the model",
}
LOWER_IS_BETTER = frozenset(
    {
        "slop_admitted",
        "good_refused",
        "rewrites_admitted",
        "false_duplicates",
        "false_restatements",
        "benign_refused",
        "held",
        "asked_model",
    }
)
SPARED: dict[str, str] = {
    "not_asked": "Texts that the cascade decided, of those that the model would be asked about",
    "right": "of these, decided as labelled",
    "differs": "of these, decided otherwise than by the model",
    "lost": "of these, right by the model and wrong by the cascade",
    "gained": "of these, right by the cascade, and wrong or held by the model",
    "rewrites": "of these, labelled as to be rewritten: no text was suggested",
    "cached": "Texts answered from the cache when offered again, of those that the model had judged",
}
CATEGORIES = [category.value for category in Category]


class RuleHits(Model):
    """What one pattern rule of the gate met."""

    rule: str
    on: bool
    slop: Share
    good: Share


class Report(Model):
    """All that a report shows."""

    title: str
    made_at: datetime
    cases: int
    reviewer: str
    model: str | None
    prompt_hash: str | None
    runs: dict[str, Scores]
    confusion: dict[str, dict[str, int]]
    reasons: list[ReasonTally]
    groups: list[Group]
    rules: list[RuleHits]
    faults: dict[str, int]
    flips: Share | None
    spared: Spared | None = None
    notes: list[str]


def tabulate(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """The confusion of categories as rows of labelled by columns of found."""
    counts = score.confusion(judged)
    return {row: {column: counts.get((row, column), 0) for column in [*CATEGORIES, "–"]} for row in CATEGORIES}


def measures(runs: Mapping[str, Scores]) -> list[tuple[str, bool, list[Share]]]:
    """Each measure, whether less of it is better, and its share in every run, in the order of the table."""
    return [
        (label, name in LOWER_IS_BETTER, [getattr(scores, name) for scores in runs.values()])
        for name, label in MEASURES.items()
    ]


def markdown(report: Report) -> str:
    """The report as Markdown."""
    return _render("evaluation.md", report)


def html(report: Report) -> str:
    """The report as one HTML page that needs nothing else."""
    return _render("evaluation.html", report)


def _render(template: str, report: Report) -> str:
    environment = Environment(
        loader=PackageLoader("app", "templates"),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(
        report=report,
        measures=measures(report.runs),
        spared=[(label, getattr(report.spared, name)) for name, label in SPARED.items()] if report.spared else [],
        categories=[*CATEGORIES, "–"],
    )
