"""The hook's gate, run again by the service: one definition, and a second look for secrets."""

import unicodedata
from functools import cache
from hashlib import sha256
from typing import Any

from detect_secrets.core.plugins.initialize import from_plugin_classname

from app.schemas import Reason
from hooks import store_hygiene_gate as hook

# The detectors that recognise a secret by its shape. Those that go by entropy or by a keyword alone, or that look
# for IP addresses, refuse commit hashes and plain prose.
SHAPE_DETECTORS = (
    "ArtifactoryDetector",
    "AWSKeyDetector",
    "AzureStorageKeyDetector",
    "BasicAuthDetector",
    "CloudantDetector",
    "DiscordBotTokenDetector",
    "GitHubTokenDetector",
    "GitLabTokenDetector",
    "JwtTokenDetector",
    "MailchimpDetector",
    "NpmDetector",
    "OpenAIDetector",
    "PrivateKeyDetector",
    "PypiTokenDetector",
    "SendGridDetector",
    "SlackDetector",
    "SquareOAuthDetector",
    "StripeDetector",
    "TelegramBotTokenDetector",
    "TwilioKeyDetector",
)

REASONS: dict[Reason, str] = {Reason(code): text for code, text in hook.REASONS.items()}
MINIMUM_WORDS: int = hook.MINIMUM_WORDS
MAXIMUM_CHARACTERS: int = hook.MAXIMUM_CHARACTERS


def check(text: str) -> tuple[Reason, ...]:
    """Reason codes for which the gate refuses a text; empty if it passes."""
    reasons = tuple(Reason(code) for code in hook.gate(text))
    if Reason.SECRET not in reasons and _has_secret(text):
        return (Reason.SECRET, *reasons)
    return reasons


def redact(text: str) -> str:
    """The text with every secret that the gate recognises replaced."""
    redacted: str = hook.redact(text)
    for detector in _detectors():
        for found in detector.analyze_string(redacted):
            redacted = redacted.replace(found, "[secret]")
    return redacted


def normalised(text: str) -> str:
    """The text as equal texts share it: Unicode NFKC, case and white space folded, list marks and end stops gone."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = folded.split()
    while words and words[0] in {"-", "*", "•", "–", "#", "##", "###"}:
        words = words[1:]
    return " ".join(words).rstrip(".!。 ")


def text_hash(text: str) -> str:
    """SHA-256 of the normalised text, in hexadecimal."""
    return sha256(normalised(text).encode()).hexdigest()


def _has_secret(text: str) -> bool:
    return any(True for detector in _detectors() for _ in detector.analyze_string(text))


@cache
def _detectors() -> tuple[Any, ...]:
    return tuple(from_plugin_classname(name) for name in SHAPE_DETECTORS)
