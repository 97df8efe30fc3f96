"""Calls that wait for the one writer, taken together: what they share is then done once."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field

from app.callers import Caller
from app.schemas.reviews import CallOut, ReviewRequest

MOST_AT_ONCE = 16

# None: somebody else is writing the same, and will soon have done so.
Answer = CallOut | None


@dataclass(frozen=True)
class Asked:
    """A call that waits, with the context in which it came: what is logged of it belongs there."""

    caller: Caller
    request: ReviewRequest
    answer: asyncio.Future[Answer]
    context: Context = field(default_factory=copy_context)

    def goes_with(self, other: "Asked") -> bool:
        """Whether the two may be judged at once, so that neither changes what the other one's session was told."""
        same_place = self.caller == other.caller and self.request.project == other.request.project
        return same_place and self.request.session_id != other.request.session_id


class Rounds:
    """Takes calls in the order in which they came, those that may be judged at once in one round; on one event loop."""

    def __init__(self, work: Callable[[Sequence[Asked]], list[Answer | Exception]]) -> None:
        """Have rounds done by ``work``, one after another, on threads; for each call it gives an answer or a fault."""
        self._work = work
        self._waiting: deque[Asked] = deque()
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, caller: Caller, request: ReviewRequest) -> Answer:
        """The answer to a call, or the exception that it ended in."""
        asked = Asked(caller, request, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve(), context=Context())
        return await asked.answer

    async def _serve(self) -> None:
        while self._waiting:
            taken = self._take()
            try:
                answers = await asyncio.to_thread(self._work, taken)
            except Exception as exc:  # noqa: BLE001 - whoever asked gets it
                answers = [exc] * len(taken)
            for asked, answer in zip(taken, answers, strict=True):
                if asked.answer.done():
                    continue  # who asked has gone
                if isinstance(answer, Exception):
                    asked.answer.set_exception(answer)
                else:
                    asked.answer.set_result(answer)

    def _take(self) -> list[Asked]:
        taken: list[Asked] = []
        left: list[Asked] = []
        while self._waiting and len(taken) < MOST_AT_ONCE:
            asked = self._waiting.popleft()
            (taken if all(asked.goes_with(other) for other in taken) else left).append(asked)
        self._waiting.extendleft(reversed(left))
        return taken
