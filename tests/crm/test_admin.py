"""Staff work with companies and leads in the admin."""

import pytest

from automation.models import Event
from northwind.crm.models import Company, Lead
from tenants.context import acting_for, every_tenant
from tests.factories import CompanyFactory, LeadFactory, LeadNoteFactory, MembershipFactory, TenantFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("model", ["company", "lead"])
def test_lists_and_pages_open(staff, model):
    tenant = TenantFactory()
    company = CompanyFactory(tenant=tenant)
    lead = LeadFactory(tenant=tenant, company=company, tags=["a"])
    LeadNoteFactory(tenant=tenant, lead=lead)
    record = {"company": company, "lead": lead}[model]
    assert staff.get(f"/admin/crm/{model}/?q=x").status_code == 200
    assert staff.get(f"/admin/crm/{model}/add/").status_code == 200
    assert staff.get(f"/admin/crm/{model}/{record.pk}/change/").status_code == 200


@pytest.mark.case("S13")
def test_a_lead_and_its_note_saved_together_are_one_event(staff):
    tenant = TenantFactory()
    company, lead = CompanyFactory(tenant=tenant), LeadFactory(tenant=tenant)
    form = {
        "name": "Lea",
        "email": lead.email,
        "source": "web",
        "status": "contacted",
        "tags": "b,a",
        "company": company.pk,
    }
    form |= {"notes-TOTAL_FORMS": 1, "notes-INITIAL_FORMS": 0, "notes-0-body": "Called", "notes-0-lead": lead.pk}
    assert staff.post(f"/admin/crm/lead/{lead.pk}/change/", form).status_code == 302
    with every_tenant():
        event = Event.objects.latest("id")
        assert Event.objects.filter(model="crm.lead", change="updated").count() == 1
    assert event.facts["after"] == {
        "name": "Lea",
        "status": "contacted",
        "company": company.pk,
        "tags": ["a", "b"],
        "notes": 1,
    }


def test_a_new_company_belongs_to_the_tenant_that_was_chosen(staff):
    tenant = TenantFactory()
    staff.post("/admin/crm/company/add/", {"tenant": tenant.pk, "name": "Umbrella", "size": 80})
    with acting_for(tenant.pk):
        assert Company.objects.get().size == 80
        assert not Lead.objects.exists()


def test_a_new_lead_has_its_company_and_assignee_from_the_start(staff):
    tenant = TenantFactory()
    company, member = CompanyFactory(tenant=tenant), MembershipFactory(tenant=tenant)
    form = {"tenant": tenant.pk, "name": "Lea", "source": "facebook", "status": "new"}
    form |= {"company": company.pk, "assignee": member.pk}
    assert staff.post(f"/admin/crm/lead/add/?tenant={tenant.pk}", form).status_code == 302
    with every_tenant():
        [event] = Event.objects.filter(model="crm.lead")
    assert event.change == "created"
    assert (event.facts["snapshot"]["company"], event.facts["snapshot"]["assignee"]) == (company.pk, member.pk)
