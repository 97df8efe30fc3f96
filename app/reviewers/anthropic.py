"""The second model as a reviewer, over any server that speaks the Messages API.

Importing the SDK takes most of a second, so import this module where a model reviewer is built and nowhere else.
"""

import asyncio
import email.utils
import json
import math
import random
import re
import time
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import anthropic
from pydantic import ValidationError

from app.errors import ConfigurationError
from app.prices import price_of
from app.prompts import draw_nonce, facts_schema, load_prompts, untrusted_texts
from app.reviewers.replies import NoFacts, Reply, TokenCounts, facts_of, parse, read_reply
from app.schemas.judging import Brief, Fault, Judgement, Usage
from app.settings import Settings

ATTEMPTS = 2
BACKOFF_SECONDS = 0.5
# With less time than this left no answer can be expected, so a retry would only cost money.
SHORTEST_CALL_SECONDS = 0.5

# What a server adds to a prompt: turn markers, and its own words on the schema of the answer.
OVERHEAD_TOKENS = 1_024

OWN_HOST = "api.anthropic.com"

# A row for each kind of error; those that the SDK tells apart by an error code inherit the row of their status. A new
# kind fails a test instead of being guessed at.
FAULTS: Mapping[type[anthropic.AnthropicError], Fault] = MappingProxyType(
    {
        anthropic.BadRequestError: Fault.BAD_REQUEST,
        anthropic.ConflictError: Fault.BAD_REQUEST,
        anthropic.PreconditionFailedError: Fault.BAD_REQUEST,
        anthropic.ContentTooLargeError: Fault.BAD_REQUEST,
        anthropic.UnprocessableEntityError: Fault.BAD_REQUEST,
        anthropic.RequestHeaderFieldsTooLargeError: Fault.BAD_REQUEST,
        anthropic.AuthenticationError: Fault.UNAUTHORIZED,
        anthropic.PaymentRequiredError: Fault.UNAUTHORIZED,
        anthropic.PermissionDeniedError: Fault.UNAUTHORIZED,
        anthropic.OrganizationOnHoldError: Fault.UNAUTHORIZED,
        # Come with status 429, but waiting helps no more than it would with an unpaid bill.
        anthropic.ContractSpendLimitReachedError: Fault.UNAUTHORIZED,
        anthropic.EnforcedSpendLimitReachedError: Fault.UNAUTHORIZED,
        anthropic.CredentialsError: Fault.UNAUTHORIZED,
        anthropic.IdentityTokenFileError: Fault.UNAUTHORIZED,
        anthropic.WorkloadIdentityError: Fault.UNAUTHORIZED,
        anthropic.NotFoundError: Fault.MODEL_NOT_FOUND,
        anthropic.RateLimitError: Fault.RATE_LIMITED,
        anthropic.OverloadedError: Fault.OVERLOADED,
        anthropic.InternalServerError: Fault.UPSTREAM_ERROR,
        anthropic.HTTPNotImplementedError: Fault.UPSTREAM_ERROR,
        anthropic.ServiceUnavailableError: Fault.UPSTREAM_ERROR,
        anthropic.GatewayTimeoutError: Fault.UPSTREAM_ERROR,
        anthropic.RequestTimeoutError: Fault.UPSTREAM_ERROR,
        anthropic.ClientClosedRequestError: Fault.UPSTREAM_ERROR,
        anthropic.APIResponseValidationError: Fault.UPSTREAM_ERROR,
        anthropic.APIWebhookValidationError: Fault.UPSTREAM_ERROR,
        anthropic.APIStatusError: Fault.UPSTREAM_ERROR,
        anthropic.APITimeoutError: Fault.TIMEOUT,
        anthropic.APIConnectionError: Fault.CONNECTION,
        anthropic.RetryableError: Fault.UPSTREAM_ERROR,
        anthropic.APIError: Fault.UPSTREAM_ERROR,
        anthropic.AnthropicError: Fault.UPSTREAM_ERROR,
    }
)
_WORD = re.compile(r"[\w.-]{1,64}", re.ASCII)


