#!/usr/bin/env python3
"""Stands between a coding agent and its memory store, and turns slop away before it is stored.

The agent runs this file before and after each memory tool call, with the call as JSON on stdin. The gate judges
locally: secrets, size, tell-tale patterns of slop, and a floor of words. What passes it goes to the review service.
The answer is one JSON object on stdout, or nothing, which means no opinion; never an approval, and never a denial
because of the hook's own faults.

Standard library of Python 3.9 only, in one file, so that it runs anywhere and starts fast: what is slow to import is
imported where it is needed. The service imports this module for its own gate, so that there is one definition.
"""

# ruff: noqa: PLC0415 - what is slow to import is imported where it is needed
from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence

VERSION = "0.1.0"
STARTED = time.monotonic()

# --- words and reasons ------------------------------------------------------------------------------------------

MINIMUM_WORDS = 8
MAXIMUM_CHARACTERS = 4000
REASONS: dict[str, str] = {
    "session_summary": "It tells what was done, which git and the transcript keep anyway: store the decision, rule,"
    " discovery or quirk that came out of it, or nothing.",
    "too_short": "It has too few words to be understood later: write a full sentence that says what holds, where it"
    " applies and why.",
    "not_self_contained": "A reader who was not there cannot understand it: name the system or file that it is about"
    " and say what it refers to.",
    "too_specific": "It describes one incident or one resource: state the pattern that will hold next time, and cite"
    " the incident at the end.",
    "too_generic": "It holds for any project, or any model knows it: name the system it applies to and what is"
    " particular there, or leave it out.",
    "ephemeral": "It is true only for now: leave it out, or put where the project stands into its one STATE memory.",
    "no_why": "It gives a choice without the reason: add why, so that a later reader can tell whether it still holds.",
    "several_facts": "It holds several facts: store each of them as a memory of its own.",
    "restates_document": "The project's documents already say it: store only what they do not say.",
    "duplicate": "A stored memory already says it: update that memory if something has changed, else leave it out.",
    "second_state": "The project already has a STATE memory: update that one in place instead of adding another.",
    "secret": "It contains what looks like a credential: take the value out and say where it is kept instead.",
    "injection": "It gives orders to whoever reads it instead of stating a fact: reword it as a plain fact or rule of"
    " the project.",
    "too_long": "It is too long for one memory: keep the durable facts only, each as one short memory.",
}


# --- JSON -------------------------------------------------------------------------------------------------------


class _Decoder:
    """What the C scanner reads of a decoder; control characters inside strings are let pass."""

    strict, object_hook, object_pairs_hook = False, None, None
    parse_float, parse_int, parse_constant = float, int, float


def loads(text: str) -> object:
    """Parse a JSON document; raises `ValueError` for whatever is none or is nested too deeply.

    The C core is called directly, because importing the json package takes as long as all else in most runs.
    """
    text = text.strip(" \t\r\n\ufeff")
    try:
        from _json import make_scanner
    except ImportError:  # pragma: no cover - other interpreters than CPython
        from json import loads as parse

        return parse(text, strict=False)
    try:
        value, end = make_scanner(_Decoder)(text, 0)  # type: ignore[arg-type]
    except (StopIteration, RecursionError) as error:
        raise ValueError("no JSON, or nested too deeply") from error
    if end != len(text):
        raise ValueError("more than one JSON document")
    return value


def dumps(value: object) -> str:
    """Write plain data as JSON in ASCII."""
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:  # pragma: no cover - other interpreters than CPython
        from json import dumps as write

        return write(value)
    encode = make_encoder(None, None, encode_basestring_ascii, None, ": ", ", ", False, False, True)  # type: ignore[arg-type]
    return "".join(encode(value, 0))


# --- gate -------------------------------------------------------------------------------------------------------


