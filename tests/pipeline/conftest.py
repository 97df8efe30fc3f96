"""A bench without a model, and one whose project asks the scripted model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.pipelines import Bench, ScriptedReviewer


@pytest.fixture
async def bench(tmp_path: Path, database_url: str) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path, database_url=database_url)
    yield bench
    await bench.close()


@pytest.fixture
def model() -> ScriptedReviewer:
    return ScriptedReviewer()


@pytest.fixture
async def paid(tmp_path: Path, database_url: str, model: ScriptedReviewer) -> AsyncIterator[Bench]:
    """A bench whose project asks the scripted model, with money for a hundred calls."""
    bench = Bench(tmp_path, database_url=database_url, model=model, budget_microdollars=500_000)
    bench.use_model()
    yield bench
    await bench.close()
