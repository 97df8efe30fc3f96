"""Run migrations on the connection that the service hands over, or on the configured database."""

from sqlalchemy import create_engine

from alembic import context
from app import models
from app.settings import load_settings


def _run(connection: object) -> None:
    context.configure(connection=connection, target_metadata=models.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


if (given := context.config.attributes.get("connection")) is not None:
    _run(given)
else:
    with create_engine(load_settings().resolved_database_url).connect() as own:
        _run(own)
        own.commit()
