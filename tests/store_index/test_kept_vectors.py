"""Vectors that are kept for texts that come again."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.db import Vector
from app.embeddings import KeptVectors


class CountingEmbedder:
    """Vectors that tell texts apart; remembers what it was asked."""

    model, dimension = "counting", 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vector:
        """One for each text."""
        self.asked += texts
        return np.array([[len(text), ord(text[0])] for text in texts], dtype=np.float32).reshape(len(texts), 2)


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "cc", "dd", "eee"]), max_size=6), max_size=8), st.integers(1, 6))
def test_the_vectors_are_those_of_the_embedder(questions: list[list[str]], most: int) -> None:
    plain, kept = CountingEmbedder(), KeptVectors(CountingEmbedder(), most=most)
    for texts in questions:
        assert np.array_equal(kept.embed(texts), plain.embed(texts))


def test_a_text_is_embedded_once_until_so_many_others_came() -> None:
    embedder = CountingEmbedder()
    kept = KeptVectors(embedder, most=2)
    kept.embed(["a", "b", "a"])
    kept.embed(["b", "a"])
    assert embedder.asked == ["a", "b"]
    kept.embed(["c"])
    kept.embed(["a"])
    assert embedder.asked == ["a", "b", "c"]
    kept.embed(["b"])
    assert embedder.asked == ["a", "b", "c", "b"]
