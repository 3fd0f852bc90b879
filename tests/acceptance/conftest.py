"""Gives a test the world that it may break, and ends every process of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.harness.traps.actions import LocalTrap, Trap
from acceptance.harness.world import World

from automation.catalog import registry


@pytest.fixture
def world(database_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A world; a test that passes must have asked it for its final check."""
    traps = {kind.name(): kind() for kind in (Trap, LocalTrap)}
    registry.actions.update(traps)
    made = World(tmp_path)
    failed = request.session.testsfailed
    try:
        yield made
    finally:
        made.end()
        for name in traps:
            del registry.actions[name]
    assert made.checked or request.session.testsfailed > failed, "the test never checked the world"
