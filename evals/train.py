"""Train the embedded reviewer: `uv run python evals/train.py` (eight minutes, and the same result each time).

Learns from the train and development splits and never looks at the test split. Curves and thresholds are set on what
models of the same make, trained on four fifths of the projects, say of the last fifth. `--compare` prints what several
designs reach that way.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from app import gate
from app.evaluation.data import ON_REVIEWER, Labelled, Split, Suite, load
from app.reviewers import cascade, clauses, disguises, features, linear, offline, pairs, pieces
from app.reviewers.cascade import Certainty
from app.reviewers.features import Known, Wording
from app.reviewers.likeness import measures
from app.reviewers.linear import LinearModel, Models
from app.reviewers.pairs import Comparison, Side
from app.reviewers.trees import Trees
from app.reviewers.wrapping import unwrapped
from app.schemas.vocabulary import Category, Reason, Verdict

DATA = Path(__file__).parent / "data"
FOLDS = 5
LEAST_TEXTS, MOST_FEATURES = 4, 48_000
LEAST_CLAUSES = 3
COMMON_WORDS, LEAST_PROJECTS = 450, 20
GROUPS = 256
FORM_WEIGHT = 0.04
REWRITE_WEIGHT = 0.1
MOST_TELLING = 2.5
ATTACK_WEIGHT, BENIGN_WEIGHT, BENIGN_TEXT_WEIGHT = 3.0, 2.0, 6.0
ROUNDS, NEAR_STRONGEST = 4, 1.5
MINED_NEIGHBOURS, MINED_WEIGHT, TURNED_WEIGHT = 3, 0.1, 0.5

UNFIT_TREES, KIND_TREES, PAIR_TREES = 300, 120, 400  # kinds: for each
SAME_SCORE = 1e-3

# What the thresholds may cost, as shares of the texts that they are counted on.
GOOD_REFUSED, BENIGN_REFUSED = 0.030, 0.0080
FALSE_STATES = 0.01
# The fields of meaning were written by readers of these attacks and benign texts, so that even held-out scores flatter.
BENIGN_REJECTED, GOOD_REJECTED = 0.004, 0.001
BENIGN_HELD, GOOD_HELD = 0.100, 0.035
# Less than may be false (1%), since new texts fare a little worse than those that a threshold was chosen on.
FALSE_DUPLICATES, FALSE_MINED = 0.0035, 0.002
FALSE_RESTATEMENTS, FALSE_HARD_RESTATEMENTS = 0.005, 0.0
SURE = 30.0

# What need not be asked of the second model: shares of the decisions that must be right, and in how many cases.
CERTAINLY_RIGHT, CERTAIN_CASES = 0.99, 100

CATEGORIES = tuple(category.value for category in offline.CATEGORIES)
REASONS = tuple(
    reason.value for reason in (Reason.SESSION_SUMMARY, Reason.EPHEMERAL, Reason.TOO_GENERIC, Reason.NOT_SELF_CONTAINED)
)
# For each fault of a memory the reason that a label gives.
FAULTS = dict(
    zip(
        offline.FAULTS,
        (
            Reason.SESSION_SUMMARY,
            Reason.TOO_SPECIFIC,
            Reason.NO_WHY,
            Reason.TOO_GENERIC,
            Reason.NOT_SELF_CONTAINED,
            Reason.SEVERAL_FACTS,
        ),
        strict=True,
    )
)
OUTPUTS = ("slop", *CATEGORIES, *REASONS, "attack", "standing", *FAULTS)
ATTACK, STANDING = OUTPUTS.index("attack"), OUTPUTS.index("standing")

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Row:
    """A text to learn from, its labels, its project or idea, whether it attacks, and the suite and kind of its case."""

    text: str
    category: str
    verdict: str
    reasons: tuple[str, ...]
    project: str
    attack: bool
    suite: Suite
    kind: str

    @property
    def is_good(self) -> bool:
        """Whether it is one of the candidates that should be approved."""
        return self.suite is Suite.CANDIDATES and self.verdict == Verdict.APPROVE


def rows_of(cases: Sequence[Labelled]) -> list[Row]:
    """Texts to learn from: candidates, the stored sides of pairs (good memories), attacks and benign ones.

    Pairs of a candidate and its edit are left out, and a stored side counts once however many pairs it has: their words
    would count again and again.
    """
    rows = []
    stored: set[tuple[str, str]] = set()
    for case in cases:
        if case.of is not None:
            continue
        if case.suite is Suite.DUPLICATES:
            entry = case.entries[0]
            if (case.project, entry.text) in stored:
                continue
            stored.add((case.project, entry.text))
            rows.append(
                Row(entry.text, entry.category.value, Verdict.APPROVE, (), case.project, False, case.suite, case.kind)
            )
        elif case.suite is not Suite.DOCUMENTS and case.verdict is not Verdict.DUPLICATE:
            reasons = tuple(reason.value for reason in case.reasons)
            attack = case.facts.addresses_reader
            rows.append(
                Row(case.text, case.category.value, case.verdict, reasons, case.group, attack, case.suite, case.kind)
            )
    return rows


def folds(groups: Sequence[str]) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Training and held-out places, so that no group is on both sides."""
    return list(GroupKFold(FOLDS).split(groups, groups=groups))


