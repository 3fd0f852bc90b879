"""Finds runs that don't get on, and says why and which verb helps."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.models import Lane, Run
from automation.store import clock, watch
from automation.store.watch import OpenStep, Overdue, Place
from tenants.context import acting_for, current_tenant

log = structlog.get_logger(__name__)
LONG = timedelta(minutes=5)
AT_ONCE = 2000
SLICE = 0.2  # seconds
BEGINNING = Place(datetime(1970, 1, 1, tzinfo=UTC), 0)


@dataclass(frozen=True, slots=True)
class Stuck:
    """A run that doesn't get on: `why` is a code, `sentence` the same for people, `verb` what helps.

    `forgotten`: nothing will wake it, which the engine never leaves behind by itself; else its time has been over for
    long.
    """

    run_id: int
    rule_id: int
    rule_name: str
    model: str
    record: int | None
    state: str
    since: datetime
    step: str
    why: str
    sentence: str
    verb: str
    forgotten: bool


def find(*, limit: int = 200, longer_than: timedelta = LONG) -> list[Stuck]:
    """The current tenant's runs that nothing will wake, then those that have been due for long; `limit` of each."""
    tenant_id = current_tenant()
    gone = watch.forgotten(tenant_id, limit=limit)
    steps = watch.open_steps(gone)
    late = watch.overdue(tenant_id, since=longer_than, now=clock.now(), limit=limit)
    runs = {
        run.pk: run
        for run in Run.objects.select_related("rule").filter(pk__in=[*gone, *(timer.run_id for timer in late)])
    }
    found = [_forgotten(runs[one], steps.get(one, [])) for one in gone if one in runs]
    lane = Lane.objects.get(tenant_id=tenant_id)
    workers = watch.live_workers(lane.pool) if late else 0
    return found + [_late(runs[one.run_id], one, lane, workers) for one in late if one.run_id in runs]


def run_ids(tenant_id: int | None = None, *, limit: int = 1000) -> list[int]:
    """The newest stuck runs, `limit` at most, of a tenant or of all: for lists of the installation's staff."""
    return watch.stuck(tenant_id=tenant_id, before=clock.now() - LONG, limit=limit)


def _forgotten(run: Run, steps: Iterable[OpenStep]) -> Stuck:
    why, step, verb = _why_forgotten(list(steps))
    sentences = {
        "timer_lost": _("Its step has no timer any more, so no worker will ever take it up."),
        "letter_closed": _("Its dead step was decided, and yet the run didn't go on."),
        "not_advanced": _("Its last step has ended, and nothing came after it."),
    }
    return _stuck(run, since=run.started_at or run.created_at, step=step, why=why, text=sentences[why], verb=verb)


def _why_forgotten(steps: list[OpenStep]) -> tuple[str, str, str]:
    """(code, step, verb that helps)."""
    for step in steps:
        if step.state != "dead":
            return "timer_lost", step.path, "wake"
    return ("letter_closed", steps[-1].path, "cancel") if steps else ("not_advanced", "", "wake")


def _late(run: Run, timer: Overdue, lane: Lane, workers: int) -> Stuck:
    why, text, verb = _why_late(timer, lane, workers)
    return _stuck(run, since=timer.due_at, step="", why=why, text=text, verb=verb, forgotten=False)


def _why_late(timer: Overdue, lane: Lane, workers: int) -> tuple[str, str, str]:
    if lane.paused:
        return "paused", _("The tenant's automations are paused, or the whole installation is."), "resume"
    if not workers:
        return "no_worker", _("No worker of the pool “%s” is alive.") % lane.pool, "run_workers"
    if lane.max_running == 0:
        return "no_share", _("The tenant may run no step at a time."), "lane"
    if timer.action and timer.action not in registry.actions:
        return "unknown_action", _("This release doesn't know the action “%s”.") % timer.action, "deploy"
    if timer.lost:
        return "workers_lost", _("Its workers died %s times in a row.") % timer.lost, "skip"
    return "tenant_busy", _("It is due and waits in the tenant's line."), "lane"


def _stuck(run: Run, *, since: datetime, step: str, why: str, text: str, verb: str, forgotten: bool = True) -> Stuck:
    return Stuck(
        run_id=run.pk,
        rule_id=run.rule_id,
        rule_name=run.rule.name,
        model=run.model,
        record=run.record,
        state=run.state,
        since=since,
        step=step,
        why=why,
        sentence=text,
        verb=verb,
        forgotten=forgotten,
    )


@dataclass(slots=True)
class Watch:
    """Goes round over the live runs of all tenants, a bit at a time; each forgotten one is an alarm, once."""

    place: Place = BEGINNING
    told: frozenset[int] = frozenset()

    def look(self) -> int:
        """As much of the round as a moment allows; answers how many forgotten runs it has found."""
        ends_at, found = time.monotonic() + SLICE, 0
        while True:
            found += self._look_on()
            if self.place == BEGINNING or time.monotonic() > ends_at:
                return found

    def _look_on(self) -> int:
        found, place = watch.look_round(self.place, AT_ONCE)
        self.place = place or BEGINNING
        for tenant_id, run_id in found:
            if run_id not in self.told:
                self._tell(tenant_id, run_id)
        self.told |= {run_id for _tenant, run_id in found}
        return len(found)

    def _tell(self, tenant_id: int, run_id: int) -> None:
        why, step, verb = _why_forgotten(watch.open_steps([run_id]).get(run_id, []))
        with acting_for(tenant_id):
            log.error("alarm", what="stuck run", run_id=run_id, tenant_id=tenant_id, why=why, step=step, verb=verb)
