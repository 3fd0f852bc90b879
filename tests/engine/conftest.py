"""The world that tests of the engine are told in."""

import pytest

from tests.engine.world import World, make_world


@pytest.fixture
def world(db: None) -> World:
    """A tenant with Ana and a runner."""
    return make_world()
