"""Tenants with runs and events of every age."""

from collections.abc import Iterator

import pytest
from operating import Place
from operating import place as new_place

from tenants.context import acting_for


@pytest.fixture
def acme(db: None) -> Iterator[Place]:
    """A tenant, acted for by its admin."""
    place = new_place(name="Acme Retail", slug="acme")
    with acting_for(place.tenant.pk, place.actor):
        yield place
