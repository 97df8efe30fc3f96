"""The words of a project's entries, kept in memory beside their vectors and ranked exactly."""

import threading
from array import array
from collections.abc import Iterable
from math import log

import numpy as np
import numpy.typing as npt

from app.neighbours.search import LENGTH_WEIGHT, SATURATION
from app.ranking import best

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
            scores = self._scores(set(words))
            ids = self._ids
        return [item for place in best(scores, count) if scores[place] > 0 and (item := ids[place]) is not None]

    def _scores(self, words: set[str]) -> npt.NDArray[np.float64]:
        """Score of the text at each place; 0 for those that are gone."""
        # Nothing of these may be kept: what is looked at cannot grow.
        sizes = np.frombuffer(self._sizes, dtype=np.float32)
        scores = np.zeros(len(sizes))
        known = len(self._place_of)
        there = sizes > 0 if known < len(sizes) else None
        read = 0
        for found in sorted((places for word in words if (places := self._places.get(word))), key=len):
            read += len(found)
            if read > MOST_PLACES and read > len(found):
                break
            holding = np.frombuffer(found, dtype=np.int32)
            holders = len(holding) if there is None else int(np.count_nonzero(there[holding]))
            rarity = log(1 + (known - holders + 0.5) / (holders + 0.5))
            # One word after another: a single sum over all places would first have to copy them together.
            np.add.at(scores, holding, max(rarity, 1e-6))
        if there is not None:
            scores *= there
        mean = max(float(sizes.sum()) / max(known, 1), 1.0)
        weighed: npt.NDArray[np.float64] = scores / (
            1 + SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * sizes / mean)
        )
        return weighed

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
