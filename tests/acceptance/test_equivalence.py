"""The in-process runner and a real worker lead the same rules over the same changes to the same traces."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from acceptance.harness.scenario import Site
from acceptance.harness.world import World
from acceptance.random_rules import Drawn, draw
from django.db import connection, transaction
from django.db.models import QuerySet
from factories import CustomerFactory, MembershipFactory, TenantFactory, TicketFactory, UserFactory
from loopback_servers import running

from automation.catalog.action import Outcome
from automation.engine import rules, ruleset
from automation.engine.effects import EffectCall, guarded
from automation.engine.simulate import Runner
from automation.models import Attempt, Connection, Event, Run, StepExecution
from automation.outbound import Outbound, Sockets
from northwind.helpdesk.models import Comment, Task, Ticket
from tenants.context import Actor, acting_for, every_tenant
from tenants.models import Tenant

pytestmark = pytest.mark.acceptance

# On a busy machine no call may time out and no batch be cut short, which the runner's clock knows nothing of.
PATIENT = {"lease": 20, "beat": 2, "deadline": 15, "step_timeout": 8, "step_timeout_max": 8, "match_slice": 5}
SECRET = "whsec_" + "c2VjcmV0LW9mLXRoZS10ZXN0cw=="
Json = Any


def set_up(tenant: Tenant, actor: Actor, drawn: Drawn, url: str) -> Ticket:
    """The tenant's webhook, its ticket, and its rules, published and on; answers the ticket."""
    with acting_for(tenant.pk, actor):
        hook = Connection(tenant=tenant, name="hook", kind="webhook", endpoint=url)
        hook.set_secret(SECRET)
        hook.save()
        customer = CustomerFactory(tenant=tenant, plan=drawn.plan) if drawn.plan else None
        (ticket,) = QuerySet(Ticket).bulk_create([TicketFactory.build(tenant=tenant, customer=customer, subject="New")])
        for name, definition in drawn.rules:
            rule = rules.create(name, definition=definition)
            rules.publish(rule.pk, revision=rule.draft.revision)
            rules.switch_on(rule.pk)
    return ticket


def change(tenant: Tenant, actor: Actor, ticket_id: int, fields: dict[str, Any]) -> None:
    """A person changes the ticket, in a transaction of its own."""
    with acting_for(tenant.pk, actor):
        ticket = Ticket.objects.get(pk=ticket_id)
        for name, value in fields.items():
            setattr(ticket, name, value)
        ticket.save()


def really(call: EffectCall) -> Outcome:
    """Calls the webhook as a thread of the pump does; mails about dead letters are taken as sent."""
    if call.claimed.kind == "deliver":
        return Outcome.done()
    door = call.door
    door.outbound = Outbound(
        door.connection, allow_loopback=True, key=door.key, timeout=call.timeout, sockets=Sockets()
    )
    return guarded(call)


def traces(tenant: Tenant) -> Json:
    """What happened to the ticket: each change of a person with the runs that it started, and what followed from them.

    Without times, ids and keys.
    """
    with acting_for(tenant.pk):
        roots = Event.objects.filter(model="helpdesk.ticket", parent_event_id=None).order_by("id")
        return [_event(event) for event in roots]


def _event(event: Event) -> Json:
    started = Run.objects.filter(event=event).select_related("rule", "rule_version").order_by("id")
    facts = event.facts
    about = [event.model, event.change, event.source, event.actor, event.depth, facts["before"], facts["after"]]
    return {"event": about, "runs": [_run(run) for run in started]}


def _run(run: Run) -> Json:
    steps = StepExecution.objects.filter(run=run).order_by("id")
    followed = Event.objects.filter(cause_run_id=run.pk).order_by("id")
    return {
        "rule": [run.rule.name, run.rule_version.number],
        "ended": [run.state, run.reason, run.depth],
        "steps": [_step(step) for step in steps],
        "events": [_event(event) for event in followed],
    }


def _step(step: StepExecution) -> Json:
    tries = Attempt.objects.filter(step=step).order_by("number").values_list("number", "outcome", "answer")
    given = {} if step.kind == "delay" else {name: value for name, value in (step.input or {}).items() if name != "now"}
    return [
        [step.path, step.kind, step.action, step.state, step.reason, step.attempts, step.effect_state],
        given,
        _without_ids(step.output),
        step.error,
        [list(one) for one in tries],
    ]


def _without_ids(output: Any) -> Any:
    return (
        {name: "#" if name in ("id", "note") and isinstance(value, int) else value for name, value in output.items()}
        if output
        else output
    )


