"""Whether a secret that a person chose could be guessed."""

import math
from collections import Counter
from itertools import pairwise

SHORTEST = 32
LEAST_BITS = 80.0
LEAST_VARIETY = 0.75
PLACEHOLDERS = (
    "change",
    "secret",
    "password",
    "passw0rd",
    "example",
    "placeholder",
    "default",
    "bouncer",
    "your-",
    "xxxx",
)


def weakness(secret: str) -> str | None:
    """What is wrong with a secret, in words that do not repeat it; None for a good one.

    Thirty-two random hexadecimal digits pass; what is short, repeats itself, counts up, or is known from examples does
    not.
    """
    if len(secret) < SHORTEST:
        return f"it has fewer than {SHORTEST} characters"
    if any(word in secret.lower() for word in PLACEHOLDERS):
        return "it looks like a placeholder"
    threes = [secret[place : place + 3] for place in range(len(secret) - 2)]
    steps = [abs(ord(after) - ord(before)) <= 1 for before, after in pairwise(secret)]
    if len(set(threes)) < LEAST_VARIETY * len(threes) or sum(steps) > len(steps) / 2 or _bits(secret) < LEAST_BITS:
        return "it is too regular"
    return None


def _bits(secret: str) -> float:
    """Shannon's entropy of the characters as they are distributed, over the whole length, in bits."""
    size = len(secret)
    return -sum(count * math.log2(count / size) for count in Counter(secret).values())
