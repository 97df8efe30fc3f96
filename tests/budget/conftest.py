"""A bare database with budgets, and short ways to spend from it."""

from collections.abc import Iterator

import pytest

from tests.support.purse import Purse


@pytest.fixture
def purse(database_url: str) -> Iterator[Purse]:
    purse = Purse(database_url)
    yield purse
    purse.database.close()
