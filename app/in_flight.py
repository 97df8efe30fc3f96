"""The reviews under way, and how they come to an end when the service is told to stop."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from app.errors import Unavailable

# To write down what was interrupted, and to answer.
SETTLE_SECONDS = 3.0


class InFlight:
    """Counts reviews; lives on one event loop."""

    def __init__(self) -> None:
        self.count = 0
        self.stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._questions: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def review(self) -> Iterator[None]:
        """A review, for as long as the context lasts.

        Raises:
            Unavailable: the service is about to stop.
        """
        if self.stopping:
            raise Unavailable("The service is stopping; ask again in a moment.")
        self.count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.count -= 1
            if not self.count:
                self._idle.set()

    def asks(self, question: asyncio.Task[Any]) -> None:
        """Note a question to the model, which may be broken off."""
        self._questions.add(question)
        question.add_done_callback(self._questions.discard)

    async def drain(self, seconds: float) -> None:
        """Let no review begin any more, and wait for those under way.

        After so many seconds the questions to the model are broken off: their texts are held, and answered so.
        """
        self.stopping = True
        self._loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        self._break_off()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), SETTLE_SECONDS)

    def hurry(self) -> None:
        """Break the questions off at once, if they are being waited for; may be called from a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._break_off)

    def _break_off(self) -> None:
        for question in list(self._questions):
            question.cancel()
