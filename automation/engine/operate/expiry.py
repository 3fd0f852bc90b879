"""Ends runs that have outlived their longest life; a chore of the workers."""

from collections.abc import Sequence
from itertools import groupby

from django.db import transaction

from automation.engine.by_itself import by_itself
from automation.engine.operate.endings import tell_failed
from automation.store import verbs
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
        tell_failed(tenant_id, free, reason="expired")
        return verbs.cancel_runs(free, actor="", state="failed", reason="expired")
