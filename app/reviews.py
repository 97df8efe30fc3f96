"""Calls and reviews: what was asked, what was found and decided, under the idempotency of the tool call id.

A review says what holds now; when a later decision changes that, `app.decisions` keeps what held before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Select, bindparam, func, insert, select, text, update
from sqlalchemy.engine import RowMapping
from sqlmodel import Session, col

from app import decisions, held, messages, policy
from app.callers import Caller
from app.cases import Case, Outcome
from app.db import new_id
from app.errors import Conflict, NotFound
from app.models import CALL, PROJECT, REVIEW, Call, Project, Review
from app.schemas.judging import Facts, Fault, Judgement, Shortcut, Usage
from app.schemas.reviews import DecisionOut, ReviewOut, ReviewRequest
from app.schemas.vocabulary import Verdict

# A review as its columns; written and read without objects between, since every review passes here.
Row = dict[str, Any]

MOST_SENT_BACK = 50

# What is still open about a review until it is decided; an undecided one has these values.
_BLANK: Row = {
    "verdict": None,
    "reasons": [],
    "message": "",
    "suggested_text": None,
    "facts": None,
    "evidence": {},
    "entry_id": None,
    "reviewer": "",
    "fault": None,
    "fault_detail": None,
    "cache_key": None,
    "decided_at": None,
    "stored_at": None,
    **Usage().model_dump(),
}
_SHOWN = [name for name in ReviewOut.model_fields if name in REVIEW.columns]

_THE_CALL = select(CALL.c.id, CALL.c.project_id, CALL.c.request_hash, CALL.c.open_until).where(
    CALL.c.key_id == bindparam("key_id"),
    CALL.c.session_id == bindparam("session_id"),
    CALL.c.tool_call_id == bindparam("tool_call_id"),
)
_KNOWN_CALLS = select(CALL.c.session_id, CALL.c.tool_call_id).where(
    CALL.c.key_id == bindparam("key_id"),
    CALL.c.session_id.in_(bindparam("session_ids", expanding=True)),
    CALL.c.tool_call_id.in_(bindparam("tool_call_ids", expanding=True)),
)
_ADD_CALL = insert(CALL)
_ADD = insert(REVIEW)
_DECIDE = update(REVIEW).where(REVIEW.c.id == bindparam("review_id"))
_OF_CALL = select(REVIEW).where(REVIEW.c.call_id == bindparam("call_id")).order_by(REVIEW.c.position)
_SENT_BACK = (
    select(REVIEW.c.verdict, REVIEW.c.entry_id, REVIEW.c.text)
    .where(
        REVIEW.c.session_id == bindparam("session_id"),
        REVIEW.c.key_id == bindparam("key_id"),
        text("verdict IN ('update', 'rewrite', 'reject')"),
        REVIEW.c.project_id == bindparam("project_id"),
    )
    .order_by(REVIEW.c.id.desc())
    .limit(MOST_SENT_BACK)
)
_NUMBERED = (
    select(
        REVIEW.c.session_id,
        REVIEW.c.verdict,
        REVIEW.c.entry_id,
        REVIEW.c.text,
        func.row_number().over(partition_by=REVIEW.c.session_id, order_by=REVIEW.c.id.desc()).label("place"),
    )
    .where(
        REVIEW.c.session_id.in_(bindparam("session_ids", expanding=True)),
        REVIEW.c.key_id == bindparam("key_id"),
        text("verdict IN ('update', 'rewrite', 'reject')"),
        REVIEW.c.project_id == bindparam("project_id"),
    )
    .subquery()
)
_SENT_BACK_OF_EACH = select(_NUMBERED.c.session_id, _NUMBERED.c.verdict, _NUMBERED.c.entry_id, _NUMBERED.c.text).where(
    _NUMBERED.c.place <= MOST_SENT_BACK
)
_DECIDED_REVIEWS: Select[Any] = (
    select(REVIEW, PROJECT.c.name.label("project_name"))
    .join(PROJECT, PROJECT.c.id == REVIEW.c.project_id)
    .where(REVIEW.c.verdict.is_not(None))
)


@dataclass(frozen=True)
class KnownCall:
    """A call that is on record; open while its model is being asked."""

    id: str
    project_id: str
    open: bool


@dataclass(frozen=True)
class SentBack:
    """What a session was refused for: entries that it was told to update, texts that it was told to rework."""

    told: frozenset[str]
    refused: list[str]


def request_hash(request: ReviewRequest) -> str:
    """SHA-256 of what makes two calls the same: all but the time that the caller will wait."""
    return sha256(request.model_dump_json(exclude={"deadline_seconds"}).encode()).hexdigest()


def find_call(session: Session, caller: Caller, request: ReviewRequest) -> KnownCall | None:
    """The caller's own call that this request repeats, or None.

    Raises:
        Conflict: the session used this tool call id for another content.
    """
    asked = {"key_id": caller.key_id, "session_id": request.session_id, "tool_call_id": request.tool_call_id}
    row = session.execute(_THE_CALL, asked).first()
    if row is None:
        return None
    if row.request_hash != request_hash(request):
        raise Conflict("This session has used this tool_call_id for another content; use a fresh id for a new call.")
    return KnownCall(row.id, row.project_id, open=row.open_until is not None)


def known_calls(session: Session, caller: Caller, requests: Sequence[ReviewRequest]) -> set[tuple[str, str]]:
    """Session and tool call ids of the caller's own calls that some of these requests repeat."""
    asked = {
        "key_id": caller.key_id,
        "session_ids": [request.session_id for request in requests],
        "tool_call_ids": [request.tool_call_id for request in requests],
    }
    return {(row[0], row[1]) for row in session.execute(_KNOWN_CALLS, asked)}


