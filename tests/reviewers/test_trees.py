"""Boosted trees: what walking all at once adds up is what walking one after another does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reviewers.trees import Trees

MEASURES = 3

leaves = st.floats(-2, 2, width=32)
tests = st.tuples(st.integers(0, MEASURES - 1), st.floats(-1, 1, width=32))
shapes = st.recursive(leaves, lambda inner: st.tuples(tests, inner, inner), max_leaves=8)
forests = st.lists(st.tuples(st.integers(0, 1), shapes), min_size=1, max_size=6)
measured = st.lists(st.floats(-1, 1, width=32), min_size=MEASURES, max_size=MEASURES)

Shape = float | tuple[tuple[int, float], "Shape", "Shape"]


def grown(forest: list[tuple[int, Shape]]) -> Trees:
    """Two answers' trees of these shapes."""
    nodes: list[list[float]] = []

    def grow(shape: Shape) -> int:
        place = len(nodes)
        nodes.append([0, 0.0, place, place, 0.0])
        if isinstance(shape, tuple):
            (measure, limit), below, above = shape
            nodes[place] = [measure, limit, grow(below), grow(above), 0.0]
        else:
            nodes[place][4] = shape
        return place

    root = [grow(shape) for _, shape in forest]
    columns = list(zip(*nodes, strict=True))
    return Trees(
        bias=np.array([0.5, -0.5], dtype=np.float32),
        answer=np.array([answer for answer, _ in forest], dtype=np.int32),
        root=np.array(root, dtype=np.int32),
        measure=np.array(columns[0], dtype=np.int32),
        limit=np.array(columns[1], dtype=np.float32),
        below=np.array(columns[2], dtype=np.int32),
        above=np.array(columns[3], dtype=np.int32),
        value=np.array(columns[4], dtype=np.float32),
    )


def leaf_of(shape: Shape, measures: list[float]) -> float:
    """What one tree adds, by walking it alone."""
    while isinstance(shape, tuple):
        (measure, limit), below, above = shape
        shape = below if measures[measure] <= limit else above
    return shape


@given(forests, measured)
def test_all_at_once_is_one_after_another(forest: list[tuple[int, Shape]], measures: list[float]) -> None:
    wanted = [0.5, -0.5]
    for answer, shape in forest:
        wanted[answer] += leaf_of(shape, measures)
    assert grown(forest).scores(np.array(measures, dtype=np.float32)) == pytest.approx(wanted, abs=1e-5)


def test_what_is_stored_is_read_again() -> None:
    trees = grown([(0, ((1, 0.25), 1.0, -1.0)), (1, 0.75)])
    again = Trees.read("unfit", trees.stored("unfit"))
    assert again.scores(np.array([0, 0.5, 0], dtype=np.float32)) == [-0.5, 0.25]


def test_a_missing_array_is_an_error() -> None:
    stored = grown([(0, 1.0)]).stored("unfit")
    del stored["unfit_root"]
    with pytest.raises(KeyError):
        Trees.read("unfit", stored)
