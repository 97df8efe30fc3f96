"""The one embedding model whose vectors are stored, so that those of two are never compared."""

from contextlib import suppress

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app.embeddings import Embedder
from app.errors import ConfigurationError, Conflict, Unavailable
from app.models import EMBEDDING_SPACE

CURRENT, NEXT = 1, 2

_CURRENT = select(EMBEDDING_SPACE.c.model, EMBEDDING_SPACE.c.dimension).where(EMBEDDING_SPACE.c.id == CURRENT)


def check(session: Session, embedder: Embedder) -> None:
    """Refuse to start with another model than that of the stored vectors; the first one that comes is taken.

    Raises:
        ConfigurationError: the stored vectors are another model's.
    """
    mine = (embedder.model, embedder.dimension)
    if session.execute(_CURRENT).first() is None:
        with suppress(IntegrityError), session.begin_nested():  # a replica may start at the same moment
            session.execute(insert(EMBEDDING_SPACE).values(id=CURRENT, model=mine[0], dimension=mine[1]))
    known = session.execute(_CURRENT).one()
    if tuple(known) != mine:
        raise ConfigurationError(
            f"The stored vectors are of {known[0]} ({known[1]} dimensions), the configured embedder is {mine[0]} "
            f"({mine[1]}). Run `bouncer reindex`, or configure the former embedder."
        )


def confirm(session: Session, embedder: Embedder) -> None:
    """See that the stored vectors are still the embedder's, which a reindex may have changed while this process runs.

    Raises:
        Unavailable: they are another model's by now.
    """
    if session.execute(_CURRENT).one_or_none() not in {None, (embedder.model, embedder.dimension)}:
        raise Unavailable(
            "The memories were indexed anew with another embedder: restart this service with that one configured."
        )


def is_current(session: Session, embedder: Embedder) -> bool:
    """Whether the stored vectors are the embedder's; there may be none yet."""
    return session.execute(_CURRENT).one_or_none() in {None, (embedder.model, embedder.dimension)}


def begin_next(session: Session, embedder: Embedder) -> bool:
    """Note which embedder a reindex goes over to; whether one to the same was begun before."""
    next_ = select(EMBEDDING_SPACE.c.model, EMBEDDING_SPACE.c.dimension).where(EMBEDDING_SPACE.c.id == NEXT)
    if session.execute(next_).one_or_none() == (embedder.model, embedder.dimension):
        return True
    session.execute(delete(EMBEDDING_SPACE).where(EMBEDDING_SPACE.c.id == NEXT))
    session.execute(insert(EMBEDDING_SPACE).values(id=NEXT, model=embedder.model, dimension=embedder.dimension))
    return False


def hold_next(session: Session, embedder: Embedder) -> None:
    """Keep other reindexes away until the transaction ends.

    Raises:
        Conflict: another one has ended meanwhile, or goes over to another embedder.
    """
    held = session.execute(
        update(EMBEDDING_SPACE)
        .where(
            EMBEDDING_SPACE.c.id == NEXT,
            EMBEDDING_SPACE.c.model == embedder.model,
            EMBEDDING_SPACE.c.dimension == embedder.dimension,
        )
        .values(id=NEXT)
        .returning(EMBEDDING_SPACE.c.id)
    )
    if held.first() is None:
        raise Conflict("Another reindex has come in between; start again if its embedder is not the one you want.")


def switch(session: Session) -> None:
    """Make the next space the current one."""
    session.execute(delete(EMBEDDING_SPACE).where(EMBEDDING_SPACE.c.id == CURRENT))
    session.execute(update(EMBEDDING_SPACE).where(EMBEDDING_SPACE.c.id == NEXT).values(id=CURRENT))
