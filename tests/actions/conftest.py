"""Tenants and records that actions work on."""

from collections.abc import Iterator

import pytest
from factories import CustomerFactory, TenantFactory, TicketFactory

from automation.outbound import forget_sessions
from northwind.helpdesk.models import Ticket
from tenants.context import acting_for
from tenants.models import Tenant


@pytest.fixture
def tenant(db: None) -> Tenant:
    return TenantFactory(time_zone="Europe/Berlin")


@pytest.fixture
def ticket(tenant: Tenant) -> Ticket:
    with acting_for(tenant.pk):
        customer = CustomerFactory(tenant=tenant, email="ana@example.com", plan="gold")
        return TicketFactory(tenant=tenant, customer=customer, tags=["old"])


@pytest.fixture(autouse=True)
def no_kept_connections() -> Iterator[None]:
    """Leave no connection of this thread open."""
    yield
    forget_sessions()
