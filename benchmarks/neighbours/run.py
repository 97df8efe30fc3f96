"""How fast and how truly the nearest entries are found, in memory and in PostgreSQL with pgvector.

    uv run python benchmarks/neighbours/run.py [--entries 10000 100000] [--database-url URL] [--seed 1]

The entries' texts are sentences of `evals/data`, recombined by twos and threes, with WordLlama's vectors of them: as
near to each other as memories are, not noise. The questions are recombined likewise, and are none of the entries.
Vectors are searched in one project that has all entries, and in 100 projects of very different sizes that share the
table. In memory every search is exact; it is timed beside one product of numpy over the same matrix. Without a
database of its own (which must be empty, and is filled), a server from the development group's wheel is started.
A million entries take about 5 GB of disk, 6 GB of memory and, on two cores, half an hour, most of it for the graph.
"""

import argparse
import contextlib
import logging
import re
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import psycopg  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import Progress, track  # noqa: E402
from sqlalchemy import text as sql  # noqa: E402

from app import projects  # noqa: E402
from app.db import Database, utc_now  # noqa: E402
from app.embeddings import Matrix, WordLlamaEmbedder, word_llama  # noqa: E402
from app.evaluation.data import load  # noqa: E402
from app.neighbours import in_postgres, open_neighbourhood  # noqa: E402
from app.words import words  # noqa: E402
from tests.support.postgres import own_postgres  # noqa: E402

COUNT = 8
QUESTIONS = 500
PROJECTS = 100
SERVER = {"shared_buffers": "4GB", "max_wal_size": "8GB", "maintenance_work_mem": "3GB"}
MOST_SLOWDOWN = 3.0  # of the search in memory, against the bare product
LEAST_RECALL = 0.97
_SENTENCE = re.compile(r"(?<=[.!?;。！？])\s+")
Floats = npt.NDArray[np.float32]

out = Console(highlight=False)


class Texts:
    """Recombined sentences of the evaluation's data, with their vectors; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        cases = load(ROOT / "evals" / "data")
        texts = [case.text for case in cases]
        texts += [entry.text for case in cases for entry in case.entries]
        texts += [passage.text for case in cases for passage in case.documents]
        different = {sentence for text in texts for sentence in _SENTENCE.split(text) if len(words(sentence)) >= 4}
        self.sentences = sorted(different)
        self.words = [words(sentence) for sentence in self.sentences]
        model = word_llama()
        # A text's vector is the sum of its tokens' vectors, so those of sentences need only be added.
        tokens = [model.tokenizer.encode(text, add_special_tokens=False).ids for text in self.sentences]
        self._sums = np.array([model.embedding[ids].sum(axis=0) for ids in tokens], dtype=np.float32)

    def recombined(self, number: int) -> tuple[npt.NDArray[np.int64], Floats]:
        """Places of the sentences of so many texts, two or three of them and else -1, with the texts' unit vectors."""
        places = self._random.integers(0, len(self.sentences), (number, 3))
        places[self._random.random(number) < 0.5, 2] = -1
        vectors = self._sums[places[:, 0]] + self._sums[places[:, 1]]
        third = places[:, 2] >= 0
        vectors[third] += self._sums[places[third, 2]]
        return places, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def text(self, places: Sequence[int]) -> str:
        """The text of these sentences."""
        return " ".join(self.sentences[place] for place in places if place >= 0)


@dataclass
class Times:
    """Seconds that something took, time after time."""

    seconds: list[float]
    processor: float | None = None

    @contextlib.contextmanager
    def once(self) -> Iterator[None]:
        """Take the time of what is done within."""
        started = time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - started)

    @contextlib.contextmanager
    def processor_of(self, process: int) -> Iterator[None]:
        """Note how many milliseconds of a processor a process takes for each time; it says more on a busy machine."""
        before = _processor_milliseconds(process)
        yield
        after = _processor_milliseconds(process)
        self.processor = None if before is None or after is None else (after - before) / len(self.seconds)

    def __str__(self) -> str:
        milliseconds = np.array(self.seconds) * 1_000
        shown = f"p50 {np.median(milliseconds):.2f} ms, p99 {np.quantile(milliseconds, 0.99):.2f} ms"
        return shown if self.processor is None else f"{shown}, {self.processor:.2f} ms of a processor"

    @property
    def median(self) -> float:
        """The middle one, in milliseconds."""
        return float(np.median(self.seconds)) * 1_000


