"""The service is killed at random moments under load. `benchmarks/chaos/run.py` does it a hundred times."""

from pathlib import Path

from tests.support.chaos import AGENTS, Chaos

KILLS = 10


def test_whatever_a_hook_saw_is_in_exactly_one_place_after_ten_kills(tmp_path: Path, database_url: str) -> None:
    found = Chaos(tmp_path, database_url, seed=7).run(KILLS)
    assert found.faults == []
    assert found.offers > 2 * AGENTS
    assert sum(found.states.values()) == found.offers
    assert found.states["journal"] == 0, "all of it was reviewed once the service was back"
