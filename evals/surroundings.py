"""Surround each candidate as a real store would: `uv run python evals/surroundings.py` (the same result each time).

Gives every candidate three to eight entries: those that its labels name stay, the others are approved texts of its
project, half of them near in words or meaning and half at random. Entries that would change a label are kept away: no
STATE beside an approved STATE, never two STATEs, nothing that says the same or contradicts. Writers put versions of one
fact next to each other, so texts with neighbouring numbers are kept apart, and so are the pairs in `APART`, found by
reading the nearest. Shuffles the lines of each file, since some writers worked category by category.
"""

import json
import re
from collections import Counter, defaultdict
from hashlib import sha256
from math import log, sqrt
from pathlib import Path
from random import Random
from typing import Any

from app.embeddings import Embedder, WordLlamaEmbedder

CANDIDATES = Path(__file__).parent / "data" / "candidates"
FEWEST, MOST = 3, 8
SAME_SPOT = 2
LIKE_A_KEPT_ONE = 0.3
# Pairs that are not side by side and yet say the same, or the contrary.
APART = {
    "allotment-board": ("028 006",),
    "axle-log": ("034 020",),
    "bellows-booking": ("035 034",),
    "cabin-keys": ("004 001",),
    "cf-thimblerig": ("053 004",),
    "clipmagpie": ("045 028",),
    "copperquote": ("034 001",),
    "da-hashiba": ("056 003",),
    "eelgrass-lake": ("040 003",),
    "ga-kestrelhub": ("055 005",),
    "grainledger": ("039 010",),
    "jackdaw-events": ("038 016",),
    "juniper-pg": ("045 001",),
    "kobold-kiln": ("044 028",),
    "nettlecraft": ("045 014",),
    "nock-driver": ("034 003",),
    "otter-bms": ("044 012",),
    "pagerloom": ("024 009",),
    "pb-faehrbuch": ("026 004",),
    "pd-brambletalk": ("035 011",),
    "pe-snowglobe": ("039 009",),
    "pi-kelpline": ("040 012",),
    "pj-saltbox": ("037 019",),
    "pk-vesper": ("042 037",),
    "pollen-drift": ("031 008",),
    "quasar-lens": ("044 013", "027 008"),
    "reef-census": ("030 013", "045 021"),
    "shed-rack": ("044 041", "023 001"),
    "tidal-bench": ("033 041", "049 017"),
    "umlage-flow": ("044 004",),
    "yamsert": ("024 003", "023 015"),
    "zinnia-sdk": ("025 011", "024 001"),
}

Row = dict[str, Any]


