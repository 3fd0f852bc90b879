"""One tenant with people and rules, on the in-process runner: what most tests of the engine are told with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection

from automation.catalog.action import Outcome
from automation.engine import rules
from automation.engine.effects import EffectCall
from automation.engine.simulate import Runner, succeed
from automation.engine.sources import by_api
from automation.models import Attempt, Connection, DeadLetter, Event, Rule, Run, StepExecution
from northwind.helpdesk.models import Customer, Ticket
from tenants.context import Actor, acting_for, every_tenant
from tenants.models import Membership, Tenant
from tests.factories import CustomerFactory, MembershipFactory, TenantFactory, TicketFactory, UserFactory


def step(id_: str, action: str, **params: Any) -> dict[str, Any]:
    """An action step; parameters by name."""
    return {"id": id_, "kind": "action", "action": action, "version": 1, "params": params}


def set_field(id_: str, field_: str, value: Any) -> dict[str, Any]:
    """A step that sets one field."""
    return step(id_, "set_fields", fields=[{"field": field_, "value": value}])


def leaf(field_: str, op: str, value: Any = None) -> dict[str, Any]:
    """One comparison."""
    return {"field": field_, "op": op} | ({} if value is None else {"value": value})


def when(*on: str, fields: list[str] | None = None, model: str = "helpdesk.ticket", **more: Any) -> dict[str, Any]:
    """A trigger on changes of a record."""
    params: dict[str, Any] = {"model": model, "on": list(on) or ["updated"], **more}
    return {"kind": "record_changed", "params": params | ({"fields": fields} if fields else {})}


@dataclass
class World:
    """A tenant, Ana who changes things, and a runner; `answer` is what every outside effect is answered with."""

    tenant: Tenant
    ana: Membership
    answer: Callable[[EffectCall], Outcome] = succeed
    runner: Runner = field(init=False)

    def __post_init__(self) -> None:
        # Through a method, so that a test may change `answer` meanwhile.
        self.runner = Runner(script=self._answered)

    def _answered(self, call: EffectCall) -> Outcome:
        return self.answer(call)

    def acting(self) -> Any:
        """Ana acts in the tenant."""
        return acting_for(self.tenant.pk, Actor("person", self.ana.user_id, "Ana"))

    def rule(self, name: str, *steps: dict[str, Any], on: bool = True, **definition: Any) -> Rule:
        """A published rule that is switched on; it listens to updates of tickets unless told otherwise."""
        whole = {"schema_version": 1, "trigger": when("updated"), "condition": None, "steps": list(steps), **definition}
        with self.acting():
            rule = rules.create(name, definition=whole)
            rules.publish(rule.pk, revision=rule.draft.revision)
            if on:
                rules.switch_on(rule.pk)
            rule.refresh_from_db()
        return rule

    def republish(self, rule: Rule, *steps: dict[str, Any], **definition: Any) -> None:
        """A new version of the rule."""
        with self.acting():
            rule = Rule.objects.select_related("draft", "published").get(pk=rule.pk)
            assert rule.published is not None
            whole = {**rule.published.definition, "steps": list(steps), **definition}
            draft = rules.save_draft(rule.pk, whole, base_revision=rule.draft.revision)
            rules.publish(rule.pk, revision=draft.revision)

    def ticket(self, **fields: Any) -> Ticket:
        """A new ticket, its creation already judged."""
        with self.acting():
            ticket: Ticket = TicketFactory(tenant=self.tenant, **fields)
        self.run()
        return ticket

    def customer(self, **fields: Any) -> Customer:
        """A new customer."""
        with self.acting():
            customer: Customer = CustomerFactory(tenant=self.tenant, **fields)
        return customer

    def connection(
        self, name: str = "hook", kind: str = "webhook", *, endpoint: str = "https://example.com/hook"
    ) -> Connection:
        """A connection that nothing ever reaches, for effects are only captured, unless `answer` sends them."""
        with self.acting():
            connection = Connection(tenant=self.tenant, name=name, kind=kind, endpoint=endpoint)
            connection.set_secret("whsec_" + "A" * 32)
            connection.save()
        return connection

    def change(self, record: Any, *, run: bool = True, **fields: Any) -> Event:
        """Ana changes a record; then everything that follows is done. Answers the event of the change."""
        with self.acting():
            record.refresh_from_db()
            for name, value in fields.items():
                setattr(record, name, value)
            record.save()
            self.commit()
            event = Event.objects.order_by("-id").first()
        if run:
            self.run()
        assert event is not None
        return event

    def run(self) -> None:
        """Does everything that can be done, moving the runner's clock over delays."""
        with every_tenant():
            self.runner.run(self.tenant.pk)

    def by_api(self) -> Any:
        """Changes come through the API, as those of other systems do."""
        return by_api()

    def commit(self) -> None:
        """Ends what counts as one transaction: later changes of the record are events of their own."""
        connection.run_on_commit.clear()

    def run_until_held(self) -> None:
        """Does what can be done at this moment, without waiting for what is put off."""
        self.pass_time(timedelta(0))

    def adopt_timers(self) -> None:
        """Takes over the timers that verbs have written to the database, and forgets those that they deleted."""
        with every_tenant():
            self.runner.timers.adopt(self.tenant.pk)

    def pass_time(self, span: Any) -> None:
        """Lets time go by."""
        with every_tenant():
            self.runner.pass_time(self.tenant.pk, span)

    def runs(self, rule: Rule | None = None) -> list[Run]:
        """All runs, or a rule's, oldest first."""
        with self.acting():
            found = Run.objects.order_by("id")
            return list(found if rule is None else found.filter(rule=rule))

    def states(self, rule: Rule | None = None) -> list[str]:
        """The runs' states, with the reason where there is one: "suppressed loop_depth"."""
        return [f"{run.state} {run.reason}".strip() for run in self.runs(rule)]

    def steps(self, run: Run) -> dict[str, StepExecution]:
        """The steps of a run by path."""
        with self.acting():
            return {one.path: one for one in StepExecution.objects.filter(run=run).order_by("created_at", "id")}

    def attempts(self, run: Run, path: str) -> list[str]:
        """The outcomes of a step's attempts in their order."""
        with self.acting():
            tries = Attempt.objects.filter(step__run=run, step__path=path).order_by("number")
            return list(tries.values_list("outcome", flat=True))

    def dead_letters(self) -> list[DeadLetter]:
        """The open dead letters."""
        with self.acting():
            return list(DeadLetter.objects.filter(resolved_at=None).order_by("id"))

    def fresh(self, record: Any) -> Any:
        """The record as it is now."""
        with self.acting():
            return type(record).objects.get(pk=record.pk)

    def calls(self) -> list[EffectCall]:
        """The outside effects so far."""
        return self.runner.effects.calls


def make_world() -> World:
    """A tenant with Ana, who is its admin."""
    tenant = TenantFactory()
    user = UserFactory(first_name="Ana")
    with acting_for(tenant.pk):
        ana = MembershipFactory(tenant=tenant, user=user, role="admin")
    return World(tenant=tenant, ana=ana)
