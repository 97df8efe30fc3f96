"""What the agent is told: one text for each review, ready to show, keyed on the reason codes."""

from app.gate import REASONS
from app.schemas.judging import FOR_A_PERSON, Fault
from app.schemas.reviews import EntryRef, PassageRef, Removal, ReviewOut
from app.schemas.vocabulary import EntryStatus, Reason, Verdict
from hooks.store_hygiene_gate import machine_word, quote

EXCERPT = 400
SHORT_EXCERPT = 120
LONGEST_NAME = 200
LONGEST_EXPLANATION = 300
# A suggestion is shown whole or not at all, since half of one would be stored as it is. With all that may stand
# beside it, one of this length fits into the longest reason that the hooks pass on.
LONGEST_SUGGESTION = 900

REWORK = "Nothing is lost: rework it with the /hygiene skill and store that; what you would have to guess, leave out."
LET_GO = (
    "Nothing is lost: if a lasting fact is behind it, rework that with the /hygiene skill; else let it go, and do not"
    " write it elsewhere."
)
# A call stores all or nothing, so that the usual advice for these would lose both texts, or send the agent to search
# the store for what is not there.
IN_CALL: dict[tuple[Reason, ...], str] = {
    (Reason.DUPLICATE,): "[duplicate] The same text stands twice in this call: send it once.",
    (Reason.SECOND_STATE,): "[second_state] This call holds more than one STATE: merge them into one memory.",
}
CUT = "Only its beginning is shown: read the whole item before you replace it."
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
    in_call: bool = False,
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
        in_call: whether a twin or STATE that is not pointed to is another text of the same call.
    """
    within = IN_CALL.get(reasons) if in_call and entry is None and passage is None else None
    if within is not None:
        return within
    match verdict:
        case Verdict.APPROVE:
            return _approved(entry)
        case Verdict.HELD:
            return _held(fault)
        case Verdict.EXPIRED:
            return EXPIRED
        case Verdict.UPDATE:
            merged = suggested_text is not None and len(suggested_text) <= LONGEST_SUGGESTION
            lines = [_lead(reasons), *_update(entry, updatable=updatable, merged=merged)]
        case Verdict.DUPLICATE:
            lines = _twin(reasons, entry, passage, updatable=updatable)
            lines += [] if entry or passage else [_said(explanation)]
        case Verdict.REWRITE | Verdict.REJECT:
            lines = [_lead(reasons), _said(explanation), _next_step(verdict, reasons)]
    return "\n".join(filter(None, [*lines, _suggestion(suggested_text)]))


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
            twin = review.possible_duplicate
            lines.append(
                f"It may say the same as {_name(twin)}: {quote(twin.text, EXCERPT)} If it does, one is enough."
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
    by_person: bool = True,
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
        by_person: whether the reason is a person's words; else it is a message of ours, fenced already.
        quotable: False for a text that may be an attack, which is not shown again.
    """
    about = quote(text, SHORT_EXCERPT) if quotable else "a text that is not shown here since it may be an attack"
    if store is not None:
        lead = "Approved." if verdict is Verdict.APPROVE else f"Turned away, but reworded for you: {about}"
        lines = [f"{lead} Store exactly this text, with {place}:", _indented(store)]
    elif verdict is Verdict.APPROVE:
        lines = [f"Approved: {about}"]
    elif verdict is Verdict.EXPIRED:
        lines = [f"Expired: {about}: {EXPIRED}."]
    else:
        lines = [
            f"Turned away ({verdict}): {about}",
            f"Why: {quote(reason, EXCERPT) if by_person else reason}" if reason else "",
        ]
        lines.append(_suggestion(suggested_text))
    return "\n".join(filter(None, [*lines, *map(_removal, removals)]))


def place(tool: str, key: str | None) -> str:
    """Where a text was offered to: tool and key."""
    return machine_word(tool) + (f" under {quote(key, LONGEST_NAME)}" if key else "")


def _removal(removal: Removal) -> str:
    named = removal.store_id or removal.key
    where = f"store {machine_word(removal.store)}" + (f" (stored as {quote(named, LONGEST_NAME)})" if named else "")
    if removal.restore is not None:
        return f"In {where}, put back the former text: {_indented(removal.restore)}"
    sure = "" if removal.confirmed else ", if it is there"
    return f"Remove it from {where}{sure}."


def _lead(reasons: tuple[Reason, ...]) -> str:
    return " ".join(f"[{reason}] {REASONS[reason]}" for reason in reasons)


def _next_step(verdict: Verdict, reasons: tuple[Reason, ...]) -> str:
    if {Reason.SECRET, Reason.INJECTION} & {*reasons}:
        return ""  # the reasons themselves say what to do, which is not to try again
    return REWORK if verdict is Verdict.REWRITE else LET_GO


def _held(fault: Fault | None) -> str:
    cause = FAULTS[fault] if fault else "no reviewer answered"
    if fault in FOR_A_PERSON:
        return (
            f"It is held for a person: {cause}. Do not reword it or write it elsewhere: a later session is told what"
            " was decided."
        )
    return f"Nobody could judge it: {cause}."


def _said(explanation: str) -> str:
    return f"The reviewer says: {quote(explanation, LONGEST_EXPLANATION)}" if explanation.strip() else ""


def _suggestion(text: str | None) -> str:
    if not text or not text.strip():
        return ""
    if len(text) > LONGEST_SUGGESTION:
        return "There is a suggested text, too long to be shown here: write a shorter one."
    return f"Suggested text: {quote(text)}"


def _approved(entry: EntryRef | None) -> str:
    if entry is None:
        return "Approved."
    return (
        f"Approved as the newer text of {_name(entry)}; after storing it, remove the older item:"
        f" {quote(entry.text, EXCERPT)}"
    )


def _update(entry: EntryRef | None, *, updatable: bool, merged: bool) -> list[str]:
    if entry is None:
        return []
    how = (
        "Update that item in place with the store's own update tool (in a file: edit its lines), keeping what is still"
        " true."
        if updatable
        else "This store cannot update in place: store the merged text once more, then remove the older item."
    )
    length = SHORT_EXCERPT if merged else EXCERPT  # the suggested text holds what is still true of it
    about = f"It changes what {_name(entry)}, version {entry.version}, says: {quote(entry.text, length)}"
    return [about, how, CUT if len(entry.text) > length and not merged else ""]


def _twin(
    reasons: tuple[Reason, ...], entry: EntryRef | None, passage: PassageRef | None, *, updatable: bool
) -> list[str]:
    if passage is not None:
        where = quote(f"{passage.path} ({passage.heading})" if passage.heading else passage.path, LONGEST_NAME)
        return [_lead(reasons), f"It restates {where}: {quote(passage.quote, EXCERPT)}"]
    if entry is None:
        return [_lead(reasons)]
    if entry.status is EntryStatus.PENDING:
        on_its_way = "which was offered just now and is on its way into the store: leave it out."
        return [f"[duplicate] It says the same as {_name(entry)}, {on_its_way}"]
    rest = "store that alone, or update that item" if updatable else "store that alone"
    return [
        _lead(reasons),
        f"It says the same as {_name(entry)}: {quote(entry.text, EXCERPT)}",
        f"If something in it is new, {rest}.",
    ]


def _name(entry: EntryRef) -> str:
    named = entry.store_id or entry.key
    stored = f"stored as {quote(named, LONGEST_NAME)}" if named else "its id in the store is not known: search its text"
    return f"entry {entry.id} ({stored})"


def _indented(text: str) -> str:
    """The text with all but its first line indented, so that no line of it looks like one of ours."""
    return "\n    ".join(text.strip().splitlines())
