"""Companies and leads hold only values that make sense, inside their tenant."""

from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.db import IntegrityError

from northwind.crm.models import OPEN_STATUSES, Company, Lead
from tenants.context import acting_for
from tenants.models import Tenant
from tests.factories import CompanyFactory, LeadFactory, LeadNoteFactory, MembershipFactory, TenantFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def acme() -> Iterator[Tenant]:
    tenant = TenantFactory()
    with acting_for(tenant.pk):
        yield tenant


@pytest.mark.parametrize(("field", "value"), [("status", "odd"), ("source", "odd")])
def test_a_value_that_is_none_of_the_choices_is_refused_by_the_database(field, value):
    with pytest.raises(IntegrityError):
        LeadFactory(**{field: value})


def test_a_company_has_its_name_alone_in_its_tenant(acme):
    CompanyFactory(name="Umbrella")
    with pytest.raises(IntegrityError):
        CompanyFactory(name="Umbrella")
    other = TenantFactory()
    with acting_for(other.pk):
        assert CompanyFactory(name="Umbrella").pk


@pytest.mark.parametrize("link", ["company", "assignee"])
def test_the_database_refuses_a_link_to_another_tenants_row(link):
    other = TenantFactory()
    with acting_for(other.pk):
        theirs = {"company": CompanyFactory(), "assignee": MembershipFactory()}[link]
    with pytest.raises(IntegrityError, match=f"{link}_id_tenant_fk"):
        LeadFactory(**{link: theirs})


def test_a_new_assignee_moves_when_the_lead_was_last_assigned_and_a_no_op_moves_nothing():
    LeadFactory()
    Lead.objects.update(assignee=MembershipFactory())
    lead = Lead.objects.get()
    assert lead.assigned_at is not None
    lead.save()
    Lead.objects.update(status="new", tags=[], value=None)
    assert Lead.objects.get().updated_at == lead.updated_at


def test_the_open_leads_are_those_that_may_still_be_won():
    for status in ("new", "contacted", "qualified", "lost", "won"):
        LeadFactory(status=status)
    assert sorted(Lead.objects.filter(Lead.OPEN).values_list("status", flat=True)) == sorted(OPEN_STATUSES)


def test_what_a_record_is_called():
    lead = LeadFactory(name="Lea", value=Decimal("10.00"), company=CompanyFactory(name="Umbrella"))
    assert [str(one) for one in (lead, Company.objects.get(), LeadNoteFactory(lead=lead, body="Hi"))] == [
        "Lea",
        "Umbrella",
        "Hi",
    ]
