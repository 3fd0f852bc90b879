"""What belongs to another tenant doesn't exist, whoever leaves is counted on no more, and old workers do no harm."""

from datetime import timedelta
from typing import Any

import pytest
import structlog

from automation.catalog import registry
from automation.catalog.action import Outcome
from automation.core.errors import DefinitionError
from automation.engine import lists, ruleset
from automation.engine import rules as verbs
from automation.engine.operate import dead_letters
from automation.engine.operate import runs as run_verbs
from automation.engine.posting import run_by_hand
from automation.engine.trace import trace
from automation.models import DeadLetter, Event, Rule, Run, StepExecution
from automation.store.timers import NewTimer
from northwind.helpdesk.models import Comment
from tenants.context import every_tenant
from tenants.models import Group, Membership
from tests.engine.world import World, leaf, make_world, set_field, step, when
from tests.factories import CustomerFactory, GroupFactory, MembershipFactory, TicketFactory, UserFactory

HOOK = step("c", "call_webhook", connection="hook")
DAY = {"id": "d", "kind": "delay", "for": "P1D"}


@pytest.fixture
def other(world: World) -> World:
    """A second tenant beside the world's."""
    return make_world()


def refused(world: World, *steps: dict[str, Any], **definition: Any) -> list[tuple[str, str]]:
    """Why a rule can't be published; nothing of it is stored as a version."""
    with pytest.raises(DefinitionError) as raised:
        world.rule("Theirs", *steps, **definition)
    return [(problem.pointer, problem.code) for problem in raised.value.problems]


@pytest.mark.case("P01")
def test_another_tenants_people_groups_and_connections_are_as_if_they_did_not_exist(world: World, other: World) -> None:
    other.connection("theirs")
    with other.acting():
        theirs = GroupFactory(tenant=other.tenant, name="Theirs")
    for person in (other.ana.pk, 10**15):
        assert refused(world, step("a", "assign", to="person", person=person)) == [
            ("/steps/0/params/person", "missing_member")
        ]
        assert refused(world, step("t", "add_tags", tags=["x"]), condition=leaf("assignee", "is", person)) == [
            ("/condition/value", "missing_member")
        ]
    for name in ("Theirs", "Nobody's"):
        assert [code for _, code in refused(world, step("a", "assign", to="group", group=name))] == ["missing_group"]
    for name in ("theirs", "nobodys"):
        assert [code for _, code in refused(world, step("c", "call_webhook", connection=name))] == [
            "missing_connection"
        ]
    customer = CustomerFactory(tenant=other.tenant)
    for field, number, code in (
        ("assignee", other.ana.pk, "missing_member"),
        ("group", theirs.pk, "missing_group"),
        ("customer", customer.pk, "missing_record"),
    ):
        values = {"subject": "New", "customer": CustomerFactory(tenant=world.tenant).pk, field: number}
        made = step("m", "create_record", model="helpdesk.ticket", values=values)
        assert refused(world, made) == [(f"/steps/0/params/values/{field}", code)]
        if field != "customer":
            assert refused(world, set_field("s", field, number)) == [("/steps/0/params/fields/0/value", code)]
            assert refused(world, set_field("s", field, str(number))) == [("/steps/0/params/fields/0/value", code)]
    with world.acting():
        assert not Rule.objects.filter(published__isnull=False).exists()


@pytest.mark.case("P01")
def test_no_verb_takes_another_tenants_id_and_nothing_is_written(world: World, other: World) -> None:
    other.connection()
    theirs = other.rule("Theirs", HOOK, trigger={"kind": "manual", "params": {"model": "helpdesk.ticket"}})
    other.answer = lambda call: Outcome.rejected("No.")
    ticket = other.ticket()
    with other.acting():
        run_by_hand(theirs.pk, ticket)
    other.run()
    (run,), (letter,) = other.runs(theirs), other.dead_letters()
    with every_tenant():
        events_before = Event.objects.count()
    with world.acting():
        mine = TicketFactory(tenant=world.tenant)
        for look in (
            lambda: verbs.find(theirs.pk),
            lambda: verbs.switch_off(theirs.pk),
            lambda: verbs.delete(theirs.pk),
            lambda: verbs.restore(theirs.pk, 1),
            lambda: run_by_hand(theirs.pk, mine),
        ):
            with pytest.raises(Rule.DoesNotExist):
                look()
        with pytest.raises(Run.DoesNotExist):
            run_verbs.cancel(run.pk)
        with pytest.raises(Run.DoesNotExist):
            trace(run.pk)
        with pytest.raises(DeadLetter.DoesNotExist):
            dead_letters.retry(letter.pk)
    with every_tenant():
        assert Event.objects.count() == events_before + 1  # the ticket of one's own
    assert other.states(theirs) == ["failed rejected"]