def add_calls(session: Session, cases: Sequence[Case], project_id: str, open_until: datetime | None = None) -> None:
    """Write calls down.

    Raises:
        IntegrityError: one was written by another request meanwhile.
    """
    rows = [
        {
            "id": case.call_id,
            "project_id": project_id,
            "key_id": case.caller.key_id,
            "session_id": case.request.session_id,
            "tool_call_id": case.request.tool_call_id,
            "request_hash": request_hash(case.request),
            "dry_run": case.request.dry_run,
            "open_until": open_until,
            "created_at": case.created_at,
        }
        for case in cases
    ]
    session.execute(_ADD_CALL, rows)


def undecided(case: Case, project_id: str) -> list[Row]:
    """The reviews of a call's texts before anything is decided, in their order."""
    request = case.request
    return [
        {
            **_BLANK,
            "id": new_id(),
            "call_id": case.call_id,
            "project_id": project_id,
            "key_id": case.caller.key_id,
            "session_id": request.session_id,
            "tool_call_id": request.tool_call_id,
            "position": position,
            "agent": request.agent,
            "agent_id": request.agent_id,
            "store": request.store,
            "tool": request.tool,
            "operation": request.operation.value,
            "key": draft.brief.key,
            "store_id": draft.candidate.store_id,
            "text": draft.text,
            "text_hash": draft.text_hash,
            "hygiene_read": request.hygiene_read,
            "reminder": request.reminder,
            "level": case.level.value,
            "created_at": case.created_at,
        }
        for position, draft in enumerate(case.drafts)
    ]


def add(session: Session, rows: list[Row]) -> None:
    """Write reviews down."""
    session.execute(_ADD, rows)


def save(session: Session, rows: list[Row]) -> None:
    """Write down what was decided about reviews that are there."""
    for row in rows:
        session.execute(_DECIDE, {"review_id": row["id"], **{name: row[name] for name in _BLANK}})


def wait(session: Session, rows: list[Row], now: datetime) -> None:
    """Let those of the reviews that are held wait for a decision; they are written down already."""
    for row in rows:
        if row["verdict"] == Verdict.HELD:
            held.add(session, row["id"], row["project_id"], Fault(row["fault"]) if row["fault"] else None, now)


def charge(session: Session, row: Row, judgement: Judgement) -> None:
    """Write down what judging a review took, where its verdict was found otherwise meanwhile and stands."""
    row |= judgement.usage.model_dump()
    session.execute(update(REVIEW).where(REVIEW.c.id == row["id"]).values(judgement.usage.model_dump()))


def of_call(session: Session, call_id: str) -> list[Row]:
    """A call's reviews in the order of its texts."""
    return [dict(row) for row in session.execute(_OF_CALL, {"call_id": call_id}).mappings()]


def interrupted(session: Session, now: datetime) -> list[Call]:
    """Open calls whose process did not come back in time."""
    return list(session.execute(select(Call).where(col(Call.open_until) < now)).scalars())


def close_call(session: Session, call_id: str) -> None:
    """Note that every text of the call is decided."""
    session.execute(update(Call).where(col(Call.id) == call_id).values(open_until=None))


