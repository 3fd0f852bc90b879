"""Chains of rules: they end, they end by what rows say, and nothing that people want is taken for a loop."""

import pytest
from pytest_django import DjangoAssertNumQueries, Settings

from automation.engine import ruleset
from automation.engine.match import judge
from automation.engine.simulate import Runner
from automation.models import Event
from automation.store import events
from northwind.crm.models import Lead
from northwind.helpdesk.models import Customer, Task, Ticket
from tenants.context import every_tenant
from tests.engine.world import World, leaf, set_field, step, when


def by_many_workers(world: World) -> int:
    """Does everything, each timer by a worker that has just started and knows nothing; answers how many there were."""
    workers = 0
    with every_tenant():
        world.runner.timers.arm(world.tenant.pk)
        while (claimed := world.runner.timers.next()) is not None:
            ruleset.forget()
            worker = Runner(script=world.answer, timers=world.runner.timers)
            worker.cycle.turn([claimed])
            while worker.cycle.turn([]):
                pass
            workers += 1
    return workers


@pytest.mark.case("L02")
def test_the_depth_of_a_chain_lives_in_rows_and_survives_every_worker(world: World) -> None:
    world.connection()
    hook = step("h", "call_webhook", connection="hook")
    world.rule(
        "A task makes a ticket",
        hook,
        step("c", "create_record", model="helpdesk.ticket", values={"subject": "More"}),
        trigger=when("created", model="helpdesk.task"),
    )
    world.rule(
        "A ticket makes a task",
        hook,
        step("c", "create_record", model="helpdesk.task", values={"title": "More"}),
        trigger=when("created"),
    )
    with world.acting():
        Task(tenant=world.tenant, title="First").save()
    assert by_many_workers(world) > 6
    assert world.states() == ["succeeded"] * 5 + ["suppressed loop_depth"]
    assert [run.depth for run in world.runs()] == [0, 1, 2, 3, 4, 5]
    with world.acting():
        last = Event.objects.order_by("id").last()
        assert last is not None
        assert (last.depth, len(last.path)) == (5, 5)
    assert by_many_workers(world) == 1  # the matcher finds nothing: what was suppressed isn't tried again
    assert len(world.runs()) == 6


@pytest.mark.case("L04")
def test_two_changes_in_one_transaction_both_reach_the_rules_that_listen_to_them(world: World) -> None:
    rule = world.rule("Priority", step("t", "add_tags", tags=["seen"]), trigger=when(fields=["priority"]))
    ticket = world.ticket()
    with world.acting():
        ticket.subject = "First change"
        ticket.save()
        ticket.priority = "high"
        ticket.save()
    world.run()
    assert world.states(rule) == ["succeeded"]
    assert world.fresh(ticket).tags == ["seen"]


@pytest.mark.case("L07")
def test_mail_to_our_own_address_is_left_out_and_the_run_goes_on(world: World, settings: Settings) -> None:
    settings.DEFAULT_FROM_EMAIL = "Northwind <desk@northwind.example>"
    rule = world.rule(
        "Thanks",
        step("m", "send_email", to="customer", subject="Got it", text="Thank you"),
        step("t", "add_tags", tags=["answered"]),
        trigger=when("created"),
    )
    ticket = world.ticket(customer=world.customer(email="desk@northwind.example"))
    (run,) = world.runs(rule)
    mail = world.steps(run)["m"]
    assert (run.state, mail.state, mail.reason) == ("succeeded", "skipped", "self_address")
    assert world.calls() == []
    assert world.fresh(ticket).tags == ["answered"]


@pytest.mark.case("L13")
def test_a_gold_customer_saved_unchanged_starts_nothing(world: World) -> None:
    rule = world.rule(
        "Gold",
        set_field("s", "plan", "gold"),
        trigger=when("updated", model="helpdesk.customer"),
        condition=leaf("plan", "is", "gold"),
    )
    customer = world.customer(plan="gold")
    world.run()
    before = world.fresh(customer).updated_at
    with world.acting():
        Customer.objects.get(pk=customer.pk).save()
        Customer.objects.filter(pk=customer.pk).update(plan="gold")
    world.run()
    assert world.runs(rule) == []
    assert world.fresh(customer).updated_at == before


@pytest.mark.case("D08")
def test_judging_conditions_reads_and_writes_nothing(
    world: World, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    computed = {"all": [leaf("status_category", "is", "open"), leaf("last_activity_at", "within_last", "P1D")]}
    rule = world.rule("Open", step("t", "add_tags", tags=["x"]), trigger=when("created"), condition=computed)
    with world.acting():
        Ticket(tenant=world.tenant, subject="New").save()
        event = events.unmatched(world.tenant.pk, 10)
        known = ruleset.of_tenant(world.tenant.pk, events.flags([world.tenant.pk])[world.tenant.pk][2])
        with django_assert_num_queries(0):
            (judged,) = judge(known, event)
    assert [one.rule.rule_id for one in judged.chosen] == [rule.pk]
    world.run()
    assert world.states(rule) == ["succeeded"]


@pytest.mark.case("D05")
def test_a_change_of_the_subject_and_a_tag_in_one_request_is_one_mail(world: World) -> None:
    rule = world.rule("Tell", step("m", "send_email", to="customer", subject="Changed", text="{{ ticket.tags }}"))
    ticket = world.ticket(customer=world.customer(), tags=["a", "b"])
    with world.acting():
        ticket.subject = "Another"
        ticket.save()
        ticket.tags = ["b"]
        ticket.save()
    world.run()
    assert world.states(rule) == ["succeeded"]
    (mail,) = [call for call in world.calls() if call.step_id]
    assert mail.door.event["before"]["tags"] == ["a", "b"]
    assert mail.door.event["after"]["tags"] == ["b"]
    assert mail.door.event["snapshot"]["tags"] == ["b"]


@pytest.mark.case("D10")
def test_changes_beside_a_mail_do_not_multiply_it(world: World) -> None:
    world.rule(
        "Welcome",
        set_field("a", "status", "contacted"),
        set_field("b", "value", 5),
        step("m", "send_email", to="field", field="email", subject="Hi", text="Welcome"),
        trigger=when("updated", model="crm.lead", fields=["source"]),
    )
    with world.acting():
        for number in range(3):
            Lead(tenant=world.tenant, name=f"Lead {number}", email=f"lead{number}@example.org").save()
    world.run()
    with world.acting():
        Lead.objects.update(source="facebook")
    world.run()
    mails = [call for call in world.calls() if call.step_id]
    assert len({call.run_id for call in mails}) == len(mails) == 3
