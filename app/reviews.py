"""Calls and reviews: what was asked, what was found and decided, under the idempotency of the tool call id."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from sqlalchemy import Select, select, update
from sqlmodel import Session, col

from app import messages, policy
from app.cases import Outcome
from app.errors import Conflict, NotFound
from app.models import Call, Project, Review
from app.schemas import Facts, Fault, Judgement, ReviewOut, ReviewRequest, Usage, Verdict

USAGE_FIELDS = (
    "model",
    "prompt_hash",
    "input_tokens",
    "cache_write_tokens",
    "cache_read_tokens",
    "output_tokens",
    "attempts",
    "cost_microdollars",
    "latency_ms",
)


def request_hash(request: ReviewRequest) -> str:
    """SHA-256 of what makes two calls the same: all but the time that the caller will wait."""
    return sha256(request.model_dump_json(exclude={"deadline_seconds"}).encode()).hexdigest()


def find_call(session: Session, request: ReviewRequest) -> Call | None:
    """The call that this request repeats, or None.

    Raises:
        Conflict: the session used this tool call id for another content.
    """
    call = session.execute(
        select(Call).where(col(Call.session_id) == request.session_id, col(Call.tool_call_id) == request.tool_call_id)
    ).scalar_one_or_none()
    if call is not None and call.request_hash != request_hash(request):
        raise Conflict("This session has used this tool_call_id for another content; use a fresh id for a new call.")
    return call


def of_call(session: Session, call_id: str) -> list[Review]:
    """A call's reviews in the order of its texts."""
    return list(
        session.execute(select(Review).where(col(Review.call_id) == call_id).order_by(col(Review.position))).scalars()
    )


def interrupted(session: Session, now: datetime) -> list[Call]:
    """Open calls whose process did not come back in time."""
    return list(session.execute(select(Call).where(col(Call.open_until) < now)).scalars())


def close_call(session: Session, call_id: str) -> None:
    """Note that every text of the call is decided."""
    session.execute(update(Call).where(col(Call.id) == call_id).values(open_until=None))


def decided(session: Session, review_id: str) -> Review:
    """A decided review.

    Raises:
        NotFound: there is none with this id.
    """
    review = session.get(Review, review_id)
    if review is None or review.verdict is None:
        raise NotFound("There is no review with this id.")
    return review


def cached(session: Session, cache_key: str) -> Judgement | None:
    """The judgement of an equal candidate among equal neighbours by the same prompt and model, if there was one."""
    row = session.execute(
        select(col(Review.facts), col(Review.reviewer), col(Review.model), col(Review.prompt_hash))
        .where(col(Review.cache_key) == cache_key)
        .limit(1)
    ).first()
    if row is None or row[0] is None:
        return None
    return Judgement(reviewer=row[1], facts=Facts.model_validate(row[0]), usage=Usage(model=row[2], prompt_hash=row[3]))


def told_to_update(session: Session, session_id: str, project_id: str) -> frozenset[str]:
    """Ids of the entries that this session was told to update."""
    return frozenset(
        entry_id
        for entry_id in session.execute(
            select(col(Review.entry_id)).where(
                col(Review.session_id) == session_id,
                col(Review.verdict) == Verdict.UPDATE.value,
                col(Review.project_id) == project_id,
            )
        ).scalars()
        if entry_id is not None
    )


def refused_texts(session: Session, session_id: str, project_id: str, count: int = 20) -> list[str]:
    """The texts for which this session was last sent back to rework them, newest first."""
    return list(
        session.execute(
            select(col(Review.text))
            .where(
                col(Review.session_id) == session_id,
                col(Review.project_id) == project_id,
                col(Review.verdict).in_((Verdict.REWRITE.value, Verdict.REJECT.value)),
            )
            .order_by(col(Review.id).desc())
            .limit(count)
        ).scalars()
    )


def get(session: Session, review_id: str) -> ReviewOut:
    """A decided review by its id.

    Raises:
        NotFound: there is none.
    """
    row = session.execute(_with_project().where(col(Review.id) == review_id)).first()
    if row is None:
        raise NotFound("There is no review with this id.")
    return out(row[0], row[1])