class Rule:
    """One pattern of slop.

    `pattern` is a regular expression, searched case-insensitively. `hints` are casefolded strings of which a matching
    text holds at least one: where none occurs the pattern is neither compiled nor tried. Without hints it always is.
    """

    __slots__ = ("_compiled", "default", "hints", "id", "pattern", "reason")

    def __init__(
        self,
        id: str,  # noqa: A002 - the word that configuration files use
        reason: str,
        pattern: str,
        hints: Sequence[str] = (),
        *,
        default: bool = True,
    ) -> None:
        self.id, self.reason, self.pattern, self.hints, self.default = id, reason, pattern, hints, default
        self._compiled: re.Pattern[str] | None = None

    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern; raises `re.error` where it is none."""
        if self._compiled is None:
            import re

            self._compiled = re.compile(self.pattern, re.IGNORECASE | re.MULTILINE)
        return self._compiled

    def matches(self, text: str, folded: str, mentions: Callable[[], list[tuple[int, int]]]) -> bool:
        """Whether the pattern occurs in a text, other than wholly inside one of the mentioned spans."""
        if self.hints and not any(hint in folded for hint in self.hints):
            return False
        spans = (match.span() for match in self.compiled().finditer(text))
        return any(not any(a <= start and end <= b for a, b in mentions()) for start, end in spans)


_DONE = "(?:complete[d]?|done|finished|deployed|shipped|implemented|resolved|fixed)"
_CHECK = "(?:✅|✔️?|☑️?|🎉|🚀)"
RULES: tuple[Rule, ...] = (
    Rule("session-end", "session_summary", r"session +(?:complete|end(?!point)|summary|wrap(?!per))", ("session",)),
    Rule("group-complete", "session_summary", r"group +[a-z] +complete", ("group",)),
    Rule("next-session", "ephemeral", r"next +session[: ]", ("next",)),
    Rule("backlog", "ephemeral", r"\[backlog\]", ("[backlog]",)),
    Rule("pr-merged", "session_summary", r"(?<![a-z])pr +merged", ("merged",)),
    Rule("pushed-to-trunk", "session_summary", r"pushed +to +(?:main|master)", ("pushed",)),
    Rule("task-complete", "session_summary", r"task +complete", ("task",)),
    Rule("wrapped-up", "session_summary", r"wrapped +up +today", ("wrapped",)),
    Rule("completed-today", "session_summary", r"completed +(?:today|this +session)", ("completed",)),
    Rule("all-done", "session_summary", r"all +(?:tasks|steps) +(?:done|complete)", ("all",)),
    Rule(
        "status-heading",
        "session_summary",
        rf"\b{_DONE}[!.:)\]*_ -]*{_CHECK}|{_CHECK}[*_ ]*(?:\w+ +){{0,3}}{_DONE}\b",
        ("✅", "✔", "☑", "🎉", "🚀"),
    ),
    Rule(
        "test-count",
        "session_summary",
        r"\b\d+ */ *\d+ +(?:[a-z-]+ +)?tests? +(?:are +)?(?:pass|green|ok\b)"
        r"|\ball +\d+ +(?:[a-z-]+ +)?tests? +(?:are +)?(?:pass|green)"
        r"|\b\d+ +(?:tests? +)?passed\b[,;/ ]+(?:and +)?\d+ +(?:tests? +)?(?:failed|skipped|warn)",
        ("pass", "green", " ok"),
    ),
    Rule(
        "pushed-commit",
        "session_summary",
        r"\b(?:pushed|committed|landed|merged)\b(?: +\w+){0,4}[ :=(]+`?(?=[a-f]*\d)[0-9a-f]{7,40}\b",
        ("pushed", "committed", "landed", "merged"),
    ),
    Rule(
        "commit-list",
        "session_summary",
        r"(?<![\w/])`?(?=[a-f]*\d)[0-9a-f]{7,40}`?[ :)\]–—-]+`?"
        r"(?:feat|fix|chore|docs|refactor|test|ci|build|perf|style)(?:\([^()\n]{0,60}\))?!?:",
        ("feat", "fix", "chore", "docs", "refactor", "test", "ci", "build", "perf", "style"),
    ),
    Rule(
        "merged-request",
        "session_summary",
        r"\A\W*(?:merged|opened|closed|created) +(?:the +)?(?:pr|mr|pull +request|merge +request)"
        r" *[#!]?\d+",
        ("merged", "opened", "closed", "created"),
    ),
    Rule(
        "session-log",
        "session_summary",
        r"\bsummary +of +(?:the +|this +|today'?s +)?session\b"
        r"|\A\W*session +(?:log|notes|recap|report|handoff|hand-off)\b"
        r"|会话(?:总结|结束|摘要|小结)|本次会话|세션 *(?:요약|종료|완료)"
        r"|セッション(?:終了|完了|のまとめ|まとめ|サマリー)"
        r"|resumen +de +(?:la +|esta +)?sesi[oó]n|sesi[oó]n +(?:completada|terminada|finalizada)"
        r"|r[ée]sum[ée] +de +(?:la +|cette +)?session|resumo +da +sess[ãa]o"
        r"|zusammenfassung +der +(?:sitzung|session)|(?:sitzung|session) +(?:abgeschlossen|beendet)"
        r"|(?:итоги|резюме) +сессии|сессия +завершена",
        ("session", "会话", "セッション", "세션", "sesi", "sess", "sitzung", "сесси"),
    ),
    Rule(
        "template-field",
        "not_self_contained",
        r"^\W*(?:what|why|where|when|learned|goal|context|decision|reason|impact)\W{0,4}:\W{0,4}"
        r"(?:\[[^\]\n]{2,80}\](?!\()|<[a-z][^>\n]{2,80}>|tbd|todo|n/a|\.\.\.|…)\W*$"
        r"|\[(?:insert|describe|fill +in|your|add|enter)[ ][^\]\n]{2,60}\](?![(\[])",
        ("[", "<", "tbd", "todo", "n/a", "...", "…"),
    ),
    Rule(
        "heartbeat",
        "ephemeral",
        r"\b(?:heartbeat|silent)_ok\b"
        r"|\A\W*(?:heartbeat|keep-?alive|still +alive|status +check)\b(?:[\W\d]|ok\b|alive\b|t\b|z\b|utc\b)*\Z",
        ("heartbeat", "silent_ok", "keepalive", "keep-alive", "alive", "status"),
    ),
    Rule(
        "test-message",
        "ephemeral",
        r"\bthis +is +(?:just +|only +)?a +test +(?:message|entry|memory|note|record|write|save)\b"
        r"|\A\W*test(?:ing)? +(?:message|entry|memory|note|record|write)\b[\W\d]*\Z|\A\W*hello,? +world\W*\Z",
        ("test", "hello"),
    ),
    Rule("done-list", "session_summary", r"(?:^ *(?:[-*] +)?✅[^\n❌]*\n){2}", ("✅",), default=False),
    Rule(
        "change-line",
        "session_summary",
        r"\A\W*(?:fixed|added|updated|removed|refactored|implemented|cleared|repaired|reorgani[sz]ed)[ ]",
        ("fixed", "added", "updated", "removed", "refactored", "implemented", "cleared", "repaired", "reorgani"),
        default=False,
    ),
    Rule(
        "next-steps",
        "ephemeral",
        r"^\W*(?:next(?: +steps?)?|to-?do|remaining(?: +(?:work|tasks))?|up +next)\b\W{0,4}(?::|$)",
        ("next", "todo", "to-do", "remaining"),
        default=False,
    ),
    Rule(
        "percent-done",
        "ephemeral",
        r"\b(?:100|\d{1,2}) ?% +(?:complete|done|finished)\b",
        ("%",),
        default=False,
    ),
)
DEFAULT_RULES: tuple[Rule, ...] = tuple(rule for rule in RULES if rule.default)

_QUOTES = "\"“”„«»‹›「」『』‘’'`"
# An opening apostrophe follows no word and a closing one precedes none: those inside words quote nothing.
_MENTION = (
    r"```.*?```|`[^`\n]+`|“[^“”\n]+”|„[^„“”\n]+[“”]|«[^«»\n]+»|»[^«»\n]+«|‹[^‹›\n]+›|「[^「」\n]+」|『[^『』\n]+』"
    r'|‘[^‘\n]+?’(?!\w)|(?<![\w"])"[^"\n]+"(?!\w)|(?<![\w\'])\'[^\n]+?\'(?!\w)'
)


def _mentions(text: str) -> list[tuple[int, int]]:
    """Spans in quotes or back-ticks: words that the text speaks of. A text that is quoted as a whole mentions none."""
    if not any(quote in text for quote in _QUOTES):
        return []
    import re

    spans = [match.span() for match in re.finditer(_MENTION, text, re.DOTALL)]
    outside = text
    for start, end in reversed(spans):
        outside = outside[:start] + outside[end:]
    return spans if any(character.isalnum() for character in outside) else []


def matched_rules(text: str, rules: Iterable[Rule] = DEFAULT_RULES) -> list[Rule]:
    """Rules whose pattern the text uses, and does not only mention, in the rules' own order."""
    folded = text.casefold()
    known: list[list[tuple[int, int]]] = []

    def mentions() -> list[tuple[int, int]]:
        if not known:
            known.append(_mentions(text))
        return known[0]

    return [rule for rule in rules if rule.matches(text, folded, mentions)]