def vocabulary(
    counts: Sequence[Mapping[str, int]],
    blocks: Mapping[str, float],
    outputs: tuple[str, ...],
    *,
    least: int,
    measures: int = 0,
    keep: set[str] | None = None,
) -> LinearModel:
    """An untrained model of the features that occur often enough, with their document frequencies."""
    frequency = Counter(feature for count in counts for feature in count)
    names = sorted(f for f, n in frequency.items() if n >= least and (keep is None or f in keep))
    idf = np.array([log((1 + len(counts)) / (1 + frequency[name])) + 1 for name in names], dtype=np.float32)
    return LinearModel(
        outputs=outputs,
        blocks=blocks,
        index={name: row for row, name in enumerate(names)},
        idf=idf,
        weights=np.zeros((len(names), len(outputs)), dtype=np.float32),
        dense=np.zeros((measures, len(outputs)), dtype=np.float32),
        bias=np.zeros(len(outputs), dtype=np.float32),
    )


def matrix(model: LinearModel, counts: Sequence[Mapping[str, int]]) -> csr_matrix:
    """Counts as the sparse rows that the model sees."""
    rows, values, texts = model.vectors(counts)
    return csr_matrix((values, (texts, rows)), shape=(len(counts), len(model.index)))


def regression(strength: float, *, weight: object = "balanced", tolerance: float = 1e-4) -> LogisticRegression:
    """A logistic regression as all models are fitted with."""
    return LogisticRegression(C=strength, max_iter=600, tol=tolerance, class_weight=weight, random_state=0)


# --- what a text is -----------------------------------------------------------------------------------------------


