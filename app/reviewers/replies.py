"""Turn a model's reply into facts, or say why it is unusable.

Nothing is guessed at: a reply that names what it was not shown, quotes what does not stand there or leaves a question
open gives no facts at all.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from app.prompts import neutralised
from app.schemas.judging import Brief, Facts, Fault, Restatement
from app.schemas.vocabulary import Category

# A quote shorter than this is no evidence: single words stand in nearly every passage.
QUOTE_WORDS = 3
QUOTE_LETTERS = 8  # of a script without capitals, such as Japanese or Thai, which may put no spaces between words

# Marks that a model copies as their plain twins.
_TYPOGRAPHY = {ord(mark): plain for plain, marks in (("'", "‘’‚′"), ('"', "“”„«»″"), ("-", "‐‑‒–—−")) for mark in marks}

# A model that was asked for one object and writes more stray braces than this before it has not understood.
_MOST_BRACES = 32

# Named to people; any other word of a server stays unsaid, as it might repeat the text.
_REFUSALS = frozenset({"cyber", "bio", "frontier_llm", "reasoning_extraction", "general_harms"})
_TRUNCATED = frozenset({"max_tokens", "model_context_window_exceeded"})

_Count = Annotated[int, BeforeValidator(lambda value: 0 if value is None else value), Field(ge=0)]


class NoFacts(Exception):
    """No facts can be had, and why.

    Attributes:
        fault: the reason in one stable word.
        detail: a short sentence for the person who looks into it; it repeats no text of the brief.
    """

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault
        self.detail = detail


class TokenCounts(BaseModel):
    """Tokens that a reply reports, by price class; what a server leaves out counts as none."""

    input_tokens: _Count = 0
    cache_creation_input_tokens: _Count = 0
    cache_read_input_tokens: _Count = 0
    output_tokens: _Count = 0


class Reply(BaseModel):
    """What matters of a reply of the Messages API; whatever else a server sends is ignored."""

    content: list[dict[str, Any]]
    stop_reason: str | None = None
    stop_details: Any = None
    usage: Annotated[TokenCounts, BeforeValidator(lambda value: {} if value is None else value)] = TokenCounts()

    @property
    def text(self) -> str:
        """The text that the model wrote, without thoughts or other blocks."""
        texts = (block.get("text") for block in self.content if block.get("type") == "text")
        return "".join(text for text in texts if isinstance(text, str))


def read_reply(body: str | bytes) -> Reply:
    """The reply in the body of a response.

    Raises:
        NoFacts: the body is no reply of the Messages API.
    """
    try:
        return Reply.model_validate_json(body)
    except ValidationError:
        # `from None`: the cause repeats the body.
        raise NoFacts(Fault.UPSTREAM_ERROR, "The server's answer is no reply of the Messages API.") from None


def facts_of(reply: Reply, brief: Brief) -> Facts:
    """The facts that a reply gives about the brief.

    Raises:
        NoFacts: the model declined, was cut off, or its answer is unusable.
    """
    # Before any parsing: text that was cut off or declined may still be JSON.
    if reply.stop_reason == "refusal":
        details = reply.stop_details if isinstance(reply.stop_details, dict) else {}
        category = details.get("category")
        kind = f" ({category})" if category in _REFUSALS else ""
        raise NoFacts(Fault.REFUSAL, f"The model declined to judge the text{kind}.")
    if reply.stop_reason in _TRUNCATED:
        raise NoFacts(Fault.TRUNCATED, f"The model's answer was cut off ({reply.stop_reason}).")
    return facts_in(reply.text, brief)


def facts_in(text: str, brief: Brief) -> Facts:
    """The facts in a model's answer: its first JSON object, whatever surrounds it.

    Raises:
        NoFacts: there is no object, it is no valid set of facts about this brief, or a second one contradicts it.
    """
    answers = _objects(text)
    answer = next(answers, None)
    if answer is None:
        raise NoFacts(Fault.NOT_JSON, "The model's answer holds no JSON object.")
    facts = _validated(answer)
    # A model that quotes the candidate before it answers may quote facts that the candidate brought along.
    if any(other != answer and _is_facts(other) for other in answers):
        raise NoFacts(Fault.SCHEMA_VIOLATION, "The model gave two answers that differ.")
    _check(facts, brief)
    return facts


def parse(answer: Mapping[str, Any] | str | bytes, brief: Brief) -> Facts:
    """The facts in an answer that was kept: a reply of the Messages API, bare facts, or the text that a model wrote.

    Raises:
        NoFacts: the answer is unusable for this brief.
    """
    if isinstance(answer, Mapping):
        whole = json.dumps(dict(answer))
    else:
        whole = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    first = next(_objects(whole), None)
    if first is not None and "content" in first:
        return facts_of(read_reply(json.dumps(first)), brief)
    return facts_in(whole, brief)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, from left to right, none inside another."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_MOST_BRACES):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)


def _validated(answer: dict[str, Any]) -> Facts:
    try:
        # From JSON rather than from the object, because strict JSON takes words of an enumeration but no look-alikes.
        return Facts.model_validate_json(json.dumps(answer), strict=True)
    except ValidationError as exc:
        fault = exc.errors(include_input=False, include_url=False)[0]
        place = ".".join(
            str(part) for part in fault["loc"] if part in Facts.model_fields or part in ("passage", "quote")
        )
        # `from None`: the cause repeats the answer.
        raise NoFacts(
            Fault.SCHEMA_VIOLATION, f"The answer is no set of facts: {place or 'fields'}, {fault['type']}."
        ) from None


def _is_facts(answer: dict[str, Any]) -> bool:
    try:
        _validated(answer)
    except NoFacts:
        return False
    return True


def _check(facts: Facts, brief: Brief) -> None:
    labels = {neighbour.label for neighbour in brief.neighbours}
    for field, label in (("duplicate_of", facts.duplicate_of), ("supersedes", facts.supersedes)):
        if label is not None and label not in labels:
            raise NoFacts(Fault.UNKNOWN_LABEL, f"{field} names an entry that was not shown.")
    if facts.duplicate_of is not None and facts.duplicate_of == facts.supersedes:
        raise NoFacts(Fault.SCHEMA_VIOLATION, "An entry cannot be both repeated and superseded.")
    if facts.category in (Category.RULE, Category.DISCOVERY) and facts.scope is None:
        raise NoFacts(Fault.SCHEMA_VIOLATION, f"A {facts.category.value} was judged without its scope.")
    if facts.category is Category.DECISION and facts.gives_why is None:
        raise NoFacts(Fault.SCHEMA_VIOLATION, "A DECISION was judged without whether it gives its why.")
    if facts.restates is not None:
        _check_quote(facts.restates, brief)


def _check_quote(claim: Restatement, brief: Brief) -> None:
    passage = next((p for p in brief.passages if p.label == claim.passage), None)
    if passage is None:
        raise NoFacts(Fault.UNKNOWN_LABEL, "restates names a passage that was not shown.")
    quote = _plain(claim.quote)
    uncased = sum(unicodedata.category(character) == "Lo" for character in quote)
    if len(quote.split()) < QUOTE_WORDS and uncased < QUOTE_LETTERS:
        raise NoFacts(Fault.QUOTE_NOT_FOUND, "The quote is too short to prove anything.")
    if quote not in _plain(f"{passage.heading} {passage.text}"):
        raise NoFacts(Fault.QUOTE_NOT_FOUND, "The quote does not stand in the passage.")


def _plain(text: str) -> str:
    """The text as a model saw it, but for line breaks, spaces and the cut of quotation marks and dashes."""
    return " ".join(unicodedata.normalize("NFC", neutralised(text)).translate(_TYPOGRAPHY).split())
