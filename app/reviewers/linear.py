"""Linear models over counted features, and all that the embedded reviewer has learned, read from one small file.

Trained by `evals/train.py`, described in evals/MODEL_CARD.md. The product needs only numpy to use them.
"""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import exp
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from app.errors import ConfigurationError
from app.reviewers.features import Known
from app.reviewers.trees import Trees

FILE = Path(__file__).with_name("offline_model.npz")

Floats = npt.NDArray[np.float32]
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class LinearModel:
    """One linear model for each of its outputs, over counted features and some measures.

    Attributes:
        outputs: names of what it tells.
        blocks: how much each block of features weighs; a feature's first character names its block.
        index: row of each feature.
        idf: inverse document frequency of each row.
        weights: rows × outputs.
        dense: measures × outputs; empty if there are no measures.
        bias: of each output.
    """

    outputs: tuple[str, ...]
    blocks: Mapping[str, float]
    index: dict[str, int]
    idf: Floats
    weights: Floats
    dense: Floats
    bias: Floats

    def scores(self, counted: Sequence[Mapping[str, int]], measures: Floats | None = None) -> list[dict[str, float]]:
        """For each counted text the score of each output: above 0 where it is likelier than not, before calibration.

        Args:
            counted: the features of each text.
            measures: texts × measures, if the model has any.
        """
        rows, values, texts = self.vectors(counted)
        # Each text's features lie together, in the texts' order; a last row of nothing ends those of the last text.
        starts = np.searchsorted(texts, np.arange(len(counted) + 1))
        products = np.vstack([values[:, None] * self.weights[rows], np.zeros_like(self.bias)])
        sums = np.add.reduceat(products, starts[:-1]) * (np.diff(starts) > 0)[:, None]
        found = sums + self.bias
        if measures is not None:
            found = found + measures @ self.dense
        return [dict(zip(self.outputs, scores, strict=True)) for scores in found.tolist()]

    def vectors(
        self, counted: Sequence[Mapping[str, int]]
    ) -> tuple[npt.NDArray[np.int64], Floats, npt.NDArray[np.int64]]:
        """The known features of all texts: their rows, their values, and the places of the texts that have them.

        Values are sublinear counts × idf, each block of length one × its weight.
        """
        row_of = self.index.get
        rows: list[int] = []
        times: list[int] = []
        sizes: list[int] = []
        for features in counted:
            known = [(row, number) for feature, number in features.items() if (row := row_of(feature)) is not None]
            rows += [row for row, _ in known]
            times += [number for _, number in known]
            sizes.append(len(known))
        found = np.array(rows, dtype=np.int64)
        texts = np.repeat(np.arange(len(counted)), sizes)
        values = self.idf[found] * (1 + np.log(np.array(times, dtype=np.float32)))
        blocks = texts * len(self.blocks) + self._block_of[found]
        squares = np.bincount(blocks, values * values, minlength=len(counted) * len(self.blocks))
        scale = np.tile(list(self.blocks.values()), len(counted)) / np.sqrt(np.maximum(squares, 1e-18))
        return found, (values * scale[blocks]).astype(np.float32), texts

    @cached_property
    def _block_of(self) -> npt.NDArray[np.int64]:
        places = {block: place for place, block in enumerate(self.blocks)}
        return np.array([places[feature[0]] for feature in self.index], dtype=np.int64)


@dataclass(frozen=True)
class Models:
    """All that the embedded reviewer has learned.

    Attributes:
        known: by which the features of a text are told apart.
        text: what a whole text is.
        unfit: from what `text` says and the measures of form, whether the text cannot stand as it is.
        kinds: from the same, which kind of memory it is.
        clause: whether a clause attacks.
        pair: from how alike two texts are (`app.reviewers.likeness`), whether they say the same.
        texts_share: how much a text's own score of being an attack weighs beside that of its worst clause.
        calibration: slope and offset of the logistic curve of each binary output (Platt, 1999).
        thresholds: probabilities at and above which something is acted on.
    """

    known: Known
    text: LinearModel
    unfit: Trees
    kinds: Trees
    clause: LinearModel
    pair: Trees
    texts_share: float
    calibration: dict[str, tuple[float, float]]
    thresholds: dict[str, float]

    def probability(self, name: str, score: float) -> float:
        """The calibrated probability of a binary output."""
        slope, offset = self.calibration[name]
        return logistic(slope * score + offset)