class Texts:
    """The rows with their features, and the answers to learn."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._pieces = pieces.load()
        self._wordings = [Wording.of(unwrapped(row.text[: offline.LONGEST_TEXT]), self._pieces) for row in rows]
        self.known = Known(self._common(), self._groups())
        self.counts = [features.count(wording, self.known) for wording in self._wordings]
        measured = np.array([features.dense(wording, self._pieces) for wording in self._wordings])
        self.scale = np.ones(measured.shape[1], dtype=np.float32)
        self.scale[: features.LAYOUT_SIZE] = FORM_WEIGHT / (measured[:, : features.LAYOUT_SIZE].std(axis=0) + 1e-6)
        self.measures = measured * self.scale
        self.form = measured[:, : features.LAYOUT_SIZE]
        self.projects = [row.project for row in rows]
        self.plain = np.array([not row.attack for row in rows])
        self.attack = np.array([row.attack for row in rows])
        self.benign = np.array([row.suite is Suite.BENIGN for row in rows])
        # The stored sides of pairs are short and tidy beyond life: they teach categories, but not what slop is.
        self.judged = self.plain & np.array([row.suite is not Suite.DUPLICATES for row in rows])
        self.slop = np.array([row.verdict == Verdict.REJECT for row in rows])
        self.good = np.array([row.is_good for row in rows])
        self.kinds = np.array([row.category for row in rows])
        self.asked = np.array([row.suite is Suite.CANDIDATES for row in rows])
        self.gated = np.array([bool(gate.check(row.text)) for row in rows])
        self.why = np.array([next((r for r in REASONS if r in row.reasons), "") for row in rows])
        self.state = self.asked & (self.kinds == Category.STATE.value)
        self.rewritten = self.asked & np.array([row.verdict == Verdict.REWRITE for row in rows])
        self.faulty = {
            fault: self.rewritten & ~self.gated & np.array([reason in row.reasons for row in rows])
            for fault, reason in FAULTS.items()
        }
        self.weight = np.array([REWRITE_WEIGHT if row.verdict == Verdict.REWRITE else 1.0 for row in rows])

    @property
    def lasting(self) -> Flags:
        """Which rows are memories."""
        flags: Flags = self.plain & (self.kinds != Category.NONE.value)
        return flags

    def untrained(self, keep: set[str] | None = None) -> LinearModel:
        """A model of all features, or of some."""
        return vocabulary(
            self.counts,
            features.BLOCKS,
            OUTPUTS,
            least=LEAST_TEXTS,
            measures=self.measures.shape[1],
            keep=keep,
        )

    def fit(self, model: LinearModel, seen: csr_matrix, training: npt.NDArray[np.int64]) -> LinearModel:
        """The model trained on some of the rows."""
        width = len(model.index)
        weights = np.zeros((seen.shape[1], len(OUTPUTS)), dtype=np.float64)
        bias = np.zeros(len(OUTPUTS))

        def put(answers: Sequence[str], fit: LogisticRegression) -> None:
            for row, answer in enumerate(answers):
                column = OUTPUTS.index(answer)
                weights[:, column], bias[column] = fit.coef_[row], fit.intercept_[row]

        def tell(answer: str, rows: npt.NDArray[np.int64], answers: Flags, fit: LogisticRegression) -> None:
            telling = self.telling(seen[rows], answers)
            fit.fit(seen[rows].multiply(telling).tocsr(), answers)
            column = OUTPUTS.index(answer)
            weights[:, column], bias[column] = fit.coef_[0] * telling, fit.intercept_[0]

        judged = training[self.judged[training]]
        # The words that tell the kinds apart are those of slop too: there they only blur what is certain.
        unmoved = np.append([name[0] not in features.MOODS for name in model.index], np.ones(seen.shape[1] - width))
        certain = judged[self.weight[judged] == 1.0]
        telling = self.telling(seen[certain], self.slop[certain]) * unmoved
        told = regression(3.0).fit(
            seen[judged].multiply(telling).tocsr(), self.slop[judged], sample_weight=self.weight[judged]
        )
        weights[:, 0], bias[0] = told.coef_[0] * telling, told.intercept_[0]
        sides = training[(self.attack | self.benign | self.good)[training]]
        weight = np.where(self.benign, BENIGN_TEXT_WEIGHT, np.where(self.attack, ATTACK_WEIGHT, 1.0))
        hostile = regression(3.0, weight=None, tolerance=1e-3).fit(
            seen[sides], self.attack[sides], sample_weight=weight[sides]
        )
        weights[:, ATTACK], bias[ATTACK] = hostile.coef_[0], hostile.intercept_[0]
        either = training[(self.state | (self.slop & self.judged))[training]]
        standing = regression(0.5).fit(seen[either].multiply(unmoved).tocsr(), self.state[either])
        weights[:, STANDING], bias[STANDING] = standing.coef_[0], standing.intercept_[0]
        lasting = training[self.lasting[training]]
        for kind in CATEGORIES:
            tell(kind, lasting, self.kinds[lasting] == kind, regression(2.0, tolerance=1e-3))
        for fault, faulty in self.faulty.items():
            sides = training[(faulty | (self.good & ~self.gated))[training]]
            tell(fault, sides, faulty[sides], regression(3.0))
        refused = judged[(self.why[judged] != "") & ~np.isin([self.rows[i].verdict for i in judged], [Verdict.APPROVE])]
        reasons = regression(1.0, weight=None, tolerance=5e-4).fit(seen[refused], self.why[refused])
        put(list(reasons.classes_), reasons)
        return replace(
            model,
            weights=weights[:width].astype(np.float32),
            dense=(weights[width:] * self.scale[:, None]).astype(np.float32),
            bias=bias.astype(np.float32),
        )

    def telling(self, seen: csr_matrix, answers: Flags) -> Numbers:
        """How much each feature tells by itself (after Wang and Manning, 2012): 0.5 to 1.75."""
        present = seen.astype(bool).astype(float)
        ones, others = (np.asarray(present[answers == side].sum(axis=0)).ravel() + 1 for side in (True, False))
        ratio = np.abs(np.log(ones / ones.sum()) - np.log(others / others.sum()))
        telling: Numbers = 0.5 + 0.5 * np.minimum(ratio, MOST_TELLING)
        telling[-self.measures.shape[1] :] = 1.0
        return telling

    def seen(self, model: LinearModel) -> csr_matrix:
        """All that the model sees of the rows: features, then measures."""
        return hstack([matrix(model, self.counts), csr_matrix(self.measures)]).tocsr()

    def scores(self, model: LinearModel, seen: csr_matrix) -> Numbers:
        """Rows × outputs."""
        weights = np.vstack([model.weights, model.dense / self.scale[:, None]])
        return np.asarray(seen @ weights + model.bias, dtype=np.float64)

    def held_out(self) -> Numbers:
        """Scores of each row by a model that saw nothing of its project."""
        model = self.untrained()
        seen = self.seen(model)
        scores = np.zeros((len(self.rows), len(OUTPUTS)))
        for training, rest in folds(self.projects):
            scores[rest] = self.scores(self.fit(model, seen, training), seen[rest])
        return scores

    def train(self) -> LinearModel:
        """The final model; its features are first cut down to the weightiest."""
        everything = np.arange(len(self.rows))
        model = self.untrained()
        first = self.fit(model, self.seen(model), everything)
        strength = np.abs(first.weights).max(axis=1) * np.sqrt(first.idf)
        names = list(first.index)
        keep = {names[row] for row in np.argsort(-strength, kind="stable")[:MOST_FEATURES]}
        model = self.untrained(keep)
        return self.fit(model, self.seen(model), everything)

    def _common(self) -> frozenset[str]:
        """The words of most projects, which the skeleton keeps."""
        projects: defaultdict[str, set[str]] = defaultdict(set)
        for row, wording in zip(self.rows, self._wordings, strict=True):
            for token in features.tokens(wording):
                projects[token.casefold()].add(row.project)
        ranked = sorted(projects, key=lambda word: (-len(projects[word]), word))[:COMMON_WORDS]
        return frozenset(word for word in ranked if len(projects[word]) >= LEAST_PROJECTS)

    def _groups(self) -> npt.NDArray[np.uint8]:
        """Word pieces of like meaning in one group each."""
        units = self._pieces.vectors / self._pieces.lengths[:, None]
        means = MiniBatchKMeans(GROUPS, random_state=0, n_init=1, batch_size=4096, max_iter=30).fit(units)
        labels: npt.NDArray[np.uint8] = means.labels_.astype(np.uint8)
        return labels


# --- what the scores come to --------------------------------------------------------------------------------------


class Weighed:
    """The scores of all texts, by models that saw nothing of their projects, with the measures of form."""

    def __init__(self, texts: Texts, told: Numbers) -> None:
        self.measures = np.hstack([told, texts.form]).astype(np.float32)
        self.unfit = (texts.slop & texts.asked & texts.plain) | texts.rewritten
        self.judged = self.unfit | texts.good | texts.benign
        self.memories = texts.lasting & texts.asked
        self.answers = np.array([CATEGORIES.index(kind) if kind in CATEGORIES else -1 for kind in texts.kinds])
        self.projects = texts.projects

    def fit(self, training: npt.NDArray[np.int64]) -> tuple[GradientBoostingClassifier, GradientBoostingClassifier]:
        """Learn from some of the rows whether a text cannot stand, and which kind of memory it is."""
        judged, memories = training[self.judged[training]], training[self.memories[training]]
        unfit = boosted(UNFIT_TREES, leaves=16, rate=0.05).fit(self.measures[judged], self.unfit[judged])
        kinds = boosted(KIND_TREES, leaves=8, rate=0.06).fit(self.measures[memories], self.answers[memories])
        return unfit, kinds

    def held_out(self) -> tuple[Numbers, Numbers]:
        """For each row the scores of being unfit, and of each category, by models that saw nothing of its project."""
        unfit, kinds = np.zeros(len(self.measures)), np.zeros((len(self.measures), len(CATEGORIES)))
        for training, rest in folds(self.projects):
            first, second = self.fit(training)
            unfit[rest] = first.decision_function(self.measures[rest])
            kinds[rest] = second.decision_function(self.measures[rest])
        return unfit, kinds

    def train(self) -> tuple[Trees, Trees]:
        """The final trees."""
        unfit, kinds = self.fit(np.arange(len(self.measures)))
        # Fewer rows than all, since each is walked by itself.
        return trees_of(unfit, self.measures[::50]), trees_of(kinds, self.measures[::50])


def below_or_at(limits: Numbers) -> linear.Floats:
    """The limits in single precision, none above what it was: no measure may change sides."""
    rounded = limits.astype(np.float32)
    return np.where(rounded > limits, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(np.float32)


def trees_of(fit: GradientBoostingClassifier, some: npt.NDArray[Any]) -> Trees:
    """The trees as they are shipped, once they say of some rows of measures what those that were trained say."""
    answer, root, nodes = [], [], 0
    parts: defaultdict[str, list[npt.NDArray[np.float64]]] = defaultdict(list)
    for stage in fit.estimators_:
        for place, regressor in enumerate(stage):
            tree = regressor.tree_
            own = np.arange(tree.node_count)
            leaf = tree.children_left < 0
            answer.append(place)
            root.append(nodes)
            parts["measure"].append(np.where(leaf, 0, tree.feature))
            parts["limit"].append(tree.threshold)
            parts["below"].append(nodes + np.where(leaf, own, tree.children_left))
            parts["above"].append(nodes + np.where(leaf, own, tree.children_right))
            parts["value"].append(np.where(leaf, fit.learning_rate * tree.value[:, 0, 0], 0.0))
            nodes += tree.node_count
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    trees = Trees(
        bias=np.zeros(max(answer) + 1, dtype=np.float32),
        answer=np.array(answer, dtype=np.int32),
        root=np.array(root, dtype=np.int32),
        measure=joined["measure"].astype(np.int32),
        limit=below_or_at(joined["limit"]),
        below=joined["below"].astype(np.int32),
        above=joined["above"].astype(np.int32),
        value=joined["value"].astype(np.float32),
    )
    wanted = fit.decision_function(some).reshape(len(some), -1)
    beside = wanted - np.array([trees.scores(row) for row in some])
    if np.ptp(beside, axis=0).max() > SAME_SCORE:
        raise AssertionError("The trees that are shipped don't say what those that were trained say.")
    return replace(trees, bias=np.median(beside, axis=0).astype(np.float32))


def boosted(number: int, *, leaves: int, rate: float) -> GradientBoostingClassifier:
    """Small boosted trees, each of which sees a part of the texts and asks for a part of the measures."""
    return GradientBoostingClassifier(
        n_estimators=number,
        max_leaf_nodes=leaves,
        max_depth=None,
        learning_rate=rate,
        subsample=0.7,
        max_features=8,
        min_samples_leaf=30,
        random_state=0,
    )


# --- attacks, clause by clause ------------------------------------------------------------------------------------


class Clauses:
    """The clauses of all texts; of an attacking text it is not known which of them attacks."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.counts: list[Counter[str]] = []
        owners: list[int] = []
        for owner, row in enumerate(rows):
            text = row.text[: offline.LONGEST_TEXT]
            for count in clauses.of(text, disguises.readings(text)):
                self.counts.append(count)
                owners.append(owner)
        self.owner = np.array(owners)
        self.attack = np.array([row.attack for row in rows])
        self.projects = [row.project for row in rows]
        self.model = vocabulary(self.counts, clauses.BLOCKS, ("attack",), least=LEAST_CLAUSES)
        self.seen = matrix(self.model, self.counts)

    def pooled(self, scores: Numbers) -> Numbers:
        """The score of each text: that of its most hostile clause."""
        best = np.full(len(self.rows), -np.inf)
        np.maximum.at(best, self.owner, scores)
        return best

    def fit(self, training: npt.NDArray[np.int64]) -> LogisticRegression:
        """Learn from some texts: guess which clauses attack, fit, guess again (multiple-instance learning)."""
        among = np.isin(self.owner, training)
        hostile = among & self.attack[self.owner]
        harmless = among & ~hostile
        last = np.append(self.owner[1:] != self.owner[:-1], True)
        hides = np.array(["hidden" in row.kind for row in self.rows])[self.owner]
        guess = hostile & (last | ~hides)
        weight = np.where([row.suite is Suite.BENIGN for row in self.rows], BENIGN_WEIGHT, 1.0)[self.owner]
        for _ in range(ROUNDS):
            used = harmless | guess
            fit = regression(10.0, weight={False: 1.0, True: ATTACK_WEIGHT})
            fit.fit(self.seen[used], guess[used], sample_weight=weight[used])
            scores = fit.decision_function(self.seen)
            strongest = self.pooled(scores)[self.owner]
            again = hostile & ((scores == strongest) | (scores > np.maximum(0.0, strongest - NEAR_STRONGEST)))
            if bool((again == guess).all()):
                break
            guess = again
        return fit

    def held_out(self) -> Numbers:
        """Scores of each text by a model that saw nothing of its project (for attacks: of its idea)."""
        scores = np.zeros(len(self.rows))
        for training, rest in folds(self.projects):
            scores[rest] = self.pooled(self.fit(training).decision_function(self.seen))[rest]
        return scores

    def train(self) -> LinearModel:
        """The final model."""
        fit = self.fit(np.arange(len(self.rows)))
        bias = np.asarray(fit.intercept_, dtype=np.float32)
        return replace(self.model, weights=fit.coef_.T.astype(np.float32), bias=bias)


