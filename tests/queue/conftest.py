"""A bench whose project asks a scripted model that may be down, and the queue on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.queue import Queue
from app.schemas.judging import Fault
from app.schemas.vocabulary import Verdict
from tests.support.pipelines import GOOD, Bench, ScriptedReviewer, failed


@pytest.fixture
def model() -> ScriptedReviewer:
    return ScriptedReviewer()


@pytest.fixture
async def bench(tmp_path: Path, database_url: str, model: ScriptedReviewer) -> AsyncIterator[Bench]:
    """With money for a hundred calls, all of which are held when it is used up."""
    bench = Bench(tmp_path, database_url=database_url, model=model, budget_microdollars=500_000, at_cap="hold")
    bench.use_model()
    yield bench
    await bench.close()


@pytest.fixture
def queue(bench: Bench) -> Queue:
    return Queue(bench.pipeline, bench.settings)


class Hold:
    """Has a text held, for a fault of the model."""

    def __init__(self, bench: Bench, model: ScriptedReviewer) -> None:
        self._bench, self._model = bench, model

    async def __call__(self, text: str = GOOD[0], fault: Fault = Fault.OVERLOADED, **more: object) -> str:
        """The id of the held review."""
        self._model.script(failed(fault))
        answer = await self._bench.review(text, **more)
        assert answer.verdict is Verdict.HELD, answer
        return answer.reviews[0].id


@pytest.fixture
def hold(bench: Bench, model: ScriptedReviewer) -> Hold:
    return Hold(bench, model)
