"""Where the embedded reviewer cannot tell an attack from a rule, a person decides, whatever the failure policy says."""

import pytest

from app.callers import LOCAL
from app.native_hook import answer
from app.reviewers.offline import OfflineReviewer
from app.schemas.judging import Brief, Fault, Judgement
from app.schemas.vocabulary import Verdict
from tests.support.pipelines import GOOD, Bench, facts


@pytest.fixture(autouse=True)
def doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text is a good memory that may be an attack."""

    def judge(_: OfflineReviewer, brief: Brief) -> Judgement:
        return Judgement(reviewer="offline", facts=facts(), fault=Fault.SUSPICIOUS)

    monkeypatch.setattr(OfflineReviewer, "judge", judge)


async def test_a_suspicious_text_is_held(bench: Bench) -> None:
    said = await bench.review(GOOD[0])
    assert (said.verdict, said.reviews[0].fault) == (Verdict.HELD, Fault.SUSPICIOUS)
    assert "a person has to look at it" in said.reviews[0].message


async def test_the_native_hook_denies_it(bench: Bench) -> None:
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "s1",
        "tool_use_id": "t1",
        "tool_name": "mcp__memory__create_entities",
        "tool_input": {"entities": [{"name": "payments", "entityType": "rule", "observations": [GOOD[0]]}]},
    }
    said = await answer(LOCAL, event, "github.com/acme/payments", bench.pipeline)
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
