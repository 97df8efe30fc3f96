"""What comes after a review: held texts are decided, verdicts are overruled, and the agent is told.

Whoever decides, it is written down the same way and under the project's lock, after the review was read again: of two
that decide at once, the first one's decision is what the second one finds.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.engine import RowMapping
from sqlmodel import Session

from app import audit_log, decisions, entries, gate, held, messages, projects, reviews
from app.callers import LOCAL, Caller
from app.db import new_id
from app.errors import BouncerError, Forbidden, Invalid
from app.models import LOCAL_KEY, REVIEW, Review
from app.pipeline import Pipeline
from app.pipeline.judging import NOTE_SURE
from app.reviewers.offline import OfflineReviewer
from app.schemas.judging import LASTING, Brief, Facts, Fault
from app.schemas.queue import DecisionIn, News, NewsItem, Override, OverridePage, WithdrawalIn, WithdrawalOut
from app.schemas.reviews import CallOut, Candidate, DecidedBy, Earlier, Removal, ReviewOut, ReviewRequest, Telling
from app.schemas.vocabulary import Category, EntryStatus, Operation, Reason, Role, Verdict
from app.settings import Settings

# How many held texts the reviewer is given at once by one process, and how long it may think about each.
AT_ONCE = 4
DEADLINE_SECONDS = 60.0
LEASE = timedelta(seconds=3 * DEADLINE_SECONDS)
MOST_NEWS = 50


@dataclass(frozen=True)
class Ruling:
    """A decision on its way into the books."""

    by: DecidedBy
    verdict: Verdict
    reason: str
    key_id: str | None = None
    reasons: tuple[Reason, ...] = ()
    suggested_text: str | None = None
    facts: Facts | None = None
    judged: ReviewOut | None = None

    @property
    def refuses(self) -> bool:
        """Whether it keeps the text out of the store."""
        return self.verdict not in (Verdict.APPROVE, Verdict.EXPIRED)


class Queue:
    """Decides about reviews after they were made, and remembers what the agents have been told of it."""

    def __init__(self, pipeline: Pipeline, settings: Settings) -> None:
        self._pipeline = pipeline
        self._index = pipeline.index
        self._database = pipeline.index.database
        self._now: Callable[[], datetime] = pipeline.index.now
        self._offline = OfflineReviewer()
        self._patience = timedelta(days=settings.held_days)

    # --- a person ----------------------------------------------------------------------------------------------

    def decide(self, caller: Caller, review_id: str, given: DecisionIn) -> ReviewOut:
        """Let a person's word hold for a review, whatever held before.

        Raises:
            NotFound: there is no such review that the caller sees.
            Forbidden: the caller's own key proposed the text.
            Invalid: a secret would be stored, or what is suggested would be turned away at the door.
        """
        if given.suggested_text is not None and (faults := gate.check(given.suggested_text)):
            raise Invalid(f"The suggested text would be turned away: {', '.join(faults)}.")
        if given.suggested_text is not None and given.verdict is not Verdict.REWRITE:
            raise Invalid("A suggested text goes with the verdict rewrite.")
        with self._database.write() as session:
            review = self._locked(session, caller, review_id)
            if review.key_id == caller.key_id != LOCAL_KEY:
                raise Forbidden("This key proposed the text, so another one has to decide about it.")
            if given.verdict is Verdict.APPROVE and _held_secret(session, review):
                raise Invalid("The text held a secret, which was taken out: give a text without it, as a rewrite.")
            ruling = Ruling(
                DecidedBy.PERSON,
                given.verdict,
                given.reason.strip(),
                key_id=caller.key_id,
                reasons=tuple(given.reasons),
                suggested_text=given.suggested_text,
                facts=self._facts(review, given),
            )
            earlier = review.verdict
            self._rule(session, review, ruling)
            for twin_id in held.equal_texts(session, review.project_id, review.text_hash):
                self._rule(session, session.get_one(Review, twin_id), ruling, silent=True)
            audit_log.note(
                session,
                caller,
                "review.decided",
                review_id,
                now=self._now(),
                before={"verdict": earlier},
                after={"verdict": given.verdict.value},
            )
            return reviews.get(session, caller, review_id)

    def _facts(self, review: Review, given: DecisionIn) -> Facts | None:
        """What is known of the text that may be stored: the reviewer's findings, under the person's category."""
        if given.verdict is Verdict.REJECT:
            return None
        known = Facts.model_validate(review.facts) if review.facts and not given.suggested_text else None
        facts = known or self._offline_facts(review, given.suggested_text or review.text)
        changes = {"duplicate_of": None, "supersedes": None, "restates": None, "suggested_text": None}
        return facts.model_copy(update=changes | ({"category": given.category} if given.category else {}))

    def _offline_facts(self, review: Review, text: str) -> Facts:
        operation = Operation(review.operation)
        brief = Brief(text=text, project="", operation=operation, key=review.key, neighbours=(), passages=())
        facts = self._offline.judge(brief).facts
        assert facts is not None  # noqa: S101 - it always finds something
        return facts

    # --- the reviewer, when it is back -------------------------------------------------------------------------

    async def reconsider(self) -> int:
        """Have the reviewer judge what it could not judge before, oldest first; how many texts it has decided.

        One is tried first, then some at a time, for as long as all of them are decided.
        """
        decided, count = 0, 1
        while taken := await asyncio.to_thread(self._take, count):
            done = await asyncio.gather(*(self._reconsider(tries, review, project) for tries, review, project in taken))
            decided += sum(done)
            if not all(done):
                break  # it is not back yet, or has no budget
            count = AT_ONCE
        return decided

    def _take(self, count: int) -> list[tuple[int, Review, str]]:
        with self._database.write() as session:
            return held.take(session, self._now(), LEASE, count)

    async def _reconsider(self, tries: int, review: Review, project: str) -> bool:
        """Judge one text again, as a call of its own that stores nothing, so that its cost is on record."""
        request = ReviewRequest(
            tool_call_id=f"held-{new_id()}",
            session_id=review.session_id,
            project=project,
            agent=review.agent,
            agent_id=review.agent_id,
            store=review.store,
            tool=review.tool,
            operation=Operation(review.operation),
            candidates=[Candidate(text=review.text, key=review.key, store_id=review.store_id)],
            deadline_seconds=DEADLINE_SECONDS,
            dry_run=True,
        )
        try:
            caller = Caller(review.key_id, Role.MEMBER, frozenset({project}))
            answer = await self._pipeline.review(caller, request)
        except BouncerError:
            return False  # tried again when the lease is over
        return await asyncio.to_thread(self._follow, review.id, tries, answer)

    def _follow(self, review_id: str, tries: int, answer: CallOut) -> bool:
        (judged,) = answer.reviews
        with self._database.write() as session:
            review = self._locked(session, LOCAL, review_id)
            if review.verdict != Verdict.HELD:
                return True  # decided meanwhile, and that holds
            if judged.verdict is Verdict.HELD:
                held.put_back(session, review.id, judged.fault, tries, self._now())
                reviews.now_holds(session, review, fault=judged.fault, message=judged.message)
                return judged.fault in LASTING
            if judged.note not in (None, NOTE_SURE):
                # The model could not be asked, and what happens to new texts then is not meant for what waits for it.
                held.put_back(session, review.id, Fault(review.fault) if review.fault else None, tries, self._now())
                return False
            self._rule(session, review, self._judged(session, review, judged))
            return True

    def _judged(self, session: Session, review: Review, judged: ReviewOut) -> Ruling:
        on_record = session.get(Review, judged.id)  # what cost nothing is not
        facts = Facts.model_validate(on_record.facts) if on_record and on_record.facts else None
        if facts is None:
            guessed = self._offline_facts(review, review.text)
            facts = guessed.model_copy(update={"category": judged.category or guessed.category})
        return Ruling(
            DecidedBy.REVIEWER,
            judged.verdict,
            "" if judged.verdict is Verdict.APPROVE else judged.message,
            reasons=tuple(judged.reasons),
            suggested_text=judged.suggested_text,
            facts=facts,
            judged=judged,
        )

    # --- the rule that ends waiting ----------------------------------------------------------------------------

    def expire(self) -> int:
        """End the waiting of what nobody decided about in time; how many texts that were."""
        with self._database.read() as session:
            late = held.older_than(session, self._now() - self._patience)
        for review_id, _ in late:
            with self._database.write() as session:
                review = self._locked(session, LOCAL, review_id)
                if review.verdict == Verdict.HELD:
                    self._rule(session, review, Ruling(DecidedBy.RULE, Verdict.EXPIRED, messages.EXPIRED))
        return len(late)

    # --- into the books ----------------------------------------------------------------------------------------

    @staticmethod
    def _locked(session: Session, caller: Caller, review_id: str) -> Review:
        """The review as it is now that nobody else can change it or the project's entries."""
        projects.lock(session, reviews.project_of(session, caller, review_id))
        return session.get_one(Review, review_id)

    def _rule(self, session: Session, review: Review, ruling: Ruling, *, silent: bool = False) -> None:
        now = self._now()
        removals = self._follow_through(session, review, ruling, now)
        passes = self._text_to_store(session, review, ruling)
        earlier = Earlier(
            verdict=Verdict(review.verdict) if review.verdict else None,
            reasons=[Reason(code) for code in review.reasons],
            fault=Fault(review.fault) if review.fault else None,
            reviewer=review.reviewer,
            suggested_text=review.suggested_text,
            category=(review.facts or {}).get("category"),
        )
        tells = not silent and self._has_news(session, review, ruling, passes=passes, removals=removals)
        decisions.add(
            session,
            decision_id=new_id(),
            review_id=review.id,
            project_id=review.project_id,
            by=ruling.by,
            key_id=ruling.key_id,
            now=now,
            verdict=ruling.verdict.value,
            reasons=[reason.value for reason in ruling.reasons],
            reason=ruling.reason,
            suggested_text=ruling.suggested_text,
            facts=ruling.facts.model_dump(mode="json") if ruling.facts else None,
            earlier=earlier.model_dump(mode="json"),
            removals=[removal.model_dump(mode="json") for removal in removals],
            pass_hash=gate.text_hash(passes) if passes is not None else None,
            telling=(Telling.DUE if tells else Telling.MOOT).value,
        )
        held.remove(session, review.id)
        reviews.now_holds(session, review, **self._what_holds(ruling, now))

    def _follow_through(self, session: Session, review: Review, ruling: Ruling, now: datetime) -> list[Removal]:
        """Bring the entry that the review has made, if any, in step with the decision."""
        if ruling.verdict is Verdict.APPROVE and ruling.facts is not None:
            entries.mark_reviewed(session, review.id, ruling.facts.category, now)
        if not ruling.refuses:
            return []
        return self._withdraw(session, select(REVIEW.c.id).where(REVIEW.c.id == review.id), now)[0]

    def _withdraw(self, session: Session, of: Select[str], now: datetime) -> tuple[list[Removal], int]:
        removals, changed = entries.withdraw(session, of, now)
        for entry in changed:
            if entry.status == EntryStatus.STORED:
                self._index.renew_vector(session, entry)
        return removals, len(changed)

    @staticmethod
    def _text_to_store(session: Session, review: Review, ruling: Ruling) -> str | None:
        """The text that passes from now on, unless it is in the store or on its way there."""
        text = review.text if ruling.verdict is Verdict.APPROVE else None
        if ruling.by is DecidedBy.PERSON and ruling.verdict is Verdict.REWRITE:
            text = ruling.suggested_text
        if text is None or ruling.facts is None:
            return None
        twin = entries.twin(session, review.project_id, gate.text_hash(text))
        return text if twin is None or twin.entry.status is EntryStatus.UNCONFIRMED else None

    @staticmethod
    def _has_news(
        session: Session, review: Review, ruling: Ruling, *, passes: str | None, removals: list[Removal]
    ) -> bool:
        if review.verdict is None:
            return False  # the answer to the call itself will tell
        if passes is not None or removals:
            return True
        if ruling.verdict is Verdict.APPROVE or review.verdict == ruling.verdict:
            return False
        if ruling.verdict is Verdict.EXPIRED:
            return review.stored_at is None
        # An equal text that has been stored since, by this agent or another, leaves nothing to do.
        twin = entries.twin(session, review.project_id, review.text_hash)
        return twin is None or twin.entry.status is EntryStatus.UNCONFIRMED

    @staticmethod
    def _what_holds(ruling: Ruling, now: datetime) -> dict[str, Any]:
        message = messages.for_review(
            ruling.verdict, ruling.reasons, explanation=ruling.reason, suggested_text=ruling.suggested_text
        )
        changes: dict[str, Any] = {
            "verdict": ruling.verdict.value,
            "reasons": [reason.value for reason in ruling.reasons],
            "message": ruling.judged.message if ruling.judged else message,
            "suggested_text": ruling.suggested_text,
            "fault": None,
            "decided_at": now,
            "cache_key": None,  # what a person says of one text must never pass for the model's word on another
        }
        if ruling.facts is not None:
            changes["facts"] = ruling.facts.model_dump(mode="json")
        if ruling.by is DecidedBy.PERSON:
            changes["reviewer"] = DecidedBy.PERSON.value
        if ruling.judged is not None:
            pointed_at = {"entry", "passage", "possible_duplicate", "note", "shortcut"}
            shown = ruling.judged.model_dump(mode="json", include=pointed_at)
            changes["reviewer"] = ruling.judged.reviewer
            changes["evidence"] = {name: value for name, value in shown.items() if value is not None}
        return changes

    # --- withdrawal --------------------------------------------------------------------------------------------

    def withdraw(self, caller: Caller, given: WithdrawalIn) -> WithdrawalOut:
        """Withdraw all that a key or a session has let in; what it offered and is still held is turned away.

        Saying it twice changes nothing, and lists the same again. Each project is one transaction.
        """
        source = {"key_id": given.key_id, "session_id": given.session_id, "project": given.project}
        made = reviews.made_by(caller, **source)
        with self._database.read() as session:
            project_ids = sorted(session.execute(made.with_only_columns(REVIEW.c.project_id).distinct()).scalars())
        items: list[Removal] = []
        changed = 0
        reason = given.reason or "All that came from there was withdrawn."
        ruling = Ruling(DecidedBy.PERSON, Verdict.REJECT, reason, key_id=caller.key_id)
        for project_id in project_ids:
            of = made.with_only_columns(REVIEW.c.id).where(REVIEW.c.project_id == project_id)
            with self._database.write() as session:
                projects.lock(session, project_id)
                for review in held.of_reviews(session, of):
                    self._rule(session, review, ruling, silent=True)
                removals, count = self._withdraw(session, of, self._now())
                decisions.take_back(session, of)
                if given.dry_run:
                    session.rollback()
                elif count:
                    self._note_withdrawal(session, caller, project_id, source | {"entries": count})
            items += removals
            changed += count
        return WithdrawalOut(items=items, changed=changed)

    def _note_withdrawal(self, session: Session, caller: Caller, project_id: str, what: dict[str, Any]) -> None:
        audit_log.note(session, caller, "memories.withdrawn", project_id, now=self._now(), after=what)

    # --- what people decided, as labels ------------------------------------------------------------------------

    def overrides(self, caller: Caller, project_name: str | None, after: str | None, count: int) -> OverridePage:
        """Texts under the verdict that people gave them, in the form of labelled texts for an evaluation."""
        with self._database.read() as session:
            project = projects.find(session, caller, project_name) if project_name is not None else None
            if project_name is not None and project is None:
                return OverridePage(items=[], next=None)
            rows = decisions.by_people(session, caller, project.id if project else None, after, count)
        return OverridePage(items=[_override(row) for row in rows], next=rows[-1]["id"] if len(rows) == count else None)

    # --- telling -----------------------------------------------------------------------------------------------

    def news(self, caller: Caller, project_name: str, agent: str, count: int = MOST_NEWS) -> News:
        """What the agent has not been told of the project's decisions, oldest first."""
        with self._database.read() as session:
            project = projects.find(session, caller, project_name)
            if project is None:
                return News(items=[], more=0)
            rows, total = decisions.due(session, caller, project.id, agent, count)
        return News(items=[_news_item(row) for row in rows], more=total - len(rows))

    def told(self, caller: Caller, decision_ids: Sequence[str]) -> None:
        """The caller's agent has been told of these."""
        with self._database.write() as session:
            decisions.mark_told(session, caller, decision_ids, self._now())


