"""Patterns of slop: what they refuse, what they leave alone, and that they leave alone what is only mentioned."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import DEFAULT_RULES, REASONS, RULES, Rule, gate, matched_rules

PADDING = "and here are some more words, so that the floor has no say in it"

# Every alternative of the gate's first pattern, with the code it stands for.
FIRST_PATTERN = {
    "session complete": "session_summary",
    "session end": "session_summary",
    "Session ended": "session_summary",
    "session summary": "session_summary",
    "session wrap-up": "session_summary",
    "Group B complete": "session_summary",
    "next session: the exporter": "ephemeral",
    "next session we look at it": "ephemeral",
    "[BACKLOG] the exporter": "ephemeral",
    "PR merged": "session_summary",
    "pushed to main": "session_summary",
    "pushed to master": "session_summary",
    "task complete": "session_summary",
    "wrapped up today": "session_summary",
    "completed today": "session_summary",
    "completed this session": "session_summary",
    "all tasks done": "session_summary",
    "all tasks complete": "session_summary",
    "all steps done": "session_summary",
    "all steps complete": "session_summary",
}
FURTHER = {
    "## Phase 3 COMPLETE ✅": "session_summary",
    "✅ Auth module is done": "session_summary",
    "Auth module – implemented 🎉": "session_summary",
    "134/135 tests pass": "session_summary",
    "all 212 unit tests are green": "session_summary",
    "212 passed, 0 failed": "session_summary",
    "pushed `3fa9c1d`": "session_summary",
    "committed as 9b1c2d3e4f": "session_summary",
    "`5c1be907` — `feat(ai): connect the twin`": "session_summary",
    "Merged PR #11: better detection of clock speed": "session_summary",
    "Summary of session: the exporter": "session_summary",
    "本次会话完成了导出模块": "session_summary",
    "セッションのまとめ": "session_summary",
    "Resumen de la sesión": "session_summary",
    "Zusammenfassung der Sitzung": "session_summary",
    "Résumé de la session": "session_summary",
    "итоги сессии": "session_summary",
    "What: [describe the change]": "not_self_contained",
    "**Why**: TBD": "not_self_contained",
    "HEARTBEAT_OK": "ephemeral",
    "This is just a test message": "ephemeral",
}
LEFT_ALONE = [
    "The session endpoint answers 401 once its cookie is older than an hour, so clients must log in again.",
    "Use the session wrapper of the ORM: it commits at the end of a request and rolls back when one fails.",
    "Tests that touch the clock must pass on Windows as well, where its resolution is only 15 milliseconds.",
    "Never merge before the nightly build was green, because only that one runs the tests against Oracle.",
    "The heartbeat of the worker is sent every 5 seconds; after three missed ones its jobs are given away.",
    "Template literals with `[your name]` in them are replaced by the mailer before a message is sent.",
    "A commit like `3fa9c1d` must be signed, or else the release job will refuse to build it.",
    "See [your first plugin](docs/first.md) for how a plugin is registered, it needs two entries.",
    "Done means deployed: a ticket may be closed only when its change runs in production.",
    "What: the parser drops comments. Why: they have no place in the tree. Learned: keep them in a side table.",
]


@pytest.mark.parametrize(("text", "reason"), [*FIRST_PATTERN.items(), *FURTHER.items()])
def test_slop_is_refused_with_its_reason(text: str, reason: str) -> None:
    assert reason in gate(text if text.endswith(("]", "TBD")) else f"{text} {PADDING}")


@pytest.mark.parametrize("text", [str.upper, str.title, str.lower])
@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_case_does_not_matter(slop: str, text: type[str]) -> None:
    assert gate(f"{text(slop)} {PADDING}")


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_durable_memories_with_the_same_words_pass(text: str) -> None:
    assert gate(text) == []


@pytest.mark.parametrize("quotes", ['"{}"', "'{}'", "“{}”", "‘{}’", "«{}»", "»{}«", "„{}“", "「{}」", "『{}』", "`{}`"])
@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_what_is_only_mentioned_is_not_refused(slop: str, quotes: str) -> None:
    assert gate(f"Never store notes like {quotes.format(slop)} in this project, git has that already.") == []


@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_what_is_mentioned_and_also_used_is_refused(slop: str) -> None:
    assert gate(f"Never store “{slop}” notes. By the way: {slop} and a few more words for the floor.")


@pytest.mark.parametrize(
    "text",
    [
        "Don't wait, the PR merged and the team's exporter doesn't need the reviewers' word any more today.",
        "The users' PR merged and the developers' list of what is left can be thrown away by anybody now.",
        'An inch is written 5" here, PR merged, and the other part is 7 units long and 3 units wide.',
        "It's done, PR merged, that's all there is to say about the exporter that we've been working on.",
    ],
)
def test_apostrophes_and_lone_quotes_quote_nothing(text: str) -> None:
    assert gate(text) == ["session_summary"]


def test_a_text_that_is_quoted_as_a_whole_mentions_nothing() -> None:
    assert gate("“Session complete: all of the retry work is finished, nothing is left to do here.”")


def test_a_match_that_only_begins_or_ends_in_a_quotation_counts() -> None:
    assert gate("Finished the exporter for the ledger and then pushed `3fa9c1d` to the branch of the release.")


@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_the_space_between_the_words_may_be_of_any_kind(slop: str) -> None:
    assert gate(re.sub(" ", " \n\t ", slop) + f" {PADDING}")


def test_ids_are_unique_and_reasons_known() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert {rule.reason for rule in RULES} <= set(REASONS)


def test_doubtful_rules_are_off_until_they_are_asked_for() -> None:
    text = "Fixed the exporter so that it reads the ledger at midnight in UTC and not in local time."
    assert [rule.id for rule in matched_rules(text, RULES)] == ["change-line"]
    assert matched_rules(text) == []


@given(st.sampled_from([*FIRST_PATTERN, *FURTHER]), st.sampled_from(["", "a ", "'", "- ", "> "]), st.text(max_size=30))
def test_phrases_decide_nothing_that_the_pattern_would_not(slop: str, before: str, after: str) -> None:
    text = f"{before}{slop} {after}"
    slow = [Rule(rule.id, rule.reason, "", rule.pattern) for rule in RULES if rule.pattern]
    assert [r.id for r in matched_rules(text, slow)] == [r.id for r in matched_rules(text, RULES) if r.pattern]


def test_rules_are_listed_in_their_own_order() -> None:
    text = f"Session complete, PR merged, next session: the exporter. {PADDING}"
    assert [rule.id for rule in matched_rules(text)] == ["session-complete", "next-session", "pr-merged"]
    assert len(DEFAULT_RULES) < len(RULES)
