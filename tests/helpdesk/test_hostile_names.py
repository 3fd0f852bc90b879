"""Names that people chose to do harm are shown as they are in every list and form of the admin."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tenants.context import acting_for
from tests.factories import CustomerFactory, TenantFactory, TicketFactory

pytestmark = pytest.mark.django_db
NAME = "<img src=x onerror=1>"


@pytest.mark.case("M02")
@pytest.mark.parametrize("page", ["customer", "ticket"])
def test_a_hostile_name_is_text_in_lists_and_forms(client: Client, page: str) -> None:
    client.force_login(User.objects.create_superuser("root"))
    tenant = TenantFactory(name=NAME)
    with acting_for(tenant.pk):
        customer = CustomerFactory(tenant=tenant, name=NAME)
        ticket = TicketFactory(tenant=tenant, subject=NAME, customer=customer)
    row = {"customer": customer, "ticket": ticket}[page]
    for address in (f"/admin/helpdesk/{page}/", f"/admin/helpdesk/{page}/{row.pk}/change/"):
        shown = client.get(address).content.decode()
        assert "onerror" in shown
        assert "<img src=x" not in shown
