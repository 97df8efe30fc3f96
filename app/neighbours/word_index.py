"""The words of a project's entries, kept in memory beside their vectors and ranked exactly."""

import threading
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from app.neighbours.search import LENGTH_FLOOR
from app.ranking import best

# The rarest words of a question are looked up until so many places have been read: what "the" finds tells nothing.
MOST_PLACES = 100_000
FEWEST_FORGOTTEN = 1_000
# A text that is added makes its words a little less rare, and the rest a little rarer.
MARGIN = 0.02


@dataclass(frozen=True)
class Ranked:
    """Ids of texts with their scores, best first, and what the scores go by."""

    ids: list[str]
    scores: list[float]
    rarities: Mapping[str, float]
    mean: float

    def place(self, words: set[str]) -> int | None:
        """Before how many of them a further text of these different words would surely not come; None for nowhere."""
        score = sum(self.rarities[word] for word in words & self.rarities.keys())
        needed = score / _length_weight(len(words), self.mean) * (1 + MARGIN)
        return sum(other > needed for other in self.scores) if score > 0 else None


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
        return self.ranked(words, count).ids

    def ranked(self, words: Iterable[str], count: int) -> "Ranked":
        """The same, with what it takes to be among them."""
        different = set(words)
        with self._lock:
            known = len(self._place_of)
            mean = max(float(np.sum(self._sizes)) / max(known, 1), 1.0)
            rarities, scores = self._scores(different, mean)
            new = [word for word in different if word not in self._places]
            ids = self._ids
        found = {
            item: float(scores[place])
            for place in best(scores, count)
            if scores[place] > 0 and (item := ids[place]) is not None
        }
        # What no text has yet is the rarest.
        rarities |= dict.fromkeys(new, log(1 + 2 * (known + 0.5)))
        return Ranked(list(found), list(found.values()), rarities, mean)

    def _scores(self, words: set[str], mean: float) -> tuple[dict[str, float], npt.NDArray[np.float64]]:
        """How rare each word is that tells something, and the score of the text at each place; 0 where it is gone."""
        # Nothing that looks at these may be kept: what is looked at cannot grow.
        sizes = np.frombuffer(self._sizes, dtype=np.float32)
        scores = np.zeros(len(sizes))
        rarities: dict[str, float] = {}
        known = len(self._place_of)
        there = sizes > 0 if known < len(sizes) else None
        read = 0
        for word in sorted(filter(self._places.__contains__, words), key=lambda word: len(self._places[word])):
            holding = np.frombuffer(self._places[word], dtype=np.int32)
            read += len(holding)
            if read > MOST_PLACES and rarities:
                break
            holders = len(holding) if there is None else int(np.count_nonzero(there[holding]))
            rarities[word] = rarity = max(log(1 + (known - holders + 0.5) / (holders + 0.5)), 1e-6)
            # One word after another: a single sum over all places would first have to copy them together.
            np.add.at(scores, holding, rarity)
        if there is not None:
            scores *= there
        weighed: npt.NDArray[np.float64] = scores / _length_weight(sizes, mean)
        return rarities, weighed

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


Size = TypeVar("Size", float, npt.NDArray[np.float32])


def _length_weight(size: Size, mean: float) -> Size:
    """What a text's score is divided by, so that long ones are not found for their length."""
    return LENGTH_FLOOR + size / mean