class Project:
    """The candidates of one project and how near they lie to one another."""

    def __init__(self, name: str, rows: list[Row], embedder: Embedder) -> None:
        self.rows = sorted(rows, key=lambda row: str(row["id"]))
        self.stored = [row for row in self.rows if row["verdict"] == "approve"]
        self.apart = {frozenset(f"{name}-c{number}" for number in pair.split()) for pair in APART.get(name, ())}
        vectors = embedder.embed([row["text"] for row in self.rows])
        self.meaning = {row["id"]: vector for row, vector in zip(self.rows, vectors, strict=True)}
        known = {row["id"]: _terms(row["text"]) for row in self.rows}
        spread = Counter(term for terms in known.values() for term in terms)
        self.weight = {term: log(1 + len(self.rows) / count) for term, count in spread.items()}

    def surround(self, row: Row) -> None:
        """Give one candidate its entries, in mixed order."""
        chance = _chance("neighbours", row)
        kept = self._kept(row)
        pool = [other for other in self.stored if self._may_stand_beside(row, other, kept)]
        chance.shuffle(pool)
        wanted = max(chance.randint(FEWEST, MOST), len(kept) + 2) - len(kept)
        near = self._near(row, pool)[: wanted // 2]
        chosen = near + [other for other in pool if other not in near]
        entries = kept + _with_one_state(chosen, kept)[:wanted]
        chance.shuffle(entries)
        _label(row, entries)

    def _kept(self, row: Row) -> list[Row]:
        """The entries that were written for the candidate."""
        facts = row["facts"]
        named = {facts.get("duplicate_of"), facts.get("supersedes")}
        added = {other["text"] for other in self.stored}
        kept = [
            entry
            for entry in row.get("entries", ())
            if entry["text"] not in added
            or entry["label"] in named
            or (row["category"] == "STATE" and entry["category"] == "STATE")
        ]
        return sorted(kept, key=lambda entry: str(entry["text"]))

    def _may_stand_beside(self, row: Row, other: Row, kept: list[Row]) -> bool:
        near = abs(_number(row) - _number(other)) <= SAME_SPOT
        two_states = row["category"] == other["category"] == "STATE"
        if near or two_states or other["text"] == row["text"] or frozenset((row["id"], other["id"])) in self.apart:
            return False
        return all(self._words_shared(other["text"], entry["text"]) < LIKE_A_KEPT_ONE for entry in kept)

    def _near(self, row: Row, pool: list[Row]) -> list[Row]:
        """The pool, nearest first: by words and by meaning in turn."""
        by_words = sorted(pool, key=lambda other: -self._words_shared(row["text"], other["text"]))
        by_meaning = sorted(pool, key=lambda other: -float(self.meaning[row["id"]] @ self.meaning[other["id"]]))
        found: list[Row] = []
        for other in (other for pair in zip(by_words, by_meaning, strict=True) for other in pair):
            if other not in found:
                found.append(other)
        return found

    def _words_shared(self, one: str, other: str) -> float:
        """Share of rare words that two texts have in common, from 0 to 1."""
        left, right = _terms(one), _terms(other)
        weights = [sum(self.weight.get(term, 0.0) for term in terms) for terms in (left, right, left & right)]
        return weights[2] / sqrt(weights[0] * weights[1]) if weights[0] and weights[1] else 0.0


def _terms(text: str) -> frozenset[str]:
    """Words of four letters or more, and pairs of neighbouring characters where a script has no spaces."""
    words = set(re.findall(r"\w{4,}", text.casefold()))
    for run in re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+", text):
        words |= {run[place : place + 2] for place in range(len(run) - 1)}
    return frozenset(words)


def _number(row: Row) -> int:
    return int(str(row["id"]).rpartition("-c")[2])


def _chance(purpose: str, row: Row) -> Random:
    return Random(int(sha256(f"{purpose}:{row['id']}".encode()).hexdigest()[:16], 16))  # noqa: S311 (only an order)


def _with_one_state(chosen: list[Row], kept: list[Row]) -> list[Row]:
    """The entries without a second STATE."""
    found: list[Row] = []
    for entry in chosen:
        if entry["category"] != "STATE" or all(other["category"] != "STATE" for other in kept + found):
            found.append(entry)
    return found


def _label(row: Row, entries: list[Row]) -> None:
    """Number the entries afresh, and let the facts follow."""
    renamed = {entry.get("label"): f"E{place}" for place, entry in enumerate(entries, start=1)}
    for fact in ("duplicate_of", "supersedes"):
        if row["facts"].get(fact):
            row["facts"][fact] = renamed[row["facts"][fact]]
    row["entries"] = [
        {"label": f"E{place}", "category": entry["category"], "text": entry["text"]}
        for place, entry in enumerate(entries, start=1)
    ]
    row["why"] = row.pop("why")


def main() -> None:
    """Rewrite every file of candidates."""
    embedder = WordLlamaEmbedder()
    counts: defaultdict[int, int] = defaultdict(int)
    for file in sorted(CANDIDATES.glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        project = Project(file.stem, rows, embedder)
        for row in project.rows:
            project.surround(row)
            counts[len(row["entries"])] += 1
        rows = sorted(project.rows, key=lambda row: sha256(f"order:{row['id']}".encode()).hexdigest())
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    print(dict(sorted(counts.items())))


if __name__ == "__main__":
    main()
