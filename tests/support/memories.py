"""Texts that agents store: slop that the gate refuses, and memories that are beyond doubt worth keeping."""

SESSION_SUMMARY = "Session complete: all tasks done, the retry logic is merged and pushed to main."
SESSION_SUMMARY_TOO = "Wrapped up today: the importer is finished, 134/134 tests pass, next session: deploy it."

RETRIES = (
    "Retry calls to the billing gateway at most three times, because it bans clients that knock more often; "
    "the outage of the nightly export showed it."
)
MIGRATIONS = "Never rename a column in one migration: the old release still reads it while both run side by side."
TIMEZONES = "The calendar library silently drops the time zone of all-day events, so store their dates as plain text."

STATE = "Where things stand: the import rework is in progress, the parser is done, the retry queue is still open."
NEWER_STATE = (
    "Where things stand: the import rework is in progress, the retry queue is done, the deployment is still open."
)
