"""Tickets, customers and tasks hold only values that make sense, and the database keeps what it says it keeps."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError

from northwind.helpdesk.choices import CATEGORIES, Status, StatusCategory, statuses_of
from northwind.helpdesk.models import Comment, Customer, Task, Ticket, TicketFollower
from northwind.tags import normalise
from tenants.context import acting_for
from tenants.models import Tenant
from tests.factories import (
    CommentFactory,
    CustomerFactory,
    GroupFactory,
    MembershipFactory,
    TaskFactory,
    TenantFactory,
    TicketFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)
PAST = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def acme() -> Iterator[Tenant]:
    tenant = TenantFactory()
    with acting_for(tenant.pk):
        yield tenant


@pytest.mark.parametrize("status", Status.values)
def test_a_status_has_one_category_in_python_and_in_the_database(status):
    ticket = TicketFactory(status=status)
    ticket.refresh_from_db()
    assert ticket.status_category == ticket.category == CATEGORIES[status]
    assert status in statuses_of(ticket.category)
    assert Ticket.objects.filter(Ticket.OPEN).exists() == (ticket.category == StatusCategory.OPEN)


@pytest.mark.parametrize(("field", "value"), [("status", "odd"), ("priority", "odd"), ("channel", "odd")])
def test_a_value_that_is_none_of_the_choices_is_refused_by_the_database(field, value):
    with pytest.raises(IntegrityError):
        TicketFactory(**{field: value})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (["  two   words ", ""], ["two words"]),
        (["e\u0301"], ["é"]),
        ({"x"}, ["x"]),
        ([], []),
    ],
)
def test_tags_are_kept_in_one_form_by_every_door(given, kept):
    ticket = TicketFactory(tags=list(given))
    assert ticket.tags == kept
    assert Ticket.objects.get().tags == kept == normalise(given)
    Ticket.objects.update(tags=[])
    Ticket.objects.update(tags=list(given))
    assert Ticket.objects.get().tags == kept


def test_tags_can_be_looked_for():
    TicketFactory(tags=["b", "a"])
    assert Ticket.objects.filter(tags__contains=["a"]).exists()
    assert not Ticket.objects.filter(tags__overlap=["c"]).exists()


def test_a_comment_moves_the_last_activity_and_an_older_one_does_not():
    ticket = TicketFactory(last_activity_at=PAST)
    comment = CommentFactory(ticket=ticket, created_at=PAST + timedelta(days=1))
    assert Ticket.objects.get().last_activity_at == comment.created_at
    CommentFactory(ticket=ticket, created_at=PAST - timedelta(days=1))
    assert Ticket.objects.get().last_activity_at == comment.created_at
    other = TicketFactory(last_activity_at=PAST)
    Comment.objects.bulk_create([Comment(ticket=one, body="x") for one in (ticket, other, ticket)])
    assert min(Ticket.objects.values_list("last_activity_at", flat=True)) > comment.created_at


def test_a_rules_own_note_is_no_activity():
    ticket = TicketFactory(last_activity_at=PAST)
    Comment.objects.bulk_create([Comment(ticket=ticket, body="x", is_automatic=True)])
    assert Ticket.objects.get().last_activity_at == PAST
    Comment.objects.bulk_create(
        [Comment(ticket=ticket, body=one, is_automatic=one == "rule") for one in ("rule", "ana")]
    )
    assert Ticket.objects.get().last_activity_at > PAST


@pytest.mark.parametrize("factory", [TicketFactory, TaskFactory])
def test_a_new_assignee_moves_when_it_was_last_assigned(factory):
    ana, ben = MembershipFactory(), MembershipFactory()
    record = factory(assignee=ana)
    model = type(record)
    first = model.objects.get().assigned_at
    assert first is not None
    model.objects.update(assignee=ana)
    assert model.objects.get().assigned_at == first
    model.objects.update(assignee=None)
    assert model.objects.get().assigned_at == first
    model.objects.update(assignee=ben)
    assert model.objects.get().assigned_at > first
    model.objects.update(assignee=ana, assigned_at=PAST)
    assert model.objects.get().assigned_at == PAST


def test_a_real_change_moves_updated_at_whoever_writes_and_a_no_op_does_not():
    TicketFactory()
    first = Ticket.objects.get().updated_at
    Ticket.objects.update(status="new")
    Ticket.objects.get().save()
    assert Ticket.objects.get().updated_at == first
    with connection.cursor() as cursor:
        cursor.execute("UPDATE helpdesk_ticket SET description = 'changed'")
    assert Ticket.objects.get().updated_at > first


def test_an_address_belongs_to_one_customer_of_a_tenant_however_it_is_written(acme):
    CustomerFactory(email="Bo@example.com")
    with pytest.raises(IntegrityError):
        CustomerFactory(email="bo@EXAMPLE.com")
    CustomerFactory(email="")
    CustomerFactory(email="")
    other = TenantFactory()
    with acting_for(other.pk):
        assert CustomerFactory(email="bo@example.com").pk


@pytest.mark.parametrize(
    ("make", "link"),
    [
        (lambda theirs: TicketFactory(customer=theirs["customer"]), "customer"),
        (lambda theirs: TicketFactory(assignee=theirs["member"]), "assignee"),
        (lambda theirs: TicketFactory(group=theirs["group"]), "group"),
        (lambda theirs: CommentFactory(ticket=theirs["ticket"]), "ticket"),
        (lambda theirs: TaskFactory(assignee=theirs["member"]), "assignee"),
        (lambda theirs: TaskFactory(ticket=theirs["ticket"]), "ticket"),
        (lambda theirs: TicketFollower.objects.create(ticket=TicketFactory(), member=theirs["member"]), "member"),
    ],
)
def test_the_database_refuses_a_link_to_another_tenants_row(make, link):
    other = TenantFactory()
    with acting_for(other.pk):
        theirs = {
            "customer": CustomerFactory(),
            "member": MembershipFactory(),
            "group": GroupFactory(),
            "ticket": TicketFactory(),
        }
    with pytest.raises(IntegrityError, match=f"{link}_id_tenant_fk"):
        make(theirs)


def test_a_customer_with_tickets_is_not_deleted():
    ticket = TicketFactory(customer=CustomerFactory())
    with pytest.raises(ProtectedError):
        Customer.objects.get().delete()
    ticket.delete()
    Customer.objects.all().delete()
    assert not Customer.objects.exists()


def test_a_follower_follows_once():
    ticket, member = TicketFactory(), MembershipFactory()
    ticket.followers.add(member)
    ticket.followers.add(member)
    assert TicketFollower.objects.count() == 1
    with pytest.raises(IntegrityError), transaction.atomic():
        TicketFollower.objects.create(ticket=ticket, member=member)


def test_what_a_record_is_called():
    customer = CustomerFactory(name="Bo")
    ticket = TicketFactory(subject="Help", customer=customer)
    assert [
        str(one) for one in (customer, ticket, TaskFactory(title="Call"), CommentFactory(ticket=ticket, body="Hi"))
    ] == [
        "Bo",
        "Help",
        "Call",
        "Hi",
    ]
    ticket.followers.add(MembershipFactory())
    assert str(TicketFollower.objects.get()).startswith(f"{ticket.pk}: ")
    assert Task.objects.filter(Task.OPEN).count() == 1
