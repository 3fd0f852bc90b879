"""Gives a forgotten run what wakes it: its lost timer, or the step that should have followed."""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from automation.core.histories import moment_in
from automation.core.states import LIVE_RUN
from automation.engine.operate import Refused, onward
from automation.engine.operate.history import settled_rows, walk
from automation.models import Run, StepExecution
from automation.store import timers, verbs, watch
from automation.store.timers import NewTimer
from automation.store.watch import OpenStep
from tenants import audit
from tenants.context import current_tenant


def wake(run_id: int, reason: str = "") -> None:
    """Lets a run go on that the watch found forgotten. Once it has a timer again, `Refused`.

    Raises `Run.DoesNotExist`, and `Refused` for a run that has ended, that something will wake, or whose dead step
    was given up: that one can only be cancelled.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        locked = verbs.lock_runs(tenant_id, [run_id])
        if not locked:
            raise Run.DoesNotExist
        if locked[0].state not in LIVE_RUN:
            raise Refused(_("This run has ended."))
        if not watch.is_forgotten(run_id):
            raise Refused(_("This run has what wakes it: see what it waits for."))
        steps = watch.open_steps([run_id]).get(run_id, [])
        live = [step for step in steps if step.state != "dead"]
        if steps and not live:
            raise Refused(_("The dead step of this run was given up: it can only be cancelled."))
        audit.record(
            "wake",
            f"run:{run_id}",
            tenant_id=tenant_id,
            reason=reason,
            before={"state": locked[0].state},
            after={"steps": [step.path for step in live]},
        )
        if live:
            timers.set_timers([_timer(tenant_id, step) for step in live])
            if locked[0].state == "paused":
                timers.hold_runs([run_id])
        else:
            _follow(run_id)


def _timer(tenant_id: int, step: OpenStep) -> NewTimer:
    kind = {"delay": "delay"}.get(step.kind, "retry" if step.state == "retrying" else "step")
    return NewTimer(tenant_id, kind, _due_at(step), run_id=step.run_id, step_id=step.id)


def _due_at(step: OpenStep) -> datetime | None:
    """When a delay was to end; everything else is due now."""
    if step.kind != "delay":
        return None
    return moment_in(StepExecution.objects.values_list("input", flat=True).get(pk=step.id), "until")


def _follow(run_id: int) -> None:
    run = onward.in_hand(run_id)
    rows = settled_rows(Run.objects.get(pk=run_id))
    index = list(walk(run.spec, rows))[-1][0]
    onward.go_on(run, index, begun=bool(rows))
