"""A tenant with a person of each role, each with a logged-in client, and another tenant beside it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from django.test import Client
from factories import MembershipFactory, UserFactory
from operating import Place
from operating import place as new_place

from tenants.context import acting_for
from tenants.roles import ROLES


@dataclass(frozen=True)
class People:
    """One client for each role in Acme."""

    place: Place
    clients: dict[str, Client]

    def __getitem__(self, role: str) -> Client:
        return self.clients[role]

    def page(self, path: str) -> str:
        """The address of a page of Acme."""
        return f"/t/{self.place.tenant.slug}/{path}"


@pytest.fixture
def acme(db: None) -> Iterator[Place]:
    """Acme, whose rows the test itself may read and write."""
    place = new_place(name="Acme Retail", slug="acme", time_zone="Europe/Berlin")
    with acting_for(place.tenant.pk, place.actor):
        yield place


@pytest.fixture
def contoso(db: None) -> Place:
    """Another tenant, whose rows nobody of Acme may see."""
    return new_place(name="Contoso", slug="contoso")


@pytest.fixture
def people(acme: Place) -> People:
    """A person of each role in Acme, logged in."""
    return People(acme, {role: logged_in(acme, role) for role in ROLES})


def logged_in(place: Place, role: str) -> Client:
    """A client of a new person of that role."""
    user = UserFactory(username=f"{role}-{place.tenant.slug}", first_name=role.capitalize(), last_name="Person")
    MembershipFactory(tenant=place.tenant, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def text_of() -> Callable[[Client, str], str]:
    """The text of a page that must be there."""

    def read(client: Client, address: str) -> str:
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        return str(answer.content.decode())

    return read