def left(tenant: Tenant, ticket_id: int) -> Json:
    """The ticket at the end, with what was written beside it."""
    with acting_for(tenant.pk):
        ticket = Ticket.objects.get(pk=ticket_id)
        notes = list(Comment.objects.filter(ticket=ticket).order_by("id").values_list("body", flat=True))
        tasks = list(Task.objects.order_by("id").values_list("title", flat=True))
    return [ticket.subject, ticket.status, ticket.priority, ticket.tags, notes, tasks]


def differences(one: Json, other: Json, place: str = "") -> list[str]:
    """Where two traces part, and what each says there."""
    if type(one) is type(other) and isinstance(one, dict) and one.keys() == other.keys():
        return [line for name in one for line in differences(one[name], other[name], f"{place}/{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for number, (this, that) in pairs for line in differences(this, that, f"{place}/{number}")]
    return [] if one == other else [f"{place}: {str(one)[:300]} in process, {str(other)[:300]} by a worker"]


def rehearse(drawn: Drawn, url: str) -> Json:
    """The whole of it through the in-process runner, in a transaction that is rolled back."""
    tenant, user = TenantFactory(), UserFactory()
    actor = Actor("person", user.pk, "Ana")
    with acting_for(tenant.pk):
        MembershipFactory(tenant=tenant, user=user, role="admin")
    ticket = set_up(tenant, actor, drawn, url)
    runner = Runner(script=really)
    for one_round in drawn.rounds:
        for fields in one_round:
            connection.run_on_commit.clear()  # what would be a transaction of its own
            change(tenant, actor, ticket.pk, fields)
        connection.run_on_commit.clear()
        with every_tenant():
            runner.run(tenant.pk)
    return [traces(tenant), left(tenant, ticket.pk)]


@pytest.fixture
def rehearsed(database_url: str, tmp_path: Path, count: int) -> list[Json]:
    """What the in-process runner makes of every tenant."""
    directory = tmp_path / "rehearsal"
    directory.mkdir()
    found = []
    with running("webhooks", directory) as server:
        drawn = draw(count)
        server.script.write_text(json.dumps([answers for one in drawn for answers in one.answers]))
        for one in drawn:
            with transaction.atomic():
                found.append(rehearse(one, server.url))
                transaction.set_rollback(True)
    ruleset.forget()
    return found


@pytest.mark.fault(49)
@pytest.mark.parametrize("count", [20, pytest.param(50, marks=pytest.mark.long)])
def test_random_tenants_have_equal_traces_in_process_and_with_a_real_worker(
    rehearsed: list[Json], world: World, count: int
) -> None:
    hook = world.server("webhooks")
    drawn = draw(count)
    hook.script.write_text(json.dumps([answers for one in drawn for answers in one.answers]))
    sites: list[Site] = [world.site() for _ in drawn]
    tickets = [set_up(site.tenant, _ana(site), one, hook.url) for site, one in zip(sites, drawn, strict=True)]
    for number in range(2):
        for site, one, ticket in zip(sites, drawn, tickets, strict=True):
            for fields in one.rounds[number]:
                change(site.tenant, _ana(site), ticket.pk, fields)
        if number == 0:
            world.cluster(1, threads=1, **PATIENT)
        world.quiet(within=120, parked=_parked(world))

    found = [[traces(site.tenant), left(site.tenant, ticket.pk)] for site, ticket in zip(sites, tickets, strict=True)]
    differ = [
        f"tenant {one.number}: {line}"
        for one, expected, real in zip(drawn, rehearsed, found, strict=True)
        for line in differences(expected, real)
    ]
    assert not differ, "\n".join(differ[:20])
    states = _ends(rehearsed)
    assert len(states) >= (8 if count == 50 else 7), states  # the draw reaches many ends, not only the plain one
    world.check(parked=_parked(world))


def _ana(site: Site) -> Actor:
    return Actor("person", site.member.user_id, "Ana")


def _parked(world: World) -> int:
    return int(world.db.value("SELECT count(*) FROM automation_run WHERE reason = 'delivery_unknown'"))


def _ends(found: Json) -> Counter[str]:
    """How often a run ended in each way."""
    counted: Counter[str] = Counter()

    def walk(event: Json) -> None:
        for run in event["runs"]:
            counted[" ".join(map(str, run["ended"][:2]))] += 1
            for followed in run["events"]:
                walk(followed)

    for trace, _left in found:
        for event in trace:
            walk(event)
    return counted
