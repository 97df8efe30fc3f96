"""Train the embedded reviewer: `uv run python evals/train.py` (half a minute, and the same result each time).

Trains on the train split, calibrates and sets thresholds on the development split, and never looks at the test split.
`--compare` prints what several designs reach in cross-validation by project on the two former splits.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from app.embeddings import WordLlamaEmbedder
from app.evaluation.data import Labelled, Split, Suite, load
from app.reviewers import features, linear
from app.schemas import Category, Verdict

DATA = Path(__file__).parent / "data"
LEAST_TEXTS = 4
MOST_FEATURES = 24_000
REGULARISATION = 6.0
FOLDS = 5
GOOD_REFUSED = 0.03
BENIGN_REFUSED = 0.01
FALSE_STATES = 0.01

Labels = npt.NDArray[np.str_]


@dataclass(frozen=True)
class Row:
    """A text to learn from: its category, verdict, project, whether it attacks, and the suite it comes from."""

    text: str
    category: str
    verdict: str
    project: str
    attack: bool
    suite: Suite


def rows_of(cases: Sequence[Labelled]) -> list[Row]:
    """Texts to learn from: candidates, the stored sides of pairs (good memories), attacks and benign ones."""
    rows = []
    for case in cases:
        if case.suite is Suite.DUPLICATES:
            entry = case.entries[0]
            rows.append(Row(entry.text, entry.category.value, Verdict.APPROVE.value, case.project, False, case.suite))
        elif case.suite is not Suite.DOCUMENTS and case.verdict is not Verdict.DUPLICATE:
            project = case.id if case.suite is Suite.ATTACKS else case.project
            attack = case.facts.addresses_reader
            rows.append(Row(case.text, case.category.value, case.verdict.value, project, attack, case.suite))
    return rows


@dataclass(frozen=True)
class Vectoriser:
    """Turns texts into the rows that the models are trained on, exactly as the product does."""

    models: linear.LinearModels

    @classmethod
    def of(cls, texts: Sequence[str], keep: set[str] | None = None) -> "Vectoriser":
        """Learn vocabulary, document frequencies and the spread of the layout."""
        counts = [features.count(text[: linear.LONGEST_TEXT]) for text in texts]
        frequency: Counter[str] = Counter(feature for count in counts for feature in count)
        names = sorted(f for f, n in frequency.items() if n >= LEAST_TEXTS and (keep is None or f in keep))
        idf = np.array([log((1 + len(texts)) / (1 + frequency[name])) + 1 for name in names], dtype=np.float32)
        layout = np.array([list(features.layout(text).values()) for text in texts], dtype=np.float32)
        outputs, size = len(linear.OUTPUTS), len(names) + layout.shape[1]
        models = linear.LinearModels(
            index={name: row for row, name in enumerate(names)},
            idf=idf,
            weights=np.zeros((size, outputs), dtype=np.float32),
            bias=np.zeros(outputs, dtype=np.float32),
            layout_centre=layout.mean(axis=0),
            layout_scale=(layout.std(axis=0) + 1e-6) * 10,
            calibration={},
            thresholds={},
        )
        return cls(models)

    def matrix(self, texts: Sequence[str]) -> csr_matrix:
        """Sparse rows: features, then the standardised layout."""
        starts, rows, values = [0], [], []
        for text in texts:
            found, weights = self.models.vector(text[: linear.LONGEST_TEXT])
            rows.append(found)
            values.append(weights)
            starts.append(starts[-1] + len(found))
        counted = csr_matrix(
            (np.concatenate(values), np.concatenate(rows), starts), shape=(len(texts), len(self.models.index))
        )
        layout = np.array([list(features.layout(text).values()) for text in texts], dtype=np.float32)
        layout = (layout - self.models.layout_centre) / self.models.layout_scale
        return hstack([counted, csr_matrix(layout)]).tocsr()


def classifier(positive: float = 1.0) -> LogisticRegression:
    """A logistic regression; ``positive`` weighs the rarer answer up."""
    weight: object = "balanced" if positive == 1.0 else {False: 1.0, True: positive}
    return LogisticRegression(C=REGULARISATION, max_iter=600, tol=1e-3, class_weight=weight, random_state=0)


def train(rows: Sequence[Row]) -> tuple[linear.LinearModels, set[str]]:
    """Models on rows, uncalibrated; the features are first cut down to the weightiest."""
    texts = [row.text for row in rows]
    first = _fitted(Vectoriser.of(texts), rows)
    strength = np.abs(first.weights[: len(first.index)]).max(axis=1)
    names = list(first.index)
    keep = {names[row] for row in np.argsort(-strength)[:MOST_FEATURES]}
    return _fitted(Vectoriser.of(texts, keep), rows), keep


def _fitted(vectoriser: Vectoriser, rows: Sequence[Row]) -> linear.LinearModels:
    matrix = vectoriser.matrix([row.text for row in rows])
    base = vectoriser.models
    weights, bias = base.weights.copy(), base.bias.copy()
    plain = np.array([not row.attack for row in rows])
    slop = np.array([row.verdict == Verdict.REJECT for row in rows])
    attack = np.array([row.attack for row in rows])
    kinds = np.array([row.category for row in rows])
    lasting = plain & (kinds != Category.NONE.value)
    fits: list[tuple[slice, LogisticRegression]] = [
        (slice(0, 1), classifier().fit(matrix[plain], slop[plain])),
        (slice(1, 2), classifier(positive=5.0).fit(matrix, attack)),
    ]
    for place, fit in fits:
        weights[:, place] = fit.coef_.T
        bias[place] = fit.intercept_
    category = classifier().fit(matrix[lasting], kinds[lasting])
    for row, name in enumerate(category.classes_):
        column = linear.OUTPUTS.index(str(name))
        weights[:, column] = category.coef_[row]
        bias[column] = category.intercept_[row]
    return linear.LinearModels(
        **{**base.__dict__, "weights": weights.astype(np.float32), "bias": bias.astype(np.float32)}
    )


def calibrate(models: linear.LinearModels, rows: Sequence[Row]) -> linear.LinearModels:
    """Set curves and thresholds on texts that were not trained on."""
    unscaled = linear.LinearModels(
        **{**models.__dict__, "calibration": dict.fromkeys(("slop", "injection"), (1.0, 0.0))}
    )
    readings = [unscaled.read(row.text) for row in rows]
    plain = [not row.attack for row in rows]
    slop = np.array([_logit(reading.slop) for reading in readings])
    attack = np.array([_logit(reading.injection) for reading in readings])
    curves = {
        "slop": _curve(slop[plain], np.array([row.verdict == Verdict.REJECT for row in rows])[plain]),
        "injection": _curve(attack, np.array([row.attack for row in rows])),
    }
    calibrated = linear.LinearModels(**{**models.__dict__, "calibration": curves})
    final = [calibrated.read(row.text) for row in rows]
    good = [r.slop for r, row in zip(final, rows, strict=True) if _is_good(row)]
    benign = [r.injection for r, row in zip(final, rows, strict=True) if row.suite is Suite.BENIGN]
    state = [
        r.categories[Category.STATE]
        for r, row in zip(final, rows, strict=True)
        if _is_good(row) and row.category != Category.STATE.value
    ]
    thresholds = {
        "state": float(np.quantile(state, 1 - FALSE_STATES)),
        "slop": float(np.quantile(good, 1 - GOOD_REFUSED)),
        "injection": float(np.quantile(benign, 1 - BENIGN_REFUSED)),
    }
    return linear.LinearModels(**{**calibrated.__dict__, "thresholds": thresholds})


def _is_good(row: Row) -> bool:
    return row.suite is Suite.CANDIDATES and row.verdict == Verdict.APPROVE


def _logit(probability: float) -> float:
    return log(probability / (1 - probability)) if 0 < probability < 1 else 30.0 * (2 * (probability > 0.5) - 1)


def _curve(scores: npt.NDArray[np.float64], answers: npt.NDArray[np.bool_]) -> tuple[float, float]:
    fit = LogisticRegression(C=1e3).fit(scores.reshape(-1, 1), answers)
    return float(fit.coef_[0, 0]), float(fit.intercept_[0])


def compare(rows: Sequence[Row]) -> None:
    """Print, for several designs, the slop caught at 3% and 5% of good refused, and the categories right."""
    texts = [row.text for row in rows]
    full = Vectoriser.of(texts)
    counted = full.matrix(texts)
    blocks = np.array([name[0] for name in full.models.index])
    layout = counted[:, len(blocks) :]
    vectors = csr_matrix(WordLlamaEmbedder().embed(texts) * 4)
    designs: dict[str, Callable[[], csr_matrix]] = {
        "A: embedding (WordLlama, 256)": lambda: vectors,
        "B: words and pairs": lambda: counted[:, np.flatnonzero(np.isin(blocks, ["w", "p"]))],
        "C: runs of characters": lambda: counted[:, np.flatnonzero(blocks == "c")],
        "D: all blocks and layout": lambda: counted,
        "E: D and the embedding": lambda: hstack([counted, vectors]).tocsr(),
        "F: layout alone": lambda: layout,
    }
    print("| design | slop caught, 3% good refused | 5% | category right |\n|---|---|---|---|")
    for name, matrix in designs.items():
        at3, at5, right = _cross_validated(matrix(), rows)
        print(f"| {name} | {at3:.1%} | {at5:.1%} | {right:.1%} |", flush=True)


def _cross_validated(matrix: csr_matrix, rows: Sequence[Row]) -> tuple[float, float, float]:
    slop = np.array([row.verdict == Verdict.REJECT for row in rows])
    good = np.array([_is_good(row) for row in rows])
    plain = np.array([not row.attack for row in rows])
    kinds = np.array([row.category for row in rows])
    lasting = plain & (kinds != Category.NONE.value)
    asked = np.array([row.suite is Suite.CANDIDATES for row in rows])
    groups = [row.project for row in rows]
    scores = np.zeros(len(rows))
    found = np.empty(len(rows), dtype=object)
    for training, rest in GroupKFold(FOLDS).split(matrix, slop, groups):
        known = training[plain[training]]
        scores[rest] = classifier().fit(matrix[known], slop[known]).decision_function(matrix[rest])
        known = training[lasting[training]]
        found[rest] = classifier().fit(matrix[known], kinds[known]).predict(matrix[rest])
    caught = [float((scores[slop & asked] > np.quantile(scores[good], 1 - share)).mean()) for share in (0.03, 0.05)]
    return caught[0], caught[1], float((found[lasting & asked] == kinds[lasting & asked]).mean())


def main() -> None:
    """Train and write the models, or compare designs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", action="store_true", help="cross-validate several designs instead of training")
    parser.add_argument("--out", type=Path, default=linear.FILE, help="where the models go")
    arguments = parser.parse_args()
    cases = load(DATA)
    training = rows_of([case for case in cases if case.split is Split.TRAIN])
    development = rows_of([case for case in cases if case.split is Split.DEVELOPMENT])
    if arguments.compare:
        compare([*training, *development])
        return
    models, _ = train(training)
    models = calibrate(models, development)
    linear.save(models, arguments.out)
    print(f"{len(models.index)} features, {arguments.out.stat().st_size / 1024:.0f} KiB, {models.thresholds}")


if __name__ == "__main__":
    main()