class AnthropicReviewer:
    """Judges a candidate with one model call, retried once if the server could not answer.

    Close it with `aclose` in the event loop that used it.
    """

    parse = staticmethod(parse)

    def __init__(self, settings: Settings) -> None:
        """Prepare for the model, server and key of the settings; nothing is sent yet.

        Raises:
            ConfigurationError: the model has no known price, or the server's address is none.
        """
        self._settings = settings
        self._price = price_of(settings.model, settings.prices_file)
        self._prompts = load_prompts()
        self._host = _host(settings.anthropic_base_url)
        self._headers = _headers(settings)
        self._client = anthropic.AsyncAnthropic(
            # Never none: the SDK would look for keys of its own, and send them to whichever server is set.
            api_key=_key(settings) or "none",
            base_url=settings.anthropic_base_url,
            timeout=settings.model_timeout_seconds,
            max_retries=0,
            # Texts go to the configured server and nowhere else: neither after a redirect nor into traces.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
            open_telemetry=False,
        )

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same brief could get another answer: model, server, prompt, schema."""
        return f"{self._settings.model}@{self._host}/{self._prompts.version}"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def request(self, brief: Brief, nonce: str) -> dict[str, Any]:
        """What is sent to the Messages API for this brief; the same nonce gives the same request.

        Args:
            brief: the candidate with its neighbours and passages.
            nonce: marks the slots of untrusted text; see `app.prompts.draw_nonce`.
        """
        body: dict[str, Any] = {
            "model": self._settings.model,
            "max_tokens": self._settings.model_max_tokens,
            "system": [{"type": "text", "text": self._prompts.system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": self._prompts.message(brief, nonce)}],
            "output_config": {"format": {"type": "json_schema", "schema": facts_schema()}},
        }
        if self._price.thinking is not None:
            body["thinking"] = {"type": self._price.thinking}
        return body

    def worst_case_microdollars(self, brief: Brief) -> int:
        """The most that one `review` of the brief can cost, retries included; what a budget reserves.

        No token is shorter than a byte of its text, so the prompt has at most as many tokens as bytes.
        """
        body = self.request(brief, "0" * 8)
        prompt = json.dumps([body["system"], body["messages"], body["output_config"]], ensure_ascii=False)
        # A tokenizer may normalise first, and a single character can become eighteen.
        length = max(len(prompt.encode()), len(unicodedata.normalize("NFKC", prompt).encode()))
        return ATTEMPTS * self._price.worst_microdollars(length + OVERHEAD_TOKENS, self._settings.model_max_tokens)

    async def review(self, brief: Brief, deadline_seconds: float) -> Judgement:
        """Facts about the candidate, or the fault that kept them away; never raises for either.

        The usage counts what servers reported. An attempt whose answer never arrived reports nothing, even though a
        provider may charge for it.

        Args:
            brief: the candidate with its neighbours and passages.
            deadline_seconds: the answer is there within this time, or within the settings' if that is shorter.
        """
        started = time.perf_counter()
        until = asyncio.get_running_loop().time() + min(deadline_seconds, self._settings.model_timeout_seconds)
        attempts: list[TokenCounts] = []
        facts, failure = None, None
        try:
            async with asyncio.timeout_at(until):
                facts = facts_of(await self._replied(brief, attempts, until), brief)
        except NoFacts as exc:
            failure = exc
        except TimeoutError:
            failure = NoFacts(Fault.TIMEOUT, "The model did not answer within the deadline.")
        return Judgement(
            reviewer="anthropic",
            facts=facts,
            fault=failure.fault if failure else None,
            fault_detail=failure.detail if failure else None,
            usage=self._usage(attempts, time.perf_counter() - started),
        )

    async def _replied(self, brief: Brief, attempts: list[TokenCounts], until: float) -> Reply:
        """The model's reply; what each attempt took is added to the attempts, also when there is none."""
        if self._host == OWN_HOST and not _is_authorized(self._settings):
            raise NoFacts(Fault.UNAUTHORIZED, "No API key is set: MEMORY_BOUNCER_ANTHROPIC_API_KEY.")
        body = self.request(brief, draw_nonce(brief))
        while True:
            attempts.append(TokenCounts())
            try:
                reply = read_reply(await self._sent(body))
            except anthropic.AnthropicError as exc:
                attempts[-1] = _counts_in(exc)
                pause = _pause(exc)
                left = until - asyncio.get_running_loop().time()
                if len(attempts) == ATTEMPTS or pause is None or pause + SHORTEST_CALL_SECONDS > left:
                    # `from None`: the cause holds the request with all its texts.
                    raise _translated(exc, [*untrusted_texts(brief), _key(self._settings)]) from None
                await asyncio.sleep(pause)
            else:
                attempts[-1] = reply.usage
                return reply

    async def _sent(self, body: dict[str, Any]) -> bytes:
        # Raw, because the SDK takes any body for a message, and a local server may send any.
        response = await self._client.messages.with_raw_response.create(**body, extra_headers=self._headers)
        content: bytes = response.http_response.content
        return content

    def _usage(self, attempts: list[TokenCounts], seconds: float) -> Usage:
        return Usage(
            model=self._settings.model,
            prompt_hash=self._prompts.version,
            input_tokens=sum(counts.input_tokens for counts in attempts),
            cache_write_tokens=sum(counts.cache_creation_input_tokens for counts in attempts),
            cache_read_tokens=sum(counts.cache_read_input_tokens for counts in attempts),
            output_tokens=sum(counts.output_tokens for counts in attempts),
            # Attempt by attempt: each is billed by itself, at the rates for the length of its own prompt.
            cost_microdollars=sum(
                self._price.cost_microdollars(
                    input_tokens=counts.input_tokens,
                    cache_write_tokens=counts.cache_creation_input_tokens,
                    cache_read_tokens=counts.cache_read_input_tokens,
                    output_tokens=counts.output_tokens,
                )
                for counts in attempts
            ),
            latency_ms=round(seconds * 1_000),
            attempts=len(attempts),
        )


