"""JSON routes, one module for each thing: parse, call, return."""

from app.api import budgets, documents, entries, keys, operation, projects, queue, reviews

# A name of a project takes in slashes: what stands below a project comes first.
ROUTERS = (
    operation.router,
    reviews.router,
    queue.router,
    entries.router,
    documents.router,
    projects.router,
    keys.router,
    budgets.router,
)
