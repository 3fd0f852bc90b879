"""Ends runs that have outlived their longest life; a chore of the workers."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from django.db import transaction

from automation.engine import ruleset, taking
from automation.engine.by_itself import by_itself
from automation.engine.ended import add_ended
from automation.store import clock, events, runs, timers, verbs
from automation.store.waves import Wave
from tenants.context import NOBODY, acting_for

AT_ONCE = 500


def expire_due() -> int:
    """Fails live runs whose time is over, with the reason `expired`; answers how many.

    One that a worker is on is left to it: its next check ends it, or the next round of this chore.
    """
    due = sorted(verbs.expired_runs(AT_ONCE))
    ended = 0
    for tenant_id, found in groupby(due, key=lambda one: one[0]):
        with by_itself("expiry", tenant_id=tenant_id), acting_for(tenant_id, NOBODY):
            ended += _expire(tenant_id, [run_id for _tenant, run_id in found])
    return ended


def _expire(tenant_id: int, run_ids: Sequence[int]) -> int:
    with transaction.atomic():
        locked = [run for run in verbs.lock_runs(tenant_id, run_ids) if run.expired and run.state in verbs.CANCELLABLE]
        states = verbs.lock_timers([run.id for run in locked])
        free = [run.id for run in locked if "leased" not in states.get(run.id, ())]
        if not free:
            return 0
        _tell(tenant_id, free)
        return verbs.cancel_runs(free, actor="", state="failed", reason="expired")


def _tell(tenant_id: int, run_ids: Sequence[int]) -> None:
    """Raises the events of these runs' end where the tenant has a rule that listens to such."""
    rows, wave = runs.lock(run_ids), Wave()
    versions = ruleset.by_version(row.version_id for row in rows.values())
    for row in rows.values():
        compiled = versions.get(row.version_id)
        if compiled is None or compiled.spec is None:
            continue
        run = taking.in_hand(row, compiled, now=clock.now())
        run.state, run.reason = "failed", "expired"
        add_ended(wave, [run])
    if wave.events:
        events.insert(wave.events)
        transaction.on_commit(partial(timers.arm_match, tenant_id))
