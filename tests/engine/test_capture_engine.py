"""What the engine asks of capture: values under a lock, the event of its own UPDATE, and no needless statement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Model, QuerySet
from django.db.models.signals import ModelSignal, post_save, pre_save
from django.test.utils import CaptureQueriesContext

from automation.catalog import registry
from automation.core.causes import Cause
from automation.engine.capture import read_records, record_difference
from automation.engine.changes import Reading
from automation.engine.sources import caused_by
from automation.models import Event
from northwind.crm.models import Company
from northwind.helpdesk.models import Comment, Ticket
from tenants.context import acting_for
from tenants.models import Tenant
from tests.factories import CommentFactory, CompanyFactory, CustomerFactory, TenantFactory, TicketFactory

pytestmark = pytest.mark.django_db(transaction=True)

CAUSE = Cause(1, 1, 11, 101, 1001, 1, ((11, "helpdesk.ticket:1"),))


@pytest.fixture(autouse=True)
def acme() -> Iterator[Tenant]:
    tenant = TenantFactory()
    with acting_for(tenant.pk):
        yield tenant


def engine_writes(tenant: Tenant, ticket: Ticket, **fields: Any) -> int | None:
    """One local step: lock and read, a plain UPDATE of the named columns, and the event."""
    entry = registry.model("helpdesk.ticket")
    values = read_records(entry, [ticket.pk], lock=True)[ticket.pk]
    QuerySet(Ticket).filter(pk=ticket.pk).update(**fields)
    before, after = (Reading(tenant.pk, one) for one in (values, values | fields))
    with caused_by(CAUSE, actor="Escalate"):
        ids = record_difference(entry, {ticket.pk: before}, {ticket.pk: after})
    return ids[0] if ids else None


def statements(work: Any) -> list[str]:
    """The verbs of a piece of work up to its commit: what follows on it is one more, and a bell now and then."""
    with CaptureQueriesContext(connection) as seen:
        work()
    verbs = [query["sql"].split()[0] for query in seen.captured_queries]
    return verbs[: verbs.index("COMMIT") + 1] if "COMMIT" in verbs else verbs


def test_present_values_are_read_by_path_in_their_json_forms_and_the_gone_are_absent(acme):
    ticket = TicketFactory(customer=CustomerFactory(plan="gold", company_size=12), tags=["b", "a"])
    for lock in (False, True):
        with transaction.atomic():
            found = read_records(registry.model("helpdesk.ticket"), [ticket.pk, 0], lock=lock)
        assert list(found) == [ticket.pk]
        values = found[ticket.pk]
        assert (values["customer.plan"], values["customer.company_size"], values["tags"]) == ("gold", 12, ["a", "b"])
        assert (values["comments"], values["followers"], values["assignee"]) == (0, [], None)
        assert values["created_at"].endswith("+00:00")
    assert read_records(registry.model("helpdesk.ticket"), [], lock=True) == {}


def test_a_change_of_the_engine_is_an_event_of_its_rule(acme):
    ticket = TicketFactory(priority="low")
    with transaction.atomic():
        event = Event.objects.get(pk=engine_writes(acme, ticket, priority="high"))
    assert (event.change, event.source, event.actor, event.cause_rule_id) == ("updated", "automation", "Escalate", 11)
    assert (event.facts["before"], event.facts["after"]) == ({"priority": "low"}, {"priority": "high"})
    assert event.facts["snapshot"]["priority"] == "high"


@pytest.mark.case("L13")
def test_a_step_that_changes_nothing_writes_no_event(acme):
    ticket = TicketFactory(priority="low")
    count = Event.objects.count()
    with transaction.atomic():
        assert engine_writes(acme, ticket, priority="low") is None
    assert Event.objects.count() == count


def test_the_steps_of_one_run_are_one_event_and_taking_a_step_back_leaves_none(acme):
    ticket = TicketFactory(priority="low")
    with transaction.atomic():
        first = engine_writes(acme, ticket, priority="high")
        assert engine_writes(acme, ticket, status="open") == first
    assert Event.objects.get(pk=first).facts["after"] == {"priority": "high", "status": "open"}
    count = Event.objects.count()
    with transaction.atomic():
        assert engine_writes(acme, ticket, priority="urgent") is not None
        assert engine_writes(acme, ticket, priority="high") is None
    assert Event.objects.count() == count


def test_a_save_is_one_update_and_one_insert_in_one_transaction(acme):
    ticket, company = TicketFactory(customer=CustomerFactory()), CompanyFactory()
    for record, field in ((ticket, "subject"), (company, "name")):
        setattr(record, field, "Changed")
        assert statements(record.save) == ["BEGIN", "UPDATE", "INSERT", "COMMIT"]
        assert statements(record.save) == ["BEGIN", "UPDATE", "COMMIT"]


def test_a_save_of_what_nobody_watches_is_djangos_own(acme):
    TicketFactory()
    ticket = Ticket.objects.get()
    assert statements(lambda: ticket.save(update_fields=["last_activity_at"])) == ["UPDATE"]
    assert statements(lambda: Ticket.objects.update(last_activity_at=ticket.created_at)) == ["UPDATE"]


def test_when_a_link_moves_the_snapshot_holds_what_the_new_one_leads_to(acme):
    silver, gold = CustomerFactory(plan="silver"), CustomerFactory(plan="gold")
    ticket = TicketFactory(customer=silver)
    ticket.customer = gold
    ticket.save()
    assert Event.objects.latest("id").facts["snapshot"]["customer.plan"] == "gold"
    ticket.customer = None
    ticket.save()
    assert Event.objects.latest("id").facts["snapshot"]["customer.plan"] is None


@contextmanager
def receiver(signal: ModelSignal, sender: type[Model], work: Callable[[Any], None]) -> Iterator[None]:
    def receive(instance: Any, **kwargs: Any) -> None:
        work(instance)

    signal.connect(receive, sender=sender)
    try:
        yield
    finally:
        signal.disconnect(receive, sender=sender)


@pytest.mark.parametrize("signal", [pre_save, post_save])
def test_a_receiver_that_saves_the_record_again_makes_one_event_of_the_whole_change(acme, signal):
    def again(company: Company) -> None:
        if company.size == 2:
            Company.objects.filter(pk=company.pk).update(industry="Toys")
            if signal is post_save:
                company.size = 3
                company.save()

    made = CompanyFactory(size=1)
    mark = Event.objects.latest("id").pk
    with receiver(signal, Company, again):
        made.size = 2
        made.save()
    event = Event.objects.get(pk__gt=mark)
    present = {"size": made.size, "industry": Company.objects.get().industry}
    assert (event.facts["before"] | event.facts["after"]).items() <= (event.facts["before"] | present).items()
    assert event.facts["before"]["size"] == 1
    assert event.facts["after"]["size"] == Company.objects.get().size


def test_a_receiver_that_comments_again_makes_one_event_of_both_comments(acme):
    def again(comment: Comment) -> None:
        if comment.body == "first":
            CommentFactory(ticket=comment.ticket, body="second")
            Ticket.objects.update(status="open")

    ticket = TicketFactory()
    mark = Event.objects.latest("id").pk
    with receiver(post_save, Comment, again):
        CommentFactory(ticket=ticket, body="first")
    event = Event.objects.get(pk__gt=mark)
    assert (event.facts["before"], event.facts["after"]) == (
        {"comments": 0, "status": "new"},
        {"comments": 2, "status": "open"},
    )
