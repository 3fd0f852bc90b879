"""Raises the events of limits that were reached and of what breakers switched off, for rules that listen to them."""

from functools import partial
from typing import Any

from django.db import transaction

from automation.core.causes import ROOT
from automation.engine.arming import arm
from automation.store import events
from automation.store.events import NewEvent

LIMIT_REACHED = "limit_reached"
TEXT_KEPT = 2000


def write(tenant_id: int, limit: str, *, percent: int = 100, **data: Any) -> None:
    """Writes the event in the caller's transaction; rules are judged on it after the commit.

    `limit` is what the trigger chooses by; `data` are further values for conditions and templates.
    """
    kept = {name: value[:TEXT_KEPT] if isinstance(value, str) else value for name, value in data.items()}
    facts = {
        "change": "",
        "before": {},
        "after": {},
        "snapshot": {},
        "data": {"limit": limit, "percent": percent, **kept},
        "cut": [],
        "source": "automation",
        "outcomes": [limit],
    }
    events.insert([NewEvent(tenant_id, LIMIT_REACHED, "", None, facts, "", "", ROOT)])
    transaction.on_commit(partial(arm, tenant_id), robust=True)
