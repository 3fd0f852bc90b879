"""Events that somebody posts, and rules started by hand: kept once, whole, and only for the tenant's own records."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from automation.core.causes import Cause
from automation.engine.history import history_of, pending_for
from automation.engine.operate import Refused
from automation.engine.posting import DifferentBody, manual_rules_for, post_event, run_by_hand
from automation.engine.sources import by_api, caused_by
from automation.models import Event, Rule, RuleVersion, Run, StepExecution, Timer
from northwind.helpdesk.models import Ticket
from tenants.context import Actor, OtherTenantError, acting_for
from tenants.models import Tenant
from tests.factories import CustomerFactory, GroupFactory, TenantFactory, TicketFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def acme() -> Iterator[Tenant]:
    tenant = TenantFactory()
    with acting_for(tenant.pk, Actor("person", 7, "Ana")):
        yield tenant


def rule_of(tenant: Tenant, trigger: dict[str, Any], **fields: Any) -> Rule:
    rule = Rule.objects.create(tenant=tenant, name="By hand", on=True, **fields)
    version = RuleVersion.objects.create(
        tenant=tenant, rule=rule, number=1, definition={"trigger": trigger}, sha256="0"
    )
    Rule.objects.filter(pk=rule.pk).update(published=version)
    return Rule.objects.get(pk=rule.pk)


MANUAL = {"kind": "manual", "params": {"model": "helpdesk.ticket"}}


def test_a_posted_event_keeps_its_data_its_record_and_its_cause(acme):
    ticket = TicketFactory(customer=CustomerFactory(plan="gold"))
    cause = Cause(1, 2, 3, 4, 5, 2, ((3, "helpdesk.ticket:9"),))
    with by_api(cause):
        event_id = post_event(acme, "sla.near", record=ticket, data={"minutes": 5, "of": ["\U0001f600"]}, key="k1")
    event = Event.objects.get(pk=event_id)
    assert (event.kind, event.name, event.model, event.record) == (
        "custom_event",
        "sla.near",
        "helpdesk.ticket",
        ticket.pk,
    )
    assert event.facts["data"] == {"minutes": 5, "of": ["\U0001f600"]}
    assert event.facts["snapshot"]["customer.plan"] == "gold"
    assert (event.source, event.depth, event.parent_event_id, event.path) == ("api", 2, 2, [[3, "helpdesk.ticket:9"]])


def test_a_posted_event_goes_with_its_callers_transaction(acme):
    with transaction.atomic():
        post_event(acme, "n")
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    assert not Timer.objects.exists()
    post_event(acme.pk, "n")
    assert Timer.objects.get().kind == "match"


def test_the_same_key_twice_is_one_event_and_another_body_is_refused(acme):
    first = post_event(acme, "paid", data={"amount": 10, "of": [1, 2]}, key="invoice-1")
    assert post_event(acme, "paid", data={"of": [1, 2], "amount": 10}, key="invoice-1") == first
    for other in ({"name": "paid", "data": {"amount": 11}}, {"name": "refunded", "data": {"amount": 10, "of": [1, 2]}}):
        with pytest.raises(DifferentBody) as refused:
            post_event(acme, other["name"], data=other["data"], key="invoice-1")
        assert refused.value.event_id == first
    assert Event.objects.get().facts["data"]["amount"] == 10
    other_tenant = TenantFactory()
    with acting_for(other_tenant.pk):
        assert post_event(other_tenant, "paid", key="invoice-1") != first
    assert post_event(acme, "paid") != post_event(acme, "paid")


@pytest.mark.fault(26)
def test_one_key_posted_20_times_at_once_is_one_event(acme):
    answers: list[int] = []
    barrier = threading.Barrier(20)

    def post() -> None:
        try:
            with acting_for(acme.pk):
                barrier.wait(30)
                answers.append(post_event(acme.pk, "paid", data={"amount": 10}, key="once"))
        finally:
            connection.close()

    threads = [threading.Thread(target=post) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 20
    assert set(answers) == {Event.objects.get().pk}
    with pytest.raises(DifferentBody):
        post_event(acme, "paid", data={"amount": 11}, key="once")
    assert Event.objects.get().facts["data"] == {"amount": 10}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "\x00"},
        {"name": "a\nb"},
        {"name": "a\u2028b"},
        {"name": "a\ufffdb"},
        {"name": "n", "key": "k\x00"},
        {"name": "n", "data": {"x": "a\x00"}},
        {"name": "n", "data": {"x": "\ud800"}},
        {"name": "n" * 121},
        {"name": "n", "key": ""},
        {"name": "n", "key": "k" * 201},
        {"name": "n", "data": ["a list"]},
        {"name": "n", "data": {"x": "y" * 70_000}},
        {"name": "n", "data": {"x": float("nan")}},
        {"name": "n", "data": {"x": object()}},
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_name(acme, wrong):
    with pytest.raises(ValueError, match="event"):
        post_event(acme, wrong.pop("name"), **wrong)
    assert not Event.objects.exists()


def test_a_deeply_nested_body_is_refused(acme):
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(ValueError, match="levels"):
        post_event(acme, "n", data={"deep": deep})


def test_a_long_text_in_the_data_is_cut_and_marked(acme):
    event = Event.objects.get(pk=post_event(acme, "n", data={"long": {"in": ["z" * 9000]}, "short": "s"}))
    assert len(event.facts["data"]["long"]["in"][0]) == 8192
    assert event.facts["cut"] == ["event.long"]


def test_the_record_of_another_tenant_does_not_exist(acme):
    stranger = TenantFactory()
    with acting_for(stranger.pk):
        theirs = TicketFactory()
    with pytest.raises(LookupError, match=r"There is no helpdesk\.ticket"):
        post_event(acme, "n", record=theirs)
    with pytest.raises(OtherTenantError):
        post_event(stranger, "n")
    with pytest.raises(LookupError):
        run_by_hand(rule_of(acme, MANUAL).pk, theirs)
    with pytest.raises(LookupError):
        post_event(acme, "n", record=GroupFactory())
    with pytest.raises(LookupError):
        post_event(acme, "n", record=Ticket(tenant=acme))
    assert not Event.objects.filter(kind="custom_event").exists()


def test_a_person_starts_a_live_manual_rule_on_a_record(acme):
    ticket, rule = TicketFactory(), rule_of(acme, MANUAL)
    assert manual_rules_for(ticket) == [rule]
    event = Event.objects.get(pk=run_by_hand(rule.pk, ticket))
    assert (event.kind, event.name, event.record, event.source, event.actor) == (
        "manual",
        str(rule.pk),
        ticket.pk,
        "person",
        "Ana",
    )
    assert event.facts["snapshot"]["subject"] == ticket.subject


def test_a_rule_that_is_off_for_other_records_or_not_for_hands_is_refused(acme):
    ticket = TicketFactory()
    off, others, automatic = (
        rule_of(acme, MANUAL),
        rule_of(acme, {"kind": "manual", "params": {"model": "crm.lead"}}),
        rule_of(acme, {"kind": "record_changed", "params": {"model": "helpdesk.ticket"}}),
    )
    Rule.objects.filter(pk=off.pk).update(on=False)
    assert manual_rules_for(ticket) == []
    for rule in (off, others, automatic):
        with pytest.raises(Refused):
            run_by_hand(rule.pk, ticket)
    stranger = TenantFactory()
    with acting_for(stranger.pk):
        theirs = rule_of(stranger, MANUAL)
    with pytest.raises(Rule.DoesNotExist):
        run_by_hand(theirs.pk, ticket)


def test_the_history_says_who_or_which_rule_changed_what_and_what_it_started(acme, django_assert_num_queries):
    ticket, rule = TicketFactory(priority="low"), rule_of(acme, MANUAL)
    Ticket.objects.update(priority="urgent")
    started_by = Event.objects.latest("id")
    run = Run.objects.create(
        tenant=acme,
        rule=rule,
        rule_version=rule.published,
        event=started_by,
        state="succeeded",
        model="helpdesk.ticket",
        record=ticket.pk,
        root_event_id=started_by.pk,
    )
    with caused_by(Cause(started_by.pk, started_by.pk, rule.pk, run.pk, None, 1, ()), actor="By hand"):
        Ticket.objects.update(status="open")
    TicketFactory()
    with django_assert_num_queries(3):
        newest, by_person, made = history_of(ticket)
    assert (newest.rule_name, newest.run_id, newest.source) == ("By hand", run.pk, "automation")
    assert [(one.label, one.before, one.after) for one in newest.fields] == [("status", "new", "open")]
    assert [(one.id, one.rule_name, one.state) for one in by_person.runs] == [(run.pk, "By hand", "succeeded")]
    assert (by_person.actor, made.change) == ("Ana", "created")
    assert [one.event_id for one in history_of(ticket, before=newest.event_id, limit=1)] == [by_person.event_id]


def test_what_waits_for_a_record_is_listed_with_its_moment(acme):
    ticket, rule = TicketFactory(), rule_of(acme, MANUAL)
    event = Event.objects.latest("id")
    shared: dict[str, Any] = {"tenant": acme, "rule_version": rule.published, "event": event, "root_event_id": event.pk}
    shared |= {"model": "helpdesk.ticket", "record": ticket.pk}
    waiting = Run.objects.create(rule=rule, state="waiting", **shared)
    Run.objects.create(rule=rule, state="succeeded", origin="test", **shared)
    step = StepExecution.objects.create(tenant=acme, run=waiting, path="later", kind="delay", state="waiting")
    timer = Timer.objects.create(
        tenant=acme, lane=acme.lane, kind="delay", due_at="2030-01-01T00:00Z", run_id=waiting.pk, step_id=step.pk
    )
    found = pending_for(ticket)
    assert [(one.run_id, one.timer_id, one.timer_kind, one.step_path, one.rule_name) for one in found] == [
        (waiting.pk, timer.pk, "delay", "later", "By hand")
    ]
    timer.delete()
    assert [(one.run_id, one.due_at) for one in pending_for(ticket)] == [(waiting.pk, None)]
