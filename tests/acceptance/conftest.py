"""Gives a test the world that it may break, and ends every process of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.harness.clusters import environment
from acceptance.harness.nursery import Nursery
from acceptance.harness.traps.actions import LocalTrap, Trap
from acceptance.harness.world import World

from automation.catalog import registry


@pytest.fixture(scope="session")
def nursery(django_db_setup: None) -> Iterator[Nursery]:
    """What starts the workers of all tests."""
    made = Nursery(environment())
    yield made
    made.close()


@pytest.fixture
def world(database_url: str, tmp_path: Path, nursery: Nursery, request: pytest.FixtureRequest) -> Iterator[World]:
    """A world; a test that passes must have asked it for its final check."""
    traps = {kind.name(): kind() for kind in (Trap, LocalTrap)}
    registry.actions.update(traps)
    made = World(tmp_path, nursery)
    failed = request.session.testsfailed
    try:
        yield made
    finally:
        made.end()
        for name in traps:
            del registry.actions[name]
    assert made.checked or request.session.testsfailed > failed, "the test never checked the world"
