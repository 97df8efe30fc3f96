"""The one embedding model whose vectors are stored, so that those of two are never compared."""

from contextlib import suppress

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app.embeddings import Embedder
from app.errors import ConfigurationError, Unavailable
from app.models import EMBEDDING_SPACE

CURRENT = 1

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