# --- two texts ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A stored text and an offered one, whether they say the same, and where they come from."""

    stored: Side
    offered: Side
    same: bool
    project: str
    mined: bool


def pairs_of(cases: Sequence[Labelled]) -> list[Pair]:
    """The labelled pairs, then each candidate with the nearest others of its project (which say something else)."""
    sides: dict[str, Side] = {}

    def side(text: str) -> Side:
        return sides.setdefault(text, Side(text))

    found = [
        Pair(
            side(entry.text),
            side(case.text),
            case.facts.duplicate_of == entry.label,
            case.project,
            mined=case.suite is Suite.CANDIDATES
            and entry.label not in (case.facts.duplicate_of, case.facts.supersedes),
        )
        for case in cases
        for entry in case.entries
        if case.suite is Suite.DUPLICATES or case.verdict in (Verdict.DUPLICATE, Verdict.UPDATE)
        if entry.category is not Category.STATE
    ]
    by_project: defaultdict[str, list[Side]] = defaultdict(list)
    for case in cases:
        if case.suite is Suite.CANDIDATES and case.verdict is not Verdict.DUPLICATE and not gate.check(case.text):
            by_project[case.project].append(side(case.text))
    for project, texts in by_project.items():
        meanings = np.array([text.meaning for text in texts])
        near = meanings @ meanings.T
        np.fill_diagonal(near, -1)
        for place, text in enumerate(texts):
            nearest = np.argsort(-near[place], kind="stable")[:MINED_NEIGHBOURS].tolist()
            found += [Pair(texts[other], text, False, project, mined=True) for other in nearest]
    return found


