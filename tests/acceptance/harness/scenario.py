"""Builds what a test starts from: tenants with lanes, records, connections, and rules that are published and on."""

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from acceptance.harness.database import Db, Row
from django.db.models import QuerySet
from factories import MembershipFactory, TenantFactory, UserFactory

from automation.engine import rules
from automation.models import Connection
from northwind.helpdesk.models import Ticket
from tenants.context import Actor, acting_as, acting_for
from tenants.models import Membership, Tenant

SECRET = "whsec_" + "c2VjcmV0LW9mLXRoZS10ZXN0cw=="
FAST = {"max_attempts": 5, "base_delay": "PT0S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}
FACTS = {
    "change": "updated",
    "before": {"priority": "normal"},
    "after": {"priority": "urgent"},
    "snapshot": {"priority": "urgent", "subject": "Printer on fire"},
    "data": {},
    "cut": [],
    "source": "person",
}
BACKLOG = """
WITH given AS (SELECT %s::bigint AS tenant, %s::bigint AS rule, %s::jsonb AS facts),
e AS (
  INSERT INTO automation_event (tenant_id, kind, change, name, model, record, facts, actor, source, batch, body_sha256,
                                depth, path, matched_at)
  SELECT g.tenant, 'record_changed', 'updated', '', 'helpdesk.ticket', t, g.facts, 'Ana Admin', 'person', '', '',
         0, '[]', clock_timestamp() FROM given g, unnest(%s::bigint[]) t RETURNING id, record),
r AS (
  INSERT INTO automation_run (tenant_id, rule_id, rule_version_id, event_id, state, model, record, root_event_id, depth)
  SELECT g.tenant, g.rule, v.published_id, e.id, 'pending', 'helpdesk.ticket', e.record, e.id, 0
    FROM given g JOIN automation_rule v ON v.id = g.rule, e RETURNING id),
s AS (
  INSERT INTO automation_stepexecution (tenant_id, run_id, path, kind, action, state)
  SELECT g.tenant, r.id, %s, 'action', %s, 'pending' FROM given g, r RETURNING id, run_id)
INSERT INTO automation_timer (lane_id, tenant_id, kind, due_at, run_id, step_id)
SELECT l.id, g.tenant, 'step', automation_now(), s.run_id, s.id
  FROM given g JOIN automation_lane l ON l.tenant_id = g.tenant, s
"""
_numbers = count(1)


def step(action: str, *, id: str = "", effect: str | None = None, retry: Any = None, **params: Any) -> dict[str, Any]:
    """A step of that action; `retry` and `effect` where it isn't the action's own."""
    made: dict[str, Any] = {"id": id or action, "kind": "action", "action": action, "version": 1, "params": params}
    if effect is not None:
        made["effect"] = effect
    if retry is not None:
        made["retry"] = retry
    return made


def webhook(*, id: str = "call", connection: str = "hook", retry: Any = FAST, **params: Any) -> dict[str, Any]:
    """A call of a webhook, which repeats its key."""
    return step("call_webhook", id=id, connection=connection, retry=retry, **params)


def sms(*, id: str = "text", retry: Any = FAST, effect: str | None = None, number: str = "+15550100") -> dict[str, Any]:
    """A text message: at most once, where `effect` says nothing else."""
    return step(
        "send_sms", id=id, effect=effect, retry=retry, connection="sms", to="number", number=number, text="Hello"
    )


def trap(armed: Path, *, does: str, seconds: float = 0.0, id: str = "trap", **more: Any) -> dict[str, Any]:
    """A step that ends its process, or hangs, while the file `armed` exists."""
    return step(
        "trap", id=id, connection="hook", armed=str(armed), does=does, seconds=seconds, **({"retry": FAST} | more)
    )


def note(text: str = "Noted", *, id: str = "note") -> dict[str, Any]:
    """A local step."""
    return step("add_note", id=id, text=text)


def put(*, id: str = "set", **fields: Any) -> dict[str, Any]:
    """A local step that sets fields."""
    return step("set_fields", id=id, fields=[{"field": name, "value": value} for name, value in fields.items()])


def delay(duration: str, *, id: str = "wait") -> dict[str, Any]:
    """A delay of an ISO duration."""
    return {"id": id, "kind": "delay", "for": duration}


def definition(
    steps: Sequence[dict[str, Any]],
    *,
    on: Sequence[str] = ("updated",),
    fields: Sequence[str] = (),
    condition: Any = None,
    again: str | None = None,
    imports: str = "run",
) -> dict[str, Any]:
    """A definition on tickets."""
    params: dict[str, Any] = {"model": "helpdesk.ticket", "on": list(on)}
    if fields:
        params["fields"] = list(fields)
    made = {
        "schema_version": 1,
        "trigger": {"kind": "record_changed", "params": params},
        "condition": condition,
        "steps": list(steps),
    }
    if imports != "run":
        made["imports"] = imports
    return made if again is None else {**made, "again": again}


@dataclass
class Site:
    """A tenant with a person who acts in it."""

    db: Db
    tenant: Tenant
    member: Membership
    actor: Actor

    @property
    def id(self) -> int:
        """The tenant's id."""
        return self.tenant.pk

    @property
    def lane(self) -> Row:
        """Its lane as it is now."""
        return self.db.row("SELECT * FROM automation_lane WHERE tenant_id = %s", self.id)

    def acting(self) -> AbstractContextManager[None]:
        """Enters the tenant as its person."""
        return _Acting(self)

    def set_lane(self, **columns: Any) -> None:
        """Changes columns of its lane, as an operator with a console would."""
        names = ", ".join(f"{name} = %s" for name in columns)
        self.db.run(f"UPDATE automation_lane SET {names} WHERE tenant_id = %s", *columns.values(), self.id)

    def move_to(self, pool: str) -> None:
        """Gives its work to another pool."""
        self.set_lane(pool=pool)

    def connect(
        self, url: str, *, name: str = "hook", kind: str = "webhook", secret: str = SECRET, **settings: Any
    ) -> None:
        """A connection to a server."""
        with self.acting():
            made = Connection(tenant=self.tenant, name=name, kind=kind, endpoint=url, settings=settings)
            made.set_secret(secret)
            made.save()

    def connect_sms(self, url: str) -> None:
        """A connection to the SMS service."""
        self.connect(url, name="sms", kind="sms", secret="token", account_sid="AC1", **{"from": "+15550199"})

    def rule(self, steps: Sequence[dict[str, Any]], *, name: str = "", **about: Any) -> int:
        """A rule that is published and on; its id."""
        with self.acting():
            rule = rules.create(name or f"Rule {next(_numbers)}", definition=definition(steps, **about))
            rules.publish(rule.pk, revision=rule.draft.revision)
            rules.switch_on(rule.pk)
        return rule.pk

    def publish(self, rule_id: int, steps: Sequence[dict[str, Any]], **about: Any) -> None:
        """A further version of the rule, live at once."""
        with self.acting():
            draft = rules.find(rule_id).draft
            saved = rules.save_draft(rule_id, definition(steps, **about), base_revision=draft.revision)
            rules.publish(rule_id, revision=saved.revision)

    def tickets(self, number: int, **fields: Any) -> list[int]:
        """Tickets that were always there: no event tells of them."""
        rows = [
            Ticket(tenant=self.tenant, **{"subject": f"Ticket {place}", **fields}) for place in range(1, number + 1)
        ]
        return [row.pk for row in QuerySet(Ticket).bulk_create(rows)]

    def ticket(self, ticket_id: int) -> Ticket:
        """The ticket, while acting in the tenant."""
        return Ticket.objects.get(pk=ticket_id)

    def change(self, ticket_id: int, **fields: Any) -> None:
        """A person changes a ticket."""
        with self.acting():
            ticket = Ticket.objects.get(pk=ticket_id)
            for name, value in fields.items():
                setattr(ticket, name, value)
            ticket.save()

    def change_all(self, ticket_ids: Iterable[int], **fields: Any) -> None:
        """A person changes many tickets at once, in one transaction."""
        with self.acting():
            Ticket.objects.filter(pk__in=list(ticket_ids)).update(**fields)

    def backlog(
        self, rule_id: int, ticket_ids: Sequence[int], *, path: str = "call", action: str = "call_webhook@1"
    ) -> None:
        """Matched events, runs, and their first steps due now, as a matcher leaves them; one for each ticket."""
        with self.db.connection.transaction():
            self.db.run(BACKLOG, self.id, rule_id, json.dumps(FACTS), list(ticket_ids), path, action)
            self.join_line()

    def hurry(self) -> None:
        """Makes what waits for another try due now, as if its time had passed."""
        with self.db.connection.transaction():
            self.db.run(
                "UPDATE automation_timer SET due_at = automation_now() WHERE tenant_id = %s AND state = 'pending'",
                self.id,
            )
            self.join_line()

    def join_line(self) -> None:
        """Tells the lane that something is due."""
        self.db.run(
            "SELECT automation_lane_due(id, automation_now()) FROM automation_lane WHERE tenant_id = %s", self.id
        )

    def runs(self, where: str = "true") -> list[Row]:
        """Its runs, oldest first."""
        return self.db.rows(f"SELECT * FROM automation_run WHERE tenant_id = %s AND {where} ORDER BY id", self.id)

    def steps(self, where: str = "true") -> list[Row]:
        """Its steps, oldest first."""
        return self.db.rows(
            f"SELECT * FROM automation_stepexecution WHERE tenant_id = %s AND {where} ORDER BY id", self.id
        )

    def attempts(self, step_id: int) -> list[Row]:
        """The attempts of a step in their order."""
        return self.db.rows("SELECT * FROM automation_attempt WHERE step_id = %s ORDER BY number", step_id)

    def outcomes(self, step_id: int) -> list[str]:
        """How the attempts of a step ended."""
        return [one["outcome"] for one in self.attempts(step_id)]

    def letters(self) -> list[Row]:
        """Its open dead letters."""
        return self.db.rows(
            "SELECT * FROM automation_deadletter WHERE tenant_id = %s AND resolved_at IS NULL ORDER BY id", self.id
        )

    def timers(self, where: str = "true") -> list[Row]:
        """Its timers in the order of their due times."""
        return self.db.rows(
            f"SELECT * FROM automation_timer WHERE tenant_id = %s AND {where} ORDER BY due_at, id", self.id
        )

    def events(self) -> list[Row]:
        """Its events, oldest first."""
        return self.db.rows("SELECT * FROM automation_event WHERE tenant_id = %s ORDER BY id", self.id)

    def ended(self, number: int, state: str = "succeeded") -> bool:
        """Whether so many of its runs have ended that way, and nothing waits to be matched."""
        done = self.db.value("SELECT count(*) FROM automation_run WHERE tenant_id = %s AND state = %s", self.id, state)
        return bool(done >= number)


class _Acting:
    def __init__(self, site: Site) -> None:
        self._contexts = (acting_for(site.id), acting_as(site.actor))

    def __enter__(self) -> None:
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *about: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*about)


def make_site(db: Db, **lane: Any) -> Site:
    """A tenant with an admin who acts in it, and the lane's columns as given."""
    tenant = TenantFactory()
    user = UserFactory(first_name="Ana", last_name="Admin")
    with acting_for(tenant.pk):
        member = MembershipFactory(tenant=tenant, user=user, role="admin")
    site = Site(db=db, tenant=tenant, member=member, actor=Actor("person", user.pk, "Ana Admin"))
    if lane:
        site.set_lane(**lane)
    return site
