"""Rows that the operators' verbs are tried on: rules, runs in every state, timers, and workers that hold them."""

import hashlib
import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import F
from factories import MembershipFactory, TenantFactory, UserFactory

from automation.models import (
    Attempt,
    DeadLetter,
    Event,
    Lane,
    Rule,
    RuleDraft,
    RuleVersion,
    Run,
    StepExecution,
    Timer,
    Worker,
)
from automation.store import clock
from automation.store.timers import NewTimer, set_timers
from tenants.context import Actor, acting_for
from tenants.models import Membership, Tenant

DEFINITION: dict[str, Any] = {
    "schema_version": 1,
    "trigger": {"kind": "record_changed", "params": {"model": "helpdesk.ticket", "on": ["updated"]}},
    "condition": {"id": "c_1", "field": "priority", "op": "changed_to", "value": "urgent"},
    "steps": [{"id": "tell", "kind": "action", "action": "add_note", "version": 1, "params": {"text": "Urgent!"}}],
}


@dataclass(frozen=True)
class Place:
    """A tenant, one of its admins, and that person as an actor."""

    tenant: Tenant
    admin: Membership
    actor: Actor

    @property
    def lane(self) -> Lane:
        return Lane.objects.get(tenant=self.tenant)


def sha256(definition: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(definition, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def place(**about: Any) -> Place:
    tenant = TenantFactory(**about)
    user = UserFactory(first_name="Ana", last_name="Admin")
    with acting_for(tenant.pk):
        admin = MembershipFactory(tenant=tenant, user=user, role="admin")
    return Place(tenant, admin, Actor("person", user.pk, "Ana Admin"))


def make_rule(tenant: Tenant, *, published: bool = True, **about: Any) -> Rule:
    """A rule with its draft and, if published, its first version live."""
    definition = about.pop("definition", DEFINITION)
    rule = Rule(tenant=tenant, **{"name": "Tell the lead", "position": 1, "on": published, **about})
    rule.save()
    RuleDraft(tenant=tenant, rule=rule, definition=definition).save()
    if published:
        version = RuleVersion(tenant=tenant, rule=rule, number=1, definition=definition, sha256=sha256(definition))
        version.save()
        rule.published = version
        rule.save()
    return rule


def make_event(tenant: Tenant, **about: Any) -> Event:
    facts = {
        "change": "updated",
        "before": {"priority": "normal"},
        "after": {"priority": "urgent"},
        "snapshot": {"priority": "urgent", "subject": "Printer on fire"},
        "data": {},
        "cut": [],
        "source": "person",
    }
    event = Event(
        tenant=tenant,
        **{
            "kind": "record_changed",
            "change": "updated",
            "model": "helpdesk.ticket",
            "record": 12,
            "facts": facts,
            "actor": "Ana Admin",
            "source": "person",
            "matched_at": clock.now(),
            **about,
        },
    )
    event.save()
    return event


def make_run(rule: Rule, *, state: str = "running", event: Event | None = None, **about: Any) -> Run:
    event = event or make_event(rule.tenant)
    ended = clock.now() if state in {"succeeded", "failed", "cancelled"} else None
    run = Run(
        tenant=rule.tenant,
        rule=rule,
        rule_version=rule.published,
        event=event,
        **{
            "state": state,
            "model": event.model,
            "record": event.record,
            "root_event_id": event.root_event_id or event.pk,
            "depth": event.depth,
            "ended_at": ended,
            **about,
        },
    )
    run.save()
    return run


def make_step(run: Run, *, path: str = "tell", state: str = "pending", **about: Any) -> StepExecution:
    ended = clock.now() if state in {"succeeded", "dead", "skipped", "failed", "cancelled"} else None
    step = StepExecution(
        tenant_id=run.tenant_id,
        run=run,
        **{"path": path, "kind": "action", "action": "add_note@1", "state": state, "ended_at": ended, **about},
    )
    step.save()
    return step


def make_timer(step: StepExecution, *, kind: str = "step", due_at: Any = None) -> Timer:
    set_timers([NewTimer(step.tenant_id, kind, due_at, run_id=step.run_id, step_id=step.pk)])
    return Timer.objects.get(step_id=step.pk)


def lease(timer: Timer, *, host: str = "alpha", pid: int = 7) -> Worker:
    """A worker that is on the timer."""
    now = clock.now()
    worker = Worker.objects.create(
        id=uuid.uuid4(), pool="northwind", host=host, pid=pid, started_at=now, beat_at=now, expires_at=now
    )
    Timer.objects.filter(pk=timer.pk).update(
        state="leased", worker_id=worker.pk, lease_seq=F("lease_seq") + 1, deadline_at=now
    )
    Lane.objects.filter(pk=timer.lane_id).update(running=F("running") + 1)
    return worker


def make_live_run(
    rule: Rule, *, state: str = "running", step: str = "pending", kind: str = "step", **about: Any
) -> Run:
    """A run with one step and its timer, due now."""
    run = make_run(rule, state=state, **about)
    make_timer(make_step(run, state=step), kind=kind)
    return run


def make_dead_run(rule: Rule, *, state: str = "failed", reason: str = "exhausted", attempts: int = 3) -> DeadLetter:
    """A run whose first step is done and whose second is dead, with its open dead letter."""
    run = make_run(rule, state=state, reason=reason)
    make_step(run, path="first", state="succeeded", attempts=1)
    step = make_step(
        run,
        path="page",
        state="dead",
        reason=reason,
        attempts=attempts,
        effect_state="uncertain" if reason == "delivery_unknown" else "intended",
        idempotency_key="a" * 64,
        request_sha256="b" * 64,
        error="503 from the pager",
    )
    for number in range(1, attempts + 1):
        Attempt(
            tenant_id=run.tenant_id,
            step=step,
            number=number,
            started_at=clock.now(),
            finished_at=clock.now(),
            outcome="failed",
            request="POST /page",
            answer="503",
        ).save()
    letter = DeadLetter(tenant_id=run.tenant_id, run=run, step=step, event=run.event, reason=reason, error="503")
    letter.save()
    return letter
