"""Run migrations on the connection that the service hands over, or on the configured database."""

from sqlalchemy import create_engine

from alembic import context
from app import models
from app.settings import load_settings


def _is_a_model(_: object, name: str | None, kind: str, reflected: bool, compare_to: object) -> bool:
    """Whether a comparison looks at the object: not at the word index, which has no model."""
    is_index_of_words = kind == "table" and reflected and compare_to is None and str(name).startswith("entry_words")
    return not is_index_of_words


def _run(connection: object) -> None:
    context.configure(
        connection=connection, target_metadata=models.metadata, render_as_batch=True, include_object=_is_a_model
    )
    with context.begin_transaction():
        context.run_migrations()


if (given := context.config.attributes.get("connection")) is not None:
    _run(given)
else:
    with create_engine(load_settings().resolved_database_url).connect() as own:
        _run(own)
        own.commit()
