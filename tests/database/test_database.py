"""The address of the database comes from the environment, and reading it starts nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from northwind import database

ROOT = Path(__file__).resolve().parents[2]


def test_the_given_address_is_used_as_it_is(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ana:secret@db:5432/desk")
    assert database.address() == database.ensure() == "postgresql://ana:secret@db:5432/desk"


def test_without_one_it_is_the_embedded_server_of_the_checkout(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("DATA_DIR", raising=False)
    assert database.server().cluster == ROOT / ".data" / "pg"


@pytest.mark.parametrize(
    ("url", "renamed"),
    [
        ("postgresql://postgres:@/a?host=/tmp/x%20y", "postgresql://postgres:@/b?host=/tmp/x%20y"),
        ("postgresql://ana:p%40ss@db:5432/a", "postgresql://ana:p%40ss@db:5432/b"),
    ],
)
def test_another_database_of_the_same_server_differs_in_the_name_only(url, renamed):
    assert database.renamed(url, "b") == renamed


@pytest.mark.parametrize("words", [["check"], ["help"], ["migrate", "--help"], ["collectstatic", "--help"]])
def test_a_command_without_a_use_for_the_database_starts_none(tmp_path, words):
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment | {"DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "data").exists()
