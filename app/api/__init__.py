"""JSON routes, one module for each thing: parse, call, return."""

from app.api import entries, operation, projects, reviews

ROUTERS = (operation.router, reviews.router, entries.router, projects.router)
