"""How sure the embedded reviewer must be for its word to do without the second model's; measured by evals/train.py."""

import json
from functools import cache
from pathlib import Path

from pydantic import Field, ValidationError

from app.errors import ConfigurationError
from app.schemas.fields import Model

FILE = Path(__file__).with_name("cascade.json")


class Certainty(Model):
    """The least probability at which one kind of decision was right nearly always, on texts not learned from."""

    at: float = Field(ge=0, le=1)
    right: int = Field(description="Decisions from this probability up that agreed with the label.")
    of: int


class Cascade(Model):
    """What need not be asked of the model, by kind of decision; a kind that is never certain enough is None.

    Nothing is approved unasked: the model sees a key's orders and categories better.

    Attributes:
        weights: SHA-256 of the model file that this was measured with.
        slop: a text is slop; the probability that it cannot stand.
        duplicate: a text says what an entry says; their likeness.
    """

    weights: str
    slop: Certainty | None
    duplicate: Certainty | None


@cache
def load(file: Path = FILE) -> Cascade:
    """The shipped thresholds.

    Raises:
        ConfigurationError: the file is missing or damaged.
    """
    try:
        return Cascade.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as exc:
        raise ConfigurationError(f"The offline reviewer's thresholds {file.name} are damaged; install again.") from exc


def reached(certainty: Certainty | None, probability: float) -> bool:
    """Whether a decision of this probability is certain enough."""
    return certainty is not None and probability >= certainty.at
