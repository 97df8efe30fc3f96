"""Reviewers: whoever turns a brief into facts."""

from typing import Protocol

from app.schemas.judging import Brief, Judgement


class Reviewer(Protocol):
    """Judges one candidate. It finds facts and decides nothing; a reviewer that cannot judge says so as a fault."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same brief could get another answer: model, prompt, schema."""
        ...

    async def review(self, brief: Brief, deadline_seconds: float) -> Judgement:
        """Facts about the candidate, or the fault that kept them away; never raises for either.

        Args:
            brief: the candidate with its neighbours and passages.
            deadline_seconds: the answer must be there within this time.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...

    def worst_case_microdollars(self, brief: Brief) -> int:
        """The most that one `review` of the brief can cost, retries included; what a budget reserves."""
        ...
