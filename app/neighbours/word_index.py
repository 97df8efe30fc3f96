"""The words of a project's entries, kept in memory beside their vectors and ranked exactly."""

import threading
from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from app.neighbours.search import LENGTH_WEIGHT, SATURATION

# The rarest words of a question are looked up until so many places have been read: what "the" finds tells nothing.
MOST_PLACES = 100_000
FEWEST_FORGOTTEN = 1_000


class WordIndex:
    """Texts under ids, found by the words that they share; any threads may write and search at once.

    Ranks by BM25 without its count of repetitions, since a word rarely stands in a memory twice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, array[int]] = {}
        self._ids: list[str | None] = []
        self._sizes = array("f")
        self._place_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._place_of)

    def put(self, item: str, words: Iterable[str]) -> None:
        """Add a text's words under an id, in place of those of its earlier text."""
        different = set(words)
        with self._lock:
            self._forget(item)
            place = len(self._ids)
            for word in different:
                self._places.setdefault(word, array("i")).append(place)
            self._sizes.append(len(different))
            self._place_of[item] = place
            self._ids.append(item)

    def drop(self, item: str) -> None:
        """Forget an id; unknown ones are no error."""
        with self._lock:
            self._forget(item)
            if len(self._ids) > max(FEWEST_FORGOTTEN, 2 * len(self._place_of)):
                self._close_up()

    def nearest(self, words: Iterable[str], count: int) -> list[str]:
        """Ids of the texts that share the rarest words, best first; none that shares no word."""
        with self._lock:
            found = sorted((places for word in set(words) if (places := self._places.get(word))), key=len)
            if not found or count <= 0:
                return []
            lengths = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
            read = max(1, int(np.searchsorted(np.cumsum(lengths), MOST_PLACES, side="right")))
            # Copies, since a list of places cannot grow while it is looked at.
            looked_up = np.concatenate([np.frombuffer(some, dtype=np.int32) for some in found[:read]])
            sizes = np.array(self._sizes, dtype=np.float32)
            known = len(self._place_of)
            ids = self._ids
        lengths = lengths[:read]
        holders = lengths
        if known < len(sizes):
            there = (sizes > 0)[looked_up]
            holders = np.add.reduceat(there, np.cumsum(lengths) - lengths, dtype=np.int64)
        rarity = np.log(1 + (known - holders + 0.5) / (holders + 0.5))
        weights = np.repeat(np.maximum(rarity, 1e-6), lengths)
        scores: npt.NDArray[np.float64] = np.bincount(looked_up, weights, minlength=len(sizes)).astype(np.float64)
        mean = max(float(sizes.sum()) / max(known, 1), 1.0)
        scores = scores / (1 + SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * sizes / mean))
        return [item for place in _best(scores * (sizes > 0), count) if (item := ids[place]) is not None]

    def _forget(self, item: str) -> None:
        place = self._place_of.pop(item, None)
        if place is not None:
            self._ids[place] = None
            self._sizes[place] = 0

    def _close_up(self) -> None:
        """Give every remaining text a new place, and forget the words that no text has any more."""
        kept = [place for place, item in enumerate(self._ids) if item is not None]
        moved = np.full(len(self._ids), -1, dtype=np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        places: dict[str, array[int]] = {}
        for word, old in self._places.items():
            new = moved[np.frombuffer(old, dtype=np.int32)]
            if (new >= 0).any():
                places[word] = array("i", new[new >= 0].tolist())
        self._ids = [self._ids[place] for place in kept]
        self._sizes = array("f", [self._sizes[place] for place in kept])
        self._place_of = {item: place for place, item in enumerate(self._ids) if item is not None}
        self._places = places


def _best(scores: npt.NDArray[np.float64], count: int) -> list[int]:
    """Places of the highest scores above zero, best first."""
    some = np.argpartition(scores, -count)[-count:] if count < len(scores) else np.arange(len(scores))
    ordered: list[int] = some[np.argsort(-scores[some], kind="stable")].tolist()
    return [place for place in ordered if scores[place] > 0]