class Pairs:
    """Pairs with their measures."""

    def __init__(self, found: Sequence[Pair]) -> None:
        compared = [Comparison(pair.stored, pair.offered) for pair in found]
        turned = [Comparison(pair.offered, pair.stored) for pair in found if not pair.mined]
        self.measures = np.array([measures(each) for each in compared])
        self.turned = np.zeros_like(self.measures)
        self.mined = np.array([pair.mined for pair in found])
        self.turned[~self.mined] = [measures(each) for each in turned]
        close = np.array([each.is_close for each in compared])
        self.equal = close & np.array([each.equal for each in compared])
        self.differ = ~self.equal & np.array([not c.is_close or c.differ or not c.is_akin for c in compared])
        near = np.array([each.is_near for each in compared])
        self.certain = self.equal | (near & ~self.differ)
        self.same = np.array([pair.same for pair in found])
        self.projects = [pair.project for pair in found]

    def fit(self, training: npt.NDArray[np.int64]) -> GradientBoostingClassifier:
        """Learn, from the pairs that the exact comparison leaves open, whether they say the same.

        Labelled pairs are learned from both sides, so that nothing hangs on who came first by chance.
        """
        training = training[~self.differ[training] & ~self.certain[training]]
        labelled = training[~self.mined[training]]
        seen = np.vstack([self.measures[training], self.turned[labelled]])
        same = np.concatenate([self.same[training], self.same[labelled]])
        weight = np.concatenate(
            [np.where(self.mined[training], MINED_WEIGHT, 1.0), np.full(len(labelled), TURNED_WEIGHT)]
        )
        return boosted(PAIR_TREES, leaves=12, rate=0.05).fit(seen, same, sample_weight=weight)

    def held_out(self) -> Numbers:
        """Scores of each pair by a model that saw nothing of its project; beyond all others where words decide."""
        scores = np.zeros(len(self.same))
        for training, rest in folds(self.projects):
            scores[rest] = self.fit(training).decision_function(self.measures[rest])
        return np.where(self.certain, SURE, np.where(self.differ, -SURE, scores))

    def train(self) -> Trees:
        """The final trees."""
        return trees_of(self.fit(np.arange(len(self.same))), self.measures[::50])


