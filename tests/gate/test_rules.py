"""Patterns of slop: what they refuse, what they leave alone, and that they leave alone what is only mentioned."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.store_hygiene_gate import DEFAULT_RULES, REASONS, RULES, Phrases, Rule, Status, gate, matched_rules

PADDING = "and here are some more words, with which the floor has no say in it"

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
    "会话结束：导出模块已完成": "session_summary",
    "Resumen de la sesión. Objetivo: el exportador": "session_summary",
    "本次会话完成了导出模块": "session_summary",
    "セッションのまとめ:": "session_summary",
    "Resumen de la sesión:": "session_summary",
    "Zusammenfassung der Sitzung:": "session_summary",
    "Résumé de la session:": "session_summary",
    "итоги сессии:": "session_summary",
    "HEARTBEAT_OK": "ephemeral",
    "This is just a test message": "ephemeral",
}
# What people write for the phrases of the first pattern.
VARIANTS = [
    "Pushed to `main`",
    "pushed to origin/main",
    "pushed the changes to main",
    "PR #42 merged",
    "PR was merged",
    "PR has been merged",
    "The PR is merged.",
    "The session is complete,",
    "session_summary:",
    "Session-complete:",
    "session **complete**",
    "__Session complete__",
    "Session 14 wrap.",
    "all 5 tasks are done.",
    "134 tests passing",
    "ses\u200bsion complete",
    "Ｓｅｓｓｉｏｎ complete",
    "task completed",
    "PR merged了，",
    "📌 All 7 tasks are done:",
    "Here is a session summary of what we did:",
    "This is a session summary:",
]
LEFT_ALONE = [
    "The installer's steps complete in any order, and install steps complete after a reboot of the machine.",
    "An expr merged into its parent is freed by the arena at once, pointers to it dangle from then on.",
    "Apr merged builds are kept for a year in the archive bucket, those of other months for a week.",
    "Commits unpushed to main are listed by the release job, which stops when there are any.",
    "The task completely blocks the event loop of the worker while the archive is being unpacked.",
    "The session endianness flag decides how frames are read, the default is that of the network.",
    "The session-end-hook script runs with a clean environment, PATH is that of the login shell.",
    "Snapshots of src/session_summary_view.tsx are rendered with the clock of the suite, not with the real one.",
    "Buffers are flushed at session end; the collector drops what comes later than two seconds after it.",
    "Once the PR is merged, the preview environment is torn down by the nightly job of the platform team.",
    "All steps are done in one transaction, a crash in the middle leaves nothing behind in the ledger.",
    "See the [backlog](docs/backlog.md) page for how features are ranked, the product owner reorders it weekly.",
    "The session endpoint answers 401 once its cookie is older than an hour, so clients must log in again.",
    "Use the session wrapper of the ORM: it commits at the end of a request and rolls back when one fails.",
    "Tests that touch the clock must pass on Windows as well, where its resolution is only 15 milliseconds.",
    "Never merge before the nightly build was green, because only that one runs the tests against Oracle.",
    "The heartbeat of the worker is sent every 5 seconds; after three missed ones its jobs are given away.",
    "Template literals with `[your name]` in them are replaced by the mailer before a message is sent.",
    "A commit like `3fa9c1d` must be signed, or else the release job will refuse to build it.",
    "See [your first plugin](docs/first.md) for how a plugin is registered, it needs two entries.",
    "Done means deployed: a ticket may be closed only when its change runs in production.",
    "The bot labels a PR merged by an outsider as external, and the release notes credit them by name.",
    "Backfills run on the PR merged event of the forge, with the merge commit as their base revision.",
    "A session summary is written by the recorder to S3 under the call id, one JSON for each channel.",
    "The next session token is issued at login and stored hashed, the old one stays valid for 60 s.",
    "Task completed events arrive before the row is visible to readers; consumers wait for the replica.",
    "Airflow marks a **task complete** when the pod exits 0, even if the sidecar is still uploading logs.",
    "Images pushed to main get the tag edge, those pushed to a tag get latest; ArgoCD watches edge.",
    "What: the parser drops comments. Why: they have no place in the tree. Learned: keep them in a side table.",
]


@pytest.mark.parametrize(("text", "reason"), [*FIRST_PATTERN.items(), *FURTHER.items()])
def test_slop_is_refused_with_its_reason(text: str, reason: str) -> None:
    assert reason in gate(f"{text}{' ' if text[-1] != ':' else chr(10)}{PADDING}")


@pytest.mark.parametrize("text", VARIANTS)
def test_a_phrase_is_known_in_other_spellings(text: str) -> None:
    assert gate(f"{text} {PADDING}") == ["session_summary"]


@pytest.mark.parametrize("text", [str.upper, str.title, str.lower])
@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_case_does_not_matter(slop: str, text: type[str]) -> None:
    assert gate(f"{text(slop)} {PADDING}")


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_durable_memories_with_the_same_words_pass(text: str) -> None:
    assert gate(text) == []


@pytest.mark.parametrize(
    "argument", ["never close it by hand", "because CI is slow", "weil CI langsam ist", "必须重跑"]
)
@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_slop_beside_a_rule_or_a_reason_is_left_to_the_reviewer(slop: str, argument: str) -> None:
    assert gate(f"{slop} {PADDING}, {argument}.") == []


def test_a_rule_excuses_no_heartbeat_and_no_pattern_of_a_user() -> None:
    assert gate("This is only a test message, never mind it, it must be here for the test.") == ["ephemeral"]
    assert matched_rules("Never touch the ledger", [Rule("mine", "session_summary", "", "touch")])


@pytest.mark.parametrize(
    "text",
    [
        "会话结束后服务器会在三十秒内删除临时目录里的文件，磁盘不会写满",
        "セッション終了時に一時ファイルを削除するのはサーバーの仕事である",
        "세션 종료 시 임시 파일은 서버가 자동으로 삭제한다는 점을 기억해 두자 여기서",
        "Con la sesión terminada el servidor borra los ficheros temporales a los treinta segundos.",
        "The plugin writes the summary of the session into the sidebar, where the user may edit it.",
    ],
)
def test_a_sentence_about_sessions_is_no_log_of_one(text: str) -> None:
    assert gate(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "What: [describe the change]",
        "**Why**: TBD",
        "Decision: [describe the decision here] because [insert reason]",
        "What: the exporter\nWhere: N/A\nWhy: <the reason>\nLearned: …",
    ],
)
def test_a_template_with_little_else_in_it_is_refused(text: str) -> None:
    assert "not_self_contained" in gate(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where: N/A\nWhat: the parser drops comments of the tree and keeps them in a side table.",
        "Replace [your domain] in `nginx.conf` before the first deploy, the certificate is issued for that name.",
    ],
)
def test_an_empty_field_beside_a_full_memory_is_not(text: str) -> None:
    assert gate(text) == []


@pytest.mark.parametrize(
    "quotes", ['"{}"', "'{}'", "“{}”", "‘{}’", "«{}»", "»{}«", "„{}“", "「{}」", "『{}』", "`{}`", "*{}*", "_{}_"]
)
@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_what_is_only_mentioned_is_not_refused(slop: str, quotes: str) -> None:
    assert gate(f"Notes like {quotes.format(slop)} are not welcome in this project, git has that already.") == []


@pytest.mark.parametrize("quotes", ['"{}"', "'{}'", "‘{}’", "“{}”"])
@pytest.mark.parametrize(
    "text",
    [
        "这个项目的记忆里写{}这种话没有用，版本库里已经有了，读者也看不懂",
        "この記憶に{}のような文を書く意味はない、履歴を見れば誰にでも分かる",
        "이 프로젝트에서{}는 저장하지 않는다 기록에 이미 모두 남아 있다 그래서 쓸모가 없다",
    ],
)
def test_a_mention_needs_no_space_around_it(text: str, quotes: str) -> None:
    assert gate(text.format(quotes.format("PR merged"))) == []


def test_a_mention_may_have_an_ending() -> None:
    assert gate('Bu projede "PR merged"ları saklamak gereksiz, git zaten hepsini tutuyor, kimse okumuyor.') == []


@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_what_is_mentioned_and_also_used_is_refused(slop: str) -> None:
    assert gate(f"We keep no “{slop}” notes. By the way: {slop} and a few more words for the floor.")


@pytest.mark.parametrize(
    "text",
    [
        "We'll wait, the PR merged and the team's exporter won't need the reviewers' word any more today.",
        "The users' PR merged and the developers' list of what is left can be thrown away by anybody now.",
        'An inch is written 5" here, PR merged, and the other part is 7 units long and 3 units wide.',
        "It's done, PR merged, that's all there is to say about the exporter that we've been working on.",
    ],
)
def test_apostrophes_and_lone_quotes_quote_nothing(text: str) -> None:
    assert gate(text) == ["session_summary"]


SUMMARY = "Session complete: all of the retry work is finished, nothing is left to do here."


@pytest.mark.parametrize(
    "text",
    [
        f"“{SUMMARY}”",
        f"Note: “{SUMMARY}”",
        f"```\n{SUMMARY}\n```\nThat is all.",
        f"`{SUMMARY}`",
        "“Session complete” “all of the retry work is finished” “nothing is left to do here”",
    ],
)
def test_quoting_a_summary_makes_it_no_mention(text: str) -> None:
    assert gate(text) == ["session_summary"]


@pytest.mark.parametrize(
    "heading", ['"Session complete":', "`Session complete` —", "*Session complete*\n", "_PR merged_ -"]
)
def test_a_heading_is_no_mention(heading: str) -> None:
    assert gate(f"{heading} {PADDING}") == ["session_summary"]


def test_a_long_quotation_in_a_full_memory_is_a_mention() -> None:
    assert gate(f"The bot posts this text to the channel when its queue is empty: “{SUMMARY}”") == []


def test_a_match_that_only_begins_or_ends_in_a_quotation_counts() -> None:
    assert gate("Finished the exporter for the ledger and then pushed `3fa9c1d` to the branch of the release.")


@pytest.mark.parametrize("slop", FIRST_PATTERN)
def test_the_space_between_the_words_may_be_of_any_kind(slop: str) -> None:
    assert gate(re.sub(" ", " \n\t ", slop) + f" {PADDING}")


def test_ids_are_unique_and_reasons_known() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert {rule.reason for rule in RULES} <= set(REASONS)


def test_doubtful_rules_are_off_until_they_are_asked_for() -> None:
    text = "Fixed the exporter, which now reads the ledger at midnight in UTC and not in local time."
    assert [rule.id for rule in matched_rules(text, RULES)] == ["change-line"]
    assert matched_rules(text) == []


class Unhurried(Phrases):
    """Phrases by their pattern alone."""

    def __init__(self, rule: Rule) -> None:
        Status.__init__(self, rule.id, rule.reason, "", rule.pattern)

    hinted, refuses = Rule.hinted, Status.refuses


@given(
    st.sampled_from([*FIRST_PATTERN, *FURTHER, *VARIANTS]),
    st.sampled_from(["", "a ", "a: ", "'", "- ", "> ", "x-", "at "]),
    st.one_of(st.text(max_size=30), st.sampled_from([" events", " is", "\tget x", "** hooks: y", " of z"])),
)
def test_hints_and_short_cuts_decide_nothing_that_the_pattern_would_not(slop: str, before: str, after: str) -> None:
    text = f"{before}{slop}{after}"
    slow = [type(rule)(rule.id, rule.reason, "", rule.pattern) for rule in RULES if not isinstance(rule, Phrases)]
    slow += [Unhurried(rule) for rule in RULES if isinstance(rule, Phrases)]
    assert {rule.id for rule in matched_rules(text, slow)} == {rule.id for rule in matched_rules(text, RULES)}


def test_rules_are_listed_in_their_own_order() -> None:
    text = f"Session complete, PR merged, next session: the exporter. {PADDING}"
    assert [rule.id for rule in matched_rules(text)] == ["session-complete", "next-session", "pr-merged"]
    assert len(DEFAULT_RULES) < len(RULES)
