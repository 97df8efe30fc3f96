"""The highest of many scores, against sorting them all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ranking import PORTION, best


@settings(max_examples=100)
@given(st.integers(0, 20 * PORTION), st.integers(1, 50), st.integers(0, 25), st.integers(0, 2**32 - 1))
def test_it_finds_what_sorting_all_finds(size: int, different: int, count: int, seed: int) -> None:
    scores = np.random.default_rng(seed).integers(-different, different, size).astype(np.float32)
    assert best(scores, count) == sorted(range(size), key=lambda place: (-scores[place], -place))[:count]


@pytest.mark.parametrize("place", [0, PORTION - 1, PORTION, 8 * PORTION, 8 * PORTION + 1])
def test_one_that_stands_out_is_found_wherever_it_stands(place: int) -> None:
    scores = np.zeros(8 * PORTION + 2)
    scores[place] = 1
    assert best(scores, 1) == [place]
