"""One log for all that runs in the service: a line of JSON for each event on stderr; readable lines on a terminal.

No text of a memory gets into it above debug level. Our own events name only what is bounded: codes, counts, ids. What
libraries say, and what errors carry, may repeat a value, so of these the log keeps who and where.
"""

import logging
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import structlog

# Their messages are made of addresses, numbers and revisions; what others say may repeat what they were given.
PLAIN_SPOKEN = frozenset({"alembic", "uvicorn"})
HERE = Path(__file__).parent
LONGEST_CHAIN = 8


def configure_logs(level: str, stream: TextIO | None = None) -> None:
    """Write events of this level and above to the stream, stderr by default, ours and those of libraries alike."""
    least = getattr(logging, level.upper())
    readable = (stream or sys.stderr).isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_values,
            structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=lambda *_: _Writer(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_Libraries(whole=least <= logging.DEBUG)]
    root.setLevel(max(least, logging.WARNING) if least > logging.DEBUG else least)
    for name in PLAIN_SPOKEN:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(least)
    logging.getLogger("alembic").setLevel(max(least, logging.WARNING))  # Database.migrate says what it did


class _Writer(structlog.WriteLogger):
    """Writes lines; a log that cannot be written, as on a full disk, stops nobody's work."""

    def msg(self, message: str) -> None:
        """Write a line, if it can be."""
        with suppress(OSError, ValueError):
            super().msg(message)

    log = debug = info = warning = error = critical = msg


class _Libraries(logging.Handler):
    """Hands on what libraries log."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self._whole = whole

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record as an event of ours."""
        plain = self._whole or record.name.partition(".")[0] in PLAIN_SPOKEN
        structlog.get_logger().log(
            record.levelno,
            record.getMessage().strip() if plain else "library.complained",
            logger=record.name,
            exc_info=record.exc_info,
            **({} if plain else {"at": f"{record.module}:{record.lineno}"}),
        )


def _without_values(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Replace an exception, whose message may repeat a value.

    What stays are the kinds in its chain, the places of ours that it passed, and where it arose.
    """
    found: Any = event.pop("exc_info", None)
    exception = sys.exception() if found is True else found[1] if isinstance(found, tuple) else found
    if isinstance(exception, BaseException):
        frames = traceback.extract_tb(exception.__traceback__)
        ours = [frame for frame in frames if Path(frame.filename).is_relative_to(HERE)]
        event["error"] = _kinds(exception)
        event["passed"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in [*ours, *frames[-1:]]]
    return event


def _kinds(exception: BaseException | None) -> list[str]:
    kinds: list[str] = []
    while exception is not None and len(kinds) < LONGEST_CHAIN:
        kinds.append(type(exception).__name__)
        exception = exception.__cause__ or exception.__context__
    return kinds