@pytest.mark.case("P02")
@pytest.mark.parametrize("action", [step("n", "add_note", text="x"), HOOK])
def test_a_wake_up_that_names_another_tenants_run_does_nothing_and_raises_an_alarm(
    world: World, other: World, action: dict[str, Any]
) -> None:
    other.connection()
    rule = other.rule("Later", DAY, action)
    ticket = other.ticket()
    other.change(ticket, run=False, subject="Go")
    other.run_until_held()
    (run,) = other.runs(rule)
    with other.acting():
        (waiting,) = StepExecution.objects.filter(run=run)
    for kind in ("step", "delay", "retry"):
        world.runner.timers.write([NewTimer(world.tenant.pk, kind, None, run_id=run.pk, step_id=waiting.pk)])
    with structlog.testing.capture_logs() as logs:
        world.run()
    alarms = [line["what"] for line in logs if line["event"] == "alarm"]
    assert alarms == ["timer of another tenant"] * 3
    assert other.states(rule) == ["waiting"]
    assert world.calls() == other.calls() == []
    assert world.runner.timers.pending() == []
    other.run()
    assert other.states(rule)[0] == "succeeded"


@pytest.mark.case("P04")
def test_by_turns_only_those_who_are_there_get_work_and_nobody_is_made_up(world: World) -> None:
    with world.acting():
        here, gone, away = (
            MembershipFactory(tenant=world.tenant, user=UserFactory(), role="agent", **state)
            for state in ({}, {"is_active": False}, {"is_away": True})
        )
        pool = Group(tenant=world.tenant, name="Pool")
        pool.save()
        for member in (here, gone, away):
            pool.members.add(member, through_defaults={"tenant": world.tenant})
    rule = world.rule("Share", step("a", "assign", to="round_robin", group="Pool"), trigger=when("created"))
    tickets = [world.ticket() for _ in range(4)]
    assert {world.fresh(ticket).assignee_id for ticket in tickets} == {here.pk}
    with world.acting():
        Membership.objects.filter(pk=here.pk).update(is_active=False)
    left = world.ticket()
    assert world.fresh(left).assignee_id is None
    assert world.states(rule) == ["succeeded"] * 4 + ["failed no_assignee"]
    assert [letter.reason for letter in world.dead_letters()] == ["no_assignee"]


@pytest.mark.case("P04")
def test_a_rule_whose_owner_leaves_is_flagged_and_what_waits_goes_on(world: World) -> None:
    with world.acting():
        owner = MembershipFactory(tenant=world.tenant, user=UserFactory(), role="editor")
    rule = world.rule("Theirs", DAY, step("t", "add_tags", tags=["x"]), trigger=when(fields=["subject"]))
    with world.acting():
        Rule.objects.filter(pk=rule.pk).update(owner=owner.user)
    ticket = world.ticket()
    world.change(ticket, run=False, subject="Go")
    world.run_until_held()
    with world.acting():
        Membership.objects.filter(pk=owner.pk).update(is_active=False)
        (line,) = lists.rules_with_counts()
    assert line.owner_gone
    world.run()
    assert world.states(rule) == ["succeeded"]
    assert world.fresh(ticket).tags == ["x"]


@pytest.mark.case("K05")
@pytest.mark.parametrize("name", ["call_webhook@1", "add_note@1"])
def test_a_worker_that_does_not_know_an_action_leaves_the_step_to_one_that_does(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    world.connection()
    steps = {"call_webhook@1": HOOK, "add_note@1": step("c", "add_note", text="New")}
    rule = world.rule("New kind", step("t", "add_tags", tags=["first"]), steps[name], trigger=when("created"))
    with monkeypatch.context() as older:
        older.delitem(registry.actions, name)
        ruleset.forget()
        with world.acting():
            ticket = TicketFactory(tenant=world.tenant)
        world.pass_time(timedelta(minutes=5))
        (run,) = world.runs(rule)
        left = world.steps(run)["c"]
        assert (run.state, left.state, left.attempts) == ("running", "pending", 0)
        assert world.attempts(run, "c") == []
        assert world.dead_letters() == []
    ruleset.forget()
    world.pass_time(timedelta(minutes=1))
    assert world.states(rule) == ["succeeded"]
    assert world.attempts(run, "c") == ["ok"]
    with world.acting():
        assert Comment.objects.filter(ticket=ticket).exists() == (name == "add_note@1")