def decided(session: Session, caller: Caller, review_id: str) -> Review:
    """A decided review.

    Raises:
        NotFound: there is none with this id that the caller sees.
    """
    review: Review | None = session.execute(
        select(Review)
        .join(Project, col(Project.id) == col(Review.project_id))
        .where(col(Review.id) == review_id, col(Review.verdict).is_not(None), caller.scope())
    ).scalar_one_or_none()
    if review is None:
        raise NotFound("There is no review with this id.")
    return review


def project_of(session: Session, caller: Caller, review_id: str) -> str:
    """Id of the review's project; the review need not be decided yet.

    Raises:
        NotFound: there is no such review that the caller sees.
    """
    project_id: str | None = session.execute(
        select(REVIEW.c.project_id)
        .join(PROJECT, PROJECT.c.id == REVIEW.c.project_id)
        .where(REVIEW.c.id == review_id, caller.scope())
    ).scalar()
    if project_id is None:
        raise NotFound("There is no review with this id.")
    return project_id


def is_dry_run(session: Session, review: Review) -> bool:
    """Whether the review was only asked for, with nothing to be stored."""
    return bool(session.execute(select(CALL.c.dry_run).where(CALL.c.id == review.call_id)).scalar_one())


def made_by(caller: Caller, *, key_id: str | None, session_id: str | None, project: str | None) -> Select[str, str]:
    """Selects ids of reviews and of their projects: those that came from a key, a session or both."""
    query = (
        select(REVIEW.c.id, REVIEW.c.project_id)
        .join(PROJECT, PROJECT.c.id == REVIEW.c.project_id)
        .where(caller.scope())
    )
    for column, value in ((REVIEW.c.key_id, key_id), (REVIEW.c.session_id, session_id), (PROJECT.c.name, project)):
        if value is not None:
            query = query.where(column == value)
    return query


def now_holds(session: Session, review: Review, **changes: Any) -> None:
    """Write into a review what holds of it since a later decision."""
    for name, value in changes.items():
        setattr(review, name, value)
    session.flush()


def cached(session: Session, cache_key: str) -> Judgement | None:
    """The judgement of an equal candidate among equal neighbours by the same prompt and model, if there was one."""
    row = session.execute(
        select(col(Review.facts), col(Review.reviewer), col(Review.model), col(Review.prompt_hash))
        .where(col(Review.cache_key) == cache_key)
        .limit(1)
    ).first()
    if row is None or row[0] is None:
        return None
    return Judgement(
        reviewer=row[1],
        facts=Facts.model_validate(row[0]),
        usage=Usage(model=row[2], prompt_hash=row[3]),
        shortcut=Shortcut.CACHE,
    )


def sent_back(session: Session, caller: Caller, session_id: str, project_id: str) -> SentBack:
    """What this session of the caller's was last sent back with."""
    asked = {"key_id": caller.key_id, "session_id": session_id, "project_id": project_id}
    return _sent_back(session.execute(_SENT_BACK, asked).all())


def sent_back_of_each(
    session: Session, caller: Caller, session_ids: Sequence[str], project_id: str
) -> dict[str, SentBack]:
    """The same of several sessions."""
    asked = {"key_id": caller.key_id, "session_ids": session_ids, "project_id": project_id}
    rows: dict[str, list[Sequence[Any]]] = {session_id: [] for session_id in session_ids}
    for session_id, *row in session.execute(_SENT_BACK_OF_EACH, asked):
        rows[session_id].append(row)
    return {session_id: _sent_back(some) for session_id, some in rows.items()}


def _sent_back(rows: Sequence[Sequence[Any]]) -> SentBack:
    return SentBack(
        told=frozenset(entry_id for verdict, entry_id, _ in rows if verdict == Verdict.UPDATE and entry_id is not None),
        refused=[text for verdict, _, text in rows if verdict != Verdict.UPDATE],
    )


def get(session: Session, caller: Caller, review_id: str) -> ReviewOut:
    """A decided review by its id.

    Raises:
        NotFound: there is none that the caller sees.
    """
    row = session.execute(_DECIDED_REVIEWS.where(REVIEW.c.id == review_id, caller.scope())).mappings().first()
    if row is None:
        raise NotFound("There is no review with this id.")
    return out(row, row["project_name"], decisions.of_reviews(session, [review_id]).get(review_id, []))


