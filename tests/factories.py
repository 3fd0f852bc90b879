"""One factory for each model; a tenant-owned row belongs to the tenant given, or to the one acted for."""

from typing import Any

import factory
from django.contrib.auth.models import User
from django.db.models import Model

from northwind.crm.models import Company, Lead, LeadNote
from northwind.helpdesk.models import Comment, Customer, Task, Ticket
from tenants.models import Group, Membership, Tenant


class UserFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = User

    username = factory.Sequence(lambda n: f"user{n}")
    first_name = factory.Sequence(lambda n: f"First{n}")
    last_name = "Last"
    email = factory.LazyAttribute(lambda user: f"{user.username}@example.com")


class TenantFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Tenant

    name = factory.Sequence(lambda n: f"Tenant {n}")
    slug = factory.Sequence(lambda n: f"tenant-{n}")


class OwnedFactory(factory.django.DjangoModelFactory):
    """Saves the row itself: the scoped manager would ask for a scope even where the tenant is given."""

    class Meta:
        abstract = True

    @classmethod
    def _create(cls, model_class: type[Model], *args: Any, **kwargs: Any) -> Model:
        row = model_class(*args, **kwargs)
        row.save(force_insert=True)
        return row


class MembershipFactory(OwnedFactory):
    class Meta:
        model = Membership

    user = factory.SubFactory(UserFactory)


class GroupFactory(OwnedFactory):
    class Meta:
        model = Group

    name = factory.Sequence(lambda n: f"Group {n}")


class CustomerFactory(OwnedFactory):
    class Meta:
        model = Customer

    name = factory.Sequence(lambda n: f"Customer {n}")
    email = factory.Sequence(lambda n: f"customer{n}@example.com")


class TicketFactory(OwnedFactory):
    class Meta:
        model = Ticket

    subject = factory.Sequence(lambda n: f"Ticket {n}")


class CommentFactory(OwnedFactory):
    class Meta:
        model = Comment

    body = "Have you tried turning it off and on again?"


class TaskFactory(OwnedFactory):
    class Meta:
        model = Task

    title = factory.Sequence(lambda n: f"Task {n}")


class CompanyFactory(OwnedFactory):
    class Meta:
        model = Company

    name = factory.Sequence(lambda n: f"Company {n}")


class LeadFactory(OwnedFactory):
    class Meta:
        model = Lead

    name = factory.Sequence(lambda n: f"Lead {n}")
    email = factory.Sequence(lambda n: f"lead{n}@example.com")


class LeadNoteFactory(OwnedFactory):
    class Meta:
        model = LeadNote

    body = "Called, will call back."
