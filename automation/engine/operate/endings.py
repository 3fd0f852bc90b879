"""Raises the events of runs that end as failed with no worker on them: their time is over, or a person gave up."""

from collections.abc import Sequence
from functools import partial

from django.db import transaction

from automation.engine import ruleset, taking
from automation.engine.ended import add_ended
from automation.store import clock, events, runs, timers
from automation.store.waves import Wave


def tell_failed(tenant_id: int, run_ids: Sequence[int], *, reason: str) -> None:
    """An event for each of these locked runs where the tenant has a rule that listens; call it before they end."""
    rows, wave = runs.lock(run_ids) if run_ids else {}, Wave()
    versions = ruleset.by_version(row.version_id for row in rows.values())
    for row in rows.values():
        compiled = versions.get(row.version_id)
        if compiled is None or compiled.spec is None:
            continue
        run = taking.in_hand(row, compiled, now=clock.now())
        run.state, run.reason = "failed", reason
        add_ended(wave, [run])
    if wave.events:
        events.insert(wave.events)
        transaction.on_commit(partial(timers.arm_match, tenant_id))
