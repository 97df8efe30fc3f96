"""Run migrations on the connection that the service hands over, or on the configured database."""

from sqlalchemy import create_engine

from alembic import context
from app import models
from app.settings import load_settings


def _has_a_model(name: str | None, kind: str, _: object) -> bool:
    """Whether a comparison looks at the table: not at those that a service makes on PostgreSQL (`in_postgres`)."""
    return kind != "table" or not str(name).startswith("entry_search")


def _run(connection: object) -> None:
    context.configure(
        connection=connection, target_metadata=models.metadata, render_as_batch=True, include_name=_has_a_model
    )
    with context.begin_transaction():
        context.run_migrations()


if (given := context.config.attributes.get("connection")) is not None:
    _run(given)
else:
    with create_engine(load_settings().resolved_database_url).connect() as own:
        _run(own)
        own.commit()