def _processor_milliseconds(process: int) -> float | None:
    """Processor time that a process has taken; None where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6
    except OSError:
        return None


def exact(vectors: Floats, questions: Floats, mine: npt.NDArray[np.int64] | None = None) -> list[set[str]]:
    """Ids of the entries nearest to each question, among all or among these places."""
    places = np.arange(len(vectors)) if mine is None else mine
    some = vectors if mine is None else vectors[mine]
    return [{entry_id(int(places[place])) for place in np.argsort(some @ asked)[-COUNT:]} for asked in questions]


def entry_id(place: int) -> str:
    """The id of the entry with this place."""
    return f"{place:032x}"


def project_id(number: int) -> str:
    """The id of the project with this number."""
    return f"{number:032x}"


# --- in memory ----------------------------------------------------------------------------------------------------


def in_memory(vectors: Floats, questions: Floats) -> bool:
    """Time the exact scan beside the bare product; whether the ratio is within its bound."""
    matrix = Matrix(vectors.shape[1])
    for place, vector in enumerate(vectors):
        matrix.put(entry_id(place), vector)
    scan, product = Times([]), Times([])
    for asked in questions[:200]:
        with product.once():
            vectors @ asked
        with scan.once():
            matrix.nearest(asked, COUNT)
    ratio = scan.median / product.median
    out.print(f"  in memory, exact: {scan}; bare product: {product}; ratio {ratio:.2f}")
    return ratio <= MOST_SLOWDOWN


# --- in PostgreSQL ------------------------------------------------------------------------------------------------


def fill(database: Database, texts: Texts, places: npt.NDArray[np.int64], vectors: Floats, of: Sequence[int]) -> None:
    """Put entries into the projects ``of`` by binary COPY, and build the indexes after."""
    embedder = WordLlamaEmbedder()
    open_neighbourhood(database, embedder)
    url = str(database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False))
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")  # entries follow, so nothing to refer to yet
        connection.execute("TRUNCATE project, entry CASCADE")
        connection.execute("TRUNCATE entry_search_word")
        for name in ("project_id", "words", "vector"):
            connection.execute(f"DROP INDEX ix_entry_search_{name}")
        copy_sql = "COPY entry_search (entry_id, project_id, words, vector) FROM STDIN WITH (FORMAT binary)"
        with connection.cursor().copy(copy_sql) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            for number in track(range(len(vectors)), description="Copying"):
                copy.write(_row(number, of[number], texts, places[number], vectors[number]))
            copy.write(struct.pack(">h", -1))
        connection.execute(
            "INSERT INTO project (id, name, revision, documents_revision, created_at)"
            " SELECT project_id, project_id, 2 * count(*), 0, %s FROM entry_search GROUP BY project_id",
            [utc_now()],
        )
        connection.execute(
            "INSERT INTO entry (id, project_id, category, status, version, text, text_hash, store, revision,"
            " created_at, updated_at) SELECT entry_id, project_id, 'RULE', 'stored', 1, entry_id, entry_id, 'b', 1,"
            " now(), now() FROM entry_search"
        )
        connection.execute(
            "INSERT INTO entry_search_word SELECT word, ndoc FROM ts_stat('SELECT words FROM entry_search')"
        )
    with _building_shown(url):
        started = time.perf_counter()
        assert in_postgres.prepare(database, embedder) is None
        out.print(f"  the indexes were built in {time.perf_counter() - started:.0f} s")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE entry_search, entry, entry_search_word, project")
        for name in ("entry_search", "ix_entry_search_vector", "ix_entry_search_words"):
            size = connection.execute("SELECT pg_size_pretty(pg_relation_size(%s))", [name]).fetchone()
            out.print(f"  {name}: {size and size[0]}")


def _row(number: int, project: int, texts: Texts, places: npt.NDArray[np.int64], vector: Floats) -> bytes:
    owner = project_id(project)
    lexemes = sorted(
        {f"{owner[-12:]}{word[:200]}".encode() for place in places if place >= 0 for word in texts.words[place]}
    )
    fields = (
        entry_id(number).encode(),
        owner.encode(),
        struct.pack(">i", len(lexemes)) + b"".join(lexeme + b"\0\0\0" for lexeme in lexemes),
        struct.pack(">hh", len(vector), 0) + vector.astype(">f4").tobytes(),
    )
    return struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(field)) + field for field in fields)


@contextlib.contextmanager
def _building_shown(url: str) -> Iterator[None]:
    """Show how far an index is built."""
    done = threading.Event()
    with Progress(transient=True) as bar, psycopg.connect(url, autocommit=True) as watching:
        task = bar.add_task("Building indexes", total=None)

        def watch() -> None:
            while not done.wait(1):
                row = watching.execute("SELECT tuples_done, tuples_total FROM pg_stat_progress_create_index").fetchone()
                if row:
                    bar.update(task, completed=row[0], total=row[1] or None)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def in_database(database: Database, asked: Sequence[tuple[int, str, Floats, set[str]]], name: str) -> bool:
    """Time the searches and compare with the exact answers; whether the recall is within its bound."""
    search = in_postgres.InPostgres(WordLlamaEmbedder())
    hits = 0
    with database.read() as session:
        backend = int(session.execute(sql("SELECT pg_backend_pid()")).scalar_one())
        of = {number: projects.get(session, project_id(number)) for number, *_ in asked}
        by_vector, by_words = Times([]), Times([])
        for number, _, vector, _ in asked[:50]:  # the first ones read what lies on the disk
            search.by_vector(session, of[number], vector, COUNT)
        with by_vector.processor_of(backend):
            for number, _, vector, nearest in asked:
                with by_vector.once():
                    found = search.by_vector(session, of[number], vector, COUNT)
                hits += len(nearest.intersection(found))
        for number, text, *_ in asked[:50]:
            search.by_words(session, of[number], text, COUNT)
        with by_words.processor_of(backend):
            for number, text, *_ in asked:
                with by_words.once():
                    search.by_words(session, of[number], text, COUNT)
    recall = hits / (COUNT * len(asked))
    out.print(f"  {name}: by vector {by_vector}, recall@{COUNT} {recall:.4f}")
    out.print(f"  {name}: by words {by_words}")
    return recall >= LEAST_RECALL


def sizes(entries: int) -> list[int]:
    """How many entries each project has: each place half as many as twice that place, as names in a text have."""
    shares = 1 / np.arange(1, PROJECTS + 1)
    return [int(size) for size in np.maximum(1, entries * shares / shares.sum())]


def measure(url: str, texts: Texts, entries: int) -> list[bool]:
    """All measurements with so many entries; which kept their bounds."""
    out.print(f"[bold]{entries:,} entries[/]")
    places, vectors = texts.recombined(entries)
    places_asked, questions = texts.recombined(QUESTIONS)
    asked_texts = [texts.text(some) for some in places_asked]
    kept = [in_memory(vectors, questions)]
    database = Database(url, busy_timeout_seconds=3_600)
    database.migrate()
    fill(database, texts, places, vectors, [0] * entries)
    nearest = exact(vectors, questions)
    one = [(0, *rest) for rest in zip(asked_texts, questions, nearest, strict=True)]
    kept.append(in_database(database, one, "one project"))
    database.close()
    return kept


def shared(url: str, texts: Texts, entries: int) -> list[bool]:
    """The same with many projects."""
    out.print(f"[bold]{entries:,} entries of {PROJECTS} projects[/]")
    places, vectors = texts.recombined(entries)
    places_asked, questions = texts.recombined(QUESTIONS)
    number_of = sizes(entries)
    owners = np.repeat(np.arange(PROJECTS), number_of)
    owners = np.random.default_rng(0).permutation(np.append(owners, np.zeros(entries - len(owners), dtype=int)))
    database = Database(url, busy_timeout_seconds=3_600)
    database.migrate()
    fill(database, texts, places, vectors, owners.tolist())
    kept = []
    for low, high in ((0, in_postgres.MOST_READ_WHOLE // 2), (in_postgres.MOST_READ_WHOLE // 2, entries)):
        some = [number for number in range(PROJECTS) if low < np.count_nonzero(owners == number) <= high]
        asked = []
        for turn in range(QUESTIONS if some else 0):
            number = some[turn % len(some)]
            mine = np.flatnonzero(owners == number)
            (nearest,) = exact(vectors, questions[turn : turn + 1], mine)
            asked.append((number, texts.text(places_asked[turn]), questions[turn], nearest))
        if some:
            name = f"{len(some)} projects of at most {min(high, max(number_of)):,}"
            kept.append(in_database(database, asked, name))
    database.close()
    return kept


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="+", default=[10_000, 100_000], help="how many entries")
    parser.add_argument("--database-url", help="an empty PostgreSQL database with pgvector")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shared-only", action="store_true", help="only many projects in one table")
    parser.add_argument("--one-only", action="store_true", help="only one project that has all entries")
    arguments = parser.parse_args()
    logging.disable(logging.INFO)
    texts = Texts(arguments.seed)
    out.print(f"{len(texts.sentences):,} sentences")
    kept: list[bool] = []
    with contextlib.ExitStack() as stack:
        url = arguments.database_url
        if url is None:
            url = stack.enter_context(own_postgres(**SERVER)).url("postgres")
        for entries in arguments.entries:
            if not arguments.shared_only:
                kept += measure(url, texts, entries)
            if not arguments.one_only:
                kept += shared(url, texts, entries)
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
