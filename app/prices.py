"""What a model's tokens cost, read from a dated price list.

A dollar for a million tokens is a micro-dollar for one token, so the list's figures are micro-dollars per token.
They are decimals and stay exact; only a finished cost is rounded, and always up.
"""

import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.errors import ConfigurationError

SHIPPED = Path(__file__).parent / "reviewers" / "prices.json"

Rate = Annotated[Decimal, Field(ge=0, allow_inf_nan=False, description="Micro-dollars for one token.")]


class Rates(BaseModel):
    """The price of one token in each of its classes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Rate
    output: Rate
    cache_write: Rate
    cache_read: Rate

    def cost(self, *, input_tokens: int, cache_write_tokens: int, cache_read_tokens: int, output_tokens: int) -> int:
        """Micro-dollars for these tokens, rounded up."""
        return math.ceil(
            self.input * input_tokens
            + self.cache_write * cache_write_tokens
            + self.cache_read * cache_read_tokens
            + self.output * output_tokens
        )

    def dearest(self, prompt_tokens: int, output_tokens: int) -> int:
        """Micro-dollars if every token of the prompt fell into its dearest class."""
        return math.ceil(
            max(self.input, self.cache_write, self.cache_read) * prompt_tokens + self.output * output_tokens
        )


class LongPromptRates(Rates):
    """Rates for the whole request once its prompt, cached parts included, is longer than a limit."""

    over_tokens: int = Field(ge=0)


class Price(Rates):
    """A model's rates, and how it is told not to think: tokens of thought would be paid for as output."""

    thinking: Literal["disabled", "between_tools"] | None = Field(
        default=None, description="Kind of `thinking` to ask for; none for a model that knows no such request."
    )
    long_prompt: LongPromptRates | None = None

    def cost_microdollars(
        self, *, input_tokens: int, cache_write_tokens: int, cache_read_tokens: int, output_tokens: int
    ) -> int:
        """What one request cost, in micro-dollars, rounded up."""
        prompt_tokens = input_tokens + cache_write_tokens + cache_read_tokens
        long = self.long_prompt
        rates = long if long is not None and prompt_tokens > long.over_tokens else self
        return rates.cost(
            input_tokens=input_tokens,
            cache_write_tokens=cache_write_tokens,
            cache_read_tokens=cache_read_tokens,
            output_tokens=output_tokens,
        )

    def worst_microdollars(self, prompt_tokens: int, output_tokens: int) -> int:
        """The most that one request can cost, in micro-dollars, whatever the cache does.

        Args:
            prompt_tokens: at least as many as the prompt has.
            output_tokens: at least as many as the reply may have.
        """
        worst = self.dearest(prompt_tokens, output_tokens)
        if self.long_prompt is not None and prompt_tokens > self.long_prompt.over_tokens:
            worst = max(worst, self.long_prompt.dearest(prompt_tokens, output_tokens))
        return worst


class PriceList(BaseModel):
    """Prices of models, the day they were read and where."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: date
    source: str
    models: dict[str, Price]


def load_prices(path: Path | None = None) -> PriceList:
    """The price list of that file, or the shipped one.

    Raises:
        ConfigurationError: the file cannot be read or is no price list; says where it is wrong.
    """
    path = path or SHIPPED
    try:
        return PriceList.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise ConfigurationError(f"The price list {path} cannot be read: {exc.strerror or exc}.") from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigurationError(f"The price list {path} is unusable at {place}: {first['msg']}.") from exc


def price_of(model: str, path: Path | None = None) -> Price:
    """What the model costs; a model without a price is refused rather than taken for free.

    Raises:
        ConfigurationError: the list does not name the model, or is unusable.
    """
    prices = load_prices(path)
    try:
        return prices.models[model]
    except KeyError:
        raise ConfigurationError(
            f"No price is known for the model {model!r}. Copy {SHIPPED}, add the model with its prices for a million "
            "tokens (0 for a model of your own) and name the copy in MEMORY_BOUNCER_PRICES_FILE. "
            f"Known: {', '.join(sorted(prices.models))}."
        ) from None
