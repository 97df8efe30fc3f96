"""The plainest service that stores what it is sent: what FastAPI, SQLModel and SQLite take by themselves."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from sqlalchemy import create_engine, event
from sqlmodel import Field, Session, SQLModel


class RowIn(SQLModel):
    """What is sent."""

    text: str


class Row(RowIn, table=True):
    """What is stored."""

    id: int | None = Field(default=None, primary_key=True)
    created_at: datetime


def build(folder: Path) -> FastAPI:
    """The app with one route, on a database in the folder."""
    engine = create_engine(f"sqlite:///{folder / 'rows.db'}", connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        # As the service has it, so that both wait alike for the disk.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA busy_timeout=5000")

    SQLModel.metadata.create_all(engine)
    app = FastAPI()

    @app.post("/rows", status_code=201)
    def store(sent: RowIn) -> Row:
        with Session(engine) as session:
            row = Row(text=sent.text, created_at=datetime.now(UTC))
            session.add(row)
            session.commit()
            session.refresh(row)
            return row

    return app


if __name__ == "__main__":
    config = uvicorn.Config(build(Path(sys.argv[1])), port=0, log_level="info", access_log=False)
    uvicorn.Server(config).run()
