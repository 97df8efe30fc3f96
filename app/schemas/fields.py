"""What shapes are made of: their base, and the types of fields that several of them have."""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, StringConstraints


class Model(BaseModel):
    """Base of all shapes: immutable, and strangers among the fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# PostgreSQL stores no NUL, and no encoding knows half a surrogate pair, though JSON can spell both.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: object) -> object:
    """The text with a replacement character for each that no database takes; anything but a text as it is."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value


Written = Annotated[str, BeforeValidator(storable)]


def number(value: object) -> object:
    """The value, unless pydantic would take what is no number in JSON for one: ``true`` and ``"1"``, but not 1.0."""
    if isinstance(value, (bool, str)):
        raise ValueError("not a number")  # noqa: TRY004 - what pydantic reports as a fault of the value
    return value


# Its bounds belong before the validator: those of the field would not be in the description.
WHOLE = BeforeValidator(number)
Real = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]

MAX_TEXT = 32_768
MAX_CANDIDATES = 64

Text = Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1, max_length=MAX_TEXT)]
Name = Annotated[str, BeforeValidator(storable), StringConstraints(min_length=1, max_length=512)]
Key = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]
