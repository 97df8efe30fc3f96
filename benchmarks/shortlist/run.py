"""Is the true duplicate among the neighbours? `uv run python benchmarks/shortlist/run.py` (about two minutes).

Every labelled duplicate pair's stored text lies among 10,000 other entries of one project; the share of pairs whose
stored text is in the shortlist for the new one is the recall. Pairs of the test split stand by themselves; the others
are there to try things with. By vector and by words alone are measured in the same run, and with `--endpoint` an
embedder behind an OpenAI-compatible `/v1/embeddings` beside the embedded one.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.progress import track
from sqlmodel import Session

from app.callers import LOCAL
from app.db import Database
from app.embeddings import Embedder, EndpointEmbedder, WordLlamaEmbedder
from app.errors import Conflict, Invalid
from app.evaluation.data import Labelled, Split, Suite, load
from app.evaluation.score import Share
from app.index import Index
from app.projects import ProjectRow, find
from app.schemas.entries import EntryIn
from app.schemas.vocabulary import Category, Verdict
from app.words import words

DATA = Path(__file__).parents[2] / "evals" / "data"
PROJECT = "shortlist"
OTHERS = 10_000
NEIGHBOURS = 8
_SENTENCE = re.compile(r"(?<=[.!?;。！？])\s+")


def other_texts(cases: Sequence[Labelled], avoid: set[str]) -> Iterator[str]:
    """Texts of the data set, then their sentences, then neighbouring sentences joined; none of them a twin.

    Pairs give none: their sentences and variants would say again what the twin says.
    """
    texts = [text for case in cases for text in (case.text, *(passage.text for passage in case.documents))]
    seen = set(avoid)
    sentences = [sentence for text in texts for sentence in _SENTENCE.split(text) if len(words(sentence)) >= 4]
    joined = [f"{a} {b}" for a, b in zip(sentences, sentences[7:], strict=False)]
    for text in (*texts, *sentences, *joined):
        if text not in seen:
            seen.add(text)
            yield text


def fill(index: Index, pairs: Sequence[Labelled], others: Sequence[str]) -> dict[str, str]:
    """Store all entries; the entry id of each stored text of a pair."""
    ids: dict[str, str] = {}
    for text in track([*(pair.entries[0].text for pair in pairs), *others], description="Storing"):
        try:
            entry = index.add_entry(LOCAL, EntryIn(project=PROJECT, category=Category.RULE, text=text[:4000]))
        except (Conflict, Invalid):
            continue  # the same text in another case, or one that looks like a secret
        ids[text] = entry.id
    return ids


def measure(embedder: Embedder, cases: Sequence[Labelled], number: int) -> None:
    """Print recall by language side and by way of search, and the time a shortlist takes."""
    pairs = [case for case in cases if case.suite is Suite.DUPLICATES and case.verdict is Verdict.DUPLICATE]
    avoid = {text for pair in pairs for text in (pair.text, pair.entries[0].text)}
    pool = other_texts([case for case in cases if case.suite not in (Suite.ATTACKS, Suite.DUPLICATES)], avoid)
    others = [text for text, _ in zip(pool, range(number), strict=False)]
    with tempfile.TemporaryDirectory(prefix="bouncer-shortlist-") as folder:
        database = Database(f"sqlite:///{folder}/bouncer.db")
        database.migrate()
        index = Index(database, embedder)
        ids = fill(index, pairs, others)
        with database.read() as session:
            project = find(session, LOCAL, PROJECT)
            assert project is not None
            _report(session, project, index, embedder, [pair for pair in pairs if pair.entries[0].text in ids], ids)
        database.close()


def _report(
    session: Session,
    project: ProjectRow,
    index: Index,
    embedder: Embedder,
    pairs: Sequence[Labelled],
    ids: dict[str, str],
) -> None:
    found: dict[tuple[str, str], list[bool]] = {}
    seconds = []
    for pair in pairs:
        twin = ids[pair.entries[0].text]
        vector = embedder.embed([pair.text])[0]
        started = time.perf_counter()
        near = [n.entry_id for n in index.neighbourhood.shortlist(session, project, pair.text, vector, NEIGHBOURS)]
        seconds.append(time.perf_counter() - started)
        part = "test" if pair.split is Split.TEST else "development"
        side = f"{'across languages' if '>' in pair.lang else 'same language'}, {part}"
        by_vector, by_words = index.neighbourhood.rankings(session, project, pair.text, vector, NEIGHBOURS)
        for way, ranking in (("shortlist", near), ("vector alone", by_vector), ("words alone", by_words)):
            found.setdefault((side, way), []).append(twin in ranking[:NEIGHBOURS])
    print(f"\n{embedder.model}: {len(ids):,} entries, {len(pairs)} pairs, first {NEIGHBOURS}")
    for (side, way), hits in sorted(found.items()):
        print(f"  {side:<30} {way:<13} {Share(count=sum(hits), of=len(hits))}")
    median, slowest = np.median(seconds) * 1000, np.quantile(seconds, 0.99) * 1000
    print(f"  a shortlist takes {median:.2f} ms (median), {slowest:.2f} ms (p99)")


def main() -> None:
    """Measure the embedded embedder and, if asked, one behind an endpoint."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--endpoint", help="base URL of an OpenAI-compatible embeddings API, such as http://127.0.0.1:8080/v1"
    )
    parser.add_argument("--others", type=int, default=OTHERS, help="how many other entries the project has")
    parser.add_argument("--model", default="default", help="the model's name there")
    arguments = parser.parse_args()
    cases = load(DATA)
    measure(WordLlamaEmbedder(), cases, arguments.others)
    if arguments.endpoint:
        measure(EndpointEmbedder(arguments.endpoint, arguments.model), cases, arguments.others)


if __name__ == "__main__":
    main()