def approved(session: Session, session_id: str, tool_call_id: str) -> list[Review]:
    """The approved reviews of a tool call, in the order of its texts."""
    return list(
        session.execute(
            select(Review)
            .where(
                col(Review.session_id) == session_id,
                col(Review.tool_call_id) == tool_call_id,
                col(Review.verdict) == Verdict.APPROVE.value,
            )
            .order_by(col(Review.position))
        ).scalars()
    )


def page(
    session: Session,
    *,
    project_id: str | None = None,
    session_id: str | None = None,
    tool_call_id: str | None = None,
    verdict: Verdict | None = None,
    before: str | None = None,
    count: int = 50,
) -> list[ReviewOut]:
    """Decided reviews made before the one with the id ``before``, newest first."""
    query = _with_project().order_by(col(Review.id).desc()).limit(count)
    for column, value in (
        (Review.project_id, project_id),
        (Review.session_id, session_id),
        (Review.tool_call_id, tool_call_id),
        (Review.verdict, verdict),
    ):
        if value is not None:
            query = query.where(col(column) == str(value))
    if before is not None:
        query = query.where(col(Review.id) < before)
    return [out(review, name) for review, name in session.execute(query)]


def settle(
    row: Review,
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
    row.verdict = decision.verdict.value
    row.reasons = [reason.value for reason in decision.reasons]
    row.suggested_text = facts.suggested_text if facts and decision.verdict in policy.REFUSALS else None
    row.message = messages.for_review(
        decision.verdict,
        decision.reasons,
        explanation=facts.reason if facts else "",
        suggested_text=row.suggested_text,
        entry=outcome.entry,
        passage=outcome.passage,
        fault=outcome.fault,
        updatable=updatable,
    )
    row.entry_id = row.entry_id or (outcome.entry.id if outcome.entry else None)
    row.facts = facts.model_dump(mode="json") if facts else None
    row.evidence = {
        name: value.model_dump(mode="json")
        for name, value in (
            ("entry", outcome.entry),
            ("passage", outcome.passage),
            ("possible_duplicate", outcome.possible_duplicate),
        )
        if value is not None
    }
    if note:
        row.evidence["note"] = note
    row.reviewer = judgement.reviewer if judgement else "gate"
    row.fault = outcome.fault.value if outcome.fault else None
    row.fault_detail = judgement.fault_detail if judgement else None
    if judgement:
        for name, value in judgement.usage.model_dump().items():
            setattr(row, name, value)
    row.decided_at = now


def mark_stored(session: Session, review_id: str, now: datetime) -> Review:
    """Note that the agent's tool has stored the review's text.

    Raises:
        NotFound: there is no such review.
    """
    review = decided(session, review_id)
    review.stored_at = review.stored_at or now
    return review


def out(review: Review, project: str) -> ReviewOut:
    """The review as the API shows it."""
    return ReviewOut(
        id=review.id,
        tool_call_id=review.tool_call_id,
        session_id=review.session_id,
        project=project,
        agent=review.agent,
        agent_id=review.agent_id,
        store=review.store,
        tool=review.tool,
        operation=review.operation,
        position=review.position,
        key=review.key,
        text=review.text,
        verdict=review.verdict,
        category=review.facts["category"] if review.facts else None,
        reasons=review.reasons,
        message=review.message,
        suggested_text=review.suggested_text,
        entry_id=review.entry_id,
        entry=review.evidence.get("entry"),
        passage=review.evidence.get("passage"),
        possible_duplicate=review.evidence.get("possible_duplicate"),
        reviewer=review.reviewer,
        fault=Fault(review.fault) if review.fault else None,
        usage=Usage(**{name: getattr(review, name) for name in USAGE_FIELDS}),
        confidence=review.facts["confidence"] if review.facts else None,
        note=review.evidence.get("note"),
        created_at=review.created_at,
        decided_at=review.decided_at,
        stored_at=review.stored_at,
    )


def verdicts(reviews: Sequence[Review]) -> list[Verdict]:
    """The verdicts of decided reviews."""
    return [Verdict(review.verdict) for review in reviews if review.verdict is not None]


def _with_project() -> Select[Review, str]:
    return (
        select(Review, col(Project.name))
        .join(Project, col(Project.id) == col(Review.project_id))
        .where(col(Review.verdict).is_not(None))
    )
