"""Routes of budgets: what reviews by the model may cost, and what they did cost."""

from fastapi import APIRouter

from app import budget
from app.api.common import ANYWHERE, Id, problems
from app.deps import Administrator, PipelineDep
from app.schemas.budgets import BudgetIn, BudgetList, BudgetOut, BudgetReport

router = APIRouter(responses=problems(*ANYWHERE))


@router.get("/v1/budgets", tags=["budgets"])
def list_budgets(_: Administrator, pipeline: PipelineDep) -> BudgetList:
    """All budgets with what is spent and left in their current windows."""
    with pipeline.index.database.read() as session:
        return BudgetList(items=budget.overview(session, pipeline.budget_setting, pipeline.index.now()))


@router.put("/v1/budgets", tags=["budgets"], responses=problems(400, 413))
def put_budget(caller: Administrator, change: BudgetIn, pipeline: PipelineDep) -> BudgetOut:
    """Set the budget of a scope and period, or change it; in force for every call from now on."""
    with pipeline.index.database.write() as session:
        return budget.put(session, caller, pipeline.budget_setting, change, pipeline.index.now())


@router.get("/v1/budgets/report", tags=["budgets"])
def report_budgets(_: Administrator, pipeline: PipelineDep) -> BudgetReport:
    """Whether ledger, windows and the cost of all reviews tell of the same money. Reads all that is on record."""
    with pipeline.index.database.read() as session:
        return budget.report(session)


@router.delete("/v1/budgets/{budget_id}", tags=["budgets"], responses=problems(404))
def remove_budget(caller: Administrator, budget_id: Id, pipeline: PipelineDep) -> BudgetOut:
    """Forget a budget, as it stood. What was spent in its window counts again should it be set anew."""
    with pipeline.index.database.write() as session:
        return budget.remove(session, caller, pipeline.budget_setting, budget_id, pipeline.index.now())
