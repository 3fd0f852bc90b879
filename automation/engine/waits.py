"""Lists the timers that runs of a tenant wait for."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from automation.models import Run, StepExecution, Timer
from tenants.context import current_tenant

LISTED = 200


@dataclass(frozen=True, slots=True)
class Wait:
    """A timer of a run, with the step that it is for."""

    timer: int
    kind: str
    state: str
    due_at: datetime
    run: int
    step: int
    path: str
    rule: str
    record: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"due_at": self.due_at.isoformat()}


def waits(
    *, run_id: int | None = None, rule_id: int | None = None, model: str = "", record: int | None = None
) -> list[Wait]:
    """The current tenant's timers of runs that fit, the earliest `LISTED` first; without a filter those not held."""
    timers = Timer.objects.filter(tenant_id=current_tenant(), run_id__isnull=False)
    if run_id is not None or rule_id is not None or model:
        runs = Run.objects.filter(ended_at=None)
        runs = runs.filter(pk=run_id) if run_id is not None else runs
        runs = runs.filter(rule_id=rule_id) if rule_id is not None else runs
        runs = runs.filter(model=model, record=record) if model else runs
        steps = StepExecution.objects.filter(run__in=runs.values("pk"))
        timers = timers.filter(step_id__in=steps.values("pk"))
    else:
        timers = timers.filter(lane__tenant_id=current_tenant(), state="pending")  # by the index of the claim
    rows = list(timers.order_by("due_at", "id")[:LISTED])
    steps_by_id = {
        one.pk: one
        for one in StepExecution.objects.select_related("run__rule").filter(pk__in=[row.step_id for row in rows])
    }
    return [_wait(row, steps_by_id[row.step_id]) for row in rows if row.step_id in steps_by_id]


def _wait(timer: Timer, step: StepExecution) -> Wait:
    run = step.run
    return Wait(
        timer=timer.pk,
        kind=timer.kind,
        state=timer.state,
        due_at=timer.due_at,
        run=run.pk,
        step=step.pk,
        path=step.path,
        rule=run.rule.name,
        record=f"{run.model}:{run.record}" if run.model else "",
    )
