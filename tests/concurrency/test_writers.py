"""Many writers beside a reader that will not go away: nothing is lost, nobody is turned away."""

import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.http_service import call, http_service

WRITERS = 16
EACH = 6
THINGS = ("lamp", "lens", "mirror", "shutter", "stair", "rail")
PLACES = ("reef", "quay", "pier", "mole", "spit", "sound", "bight", "cape", "strait", "skerry", "shoal", "bar", "ness",
          "haven", "firth", "holm")  # fmt: skip


def test_sixteen_writers_beside_a_long_reader_lose_nothing(tmp_path: Path) -> None:
    with http_service(tmp_path) as client, ThreadPoolExecutor(WRITERS) as pool:
        client.put("/v1/projects/p", json={"level": "offline"})
        reader = sqlite3.connect(tmp_path / "bouncer.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM review").fetchone()

        def write(place: str) -> list[tuple[int, str, str]]:
            done = []
            for thing in THINGS[:EACH]:
                text = f"Always polish the {thing} at {place} light before dusk, because salt blinds it overnight."
                response = client.post("/v1/reviews", json=call(text, project="p", session=place))
                review = response.json()["reviews"][0]
                if review["verdict"] == "approve":
                    client.post(f"/v1/reviews/{review['id']}/stored", json={}).raise_for_status()
                done.append((response.status_code, review["id"], review["verdict"]))
            return done

        answers = [answer for done in pool.map(write, PLACES) for answer in done]
        assert reader.execute("SELECT count(*) FROM review").fetchone() == (0,), "the reader has kept its view"
        reader.execute("ROLLBACK")
        approved = sum(verdict == "approve" for _, _, verdict in answers)
        assert Counter(status for status, _, _ in answers) == {200: WRITERS * EACH}
        assert {row[0] for row in reader.execute("SELECT id FROM review")} == {review_id for _, review_id, _ in answers}
        assert reader.execute("SELECT count(*) FROM entry WHERE status = 'stored'").fetchone() == (approved,)
        assert reader.execute("SELECT revision FROM project").fetchone() == (2 * approved,)
        reader.close()
