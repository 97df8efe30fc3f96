"""Measure a model that runs elsewhere: write every request to a folder, later score the replies found in another.

One JSON file a request and one a reply, both named after the case; the format is described in evals/README.md.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from app.evaluation.data import Labelled
from app.evaluation.run import project_name
from app.reviewers import Reviewer
from app.reviewers.replies import NoFacts, parse
from app.schemas.judging import Brief, Fault, Judgement, Usage


class Renders(Protocol):
    """Who can say what would be sent to the model."""

    @property
    def fingerprint(self) -> str:
        """Changes with model and prompt."""
        ...

    def request(self, brief: Brief, nonce: str) -> dict[str, Any]:
        """The request's body."""
        ...


class _Unpaid:
    """A reviewer that asks nobody."""

    def __init__(self, renders: Renders, cases: Sequence[Labelled], folder: Path) -> None:
        self._renders = renders
        self._files = {project_name(case): folder / f"{case.id}.json" for case in cases}
        self.fingerprint = renders.fingerprint

    def worst_case_microdollars(self, brief: Brief) -> int:  # noqa: ARG002
        """Nothing is paid."""
        return 0

    async def aclose(self) -> None:
        """Nothing is open."""

    def _file(self, brief: Brief) -> Path:
        return self._files[brief.project]


class DryRun(_Unpaid):
    """Writes each rendered request to the folder and leaves the case undecided."""

    def __init__(
        self, renders: Renders, cases: Sequence[Labelled], folder: Path, draw_nonce: Callable[[Brief], str]
    ) -> None:
        super().__init__(renders, cases, folder)
        self._draw_nonce = draw_nonce
        folder.mkdir(parents=True, exist_ok=True)

    async def review(self, brief: Brief, deadline_seconds: float) -> Judgement:  # noqa: ARG002
        """Write the request; the judgement is a fault, since nobody was asked."""
        request = self._renders.request(brief, self._draw_nonce(brief))
        text = json.dumps(request, ensure_ascii=False, indent=1)
        self._file(brief).write_text(text + "\n", encoding="utf-8")
        return Judgement(reviewer="anthropic", facts=None, fault=Fault.INTERRUPTED, fault_detail="dry run")


class Recorded(_Unpaid):
    """Takes each case's facts from the folder, validated as strictly as a live reply."""

    async def review(self, brief: Brief, deadline_seconds: float) -> Judgement:  # noqa: ARG002
        """The recorded facts; a missing or unusable reply is a fault, as it would be live."""
        usage = Usage(model="recorded", prompt_hash=self.fingerprint)
        try:
            facts = parse(self._file(brief).read_text(encoding="utf-8"), brief)
        except FileNotFoundError:
            return Judgement(reviewer="anthropic", facts=None, fault=Fault.CONNECTION, fault_detail="no reply file")
        except NoFacts as exc:
            return Judgement(reviewer="anthropic", facts=None, fault=exc.fault, fault_detail=exc.detail, usage=usage)
        return Judgement(reviewer="anthropic", facts=facts, usage=usage)


class Remembering:
    """Asks another reviewer about each case once, and gives the same judgement ever after.

    A case is known by its project, which it has for itself.
    """

    def __init__(self, reviewer: Reviewer) -> None:
        self._reviewer = reviewer
        self._judgements: dict[str, Judgement] = {}
        self.fingerprint = reviewer.fingerprint

    async def review(self, brief: Brief, deadline_seconds: float) -> Judgement:
        """The other's judgement, with what it cost then."""
        if brief.project not in self._judgements:
            self._judgements[brief.project] = await self._reviewer.review(brief, deadline_seconds)
        return self._judgements[brief.project]

    async def aclose(self) -> None:
        """Close the other's connections."""
        await self._reviewer.aclose()

    def worst_case_microdollars(self, brief: Brief) -> int:
        """The most that a judgement may cost."""
        return self._reviewer.worst_case_microdollars(brief)