_SEPARATORS = dict.fromkeys(map(ord, ',;|()[]{}<>→⇒—–·•…"“”«»'), " ")
# Characters to a word, in scripts that put no spaces between words (or, in Korean, few).
_DENSE_SCRIPTS = (
    (0x0E00, 0x0EFF, 4),  # Thai, Lao
    (0x1000, 0x109F, 4),  # Myanmar
    (0x1100, 0x11FF, 4),  # Hangul letters
    (0x1780, 0x17FF, 4),  # Khmer
    (0x3041, 0x30FF, 2),  # Kana
    (0x3105, 0x31BF, 2),  # Bopomofo, Hangul compatibility letters
    (0x31F0, 0x31FF, 2),  # Kana extensions
    (0x3400, 0x4DBF, 2),  # Han
    (0x4E00, 0x9FFF, 2),
    (0xAC00, 0xD7A3, 2),  # Hangul syllables
    (0xF900, 0xFAFF, 2),
    (0xFF66, 0xFF9F, 2),  # half-width Kana
    (0x20000, 0x3FFFF, 2),
)


def count_words(text: str) -> int:
    """Count words: runs between spaces or separators that hold a letter or digit.

    A path, URL or identifier is one word, a list marker or emoji none. Scripts without spaces count by characters.
    """
    tokens = text.translate(_SEPARATORS).split()
    if text.isascii():
        return sum(any(map(str.isalnum, token)) for token in tokens)
    return sum(map(_words_in, tokens))


