"""`bouncer reindex`, as a person meets it who changes the embedder."""

import json
from pathlib import Path

from tests.support.commands import bouncer, complaint
from tests.support.embeddings_api import DIMENSION, embeddings_api
from tests.support.pipelines import GOOD, Bench
from tests.support.service import running_service


async def test_the_way_from_one_embedder_to_another(tmp_path: Path, database_url: str) -> None:
    bench = Bench(tmp_path / "data", database_url=database_url)
    await bench.store(GOOD[0])
    await bench.close()
    with embeddings_api() as url:
        here = {"MEMORY_BOUNCER_DATABASE_URL": database_url}
        there = here | {"MEMORY_BOUNCER_EMBEDDINGS_URL": url, "MEMORY_BOUNCER_EMBEDDINGS_MODEL": "test"}
        assert "bouncer reindex" in complaint(bouncer("serve", "--port", "0", **there))
        done = bouncer("reindex", "--json", **there)
        assert json.loads(done.stdout) == {
            "model": "test",
            "dimension": DIMENSION,
            "entries": 1,
            "passages": 0,
            "embedded": 1,
        }
        assert "bouncer reindex" in complaint(bouncer("serve", "--port", "0", **here))
        with running_service(tmp_path / "service", there) as service:
            project = bench.rows("SELECT name FROM project")[0]["name"]
            (hit,) = service.get("/v1/entries/search", project=project, query=GOOD[0])
            assert hit["similarity"] > 0.999
        said = bouncer("reindex", **there)
        assert (said.returncode, "Nothing was to be done" in said.stdout) == (0, True)


def test_an_embedder_that_is_away_is_named(tmp_path: Path, unused_tcp_port: int) -> None:
    away = f"http://127.0.0.1:{unused_tcp_port}/v1"
    done = bouncer("reindex", "--data-dir", str(tmp_path), MEMORY_BOUNCER_EMBEDDINGS_URL=away)
    assert away in complaint(done)
    assert list(tmp_path.iterdir()) == []
