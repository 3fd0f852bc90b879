"""The world that tests of the engine are told in."""

from collections.abc import Iterator

import pytest
from operating import Place
from operating import place as new_place

from tenants.context import acting_for
from tests.engine.crew import Crew
from tests.engine.world import World, make_world


@pytest.fixture
def world(db: None) -> World:
    """A tenant with Ana and a runner."""
    return make_world()


@pytest.fixture
def acme(db: None) -> Iterator[Place]:
    """A tenant, acted for by its admin."""
    place = new_place()
    with acting_for(place.tenant.pk, place.actor):
        yield place


@pytest.fixture
def crew(world: World) -> Iterator[Crew]:
    """A worker for the world's tenant, which has a connection "hook"; Ana acts."""
    world.connection()
    crew = Crew(world.tenant.pk)
    with world.acting():
        yield crew
