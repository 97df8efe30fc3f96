"""The hook's gate, run again by the service: one definition, and a second look for secrets."""

import re
import string
import unicodedata
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Any

from detect_secrets.core.plugins.initialize import from_plugin_classname

from app.schemas.vocabulary import Reason
from hooks import store_hygiene_gate as hook

# The detectors that recognise a secret by its shape. Those that go by entropy or by a keyword alone, or that look
# for IP addresses, refuse commit hashes and plain prose; of some kinds the hook knows better what only looks alike.
SHAPE_DETECTORS = (
    "AWSKeyDetector",
    "AzureStorageKeyDetector",
    "CloudantDetector",
    "GitHubTokenDetector",
    "GitLabTokenDetector",
    "JwtTokenDetector",
    "MailchimpDetector",
    "NpmDetector",
    "OpenAIDetector",
    "PypiTokenDetector",
    "SendGridDetector",
    "SlackDetector",
    "SquareOAuthDetector",
    "StripeDetector",
    "TelegramBotTokenDetector",
    "TwilioKeyDetector",
)

# All that they recognise has at least so many letters without a gap; ordinary prose has not, and need not be searched.
_LONG_RUN = re.compile(r"[^\s]{16}")

# What files and editors leave around a text, besides white space.
_AROUND = f"{string.whitespace}\u00a0\ufeff\u200b\u2060"
# Differences that nobody types: zero-width characters, soft hyphens, variation selectors, curly quotation marks.
_UNTYPED: dict[int, str | None] = {
    **dict.fromkeys([0xAD, 0x2060, 0xFEFF, *range(0x200B, 0x2010), *range(0xFE00, 0xFE10)]),
    **dict.fromkeys(map(ord, "“”„‟"), '"'),
    **dict.fromkeys(map(ord, "‘’‚‛"), "'"),
}

REASONS: dict[Reason, str] = {Reason(code): text for code, text in hook.REASONS.items()}
MINIMUM_WORDS: int = hook.MINIMUM_WORDS
MAXIMUM_CHARACTERS: int = hook.MAXIMUM_CHARACTERS


def check(text: str) -> tuple[Reason, ...]:
    """Reason codes for which the gate refuses a text; empty if it passes."""
    reasons = tuple(Reason(code) for code in hook.gate(text))
    if Reason.SECRET not in reasons and _further_secrets(text):
        return (Reason.SECRET, *reasons)
    return reasons


def redact(text: str) -> str:
    """The text with every secret that the gate recognises replaced."""
    redacted: str = hook.redact(text)
    for start, end in reversed(_further_secrets(redacted)):
        redacted = f"{redacted[:start]}[secret]{redacted[end:]}"
    return redacted


def legible(text: str) -> str:
    """The text as reviewers are shown it, alike whatever editor or system it comes from.

    Line ends are LF, letters are composed (Unicode NFC), and the white space and byte order marks around it are gone.
    What is invisible within it stays: it may be a disguise.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", lines).strip(_AROUND)


def normalised(text: str) -> str:
    """The text as equal texts share it.

    Unicode NFKC; case, white space and quotation marks folded; invisible characters, the marks of lists, headings and
    quotations at the beginning, and end stops gone.
    """
    words = unicodedata.normalize("NFKC", text.translate(_UNTYPED)).casefold().split()
    while words and not words[0].strip("-*+•–—#>"):
        words = words[1:]
    return " ".join(words).rstrip(".!。 ")


def text_hash(text: str) -> str:
    """SHA-256 of the normalised text, in hexadecimal."""
    return sha256(normalised(text).encode()).hexdigest()


def _further_secrets(text: str) -> list[tuple[int, int]]:
    """Where the detectors find what is no placeholder: start and end, in order, without overlaps."""
    found: list[tuple[int, int]] = []
    if not _LONG_RUN.search(text):
        return found
    matches = (match for detector in _detectors() for match in _matches(detector, text))
    for start, end in sorted(match.span() for match in matches if not hook.stands_for_secret(match[0])):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _matches(detector: Any, text: str) -> Iterator[re.Match[str]]:
    """Matches of a detector's shapes that it holds for formally valid as well."""
    for shape in detector.denylist:
        yield from (match for match in shape.finditer(text) if any(detector.analyze_string(match[0])))


@cache
def _detectors() -> tuple[Any, ...]:
    return tuple(from_plugin_classname(name) for name in SHAPE_DETECTORS)