def let_through(session: Session, caller: Caller, session_id: str, tool_call_id: str) -> list[Review]:
    """The reviews of a tool call of the caller's that did not keep it from the store, in the order of its texts."""
    return list(
        session.execute(
            select(Review)
            .where(
                col(Review.key_id) == caller.key_id,
                col(Review.session_id) == session_id,
                col(Review.tool_call_id) == tool_call_id,
                col(Review.verdict).in_((Verdict.APPROVE.value, Verdict.HELD.value)),
            )
            .order_by(col(Review.position))
        ).scalars()
    )


def page(
    session: Session,
    caller: Caller,
    *,
    project_id: str | None = None,
    session_id: str | None = None,
    tool_call_id: str | None = None,
    verdict: Verdict | None = None,
    before: str | None = None,
    count: int = 50,
) -> list[ReviewOut]:
    """Decided reviews that the caller sees, made before the one with the id ``before``, newest first."""
    query = _DECIDED_REVIEWS.where(caller.scope()).order_by(REVIEW.c.id.desc()).limit(count)
    for column, value in (
        (REVIEW.c.project_id, project_id),
        (REVIEW.c.session_id, session_id),
        (REVIEW.c.tool_call_id, tool_call_id),
        (REVIEW.c.verdict, verdict),
    ):
        if value is not None:
            query = query.where(column == str(value))
    if before is not None:
        query = query.where(REVIEW.c.id < before)
    rows = session.execute(query).mappings().all()
    later = decisions.of_reviews(session, [row["id"] for row in rows])
    return [out(row, row["project_name"], later.get(row["id"], [])) for row in rows]


def settle(
    row: Row,
    outcome: Outcome,
    judgement: Judgement | None = None,
    *,
    now: datetime,
    note: str | None = None,
    updatable: bool = False,
) -> None:
    """Write what was decided into a review.

    Args:
        row: the review.
        outcome: the decision and what it points to.
        judgement: what the reviewer found; None where the gate or a fault decided.
        now: the moment of the decision.
        note: why the offline reviewer answered where the model was asked for.
        updatable: whether the store can update an item in place.
    """
    facts = judgement.facts if judgement else None
    decision = outcome.decision
    suggested_text = facts.suggested_text if facts and decision.verdict in policy.REFUSALS else None
    evidence: Row = {
        name: value.model_dump(mode="json")
        for name, value in (
            ("entry", outcome.entry),
            ("passage", outcome.passage),
            ("possible_duplicate", outcome.possible_duplicate),
        )
        if value is not None
    }
    if note:
        evidence["note"] = note
    if judgement and judgement.shortcut:
        evidence["shortcut"] = judgement.shortcut.value
    row |= {
        "verdict": decision.verdict.value,
        "reasons": [reason.value for reason in decision.reasons],
        "suggested_text": suggested_text,
        "message": messages.for_review(
            decision.verdict,
            decision.reasons,
            explanation=facts.reason if facts else "",
            suggested_text=suggested_text,
            entry=outcome.entry,
            passage=outcome.passage,
            fault=outcome.fault,
            updatable=updatable,
            in_call=True,
        ),
        "entry_id": row["entry_id"] or (outcome.entry.id if outcome.entry else None),
        "facts": facts.model_dump(mode="json") if facts else None,
        "evidence": evidence,
        "reviewer": judgement.reviewer if judgement else "gate",
        "fault": outcome.fault.value if outcome.fault else None,
        "fault_detail": judgement.fault_detail if judgement else None,
        "decided_at": now,
    }
    if judgement:
        row |= judgement.usage.model_dump()


def mark_stored(session: Session, caller: Caller, review_id: str, now: datetime) -> Review:
    """Note that the agent's tool has stored the review's text.

    Raises:
        NotFound: there is no such review that the caller sees.
    """
    review = decided(session, caller, review_id)
    review.stored_at = review.stored_at or now
    return review


def out(row: Mapping[str, Any] | RowMapping, project: str, later: Sequence[DecisionOut] = ()) -> ReviewOut:
    """The review as the API shows it, with later decisions about it."""
    facts, evidence = row["facts"] or {}, row["evidence"]
    return ReviewOut(
        **{name: row[name] for name in _SHOWN},
        project=project,
        category=facts.get("category"),
        confidence=facts.get("confidence"),
        entry=evidence.get("entry"),
        passage=evidence.get("passage"),
        possible_duplicate=evidence.get("possible_duplicate"),
        note=evidence.get("note"),
        decisions=list(later),
        shortcut=evidence.get("shortcut"),
        usage=Usage(**{name: row[name] for name in Usage.model_fields}),
    )