def restatements(cases: Sequence[Labelled], trees: Trees) -> tuple[Numbers, Flags, Flags]:
    """For each text the score of its likeliest quote, whether it restates one, and whether it was written for that."""
    sides: dict[str, Side] = {}
    scores, answers, hard = [], [], []
    for case in cases:
        if not case.documents or case.suite not in (Suite.CANDIDATES, Suite.DOCUMENTS):
            continue
        offered = Side(case.text)
        quotes = {quote for passage in case.documents for quote in pairs.windows(passage.text)}
        best = -SURE
        for quote in sorted(quotes):
            stored = sides.setdefault(quote, Side(quote))
            compared = Comparison(stored, offered)
            if not compared.is_close:
                continue
            if compared.equal:
                best = SURE
            elif compared.differ or compared.adds_clause or not compared.is_akin:
                continue
            elif compared.is_near:
                best = SURE
            else:
                best = max(best, *trees.scores(measures(compared)))
        restates = case.facts.restates is not None or Reason.RESTATES_DOCUMENT in case.reasons
        scores.append(best)
        answers.append(restates)
        hard.append(case.suite is Suite.DOCUMENTS)
    return np.array(scores), np.array(answers), np.array(hard)


# --- calibration --------------------------------------------------------------------------------------------------


def curve(scores: Numbers, answers: Flags) -> tuple[float, float]:
    """Slope and offset of the logistic curve from scores to probabilities."""
    fit = LogisticRegression(C=1e3).fit(scores.reshape(-1, 1), answers)
    return float(fit.coef_[0, 0]), float(fit.intercept_[0])


def ceiling(scores: Iterable[float], share: float) -> float:
    """The least threshold that at most this share of the scores reaches."""
    ranked = sorted(scores, reverse=True)
    return ranked[int(share * len(ranked))] + 1e-6


def texts_share(clauses_say: Numbers, text_says: Numbers, texts: Texts) -> float:
    """How much the whole text's score of being an attack weighs beside that of its worst clause."""
    sides = texts.attack | texts.benign | texts.good
    fit = LogisticRegression().fit(np.column_stack([clauses_say, text_says])[sides], texts.attack[sides])
    return float(fit.coef_[0, 1] / fit.coef_[0, 0])


def certainty(scores: Numbers, right: Flags, share: float, probability: Callable[[float], float]) -> Certainty | None:
    """The least probability from which so large a share of the decisions is right, in cases enough to say so."""
    order = np.argsort(-scores, kind="stable")
    good = np.cumsum(right[order])
    number = np.arange(1, len(order) + 1)
    enough = (number >= CERTAIN_CASES) & (good >= share * number)
    if not enough.any():
        return None
    last = int(np.flatnonzero(enough)[-1])
    return Certainty(
        at=min(1.0, ceil(1e4 * probability(float(scores[order[last]]))) / 1e4), right=int(good[last]), of=last + 1
    )


