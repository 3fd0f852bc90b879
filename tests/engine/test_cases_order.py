"""Changes of people and of rules beside each other: nobody's work is undone, and nothing overtakes."""

from contextlib import suppress

import pytest
from django.db import transaction

from automation.catalog.action import Outcome
from automation.core.conditions import explain
from automation.core.moments import Moment
from automation.engine import ruleset
from automation.engine.effects import EffectCall
from automation.engine.sources import importing
from automation.models import Event, Rule
from automation.store import events
from northwind.crm.models import Lead
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, leaf, set_field, step, when
from tests.factories import TicketFactory

HOOK = step("c", "call_webhook", connection="hook")


class Undo(Exception):
    """Takes a savepoint back."""


@pytest.mark.case("O01")
def test_a_step_after_a_slow_call_keeps_what_a_person_changed_meanwhile(world: World) -> None:
    world.connection()
    rule = world.rule("Tag", HOOK, step("t", "add_tags", tags=["x"]), trigger=when(fields=["priority"]))
    ticket = world.ticket(tags=["y", "z"])

    def slowly(call: EffectCall) -> Outcome:
        world.change(ticket, run=False, subject="Hers", tags=["z"])
        return Outcome.done()

    world.answer = slowly
    world.change(ticket, priority="high")
    assert world.states(rule) == ["succeeded"]
    found = world.fresh(ticket)
    assert (found.subject, found.priority, found.tags) == ("Hers", "high", ["x", "z"])


@pytest.mark.case("O08")
def test_runs_on_one_record_start_in_the_order_of_its_changes_though_a_delivery_is_retried(world: World) -> None:
    world.connection()
    rule = world.rule("Tell", HOOK, trigger=when(fields=["status"]))
    ticket = world.ticket()
    made = [world.change(ticket, run=False, status=status).pk for status in ("open", "pending", "closed")]
    tried: list[int] = []

    def first_fails(call: EffectCall) -> Outcome:
        tried.append(call.door.event["id"])
        return Outcome.retry("Busy.") if len(tried) == 1 else Outcome.done()

    world.answer = first_fails
    world.run()
    assert made == sorted(made)
    assert [run.event_id for run in world.runs(rule)] == made
    assert tried == [*made, made[0]]
    told = {call.door.event["id"]: call.door.event["after"]["status"] for call in world.calls()}
    assert [told[event] for event in made] == ["open", "pending", "closed"]
    assert world.fresh(ticket).status == "closed"


@pytest.mark.case("O10")
def test_equal_positions_are_told_apart_by_age_every_time(world: World) -> None:
    high = world.rule("High", set_field("s", "priority", "high"), trigger=when(fields=["subject"]))
    low = world.rule("Low", set_field("s", "priority", "low"), trigger=when(fields=["subject"]))
    with world.acting():
        Rule.objects.filter(pk__in=[high.pk, low.pk]).update(position=1)
    ruleset.forget()
    ticket = world.ticket(priority="normal")
    for number in range(50):
        world.change(ticket, subject=f"Go {number}")
        assert world.fresh(ticket).priority == "low"


@pytest.mark.case("S01")
def test_what_was_rolled_back_sends_nothing_and_what_was_kept_does(world: World) -> None:
    world.connection()
    rule = world.rule("Tell", HOOK, trigger=when("created"))

    def undone(subject: str) -> None:
        with suppress(Undo), transaction.atomic():
            TicketFactory(tenant=world.tenant, subject=subject)
            raise Undo

    with world.acting():
        undone(subject="Aborted form")
        with transaction.atomic():
            kept = TicketFactory(tenant=world.tenant, subject="Kept")
            undone(subject="Bad row of an import")
    world.run()
    assert [call.door.event["snapshot"]["subject"] for call in world.calls()] == ["Kept"]
    assert [run.record for run in world.runs(rule)] == [kept.pk]
    with world.acting():
        assert [event.record for event in Event.objects.filter(change="created")] == [kept.pk]


@pytest.mark.case("S04")
def test_records_changed_or_made_in_bulk_all_start_their_rules(world: World) -> None:
    closing = world.rule(
        "Closed", step("t", "add_tags", tags=["done"]), condition=leaf("status", "changed_to", "closed")
    )
    imported = world.rule(
        "Imported",
        step("t", "add_tags", tags=["imported"]),
        trigger=when("created", model="crm.lead"),
        condition=leaf("name", "starts_with", "Lead"),
    )
    with world.acting():
        TicketFactory.create_batch(50, tenant=world.tenant)
    world.run()
    with world.acting():
        Ticket.objects.update(status="closed")
        with importing("batch-1"):
            Lead.objects.bulk_create([Lead(tenant=world.tenant, name=f"Lead {number}") for number in range(50)])
    world.run()
    assert world.states(closing) == ["succeeded"] * 50
    assert world.states(imported) == ["succeeded"] * 50
    with world.acting():
        told = Event.objects.filter(model="helpdesk.ticket", change="updated", source="person")
        assert [event.facts["before"] | event.facts["after"] for event in told] == [{"status": "closed"}] * 50
        assert {event.facts["before"]["status"] for event in told} == {"new"}
        assert Event.objects.filter(source="import", batch="batch-1").count() == 50


@pytest.mark.case("S08")
def test_every_rule_is_judged_whatever_the_others_say_and_each_verdict_can_be_told(world: World) -> None:
    first = world.rule("X", step("t", "add_tags", tags=["x"]), condition=leaf("status", "is", "closed"))
    second = world.rule("Y", step("t", "add_tags", tags=["y"]), condition=leaf("status", "is", "new"))
    event = world.change(world.ticket(), subject="Go")
    with world.acting():
        known = ruleset.of_tenant(world.tenant.pk, events.flags([world.tenant.pk])[world.tenant.pk][2])
    verdicts = {
        one.rule_id: explain(one.spec.condition, event.facts, Moment(event.created_at, known.zone))[0].result
        for one in known.rules
        if one.spec is not None
    }
    assert verdicts == {first.pk: "false", second.pk: "true"}
    assert world.states(first) == []
    assert world.states(second)[0] == "succeeded"