def _held_secret(session: Session, review: Review) -> bool:
    """Whether the text is not what was offered, since a secret was taken out of it."""
    later = decisions.of_reviews(session, [review.id]).get(review.id, [])
    return Reason.SECRET in {*review.reasons, *(code for decision in later for code in decision.earlier.reasons)}


def _news_item(row: RowMapping) -> NewsItem:
    verdict, earlier = Verdict(row["verdict"]), Earlier.model_validate(row["earlier"])
    text = None
    if row["pass_hash"] is not None:
        text = row["suggested_text"] if verdict is Verdict.REWRITE else row["text"]
    removals = [Removal.model_validate(removal) for removal in row["removals"]]
    attack = earlier.fault is Fault.SUSPICIOUS or {Reason.INJECTION} & {*earlier.reasons, *row["reasons"]}
    message = messages.news(
        verdict,
        row["text"],
        store=text,
        place=messages.place(row["tool"], row["key"]),
        reason=row["reason"],
        suggested_text=row["suggested_text"] if row["decided_by"] == DecidedBy.PERSON else None,  # the reason has it
        removals=removals,
        quotable=not attack,
        by_person=row["decided_by"] == DecidedBy.PERSON,
    )
    return NewsItem(
        decision_id=row["id"],
        review_id=row["review_id"],
        verdict=verdict,
        text=text,
        removals=removals,
        message=message,
    )


def _override(row: RowMapping) -> Override:
    verdict = Verdict(row["verdict"])
    known = Category((row["facts"] or row["found"] or {}).get("category", Category.NONE))
    return Override(
        id=row["id"],
        project=row["project"],
        text=gate.redact(row["text"]),
        category=Category.NONE if verdict is Verdict.REJECT else known,
        verdict=verdict,
        reasons=[Reason(code) for code in row["reasons"]],
        note=gate.redact(row["reason"]),
    )
