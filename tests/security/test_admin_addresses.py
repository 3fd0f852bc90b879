"""Garbage in an address of the admin is answered, never an error of the server, and the page keeps its policy."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tenants.models import AuditEntry
from tests.engine.world import make_world

NUMBERS = ["9" * 5000, "²", "\x00", "-1"]
FURTHER = ["9" * 30, "999999", "abc"]
LOOKUP = {"app_label": "helpdesk", "model_name": "task", "field_name": "ticket"}


def lists() -> list[str]:
    """The addresses of all lists."""
    metas = [model._meta for model in admin.site._registry]
    return [reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist") for meta in metas]


@pytest.mark.django_db(transaction=True)  # the audit's link to a tenant is checked at the commit
@pytest.mark.parametrize(
    "number",
    [*NUMBERS, *(pytest.param(number, marks=pytest.mark.long) for number in FURTHER)],
    ids=lambda text: ascii(text[:8]),
)
def test_no_number_breaks_a_page(admin_client: Client, number: str) -> None:
    make_world().ticket()
    admin_client.raise_request_exception = False
    asked = [("/admin/autocomplete/", LOOKUP | {"term": "a", "tenant": number})]
    asked += [("/admin/autocomplete/", LOOKUP | {"term": number})]
    for address in lists():
        asked += [(address, {name: number}) for name in ("q", "tenant__id__exact", "p")]
    for address, query in asked:
        answer = admin_client.get(address, query)
        assert answer.status_code < 500, (address, query)
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"], (address, query)


@pytest.mark.django_db(transaction=True)
def test_a_look_at_a_tenant_that_does_not_exist_is_no_look_at_all_tenants(admin_client: Client) -> None:
    address = reverse("admin:helpdesk_ticket_changelist")
    assert admin_client.get(address, {"tenant__id__exact": "999999"}).status_code == 200
    assert not AuditEntry._base_manager.exists()
    assert admin_client.get(address).status_code == 200
    assert AuditEntry._base_manager.get().tenant_id is None


@pytest.mark.django_db
def test_naming_two_tenants_in_the_address_hides_no_look_at_either(admin_client: Client) -> None:
    world = make_world()
    world.ticket()
    address = reverse("admin:helpdesk_ticket_changelist")
    admin_client.get(f"{address}?tenant__id__exact={world.tenant.pk}&tenant__id__exact=999999")
    assert AuditEntry._base_manager.filter(verb="staff.viewed").exists()
