"""The linear models of the embedded reviewer: a few thousand weighted features, read from one small file.

Trained by `evals/train.py`, described in evals/MODEL_CARD.md. The product needs only numpy to use them.
"""

import json
from dataclasses import dataclass
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.errors import ConfigurationError
from app.reviewers import features
from app.schemas import Category

FILE = Path(__file__).with_name("offline_model.npz")
CATEGORIES = (Category.STATE, Category.DECISION, Category.RULE, Category.DISCOVERY, Category.QUIRK)
OUTPUTS = ("slop", "injection", *(category.value for category in CATEGORIES))
LONGEST_TEXT = 4000

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Reading:
    """What the models make of a text, as probabilities."""

    slop: float
    injection: float
    categories: dict[Category, float]


@dataclass(frozen=True)
class LinearModels:
    """One linear model for each of ``OUTPUTS``, over the features of `app.reviewers.features`.

    Attributes:
        index: row of each feature.
        idf: inverse document frequency of each row.
        weights: rows × outputs; the last rows are those of the layout, in the order of `features.layout`.
        bias: of each output.
        layout_centre, layout_scale: by which the layout was standardised.
        calibration: slope and offset of the logistic curve of each binary output (Platt, 1999).
        thresholds: probabilities at and above which a binary output is acted on.
    """

    index: dict[str, int]
    idf: Floats
    weights: Floats
    bias: Floats
    layout_centre: Floats
    layout_scale: Floats
    calibration: dict[str, tuple[float, float]]
    thresholds: dict[str, float]

    def read(self, text: str) -> Reading:
        """Probabilities for a text; of a very long one only the beginning is looked at."""
        shown = text[:LONGEST_TEXT]
        rows, values = self.vector(shown)
        layout = np.array(list(features.layout(shown).values()), dtype=np.float32)
        layout = (layout - self.layout_centre) / self.layout_scale
        scores = values @ self.weights[rows] + layout @ self.weights[len(self.index) :] + self.bias
        by_name = dict(zip(OUTPUTS, scores.tolist(), strict=True))
        largest = max(by_name[category.value] for category in CATEGORIES)
        raw = {category: exp(by_name[category.value] - largest) for category in CATEGORIES}
        total = sum(raw.values())
        return Reading(
            slop=self._calibrated("slop", by_name["slop"]),
            injection=self._calibrated("injection", by_name["injection"]),
            categories={category: value / total for category, value in raw.items()},
        )

    def vector(self, text: str) -> tuple[npt.NDArray[np.int64], Floats]:
        """Rows and values of a text's known features: sublinear counts × idf, each block of length one × its weight."""
        rows: list[int] = []
        values: list[float] = []
        lengths = dict.fromkeys(features.BLOCKS, 0.0)
        blocks: list[str] = []
        for feature, times in features.count(text).items():
            row = self.index.get(feature)
            if row is not None:
                value = (1 + log(times)) * float(self.idf[row])
                rows.append(row)
                values.append(value)
                blocks.append(feature[0])
                lengths[feature[0]] += value * value
        weight = {block: features.BLOCKS[block] / (square**0.5 or 1.0) for block, square in lengths.items()}
        scaled = [value * weight[block] for value, block in zip(values, blocks, strict=True)]
        return np.array(rows, dtype=np.int64), np.array(scaled, dtype=np.float32)

    def _calibrated(self, name: str, score: float) -> float:
        slope, offset = self.calibration[name]
        return 1 / (1 + exp(-max(-30.0, min(30.0, slope * score + offset))))


def save(models: LinearModels, file: Path) -> None:
    """Write models to a file; weights are rounded to 8 bits an output."""
    scale = np.maximum(np.abs(models.weights).max(axis=0), 1e-9) / 127
    meta = {"calibration": models.calibration, "thresholds": models.thresholds}
    np.savez_compressed(
        file,
        features=np.frombuffer("\n".join(models.index).encode(), dtype=np.uint8),
        idf=models.idf.astype(np.float16),
        weights=np.round(models.weights / scale).astype(np.int8),
        scale=scale.astype(np.float32),
        bias=models.bias.astype(np.float32),
        layout_centre=models.layout_centre.astype(np.float32),
        layout_scale=models.layout_scale.astype(np.float32),
        meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
    )


@cache
def load(file: Path = FILE) -> LinearModels:
    """The shipped models.

    Raises:
        ConfigurationError: the file is missing or not what this version wrote.
    """
    try:
        with np.load(file, allow_pickle=False) as stored:
            meta: dict[str, Any] = json.loads(stored["meta"].tobytes())
            names = stored["features"].tobytes().decode().split("\n")
            return LinearModels(
                index={name: row for row, name in enumerate(names)},
                idf=stored["idf"].astype(np.float32),
                weights=stored["weights"].astype(np.float32) * stored["scale"],
                bias=stored["bias"],
                layout_centre=stored["layout_centre"],
                layout_scale=stored["layout_scale"],
                calibration={name: (pair[0], pair[1]) for name, pair in meta["calibration"].items()},
                thresholds=meta["thresholds"],
            )
    except (OSError, ValueError, KeyError) as exc:
        raise ConfigurationError(f"The offline reviewer's model {file.name} is damaged; install again.") from exc
