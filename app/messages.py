"""What the agent is told: one text for each review, ready to show, keyed on the reason codes."""

from app.gate import REASONS
from app.schemas import EntryRef, EntryStatus, Fault, PassageRef, Reason, Removal, ReviewOut, Verdict

EXCERPT = 400
SHORT_EXCERPT = 120

SENT_TO_HYGIENE = "Nothing is lost: run the /hygiene skill and store the reworked memory."
EXPIRED = "nobody decided about it in time: if it still holds, store it again and it is reviewed anew"
FAULTS: dict[Fault, str] = {
    Fault.NOT_JSON: "the reviewer's reply was no JSON",
    Fault.SCHEMA_VIOLATION: "the reviewer's reply did not have the agreed form",
    Fault.UNKNOWN_LABEL: "the reviewer named an entry or passage that it was not given",
    Fault.QUOTE_NOT_FOUND: "the reviewer quoted words that are not in the document",
    Fault.REFUSAL: "the model declined to judge this text",
    Fault.TRUNCATED: "the reviewer's reply was cut off",
    Fault.BAD_REQUEST: "the model's service did not accept the request",
    Fault.UNAUTHORIZED: "the model's service did not accept the key",
    Fault.MODEL_NOT_FOUND: "the model's service does not know the configured model",
    Fault.RATE_LIMITED: "the model's service limits the rate of requests",
    Fault.OVERLOADED: "the model's service is overloaded",
    Fault.UPSTREAM_ERROR: "the model's service failed",
    Fault.CONNECTION: "the model's service could not be reached",
    Fault.TIMEOUT: "the model did not answer in time",
    Fault.BUDGET_EXHAUSTED: "the budget for reviews is used up",
    Fault.TOO_MANY_CALLS: "the model has been asked too often within a minute",
    Fault.CIRCUIT_OPEN: "the model's service has failed several times in a row and is left alone for a while",
    Fault.INTERRUPTED: "the service was stopped during the review",
    Fault.REPEATED_REFUSALS: "near-same texts were refused three times in this session",
    Fault.SUSPICIOUS: "a part of it reads like an order to whoever reads it, so a person has to look at it",
}


def for_review(
    verdict: Verdict,
    reasons: tuple[Reason, ...],
    *,
    explanation: str = "",
    suggested_text: str | None = None,
    entry: EntryRef | None = None,
    passage: PassageRef | None = None,
    fault: Fault | None = None,
    updatable: bool = False,
) -> str:
    """The message of one review.

    Args:
        verdict: what was decided.
        reasons: its reason codes.
        explanation: the reviewer's own sentence.
        suggested_text: a text that would pass, if the reviewer gave one.
        entry: the entry that the verdict is about; for an approval, the older item to remove from the store.
        passage: the passage that the text restates.
        fault: why nobody could judge.
        updatable: whether the store has a tool that updates an item in place.
    """
    match verdict:
        case Verdict.APPROVE:
            return _approved(entry)
        case Verdict.HELD:
            cause = FAULTS[fault] if fault else "no reviewer answered"
            return f"nobody could judge it: {cause}"
        case Verdict.EXPIRED:
            return EXPIRED
        case Verdict.UPDATE:
            lines = [_lead(reasons), _update(entry, updatable=updatable)]
        case Verdict.DUPLICATE:
            lines = [_lead(reasons), *_twin(entry, passage)]
        case Verdict.REWRITE | Verdict.REJECT:
            lines = [_lead(reasons), explanation, SENT_TO_HYGIENE if Reason.SECRET not in reasons else ""]
    if suggested_text:
        lines.append(f"Suggested text: {suggested_text.strip()}")
    return "\n".join(line for line in lines if line)


