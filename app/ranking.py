"""The highest of many scores."""

import numpy as np
import numpy.typing as npt

PORTION = 64


def best(scores: npt.NDArray[np.floating], count: int) -> list[int]:
    """Places of the highest scores, best first; among equal ones the last.

    What is below the best of ``count`` portions cannot be among them, so that few scores have to be sorted.
    """
    some: npt.NDArray[np.intp] = np.arange(len(scores))
    whole = len(scores) // PORTION
    if 0 < count < whole:
        highest = scores[: whole * PORTION].reshape(whole, PORTION).max(axis=1)
        some = np.flatnonzero(scores >= np.partition(highest, whole - count)[whole - count])
    some = some[::-1]
    ordered: list[int] = some[np.argsort(-scores[some], kind="stable")[: max(count, 0)]].tolist()
    return ordered
