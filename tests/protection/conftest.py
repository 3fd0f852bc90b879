"""A tenant on the in-process runner."""

import pytest

from automation.engine import ruleset
from tests.engine.world import World, make_world


@pytest.fixture
def world(db: None) -> World:
    ruleset.forget()
    return make_world()
