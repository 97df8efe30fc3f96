"""Word pieces and their vectors, from the embedding model that comes with the service: what words mean, roughly."""

from collections.abc import Sequence
from functools import cache
from typing import cast

import numpy as np
import numpy.typing as npt

from app.embeddings import word_llama

DIMENSION = 256
MOST_PIECES = 384

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


class Pieces:
    """Cuts texts into word pieces and knows a vector for each; the longer the vector, the more its piece tells."""

    def __init__(self) -> None:
        model = word_llama()
        self._tokenizer = model.tokenizer
        self.vectors = cast("Floats", model.embedding)
        self.lengths: Floats = np.maximum(np.linalg.norm(self.vectors, axis=1), 1e-6)

    def cut(self, text: str) -> Ids:
        """Ids of a text's first pieces, in order."""
        ids: Sequence[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return np.array(ids[:MOST_PIECES], dtype=np.int64)

    def mean(self, ids: Ids) -> Floats:
        """The unit vector of some pieces together; zero for none."""
        if len(ids) == 0:
            return np.zeros(DIMENSION, dtype=np.float32)
        total: Floats = self.vectors[ids].sum(axis=0)
        return cast("Floats", total / max(float(np.linalg.norm(total)), 1e-6))


@cache
def load() -> Pieces:
    """The pieces, read once."""
    return Pieces()