def cascade_of(
    texts: Texts, told: Numbers, unfit: Numbers, attacks: Numbers, likeness: Numbers, same: Flags, models: Models
) -> dict[str, Certainty | None]:
    """From where on each kind of decision is right nearly always, on held-out scores.

    What the gate refuses, or what may be an attack, is asked of nobody here. An attack that gets so far is a text that
    should not have been approved. What may be a STATE, or wants a suggestion, is never surely slop.
    """
    rows = texts.rows
    harmless = np.array([models.probability("attack", score) < models.thresholds["suspicious"] for score in attacks])
    asked = np.array([row.suite is not Suite.DUPLICATES for row in rows]) & ~texts.gated & harmless
    standing = np.array([linear.logistic(score) for score in told[:, STANDING]]) >= models.thresholds["standing"]
    verdicts = np.array([row.verdict for row in rows])
    passing = asked & ~standing & ~may_be_rewritten(told, models)
    refused = np.isin(verdicts, [Verdict.REJECT, Verdict.REWRITE])[passing]
    return {
        "slop": certainty(unfit[passing], refused, CERTAINLY_RIGHT, lambda score: models.probability("unfit", score)),
        "duplicate": certainty(likeness, same, CERTAINLY_RIGHT, lambda score: models.probability("same", score)),
    }


def may_be_rewritten(told: Numbers, models: Models) -> Flags:
    """For each text whether a fault of a memory is likelier than slop, as the reviewer sees it."""
    slop = np.array([models.probability("slop", score) for score in told[:, 0]])
    likely = np.array([[linear.logistic(row[OUTPUTS.index(fault)]) for fault in FAULTS] for row in told.tolist()])
    return np.asarray(likely.max(axis=1) > slop)


def train(cases: Sequence[Labelled]) -> tuple[Models, dict[str, Certainty | None]]:
    """All models, calibrated on held-out projects, and from where on their word is as good as certain."""
    rows = rows_of(cases)
    texts, found, compared = Texts(rows), Clauses(rows), Pairs(pairs_of(cases))
    told, same = texts.held_out(), compared.held_out()
    weighed = Weighed(texts, told)
    unfit, kinds = weighed.held_out()
    worst = found.held_out()
    share = texts_share(worst, told[:, ATTACK], texts)
    attacks = worst + share * told[:, ATTACK]
    compared_trees = compared.train()
    restated, restates, hard = restatements(cases, compared_trees)
    not_state = texts.good & (texts.kinds != Category.STATE.value)
    other = ~compared.same & ~compared.mined
    raw = {
        "unfit": max(
            ceiling(np.where(texts.gated, np.inf, unfit)[texts.good], GOOD_REFUSED),
            ceiling(unfit[texts.benign], BENIGN_REFUSED),
        ),
        "attack": max(ceiling(attacks[texts.benign], BENIGN_REJECTED), ceiling(attacks[texts.good], GOOD_REJECTED)),
        "suspicious": max(ceiling(attacks[texts.benign], BENIGN_HELD), ceiling(attacks[texts.good], GOOD_HELD)),
        "duplicate": max(ceiling(same[other], FALSE_DUPLICATES), ceiling(same[compared.mined], FALSE_MINED)),
        "restatement": max(
            ceiling(restated[~restates], FALSE_RESTATEMENTS),
            ceiling(restated[~restates & hard], FALSE_HARD_RESTATEMENTS),
        ),
    }
    open_ = np.abs(same) < SURE
    curves = {
        "unfit": curve(unfit[weighed.judged], weighed.unfit[weighed.judged]),
        "slop": curve(told[texts.judged, 0], texts.slop[texts.judged]),
        "attack": curve(attacks, found.attack),
        "same": curve(same[open_], compared.same[open_]),
    }
    models = Models(texts.known, texts.train(), *weighed.train(), found.train(), compared_trees, share, curves, {})
    belongs = {
        "unfit": "unfit",
        "attack": "attack",
        "suspicious": "attack",
        "duplicate": "same",
        "restatement": "same",
    }
    thresholds = {name: models.probability(belongs[name], score) for name, score in raw.items()}
    likely = [linear.softmax(dict(zip(CATEGORIES, scores, strict=True))) for scores in kinds.tolist()]
    thresholds["state"] = ceiling((likely[i][Category.STATE.value] for i in np.flatnonzero(not_state)), FALSE_STATES)
    states = texts.state & texts.good & ~texts.gated
    # No good STATE of the data may be surely slop.
    thresholds["standing"] = linear.logistic(float(told[states, STANDING].min()))
    _report(texts, unfit, kinds, raw, attacks, found, same, compared, restated, restates)
    models = replace(models, thresholds=thresholds)
    return models, cascade_of(texts, told, unfit, attacks, same, compared.same, models)


