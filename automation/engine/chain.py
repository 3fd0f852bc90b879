"""Follows causes: from an event up to its root, and from a run down to what it started."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from automation.engine.labels import Key, labels
from automation.models import Event, Rule, Run, StepExecution

LONGEST = 20


@dataclass(frozen=True, slots=True)
class Link:
    """An event of the chain and, where a rule wrote it, that rule with its run and step; or a run that it started.

    Going up, `run_id` wrote the event. Going down, `run_id` was started by it, and `state` and `reason` are the run's.
    """

    event_id: int
    kind: str
    change: str
    model: str
    record: int | None
    record_label: str
    actor: str
    source: str
    at: datetime
    depth: int
    rule_id: int | None = None
    rule_name: str = ""
    run_id: int | None = None
    step: str = ""
    state: str = ""
    reason: str = ""


def up(event: Event) -> list[Link]:
    """The events that led to this one, root first and itself last, each with the run that wrote it; the nearest 20."""
    events = [event]
    while events[-1].parent_event_id is not None and len(events) < LONGEST:
        parent = Event.objects.filter(pk=events[-1].parent_event_id).first()
        if parent is None:
            break
        events.append(parent)
    names = _rule_names(one.cause_rule_id for one in events)
    steps = dict(
        StepExecution.objects.filter(pk__in=[one.cause_step_id for one in events if one.cause_step_id]).values_list(
            "id", "path"
        )
    )
    named = labels(_key(one) for one in events)
    return [
        _link(
            one,
            named,
            rule_id=one.cause_rule_id,
            rule_name=names.get(one.cause_rule_id or 0, ""),
            run_id=one.cause_run_id,
            step=steps.get(one.cause_step_id or 0, ""),
        )
        for one in reversed(events)
    ]


def down(run_id: int) -> list[Link]:
    """What a run led to: the runs that its events started, and theirs, breadth first; at most 20."""
    found: list[Run] = []
    wave = [run_id]
    seen = {run_id}
    while wave and len(found) < LONGEST:
        events = list(Event.objects.filter(cause_run_id__in=wave).order_by("id").values_list("id", flat=True)[:LONGEST])
        runs = Run.objects.filter(event_id__in=events, origin="event", forked_from_run=None)
        fresh = [one for one in runs.select_related("event", "rule").order_by("id")[:LONGEST] if one.pk not in seen]
        found += fresh
        wave = [one.pk for one in fresh]
        seen.update(wave)
    return _run_links(found[:LONGEST])


def _run_links(runs: Sequence[Run]) -> list[Link]:
    named = labels(_key(run.event) for run in runs)
    return [
        _link(
            run.event,
            named,
            rule_id=run.rule_id,
            rule_name=run.rule.name,
            run_id=run.pk,
            state=run.state,
            reason=run.reason,
        )
        for run in runs
    ]


def _link(
    event: Event,
    named: dict[Key, str],
    *,
    rule_id: int | None,
    rule_name: str,
    run_id: int | None,
    step: str = "",
    state: str = "",
    reason: str = "",
) -> Link:
    key = _key(event)
    return Link(
        event_id=event.pk,
        kind=event.kind,
        change=event.change,
        model=event.model,
        record=event.record,
        record_label=named[key] if key else "",
        actor=event.actor,
        source=event.source,
        at=event.created_at,
        depth=event.depth,
        rule_id=rule_id,
        rule_name=rule_name,
        run_id=run_id,
        step=step,
        state=state,
        reason=reason,
    )


def _key(event: Event) -> Key | None:
    return None if event.record is None else (event.model, event.record)


def _rule_names(ids: Iterable[int | None]) -> dict[int, str]:
    wanted = [one for one in ids if one is not None]
    return dict(Rule.objects.filter(pk__in=wanted).values_list("id", "name")) if wanted else {}
