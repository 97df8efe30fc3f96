"""Refuse settings with which the service would run and be of no use; each fault is one line that says what to do."""

from collections.abc import Iterator
from datetime import datetime

from app.errors import ConfigurationError
from app.reviewers import Reviewer
from app.schemas.judging import Brief
from app.schemas.vocabulary import Level, Operation
from app.settings import Settings

FIRST_YEAR = 2025
LAST_YEAR = 2100
SMALLEST = Brief(text="A memory.", project="p", operation=Operation.WRITE, key=None, neighbours=(), passages=())


def refuse_useless(settings: Settings, model: Reviewer | None, now: datetime) -> None:
    """Check the settings, with the model that they configure.

    Raises:
        ConfigurationError: the first fault.
    """
    for fault in faults(settings, model, now):
        raise ConfigurationError(fault)


def faults(settings: Settings, model: Reviewer | None, now: datetime) -> Iterator[str]:
    """What makes the settings useless."""
    if not FIRST_YEAR <= now.year <= LAST_YEAR:
        yield f"This machine's clock says {now:%Y-%m-%d}: set it, or budgets and expiries go by a wrong date."
    if not settings.allowed_hosts:
        yield "MEMORY_BOUNCER_ALLOWED_HOSTS is empty: every request would be refused. List the service's host names."
    if settings.level is Level.MODEL and model is None:
        yield (
            "MEMORY_BOUNCER_LEVEL is model, but there is no model: set MEMORY_BOUNCER_ANTHROPIC_API_KEY (or "
            "MEMORY_BOUNCER_ANTHROPIC_BASE_URL for a server of your own), or the level to offline."
        )
    budget = settings.budget_microdollars
    if model is not None and 0 < budget < (least := model.worst_case_microdollars(SMALLEST)):
        yield (
            f"MEMORY_BOUNCER_BUDGET_MICRODOLLARS is {budget}, but a single review may cost {least}: the model would "
            "never be asked. Raise it, or set it to 0."
        )


def refuse_without_budget(settings: Settings, model: Reviewer | None, *, has_budget: bool) -> None:
    """Check that the model can be paid for, where all projects ask it.

    Args:
        settings: the level of the projects.
        model: what it may cost.
        has_budget: whether there is any budget, be it switched off on purpose.

    Raises:
        ConfigurationError: there is no budget.
    """
    if has_budget or settings.level is not Level.MODEL or model is None:
        return
    if model.worst_case_microdollars(SMALLEST) > 0:
        raise ConfigurationError(
            "MEMORY_BOUNCER_LEVEL is model, but there is no budget: the model would never be asked. Set one "
            "(`bouncer budget set 5`, or MEMORY_BOUNCER_BUDGET_MICRODOLLARS), or the level to offline."
        )
