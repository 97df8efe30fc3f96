"""The exact search over vectors, against the plainest way to do it."""

import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.db import Vector
from app.embeddings import Matrix

DIMENSION = 8
names = st.sampled_from([f"e{number}" for number in range(12)])
steps = st.lists(st.tuples(st.sampled_from(["put", "put", "drop"]), names, st.integers(0, 2**32 - 1)), max_size=60)


def unit(seed: int, dimension: int = DIMENSION) -> Vector:
    """A unit vector; equal for equal seeds."""
    vector = np.random.default_rng(seed).normal(size=dimension).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def plainly_nearest(vectors: dict[str, Vector], vector: Vector, count: int) -> list[float]:
    """The best similarities, computed one by one."""
    return sorted((float(other @ vector) for other in vectors.values()), reverse=True)[:count]


@settings(max_examples=60)
@given(steps, st.integers(0, 2**32 - 1), st.integers(0, 15))
def test_it_finds_what_comparing_one_by_one_finds(steps: list[tuple[str, str, int]], seed: int, count: int) -> None:
    matrix, kept = Matrix(DIMENSION), dict[str, Vector]()
    for step, name, vector_seed in steps:
        if step == "put":
            kept[name] = unit(vector_seed)
            matrix.put(name, kept[name])
        else:
            kept.pop(name, None)
            matrix.drop(name)
    vector = unit(seed)
    found = matrix.nearest(vector, count)
    assert len(matrix) == len(kept)
    assert np.allclose([score for _, score in found], plainly_nearest(kept, vector, count), atol=1e-6)
    for name, score in found:
        assert abs(float(kept[name] @ vector) - score) < 1e-6
        assert abs(matrix.similarity(name, vector) - score) < 1e-6


def test_entries_beyond_the_first_block_are_found_as_well() -> None:
    matrix = Matrix(DIMENSION)
    for seed in range(1_000):
        matrix.put(f"e{seed}", unit(seed))
    for seed in (0, 63, 64, 65, 511, 999):
        ((name, score),) = matrix.nearest(unit(seed), 1)
        assert name == f"e{seed}"
        assert score > 0.999


def test_many_deletions_neither_hide_the_rest_nor_take_room() -> None:
    matrix = Matrix(DIMENSION)
    for seed in range(500):
        matrix.put(f"e{seed}", unit(seed))
    for seed in range(495):
        matrix.drop(f"e{seed}")
    assert {name for name, _ in matrix.nearest(unit(7), 8)} == {f"e{seed}" for seed in range(495, 500)}
    for seed in range(495):
        matrix.put(f"n{seed}", unit(seed))
    assert matrix.nearest(unit(494), 1)[0][0] == "n494"


@settings(max_examples=30)
@given(st.integers(0, 1_200), st.integers(0, 20), st.integers(0, 5))
def test_several_find_what_each_finds_alone(size: int, count: int, number: int) -> None:
    matrix = Matrix(DIMENSION)
    for seed in range(size):
        matrix.put(f"e{seed}", unit(seed))
    asked = np.array([unit(10_000 + seed) for seed in range(number)], dtype=np.float32).reshape(number, DIMENSION)
    assert matrix.nearest_of_each(asked, count) == [matrix.nearest(vector, count) for vector in asked]


def test_unknown_names_are_no_error() -> None:
    matrix = Matrix(DIMENSION)
    matrix.drop("nobody")
    assert matrix.similarity("nobody", unit(1)) == 0
    assert matrix.nearest(unit(1), 8) == []


def test_searching_while_another_thread_writes_never_fails() -> None:
    matrix, stop, failures = Matrix(DIMENSION), threading.Event(), list[Exception]()
    vectors = [unit(seed) for seed in range(64)]

    def search() -> None:
        while not stop.is_set():
            try:
                found = matrix.nearest(vectors[0], 8)
                assert len({name for name, _ in found}) == len(found)
            except (AssertionError, ValueError, IndexError) as exc:
                failures.append(exc)
                return

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(6_000):
        matrix.put(f"e{number}", vectors[number % 64])
        if number % 3:
            matrix.drop(f"e{number - 1}")
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
