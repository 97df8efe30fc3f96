"""Every shape that crosses a boundary: facts, decisions, requests and responses.

The words are those of docs/architecture.md. Money is integer micro-dollars, time is timezone-aware UTC, and ids
are opaque strings.
"""