def context(verdict: Verdict, reviews: list[ReviewOut]) -> str | None:
    """A short note beside an approved call: its categories, who judged, and what the agent should still look at."""
    if verdict is not Verdict.APPROVE:
        return None
    categories = ", ".join(dict.fromkeys(review.category for review in reviews if review.category))
    judges = ", ".join(dict.fromkeys(review.reviewer for review in reviews))
    lines = [f"Memory Bouncer let this pass{f' as {categories}' if categories else ''} (reviewer: {judges})."]
    for review in reviews:
        if review.note:
            lines.append(f"Note: {review.note}.")
        if review.entry is not None:
            lines.append(review.message)
        if review.possible_duplicate is not None:
            lines.append(
                f"It may say the same as {_name(review.possible_duplicate)}: {_excerpt(review.possible_duplicate.text)}"
            )
    return "\n".join(dict.fromkeys(lines))


def news(
    verdict: Verdict,
    text: str,
    *,
    store: str | None,
    place: str,
    reason: str,
    suggested_text: str | None,
    removals: list[Removal],
    quotable: bool = True,
) -> str:
    """What an agent is told of a decision that it was not there for.

    Args:
        verdict: what was decided.
        text: the text that it is about.
        store: the text to store as it is, if there is one.
        place: where the text was offered to: tool and key.
        reason: why, in the words of whoever decided.
        suggested_text: a text that may be offered instead.
        removals: what should leave the store.
        quotable: False for a text that may be an attack, which is not shown again.
    """
    about = _quote(text, SHORT_EXCERPT) if quotable else "a text that is not shown here since it may be an attack"
    if store is not None:
        lead = "Approved." if verdict is Verdict.APPROVE else f"Turned away, but reworded for you: {about}"
        lines = [f"{lead} Store exactly this text, with {place}:", store.strip()]
    elif verdict is Verdict.APPROVE:
        lines = [f"Approved: {about}"]
    elif verdict is Verdict.EXPIRED:
        lines = [f"Expired: {about}: {EXPIRED}."]
    else:
        lines = [f"Turned away ({verdict}): {about}", f"Why: {reason}" if reason else ""]
        lines.append(f"Suggested text: {suggested_text.strip()}" if suggested_text else "")
    return "\n".join(filter(None, [*lines, *map(_removal, removals)]))


def _removal(removal: Removal) -> str:
    named = removal.store_id or removal.key
    where = f"store {removal.store}" + (f" (stored as {named})" if named else "")
    if removal.restore is not None:
        return f"In {where}, put back the former text: {removal.restore.strip()}"
    sure = "" if removal.confirmed else ", if it is there"
    return f"Remove it from {where}{sure}."


def _lead(reasons: tuple[Reason, ...]) -> str:
    return " ".join(f"[{reason}] {REASONS[reason]}" for reason in reasons)


def _approved(entry: EntryRef | None) -> str:
    if entry is None:
        return "Approved."
    return (
        f"Approved as the newer text of {_name(entry)}; after storing it, remove the older item: {_excerpt(entry.text)}"
    )


def _update(entry: EntryRef | None, *, updatable: bool) -> str:
    if entry is None:
        return ""
    how = (
        "Update that item in place with the store's own update tool, keeping what is still true."
        if updatable
        else "This store cannot update in place: store the merged text once more, then remove the older item."
    )
    where = f"{_name(entry)}, version {entry.version}"
    return f"It belongs to {where}, whose text is: {_excerpt(entry.text)}\n{how}"


def _twin(entry: EntryRef | None, passage: PassageRef | None) -> list[str]:
    if passage is not None:
        where = f"{passage.path} ({passage.heading})" if passage.heading else passage.path
        return [f"It restates {where}: {_excerpt(passage.quote)}", "Store only what that document does not say."]
    if entry is not None and entry.status is EntryStatus.PENDING:
        return [f"It says the same as {_name(entry)}, which was offered just now and is on its way into the store."]
    if entry is not None:
        return [
            f"It says the same as {_name(entry)}: {_excerpt(entry.text)}",
            "If something in it is new, store that alone, or update that item.",
        ]
    return ["The same text stands twice in this call."]


def _name(entry: EntryRef) -> str:
    named = entry.store_id or entry.key
    return f"entry {entry.id}" + (f" (stored as {named})" if named else "")


def _excerpt(text: str) -> str:
    return _quote(text, EXCERPT)


def _quote(text: str, length: int) -> str:
    flat = " ".join(text.split())
    return f"“{flat}”" if len(flat) <= length else f"“{flat[: length - 1]}…”"
