"""A server secret that could be guessed is refused, and a random one never is."""

import base64
import string
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from app.errors import ConfigurationError
from app.settings import Settings, load_settings
from app.strength import weakness

WEAK = (
    "short",
    "a" * 64,
    "ab" * 32,
    "0123456789abcdef" * 2,
    "0123456789abcdef" * 4,
    string.ascii_letters,
    string.digits * 5,
    "abcdefgh" * 4,
    "change-me-change-me-change-me-now!",
    "ChangeThisToALongRandomSecretPlease",
    "my-super-secret-key-which-is-long-enough",
    "correct password battery staple horse 42",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "f3b1" * 8,
    " " * 40,
)


@pytest.mark.parametrize("secret", WEAK)
def test_what_could_be_guessed_is_weak(secret: str) -> None:
    said = weakness(secret)
    assert said is not None
    assert secret not in said


@given(st.integers(0, 2**64))
@settings(max_examples=300)
def test_random_secrets_pass_in_each_common_spelling(seed: int) -> None:
    raw = Random(seed).randbytes(32)
    urlsafe = base64.urlsafe_b64encode(raw[:24]).decode()
    for spelt in (raw.hex(), raw[:16].hex(), base64.b64encode(raw).decode(), urlsafe):
        assert weakness(spelt) is None, spelt


@pytest.mark.parametrize("secret", WEAK)
def test_a_weak_secret_is_refused_at_start_by_name_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("MEMORY_BOUNCER_SECRET", secret)
    with pytest.raises(ConfigurationError, match="MEMORY_BOUNCER_SECRET") as refused:
        load_settings()
    assert secret not in refused.value.detail
    assert refused.value.__cause__ is None


def test_a_good_secret_is_kept_out_of_sight() -> None:
    secret = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(3, 11))
    settings_ = Settings(secret=SecretStr(secret))
    assert secret not in repr(settings_) + str(settings_.model_dump())