def logistic(score: float) -> float:
    """The logistic curve, 0 to 1."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


def softmax(scores: Mapping[Kind, float]) -> dict[Kind, float]:
    """Probabilities of answers of which one is right."""
    largest = max(scores.values())
    raw = {kind: exp(score - largest) for kind, score in scores.items()}
    total = sum(raw.values())
    return {kind: value / total for kind, value in raw.items()}


def save(models: Models, file: Path) -> None:
    """Write models to a file; the weights of features are rounded to 8 bits an output."""
    meta = {
        "calibration": models.calibration,
        "thresholds": models.thresholds,
        "texts_share": models.texts_share,
        "outputs": {"text": models.text.outputs, "clause": models.clause.outputs},
        "blocks": {"text": models.text.blocks, "clause": models.clause.blocks},
    }
    arrays: dict[str, Any] = {
        "meta": _packed(json.dumps(meta)),
        "common": _packed("\n".join(sorted(models.known.common))),
        "groups": models.known.groups,
        **models.pair.stored("pair"),
        **_stored("text", models.text),
        **_stored("clause", models.clause),
        **models.unfit.stored("unfit"),
        **models.kinds.stored("kinds"),
    }
    # Written by hand, as numpy would put the time of day into the file.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as stream:
                np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)


@cache
def load(file: Path = FILE) -> Models:
    """The shipped models.

    Raises:
        ConfigurationError: the file is missing or not what this version wrote.
    """
    try:
        with np.load(file, allow_pickle=False) as stored:
            meta: dict[str, Any] = json.loads(stored["meta"].tobytes())
            return Models(
                known=Known(common=frozenset(_lines(stored["common"])), groups=stored["groups"]),
                text=_read("text", stored, meta),
                unfit=Trees.read("unfit", stored),
                kinds=Trees.read("kinds", stored),
                clause=_read("clause", stored, meta),
                pair=Trees.read("pair", stored),
                texts_share=meta["texts_share"],
                calibration={name: (pair[0], pair[1]) for name, pair in meta["calibration"].items()},
                thresholds=meta["thresholds"],
            )
    except (OSError, ValueError, KeyError) as exc:
        raise ConfigurationError(f"The offline reviewer's model {file.name} is damaged; install again.") from exc


def _stored(name: str, model: LinearModel) -> dict[str, npt.NDArray[Any]]:
    scale = np.maximum(np.abs(model.weights).max(axis=0), 1e-9) / 127
    return {
        f"{name}_features": _packed("\n".join(model.index)),
        f"{name}_idf": model.idf.astype(np.float16),
        f"{name}_weights": np.round(model.weights / scale).astype(np.int8),
        f"{name}_scale": scale.astype(np.float32),
        f"{name}_dense": model.dense.astype(np.float16),
        f"{name}_bias": model.bias.astype(np.float32),
    }


def _read(name: str, stored: Mapping[str, npt.NDArray[Any]], meta: dict[str, Any]) -> LinearModel:
    return LinearModel(
        outputs=tuple(meta["outputs"][name]),
        blocks=meta["blocks"][name],
        index={feature: row for row, feature in enumerate(_lines(stored[f"{name}_features"]))},
        idf=stored[f"{name}_idf"].astype(np.float32),
        weights=stored[f"{name}_weights"].astype(np.float32) * stored[f"{name}_scale"],
        dense=stored[f"{name}_dense"].astype(np.float32),
        bias=stored[f"{name}_bias"],
    )


def _packed(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _lines(stored: npt.NDArray[Any]) -> list[str]:
    return bytes(stored.tobytes()).decode().split("\n")
