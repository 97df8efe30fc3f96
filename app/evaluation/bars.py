"""Bars that a run must clear: for each measure the least or the greatest share allowed."""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, TypeAdapter, ValidationError

from app.errors import Invalid
from app.evaluation.report import MEASURES
from app.evaluation.score import Scores, Share
from app.schemas.fields import Model


class Bar(Model):
    """One bar, on the share itself."""

    measure: str
    at: Literal["most", "least"]
    value: float = Field(ge=0, le=1)
    better_than: list[str] = Field(default=[], description="Runs of the same report that must be worse.")


_BARS = TypeAdapter(list[Bar])


def load_bars(path: Path) -> list[Bar]:
    """Bars from a JSON file.

    Raises:
        Invalid: the file is missing or not of that form, or names an unknown measure.
    """
    try:
        bars = _BARS.validate_python(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as exc:
        raise Invalid(f"{path} is no list of bars: {str(exc).splitlines()[0]}") from exc
    unknown = [bar.measure for bar in bars if bar.measure not in MEASURES]
    if unknown:
        raise Invalid(f"{path} names unknown measures: {', '.join(unknown)}.")
    return bars


def missed(bars: list[Bar], run: str, runs: dict[str, Scores]) -> list[str]:
    """A line for each bar that the run does not clear; a share of nothing clears none."""
    lines = []
    for bar in bars:
        share: Share = getattr(runs[run], bar.measure)
        label = MEASURES[bar.measure]
        value = share.value
        if value is None or (value > bar.value if bar.at == "most" else value < bar.value):
            lines.append(f"{label}: {share}, should be at {bar.at} {bar.value:.1%}")
        for other in bar.better_than:
            rival = getattr(runs[other], bar.measure).value
            if value is not None and rival is not None and (value >= rival if bar.at == "most" else value <= rival):
                lines.append(f"{label}: {share} is no better than {other} ({rival:.1%})")
    return lines
