"""Runs and events that happened long ago."""

from datetime import timedelta
from typing import Any

from operating import make_event, make_run, make_step

from automation.engine.retention.rounds import round_of
from automation.models import Attempt, DeadLetter, Event, Rule, Run
from automation.store import clock


def age(row: Any, days: float) -> Any:
    """Moves a row's beginning, and its end where it has one, into the past."""
    now = clock.now() - timedelta(days=days)
    names = {field.name for field in row._meta.concrete_fields}
    moved = {
        name: now
        for name in ("created_at", "started_at", "ended_at", "finished_at", "opened_at", "resolved_at", "matched_at")
        if name in names and getattr(row, name) is not None
    }
    type(row).objects.filter(pk=row.pk).update(**moved)
    return row


def old_event(rule: Rule, days: float, **about: Any) -> Event:
    """An event so many days ago."""
    event: Event = age(make_event(rule.tenant, **about), days)
    return event


def old_run(rule: Rule, days: float, *, state: str = "succeeded", event: Event | None = None, **about: Any) -> Run:
    """A run with one step, one attempt and everything that can be known of them, ended so many days ago."""
    event = event or old_event(rule, days)
    run = make_run(rule, state=state, event=event, **about)
    step = make_step(
        run,
        state="succeeded",
        attempts=1,
        input={"to": "gold@example.com", "recipient": "gold@example.com"},
        output={"id": "m-1"},
        error="once it failed for gold@example.com",
    )
    Attempt(
        tenant_id=run.tenant_id,
        step=step,
        number=1,
        started_at=clock.now(),
        finished_at=clock.now(),
        outcome="ok",
        request="POST gold@example.com",
        answer="200",
    ).save()
    for row in (step, *Attempt.objects.filter(step=step), run):
        age(row, days)
    return run


def letter_of(run: Run, *, resolved: bool) -> DeadLetter:
    """A dead letter of the run's step."""
    letter = DeadLetter(
        tenant_id=run.tenant_id,
        run=run,
        step=run.steps.get(),
        event=run.event,
        reason="exhausted",
        error="503",
        snapshot={"event": {"facts": {"snapshot": {"subject": "Printer on fire"}}}},
        resolved_at=clock.now() if resolved else None,
    )
    letter.save()
    return letter


def prune(tenant: Any) -> dict[str, int]:
    """One whole round; how much of each was removed."""
    removed: dict[str, int] = {}
    for batch in round_of(tenant.pk):
        for what, count in batch.removed.items():
            removed[what] = removed.get(what, 0) + count
    return removed