def _words_in(token: str) -> int:
    dense, plain = 0.0, 0
    for character in token:
        code = ord(character)
        size = next((size for first, last, size in _DENSE_SCRIPTS if first <= code <= last), 0) if code > 0xDFF else 0
        if size:
            dense += 1 / size
        elif character.isalnum():
            plain = 1
    return plain + int(dense + 0.75)


def gate(
    text: str,
    *,
    rules: Iterable[Rule] = DEFAULT_RULES,
    minimum_words: int = MINIMUM_WORDS,
    maximum_characters: int = MAXIMUM_CHARACTERS,
) -> list[str]:
    """Judge one text locally; return reason codes, each once, none if it passes.

    Deterministic, and bounded in time: patterns see no more than `maximum_characters` of the text.
    """
    reasons = ["secret"] if find_secrets(text) else []
    if len(text) > maximum_characters:
        reasons.append("too_long")
    head = text[:maximum_characters]
    reasons += [rule.reason for rule in matched_rules(head, rules)]
    if count_words(head) < minimum_words:
        reasons.append("too_short")
    return list(dict.fromkeys(reasons))


# --- secrets ----------------------------------------------------------------------------------------------------

# Kind, strings of which one must occur, shape. These shapes are nobody's words: what fits is a secret, unless it is
# plainly a placeholder.
_SECRETS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("aws_access_key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    ("github_token", ("github_pat_",), r"github_pat_\w{36,255}"),
    ("gitlab_token", ("gl",), r"gl(?:pat|ptt|dt|rt|cbt|oas|ft|imt|agent|soat)-[\w-]{20,}"),
    ("slack_token", ("xox", "xapp-"), r"(?:xox[abceoprs]|xapp)[-.](?=[a-z.-]*\d)[A-Za-z0-9][A-Za-z0-9.-]{14,}"),
    ("slack_webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,})"),
    ("stripe_key", ("k_live_", "k_test_", "whsec_"), r"(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9+/]{16,}"),
    ("google_key", ("AIza", "GOCSPX-", "ya29."), r"(?:AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{20,})"),
    ("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    ("pypi_token", ("pypi-",), r"pypi-[\w-]{50,}"),
    ("jwt", ("eyJ",), r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    ("sendgrid_key", ("SG.",), r"SG\.[\w-]{16,32}\.[\w-]{32,64}"),
    ("twilio_key", ("SK",), r"SK[0-9a-f]{32}\b"),
    ("discord_webhook", ("/api/webhooks/",), r"discord(?:app)?\.com/api/webhooks/\d{15,20}/([\w-]{50,})"),
    ("telegram_token", (":AA",), r"\d{8,10}:AA[\w-]{32,35}"),
    ("hugging_face_token", ("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    ("digitalocean_token", ("_v1_",), r"do[opr]_v1_[0-9a-f]{64}"),
    ("azure_key", ("AccountKey=", "AccessKey="), r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,88}={1,2})"),
    ("azure_secret", ("8Q~",), r"[\w.~-]{3}8Q~[\w.~-]{31,34}"),
    ("age_key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    ("ssh_key", ("b3BlbnNzaC1rZXkt",), r"b3BlbnNzaC1rZXkt[A-Za-z0-9+/=]{40,}"),
    ("databricks_token", ("dapi",), r"dapi[0-9a-f]{32}\b"),
    ("shopify_token", ("shp",), r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b"),
    ("vault_token", ("hvs.", "hvb."), r"hv[sb]\.[\w-]{24,}"),
    ("linear_key", ("lin_api_",), r"lin_api_[A-Za-z0-9]{32,}"),
    ("notion_token", ("ntn_",), r"ntn_[A-Za-z0-9]{40,}"),
    ("grafana_token", ("glsa_", "glc_"), r"(?:glsa|glc)_[A-Za-z0-9+/=_]{32,}"),
    ("docker_token", ("dckr_pat_",), r"dckr_pat_[\w-]{24,}"),
    ("supabase_key", ("sbp_", "sb_secret_"), r"(?:sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,})"),
    ("planetscale_token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[\w-]{30,}"),
    ("tailscale_key", ("tskey-",), r"tskey-[a-z]+-[A-Za-z0-9-]{20,}"),
    ("new_relic_key", ("NRAK-",), r"NRAK-[A-Z0-9]{27}"),
    ("postman_key", ("PMAK-",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("mailchimp_key", ("-us",), r"[0-9a-f]{32}-us\d{1,2}\b"),
    ("mailgun_key", ("key-",), r"key-[0-9a-f]{32}\b"),
    ("square_token", ("sq0",), r"sq0[a-z]{3}-[\w-]{22,}"),
    ("replicate_token", ("r8_",), r"r8_[A-Za-z0-9]{37,}"),
    ("groq_key", ("gsk_",), r"gsk_[A-Za-z0-9]{40,}"),
    ("xai_key", ("xai-",), r"xai-[A-Za-z0-9]{60,}"),
    ("discord_token", (), r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}"),
)
_KEYWORDS = (
    "password|passwd|passphrase|passcode|pwd|secret|token|credential|api key|api-key|api_key|apikey|access key|access-key"
    "|access_key|accesskey|private key|private_key|encryption_key|auth_key|signing_key|account_key|passwort"
    "|kennwort|contraseña|mot de passe|senha|пароль|密码|密碼|口令|密钥|パスワード|비밀번호"
)
_ASSIGNED = (
    rf"(?i:{_KEYWORDS})(?i:s|[_-]?(?:key|value|base|prod(?:uction)?|dev|test|live|\d{{1,3}})){{0,2}}[\"'`*]{{0,3}}"
    r"(?:\s*(?::=|=>|->|[:=：→是は])\s*|\s+(?:is|was|ist|est|es)\s*:?\s+)[\"'`*]{0,3}"
    r"([^\s\"'`,;<>\x80-\U0010ffff]{8,300})"
)
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]*(?:-(?!----)[^-]*)*(?:-----END[A-Z0-9 ]{0,60}-----)?"
)
# As above, but words and identifiers fit these shapes too: the value (the last group) must look generated.
_LOOSE_SECRETS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("private_key", ("PRIVATE KEY",), _PRIVATE_KEY),
    ("url_password", ("://",), r"://([^\s/:@'\"<>`]{0,64}):([^\s/'\"<>`]{3,128})@"),
    ("curl_password", ("curl",), r"\bcurl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =]['\"]?([^\s:'\"]{1,64}):([^\s'\"]{4,99})"),
    ("azure_signature", ("sig=",), r"[?&]sig=([A-Za-z0-9%+/]{40,}(?:%3D|=))"),
    ("api_key", ("sk-",), r"(?<![A-Za-z0-9])(sk-[\w-]{20,})"),
    ("authorization", ("earer ", "asic "), r"\b(?:[Bb]earer|[Bb]asic)\s+([\w.=+/~-]{16,})"),
    ("assigned_secret", tuple(_KEYWORDS.split("|")), _ASSIGNED),
)
_PLACEHOLDERS = tuple(
    "xxxx **** .... … < ${ {{ $( %( example placeholder your changeme change-me change_me redacted dummy sample insert"  # noqa: SIM905
    " replace fake- fake_ todo 0000000000 1234567890 abcdefgh".split()
)
_WEAK_PASSWORDS = frozenset(
    "password passwd pass pwd pw secret token user username admin root guest test postgres mysql redis rabbitmq mongo"  # noqa: SIM905
    " minio key api_key apikey access_token personal_access_token port".split()
)


def find_secrets(text: str) -> list[tuple[int, int, str]]:
    """Find what looks like a credential: `(start, end, kind)` in order, without overlaps.

    Placeholders (`<token>`, `${TOKEN}`, `xxxx`, …), hashes, UUIDs and paths are none.
    """
    folded = text.casefold()
    found: list[tuple[int, int, str]] = []
    for kind, hints, shape in _SECRETS:
        if any(hint in text for hint in hints) if hints else _holds_long_run(text):
            found += _spans(kind, f"(?<![A-Za-z0-9])(?:{shape})", text)
    for kind, hints, shape in _LOOSE_SECRETS:
        if any(hint in text or hint in folded for hint in hints):
            found += _spans(kind, shape, text, loose=True)
    kept: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(found, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, kind))
        elif end > kept[-1][1]:
            kept[-1] = (kept[-1][0], end, kept[-1][2])
    return kept


def redact(text: str) -> str:
    """Return the text with each secret's value replaced by `[redacted <kind>]`."""
    for start, end, kind in reversed(find_secrets(text)):
        text = f"{text[:start]}[redacted {kind}]{text[end:]}"
    return text


def _holds_long_run(text: str) -> bool:
    return any(len(run) > 57 and run.count(".") > 1 for run in text.split())


def _spans(kind: str, shape: str, text: str, *, loose: bool = False) -> Iterator[tuple[int, int, str]]:
    import re

    for match in re.finditer(shape, text, re.ASCII):
        group = match.lastindex or 0
        value = match[group].rstrip(".,:)]}*") if loose else match[group]
        if not any(mark in value.lower() for mark in _PLACEHOLDERS) and (not loose or _credible(kind, match, value)):
            yield match.start(group), match.start(group) + len(value), kind


def _credible(kind: str, match: re.Match[str], value: str) -> bool:
    if kind == "private_key":
        return any(len(run) >= 24 for run in value.partition("KEY")[2].split())
    if kind in ("url_password", "curl_password"):
        return value.lower() not in _WEAK_PASSWORDS and value != match[1] and value[0] not in "$%{["
    return kind == "azure_signature" or _looks_generated(value)


def _looks_generated(value: str) -> bool:
    """Whether letters and digits mix as they do in no word, path, version, identifier, call or UUID."""
    import re

    if len(set(value)) < 6 or not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    if any(mark in value for mark in "(){}$") or re.fullmatch(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value
    ):
        return False
    parts = re.split(r"[^A-Za-z0-9]+", value)
    return not all(re.fullmatch(r"\d{0,4}[A-Za-z]*\d{0,4}|\d+", part) for part in parts)


# --- project identity -------------------------------------------------------------------------------------------

PROJECT_FILE = ".bouncer.json"
_MAXIMUM_FILE = 1 << 20
_HOST_ALIASES = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
}


class Place:
    """Where a call was made: the project's top folder, its git folder and its `.bouncer.json`, if it has them."""

    __slots__ = ("git", "settings", "top")

    def __init__(self, cwd: str) -> None:
        folder = os.path.realpath(cwd)
        self.top, self.git, self.settings = folder, "", ""
        home = os.path.expanduser("~")
        while True:
            settings = os.path.join(folder, PROJECT_FILE)
            if not self.settings and os.path.isfile(settings):
                self.top, self.settings = folder, settings
            git = os.path.join(folder, ".git")
            if os.path.exists(git):
                self.top, self.git = folder, git
            parent = os.path.dirname(folder)
            if self.git or folder in (parent, home):
                return
            folder = parent


def project_identity(cwd: str) -> str:
    """Name the project that a folder belongs to, alike from all its folders, clones and worktrees.

    The name in its project file, else the canonical address of its git remote, else its folder with a hash of the
    path, which tells folders of equal name apart.
    """
    place = Place(cwd)
    name = project_file(place)[0].get("project")
    if isinstance(name, str) and name.strip():
        return _clip(" ".join("".join(filter(str.isprintable, name)).split()), 200)
    common = _git_common_folder(place.git)
    remote = _remote_url(read_file(os.path.join(common, "config"))) if common else ""
    if remote and not _is_local(remote):
        return _clip(canonical_remote(remote), 200)
    if remote:
        return _folder_name(os.path.join(place.top, remote.partition("file://")[2] or remote))
    return _folder_name(os.path.dirname(common) if os.path.basename(common) == ".git" else common or place.top)


def canonical_remote(url: str) -> str:
    """Reduce a git remote to `host/path`: its ssh, scp-like and https spellings give one result."""
    address = url.strip().replace("\\", "/")
    if "://" in address:
        address = address.partition("://")[2]
        host, _, path = address.partition("/")
    else:
        host, _, path = address.partition(":")
    host = host.rpartition("@")[2].lower()
    if ":" in host.rpartition("]")[2]:
        host = host.rpartition(":")[0]
    host = _HOST_ALIASES.get(host, host)
    parts = [part for part in path.partition("?")[0].lower().split("/") if part not in ("", "~")]
    if host == "dev.azure.com":
        parts = [part for part in parts if part not in ("v3", "_git")]
    path = "/".join(parts)
    return f"{host}/{path.removesuffix('.git')}"


def read_file(path: str) -> str:
    """Text of a regular file of reasonable size; empty if there is none or it cannot be read."""
    import stat

    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAXIMUM_FILE:
            return ""
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return file.read(_MAXIMUM_FILE)
    except (OSError, ValueError):
        return ""


def project_file(place: Place) -> tuple[dict[str, object], str]:
    """Contents of the project's file, and what is wrong with it, if anything."""
    text = read_file(place.settings) if place.settings else ""
    if not text:
        return {}, ""
    try:
        content = loads(text)
    except ValueError:
        content = None
    return (content, "") if isinstance(content, dict) else ({}, f"{PROJECT_FILE} of the project holds no JSON object")


def _git_common_folder(git: str) -> str:
    """Folder that holds the repository's config: that of the main checkout, where `git` is a worktree's file."""
    if not git or os.path.isdir(git):
        return git
    kind, _, target = read_file(git).partition(":")
    if kind.strip() != "gitdir":
        return ""
    folder = os.path.join(os.path.dirname(git), target.strip())
    common = read_file(os.path.join(folder, "commondir")).strip()
    return os.path.realpath(os.path.join(folder, common))


def _remote_url(config: str) -> str:
    """URL of `origin` in a git config, else of the first remote."""
    urls: dict[str, str] = {}
    section = ""
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section.lower().startswith("remote "):
            name, _, value = line.partition("=")
            if name.strip().lower() == "url":
                urls.setdefault(section[7:].strip().strip('"'), value.strip().strip('"'))
    return urls.get("origin") or next(iter(urls.values()), "")


def _is_local(remote: str) -> bool:
    head = remote.partition("/")[0]
    return remote.startswith("file://") or ":" not in head or (len(head) == 2 and head[1] == ":") or "\\" in head


def _folder_name(path: str) -> str:
    import binascii

    path = os.path.realpath(path)
    name = os.path.basename(path)
    return _clip(name.removesuffix(".git"), 180) + f"-{binascii.crc32(os.fsencode(path)):08x}"


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