def _report(
    texts: Texts,
    unfit: Numbers,
    kinds: Numbers,
    raw: Mapping[str, float],
    attacks: Numbers,
    found: Clauses,
    likeness: Numbers,
    compared: Pairs,
    restated: Numbers,
    restates: Flags,
) -> None:
    """Print what the held-out scores reach at the thresholds."""
    refused = texts.gated | (unfit >= raw["unfit"])
    memories = texts.lasting & texts.asked
    right = np.array(CATEGORIES)[kinds.argmax(axis=1)] == texts.kinds
    hostile = np.array([row.suite is Suite.ATTACKS for row in found.rows])
    on_reviewer = hostile & np.array([row.kind.partition("/")[0] in ON_REVIEWER for row in found.rows])
    slop = texts.slop & texts.asked & texts.plain
    rejected, held = attacks >= raw["attack"], attacks >= raw["suspicious"]
    other = ~compared.same & ~compared.mined
    same = likeness >= raw["duplicate"]
    for name, share in {
        "slop admitted": (~refused[slop]).mean(),
        "good refused": refused[texts.good].mean(),
        "rewrites admitted": (~refused[texts.rewritten]).mean(),
        **{f"{fault} found": refused[rows].mean() for fault, rows in texts.faulty.items()},
        "category right": right[memories].mean(),
        "attacks rejected": (rejected | texts.gated)[hostile].mean(),
        "attacks on the reviewer not approved": (held | refused)[on_reviewer].mean(),
        "attacks not approved": (held | refused)[hostile].mean(),
        "benign refused": (refused | rejected)[texts.benign].mean(),
        "benign rejected": rejected[texts.benign].mean(),
        "benign held": (held & ~rejected)[texts.benign].mean(),
        "good held": (held & ~rejected)[texts.good].mean(),
        "duplicates found": same[compared.same].mean(),
        "false duplicates, look-alikes": same[other].mean(),
        "false duplicates, mined": same[compared.mined].mean(),
        "restatements found": (restated >= raw["restatement"])[restates].mean(),
        "false restatements": (restated >= raw["restatement"])[~restates].mean(),
    }.items():
        print(f"{name:38} {share:.1%}")


# --- designs ------------------------------------------------------------------------------------------------------


def compare(cases: Sequence[Labelled]) -> None:
    """Print, for several designs, the slop let in at 3% and 5% of good refused, and the categories right."""
    texts = Texts(rows_of(cases))
    model = texts.untrained()
    seen = texts.seen(model)
    blocks = np.array([name[0] for name in model.index])
    size = features.LAYOUT_SIZE

    def of(names: str) -> csr_matrix:
        return seen[:, np.flatnonzero(np.isin(blocks, list(names)))]

    form = seen[:, len(blocks) : len(blocks) + size]
    designs: dict[str, Callable[[], csr_matrix]] = {
        "form alone": lambda: form,
        "meaning of the words alone": lambda: seen[:, len(blocks) + size :],
        "words and pairs": lambda: of("wp"),
        "runs of characters": lambda: of("c"),
        "skeleton and form": lambda: hstack([of("k"), form]).tocsr(),
        "all wording and form": lambda: hstack([of("cwpfls"), form]).tocsr(),
        "the same with the skeleton": lambda: hstack([of("cwpflsk"), form]).tocsr(),
        "the same with groups of pieces": lambda: hstack([of("cwpflskg"), form]).tocsr(),
        "the same with meaning": lambda: hstack([of("cwpflskg"), seen[:, len(blocks) :]]).tocsr(),
        "the same with moods": lambda: seen,
    }
    print("| design | slop admitted, 3% good refused | 5% | category right |\n|---|---|---|---|")
    for name, part in designs.items():
        admitted3, admitted5, right = _cross_validated(part(), texts)
        print(f"| {name} | {admitted3:.1%} | {admitted5:.1%} | {right:.1%} |", flush=True)


def _cross_validated(seen: csr_matrix, texts: Texts) -> tuple[float, float, float]:
    scores = np.zeros(len(texts.rows))
    found = np.empty(len(texts.rows), dtype=object)
    for training, rest in folds(texts.projects):
        judged = training[texts.judged[training]]
        fit = regression(3.0).fit(seen[judged], texts.slop[judged], sample_weight=texts.weight[judged])
        scores[rest] = fit.decision_function(seen[rest])
        lasting = training[texts.lasting[training]]
        found[rest] = regression(1.0, tolerance=5e-4).fit(seen[lasting], texts.kinds[lasting]).predict(seen[rest])
    refused = np.where(texts.gated, np.inf, scores)
    slop, memories = texts.slop & texts.asked & texts.plain, texts.lasting & texts.asked
    admitted = [float((refused[slop] < ceiling(refused[texts.good], share)).mean()) for share in (0.03, 0.05)]
    return admitted[0], admitted[1], float((found[memories] == texts.kinds[memories]).mean())


def main() -> None:
    """Train and write the models, or compare designs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", action="store_true", help="cross-validate several designs instead of training")
    parser.add_argument("--out", type=Path, default=linear.FILE, help="where the models go")
    arguments = parser.parse_args()
    cases = [case for case in load(DATA) if case.split is not Split.TEST]
    if arguments.compare:
        compare(cases)
        return
    models, certain = train(cases)
    linear.save(models, arguments.out)
    weights = sha256(arguments.out.read_bytes()).hexdigest()
    measured = cascade.Cascade(weights=weights, **certain)
    arguments.out.with_name(cascade.FILE.name).write_text(measured.model_dump_json(indent=2) + "\n", encoding="utf-8")
    print(measured)
    print(f"{len(models.text.index)} + {len(models.clause.index)} features, {arguments.out.stat().st_size // 1024} KiB")
    print({name: round(value, 4) for name, value in models.thresholds.items()})


if __name__ == "__main__":
    main()
