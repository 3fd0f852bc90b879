"""The glossary names classes that exist, and nothing is called by a word that it rules out."""

import ast
import importlib
import re

import pytest

from tests.architecture.sources import ROOT, inside, modules

PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")][
    1:
]
NAMED = sorted({name for row in ROWS for name in re.findall(r"`([\w.]+)`", row[2])})
FORBIDDEN = {word.strip() for row in ROWS for word in row[3].split(",") if word.strip()}
# Django asks its managers to be called so.
MANAGERS = {"TenantManager", "WatchedManager"}


def classes() -> set[str]:
    """The names of all classes of the engine and the tenancy; the host may keep tasks and accounts."""
    ours = [module for module in modules() if inside(module.name, "automation", "tenants")]
    return {node.name for module in ours for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize("name", NAMED)
def test_what_the_glossary_names_exists(name: str) -> None:
    module, _dot, attribute = name.rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), attribute), type)


def test_no_class_is_called_by_a_word_that_the_glossary_rules_out() -> None:
    assert {"Workflow", "Queue", "Notification"} <= FORBIDDEN
    assert not classes() & FORBIDDEN
    assert not {name for name in classes() if name.endswith("Manager")} - MANAGERS


def test_each_word_is_explained_once() -> None:
    words = [row[0] for row in ROWS]
    assert len(words) == len(set(words)) > 40
    assert all(row[1] for row in ROWS)
