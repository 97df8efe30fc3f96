"""A bench without a model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.pipelines import Bench


@pytest.fixture
async def bench(tmp_path: Path, database_url: str) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path, database_url=database_url)
    yield bench
    await bench.close()
