"""A text that may be an attack is denied and kept for a person, whatever the failure policy says."""

import pytest

from tests.support.hook_runs import LESSON, journal, tell, write
from tests.support.scripted_service import ScriptedService


@pytest.mark.parametrize("kind", ["allow", "hold", "ask"])
def test_a_suspicious_text_waits_for_a_person(
    service: ScriptedService, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_ON_FAILURE", kind)
    service.verdicts, service.fault = ["held"], "suspicious"

    assert tell(write(LESSON)).decision == "deny"
    assert journal()[0]["text"] == LESSON
