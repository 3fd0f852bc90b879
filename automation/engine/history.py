"""What happened to a record, who or which rule did it, and what still waits for it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.core.states import TERMINAL_RUN
from automation.models import Event, Rule, Run, StepExecution, Timer
from tenants.context import acting_for
from tenants.models import TenantOwned

HISTORY_LENGTH = 50


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of an event: raw values as an event keeps them, None before where the record was made."""

    path: str
    label: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that an event started, or one that was suppressed and why."""

    id: int
    rule_id: int
    rule_name: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of a record: when, by whom or by which rule and run, what changed, and which runs followed."""

    event_id: int
    at: datetime
    kind: str
    change: str
    name: str
    source: str
    batch: str
    actor: str
    rule_id: int | None
    rule_name: str
    run_id: int | None
    fields: tuple[FieldChange, ...]
    runs: tuple[StartedRun, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """A run that isn't over, and the moment it waits for; `due_at` None where it waits for something else."""

    run_id: int
    rule_id: int
    rule_name: str
    state: str
    reason: str
    timer_id: int | None
    timer_kind: str
    due_at: datetime | None
    step_path: str


def history_of(record: TenantOwned, *, before: int | None = None, limit: int = HISTORY_LENGTH) -> list[Happening]:
    """The record's events and the runs that they started, newest first; `before` an event's id goes on from there.

    Three statements, however many there are. A record that is gone has a history all the same.
    """
    entry = registry.model(record._meta.label_lower)
    with acting_for(record.tenant_id):
        found = Event.objects.filter(model=entry.name, record=record.pk).order_by("-id")
        events = list((found if before is None else found.filter(id__lt=before))[:limit])
        runs = _runs_of(event.pk for event in events)
        names = _rule_names(
            {event.cause_rule_id for event in events} | {run.rule_id for many in runs.values() for run in many}
        )
    return [_happening(entry, event, runs[event.pk], names) for event in events]


def pending_for(record: TenantOwned) -> list[Pending]:
    """The record's runs that aren't over, oldest first, with their timers. Four statements at most."""
    entry = registry.model(record._meta.label_lower)
    with acting_for(record.tenant_id):
        open_runs = Run.objects.filter(model=entry.name, record=record.pk).exclude(state__in=TERMINAL_RUN)
        runs = list(open_runs.order_by("id"))
        timers: dict[int, list[Timer]] = defaultdict(list)
        for timer in Timer.objects.filter(run_id__in=[run.pk for run in runs]).order_by("due_at", "id"):
            timers[timer.run_id or 0].append(timer)
        steps = {timer.step_id for many in timers.values() for timer in many if timer.step_id is not None}
        paths = dict(StepExecution.objects.filter(pk__in=steps).values_list("pk", "path")) if steps else {}
        names = _rule_names(run.rule_id for run in runs)
    pairs: list[tuple[Run, Timer | None]] = [(run, timer) for run in runs for timer in (timers.get(run.pk) or (None,))]
    return [_pending(run, timer, names, paths) for run, timer in pairs]


def _runs_of(event_ids: Iterable[int]) -> dict[int, list[Run]]:
    runs: dict[int, list[Run]] = defaultdict(list)
    for run in Run.objects.filter(event_id__in=list(event_ids), origin="event", forked_from_run=None).order_by("id"):
        runs[run.event_id].append(run)
    return runs


def _rule_names(rule_ids: Iterable[int | None]) -> dict[int, str]:
    wanted = {rule_id for rule_id in rule_ids if rule_id is not None}
    return dict(Rule.objects.filter(pk__in=wanted).values_list("pk", "name")) if wanted else {}


def _happening(entry: Automatable, event: Event, runs: list[Run], names: dict[int, str]) -> Happening:
    return Happening(
        event_id=event.pk,
        at=event.created_at,
        kind=event.kind,
        change=event.change,
        name=event.name,
        source=event.source,
        batch=event.batch,
        actor=event.actor,
        rule_id=event.cause_rule_id,
        rule_name=names.get(event.cause_rule_id or 0, ""),
        run_id=event.cause_run_id,
        fields=tuple(_fields(entry, event.facts)),
        runs=tuple(StartedRun(run.pk, run.rule_id, names.get(run.rule_id, ""), run.state, run.reason) for run in runs),
    )


def _fields(entry: Automatable, facts: dict[str, Any]) -> Iterable[FieldChange]:
    before, after = facts.get("before") or {}, facts.get("after") or {}
    for path in dict.fromkeys([*before, *after]):
        known = entry.fields.get(path)
        yield FieldChange(path, known.label if known else path, before.get(path), after.get(path))


def _pending(run: Run, timer: Timer | None, names: dict[int, str], paths: dict[int, str]) -> Pending:
    return Pending(
        run_id=run.pk,
        rule_id=run.rule_id,
        rule_name=names.get(run.rule_id, ""),
        state=run.state,
        reason=run.reason,
        timer_id=timer.pk if timer else None,
        timer_kind=timer.kind if timer else "",
        due_at=timer.due_at if timer else None,
        step_path=paths.get(timer.step_id or 0, "") if timer else "",
    )
