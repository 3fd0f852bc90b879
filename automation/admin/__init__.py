"""The installation's staff look at the engine's rows; what they do goes through the engine's verbs."""

from automation.admin import (
    addresses,
    backtests,
    connections,
    dead_letters,
    events,
    lanes,
    notices,
    pauses,
    queue,
    retention,
    rules,
    runs,
    tenants,
    users,
)

__all__ = [
    "addresses",
    "backtests",
    "connections",
    "dead_letters",
    "events",
    "lanes",
    "notices",
    "pauses",
    "queue",
    "retention",
    "rules",
    "runs",
    "tenants",
    "users",
]