def _host(url: str) -> str:
    """Host and port of the server, without the name and password that an address may carry."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("MEMORY_BOUNCER_ANTHROPIC_BASE_URL is no address of a server (http:// or https://).")
    return parts.netloc.rpartition("@")[2].lower()


def _key(settings: Settings) -> str:
    return settings.anthropic_api_key.get_secret_value() if settings.anthropic_api_key is not None else ""


def _is_authorized(settings: Settings) -> bool:
    names = {name.lower() for name in settings.anthropic_headers}
    return bool(_key(settings)) or not names.isdisjoint({"authorization", "x-api-key"})


def _headers(settings: Settings) -> dict[str, str | anthropic.Omit]:
    headers: dict[str, str | anthropic.Omit] = dict(settings.anthropic_headers)
    if not _key(settings) and "authorization" not in {name.lower() for name in headers}:
        headers["Authorization"] = anthropic.Omit()
    return headers


def _fault(error: anthropic.AnthropicError) -> Fault:
    return next(FAULTS[kind] for kind in type(error).__mro__ if kind in FAULTS)


def _translated(error: anthropic.AnthropicError, private: list[str]) -> NoFacts:
    """The SDK's error as a fault, with a detail that repeats none of the private texts."""
    if not isinstance(error, anthropic.APIStatusError):
        return NoFacts(_fault(error), f"{type(error).__name__}.")
    named = (error.type, error.error_code, error.request_id)
    words = [word for word in named if isinstance(word, str) and _WORD.fullmatch(word)]
    detail = " ".join([f"HTTP {error.status_code}", *words])
    message = " ".join(error.api_message.split())[:200] if isinstance(error.api_message, str) else ""
    if message and not _echoes(message, private):
        detail += f": {message}"
    return NoFacts(_fault(error), detail)


def _echoes(message: str, private: list[str]) -> bool:
    """Whether a server's message repeats a piece of a private text, as validation messages like to do."""
    haystack = "\n".join([*private, *(ascii(text) for text in private)])
    width = min(16, len(message))
    return any(message[start : start + width] in haystack for start in range(len(message) - width + 1))


def _counts_in(error: anthropic.AnthropicError) -> TokenCounts:
    """What a failed attempt reports as used; a gateway may bill for one."""
    body = error.body if isinstance(error, anthropic.APIError) else None
    try:
        return TokenCounts.model_validate(body["usage"] if isinstance(body, dict) else {})
    except (KeyError, ValidationError):
        return TokenCounts()


def _may_pass(error: anthropic.AnthropicError) -> bool:
    if isinstance(error, anthropic.APIStatusError) and _fault(error) is Fault.UPSTREAM_ERROR:
        return error.status_code == 408 or error.status_code >= 500
    return _fault(error) in (Fault.RATE_LIMITED, Fault.OVERLOADED, Fault.CONNECTION)


def _pause(error: anthropic.AnthropicError) -> float | None:
    """Seconds to wait before asking again, or none if that is no use."""
    if not _may_pass(error):
        return None
    backoff = BACKOFF_SECONDS * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, protects nothing
    if not isinstance(error, anthropic.APIStatusError):
        return backoff
    headers = error.response.headers
    if headers.get("x-should-retry") == "false":
        return None
    asked = _seconds(headers.get("retry-after-ms"), 0.001)
    if asked is None:
        asked = _seconds(headers.get("retry-after"), 1.0)
    return backoff if asked is None else asked


def _seconds(value: str | None, unit: float) -> float | None:
    """A waiting time from a header: a number of units or a date, never negative; none if it is neither."""
    if value is None:
        return None
    try:
        seconds = float(value) * unit
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else math.inf
