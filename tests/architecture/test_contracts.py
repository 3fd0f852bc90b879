"""Who may import whom is checked with every run of the tests."""

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.architecture.sources import ROOT


def test_the_import_contracts_hold(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename="pyproject.toml", no_logo=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out
