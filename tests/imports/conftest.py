"""The tenant of the tests of imports."""

from pathlib import Path

import pytest

from tests.imports.desk import Desk


@pytest.fixture
def desk(db: None, tmp_path: Path) -> Desk:
    return Desk(tmp_path)
