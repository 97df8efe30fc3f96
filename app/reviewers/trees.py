"""Boosted trees over what the linear models say of a text: they weigh one answer against another.

Trained by `evals/train.py`, described in evals/MODEL_CARD.md. All trees are walked at once, with numpy alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Trees:
    """Regression trees whose leaves are added up, for one or several answers.

    Attributes:
        bias: of each answer.
        answer: of each tree, the place of the answer that its leaf is added to.
        root: of each tree, the place of its first node.
        measure: of each node, the place of the measure that it asks for.
        limit: of each node; measures up to it go on below, others above.
        below, above: of each node, the place of the next one; its own for a leaf.
        value: of each node, what it adds if it is a leaf.
    """

    bias: Floats
    answer: Places
    root: Places
    measure: Places
    limit: Floats
    below: Places
    above: Places
    value: Floats

    def scores(self, measures: Floats) -> list[float]:
        """The score of each answer: log-odds of a single one, what a softmax takes of several."""
        places = self.root
        while True:
            onward = measures[self.measure[places]] <= self.limit[places]
            following = np.where(onward, self.below[places], self.above[places])
            if np.array_equal(following, places):
                break
            places = following
        found: list[float] = (self.bias + np.bincount(self.answer, self.value[places], len(self.bias))).tolist()
        return found

    def stored(self, name: str) -> dict[str, npt.NDArray[Any]]:
        """Its arrays under names for a file."""
        return {f"{name}_{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def read(cls, name: str, stored: Mapping[str, Any]) -> "Trees":
        """What `stored` gave.

        Raises:
            KeyError: an array is missing.
        """
        return cls(**{field.name: stored[f"{name}_{field.name}"] for field in fields(cls)})
