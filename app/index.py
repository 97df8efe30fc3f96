"""The index of what the stores hold, as the stores report it: stored, failed, deleted, imported, searched.

Every operation here is one short transaction; judging is the pipeline's.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app import audit_log, decisions, entries, gate, projects, reviews
from app.callers import Caller
from app.db import Database, utc_now
from app.documents import Comparison, Documents
from app.embeddings import Embedder
from app.errors import Conflict, Invalid
from app.models import Entry, Review
from app.neighbours import Indexed, open_neighbourhood
from app.schemas.entries import DeletedReport, EntryHit, EntryIn, EntryOut
from app.schemas.projects import DocumentHeld, DocumentIn, DocumentsOut, ProjectOut
from app.schemas.vocabulary import Category, EntryStatus, Level, Operation, Reason, Verdict


class Index:
    """Keeps entries, their vectors and the projects' documents in step."""

    def __init__(self, database: Database, embedder: Embedder, *, now: Callable[[], datetime] = utc_now) -> None:
        self.database = database
        self.documents = Documents(embedder, gate.redact)
        self.neighbourhood = open_neighbourhood(database, embedder)
        self.embed = embedder.embed
        self.now = now

    def report_stored(self, caller: Caller, review_id: str, store_id: str | None) -> Review:
        """The agent's tool has stored a review's text: its entry becomes `stored`.

        What has no entry, since it was held or came in one call with what was, gets one: the store has it.

        Raises:
            NotFound: there is no such review that the caller sees.
        """
        now = self.now()
        with self.database.write() as session:
            review = reviews.mark_stored(session, caller, review_id, now)
            projects.lock(session, review.project_id)
            if not entries.is_known(session, review.id):
                self._let_in(session, review, store_id, now)
            entry = entries.confirm(session, review.id, review.text_hash, store_id, now)
            if entry is not None:
                entry.unreviewed = review.verdict == Verdict.HELD or review.facts is None
                if entry.version > 1:
                    self.renew_vector(session, entry)
            decisions.spend_pass(session, review.project_id, review.text_hash, now)
            return review

    def _let_in(self, session: Session, review: Review, store_id: str | None, now: datetime) -> None:
        """Make the pending entry, or entry's version, of a text that was let into its store without one."""
        through = review.verdict in (Verdict.APPROVE, Verdict.HELD) and review.level != Level.GATE
        if not through or reviews.is_dry_run(session, review):
            return
        proposal = entries.Proposal(
            category=Category((review.facts or {}).get("category", Category.NONE)),
            text=review.text,
            text_hash=review.text_hash,
            store=review.store,
            key=review.key,
            store_id=store_id or review.store_id,
            review_id=review.id,
            key_id=review.key_id,
            session_id=review.session_id,
            agent=review.agent,
            expires_at=now,
        )
        twin = entries.twin(session, review.project_id, review.text_hash)
        older = self._older(session, review, proposal.category)
        if twin is not None:
            if twin.entry.status is EntryStatus.UNCONFIRMED:
                entries.renew(session, session.get_one(Entry, twin.entry.id), proposal, now)
            return
        if older is not None:
            known = proposal.category if review.facts else Category(older.category)
            entries.propose_version(session, older, replace(proposal, category=known), now)
            return
        entry_id, revision = entries.add(session, review.project_id, proposal, now)
        made = Indexed(entry_id, review.text, self.embed([review.text])[0], revision)
        self.neighbourhood.add(session, review.project_id, made)

    @staticmethod
    def _older(session: Session, review: Review, category: Category) -> Entry | None:
        """The entry that the text takes the place of: the one that its tool replaced, or the project's STATE."""
        if review.operation == Operation.UPDATE:
            named = entries.named(session, review.project_id, review.store, review.store_id, review.key)
            if len(named) == 1:
                return named[0]
        return entries.live_state(session, review.project_id) if category is Category.STATE else None

    def renew_vector(self, session: Session, entry: Entry) -> None:
        """Bring the entry's vector in step with its changed text."""
        self.neighbourhood.replace(session, entry.id, entry.text, self.embed([entry.text])[0])

    def report_failed(self, caller: Caller, review_id: str) -> Review:
        """The agent's tool failed, or a person said no: what was pending for the review refuses nobody any more.

        Raises:
            NotFound: there is no such review that the caller sees.
        """
        now = self.now()
        with self.database.write() as session:
            review = reviews.decided(session, caller, review_id)
            projects.lock(session, review.project_id)
            entries.let_go(session, review.id, now)
            return review

    def let_through(self, caller: Caller, session_id: str, tool_call_id: str) -> list[Review]:
        """The reviews of a tool call of the caller's that did not keep it from the store, in the order of its texts."""
        with self.database.read() as session:
            return reviews.let_through(session, caller, session_id, tool_call_id)

    def report_deleted(self, caller: Caller, report: DeletedReport) -> list[str]:
        """Items left a store by the agent's delete tool; ids of the entries that are `deleted` for it.

        Raises:
            NotFound: the project is none of the caller's.
        """
        caller.check(report.project)
        with self.database.write() as session:
            project = projects.find(session, caller, report.project)
            if project is None:
                return []
            projects.lock(session, project.id)
            return entries.mark_deleted(
                session,
                project.id,
                report.store,
                store_ids=report.store_ids,
                keys=report.keys,
                text_hashes=[gate.text_hash(text) for text in report.texts],
                now=self.now(),
            )

    def add_entry(self, caller: Caller, entry: EntryIn) -> EntryOut:
        """Index a memory that is already in a store.

        Raises:
            Conflict: the project has an entry of the same text, or a STATE entry already.
            Invalid: the text holds a secret.
            NotFound: the project is none of the caller's.
        """
        if Reason.SECRET in gate.check(entry.text):
            raise Invalid("The text holds a secret; take it out first.")
        now = self.now()
        vector = self.embed([entry.text])[0]
        try:
            with self.database.write() as session:
                project = projects.locked(session, caller, entry.project, now)
                made = entries.add_stored(session, caller, project.id, entry, gate.text_hash(entry.text), now)
                self.neighbourhood.add(session, project.id, Indexed(made.id, made.text, vector, made.revision))
                return entries.out(made, project.name)
        except IntegrityError as exc:
            raise Conflict("The project has an entry of this text, or its one STATE entry, already.") from exc

    def delete_entry(self, caller: Caller, entry_id: str) -> None:
        """Mark an entry deleted, by hand.

        Raises:
            NotFound: there is no such entry that the caller sees.
        """
        now = self.now()
        with self.database.write() as session:
            projects.lock(session, entries.project_of(session, caller, entry_id))
            former = entries.get(session, caller, entry_id)
            if former.status is EntryStatus.DELETED:
                return
            entries.delete(session, entry_id, now)
            audit_log.note(
                session,
                caller,
                "entry.deleted",
                entry_id,
                now=now,
                before={"project": former.project, "status": former.status},
                after={"status": EntryStatus.DELETED},
            )

    def search(self, caller: Caller, project_name: str, query: str, count: int) -> list[EntryHit]:
        """The entries of a project near a text, by vector and by words, nearest first; none if it is foreign."""
        vector = self.embed([query])[0]
        with self.database.read() as session:
            project = projects.find(session, caller, project_name)
            if project is None:
                return []
            near = self.neighbourhood.shortlist(session, project, query, vector, count)[:count]
            return [
                EntryHit(entry=entries.get(session, caller, n.entry_id), similarity=n.similarity)
                for n in sorted(near, key=lambda n: -n.similarity)
            ]

    def set_level(self, caller: Caller, project_name: str, level: Level) -> ProjectOut:
        """Set how far a project's candidates go; the project is made if it is new.

        Raises:
            NotFound: it is none of the caller's.
        """
        now = self.now()
        with self.database.write() as session:
            project = projects.locked(session, caller, project_name, now)
            projects.set_level(session, project.id, level)
            audit_log.note(
                session,
                caller,
                "project.level_set",
                project.name,
                now=now,
                before={"level": project.level},
                after={"level": level},
            )
            return ProjectOut(name=project.name, level=level, created_at=project.created_at)

    def put_documents(self, caller: Caller, project_name: str, sent: list[DocumentIn]) -> DocumentsOut:
        """Make the project's documents these; names those whose text is wanted.

        Equal hashes cost one look. Each text that is new is cut and embedded outside of any transaction, and kept in
        one of its own, so that no review waits for long.

        Raises:
            Invalid: a text does not have the hash that came with it, or a path stands twice.
            Unavailable: the embeddings server does not answer, or others send documents; what was kept stays.
            NotFound: the project is none of the caller's.
        """
        caller.check(project_name)
        _check_documents(sent)
        found = self._compare_documents(caller, project_name, sent)
        if found is None and not sent:
            return DocumentsOut(wanted=[], passages=0)
        if found is None or found.gone or found.back:
            with self.database.write() as session:
                now = self.now()
                self.documents.follow(session, projects.locked(session, caller, project_name, now), sent, now)
        for document in sent if found is None else found.lacking:
            if document.text is not None:
                with self.documents.turn():
                    # Only now, since another agent may have sent the same while this one waited.
                    found = self._compare_documents(caller, project_name, sent)
                    if found is None or document in found.lacking:
                        self._keep_document(caller, project_name, document, document.text)
        with self.database.read() as session:
            project = projects.find(session, caller, project_name)
            assert project is not None  # noqa: S101 - it is there, or was made above
            lacking = self.documents.compare(session, project.id, sent).lacking
            return DocumentsOut(
                wanted=[document.path for document in lacking], passages=self.documents.count(session, project.id)
            )

    def _compare_documents(self, caller: Caller, project_name: str, sent: list[DocumentIn]) -> Comparison | None:
        """How the project's documents differ from those sent; None for a project that is new."""
        with self.database.read() as session:
            project = projects.find(session, caller, project_name)
            return None if project is None else self.documents.compare(session, project.id, sent)

    def _keep_document(self, caller: Caller, project_name: str, document: DocumentIn, text: str) -> None:
        cuts = self.documents.cut(text)
        with self.database.write() as session:
            now = self.now()
            self.documents.keep(session, projects.locked(session, caller, project_name, now), document, cuts, now)

    def documents_of(self, caller: Caller, project_name: str) -> list[DocumentHeld]:
        """The documents that a project's candidates are compared with, by path; none if the project is foreign."""
        with self.database.read() as session:
            project = projects.find(session, caller, project_name)
            return self.documents.held(session, project.id) if project else []


def _check_documents(sent: list[DocumentIn]) -> None:
    if len({document.path for document in sent}) < len(sent):
        raise Invalid("A path stands twice among the documents.")
    for document in sent:
        if document.text is not None and sha256(document.text.encode()).hexdigest() != document.sha256:
            raise Invalid(f"The text of {document.path} does not have the sha256 that came with it.")
