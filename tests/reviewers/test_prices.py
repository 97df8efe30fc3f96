"""What tokens cost: exact, rounded up, refused when unknown."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import ConfigurationError
from app.prices import SHIPPED, load_prices, price_of
from app.settings import Settings

HAIKU = price_of("claude-haiku-5-5")
tokens = st.integers(0, 300_000)


def cost(*, input_tokens: int = 0, write: int = 0, read: int = 0, output: int = 0) -> int:
    return HAIKU.cost_microdollars(
        input_tokens=input_tokens, cache_write_tokens=write, cache_read_tokens=read, output_tokens=output
    )


@pytest.mark.parametrize(
    ("counts", "microdollars"),
    [
        ({"input_tokens": 1_000}, 100),
        ({"write": 1_000}, 125),
        ({"read": 1_000}, 10),
        ({"output": 1_000}, 500),
        ({"input_tokens": 1_500, "output": 200}, 250),
        ({}, 0),
    ],
)
def test_each_class_of_token_has_its_own_price(counts: dict[str, int], microdollars: int) -> None:
    assert cost(**counts) == microdollars


def test_a_fraction_of_a_microdollar_is_rounded_up() -> None:
    assert cost(read=1) == 1


def test_a_prompt_of_a_hundred_thousand_tokens_is_still_short() -> None:
    assert cost(input_tokens=60_000, write=20_000, read=20_000) == 6_000 + 2_500 + 200


def test_one_token_more_makes_every_token_dear_the_output_too() -> None:
    assert cost(input_tokens=60_001, write=20_000, read=20_000, output=100) == 30_001 + 12_500 + 1_000 + 250


@given(tokens, tokens, tokens, st.integers(0, 8_192))
def test_costs_are_exact_before_the_rounding(input_tokens: int, write: int, read: int, output: int) -> None:
    factor = 5 if input_tokens + write + read > 100_000 else 1
    nano = factor * (100 * input_tokens + 125 * write + 10 * read + 500 * output)
    assert cost(input_tokens=input_tokens, write=write, read=read, output=output) == math.ceil(Fraction(nano, 1_000))


@given(st.sampled_from(sorted(load_prices().models)), tokens, tokens, tokens, st.integers(0, 8_192), tokens)
def test_the_worst_case_covers_every_way_to_fill_the_prompt(
    model: str, input_tokens: int, write: int, read: int, output: int, slack: int
) -> None:
    price = price_of(model)
    true_cost = price.cost_microdollars(
        input_tokens=input_tokens, cache_write_tokens=write, cache_read_tokens=read, output_tokens=output
    )
    assert true_cost <= price.worst_microdollars(input_tokens + write + read + slack, output)


def test_the_default_model_has_a_price_with_date_and_source() -> None:
    prices = load_prices()
    assert Settings.model_fields["model"].default in prices.models
    assert prices.date.year >= 2026
    assert prices.source.startswith("Price list of")


def test_an_unknown_model_is_refused_with_the_way_to_add_it() -> None:
    with pytest.raises(ConfigurationError, match="MEMORY_BOUNCER_PRICES_FILE") as refused:
        price_of("some-new-model")
    assert "some-new-model" in refused.value.detail
    assert str(SHIPPED) in refused.value.detail


def test_a_list_of_ones_own_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    free = {"input": 0, "output": 0, "cache_write": 0, "cache_read": 0}
    own.write_text(json.dumps({"date": "2026-01-01", "source": "at home", "models": {"local": free}}))
    assert price_of("local", own).worst_microdollars(1_000_000, 8_192) == 0
    with pytest.raises(ConfigurationError, match="Known: local"):
        price_of("claude-haiku-5-5", own)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"input": -1}, "models.m.input"),
        ({"input": "cheap"}, "models.m.input"),
        ({"input": "NaN"}, "models.m.input"),
        ({"cache_raed": 1}, "models.m.cache_raed"),
        ({"thinking": "a lot"}, "models.m.thinking"),
        ({"long_prompt": {"input": 1}}, "models.m.long_prompt"),
    ],
)
def test_a_wrong_figure_is_refused_by_its_place(tmp_path: Path, change: dict[str, object], place: str) -> None:
    path = tmp_path / "prices.json"
    rates = {"input": 1, "output": 1, "cache_write": 1, "cache_read": 1, **change}
    path.write_text(json.dumps({"date": "2026-01-01", "source": "s", "models": {"m": rates}}))
    with pytest.raises(ConfigurationError, match=place):
        price_of("m", path)


@pytest.mark.parametrize(
    "content", ["", "not json", "[]", '{"models": {}}', '{"date": "then", "source": "", "models": {}}']
)
def test_a_file_that_is_no_price_list_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="unusable"):
        load_prices(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_prices(tmp_path / "nowhere.json")
