"""Modules stay small, say their job, and import at the top."""

import ast
import re

import pytest

from tests.architecture.sources import Module, inside, modules

CORE_CEILING = 150
CEILING = 300
LAYOUT = {"manage.py", "northwind", "automation", "tenants", "templates", "tests", "docs", "pyproject.toml"}
BESIDE = {"README.md", "CHANGELOG.md", "VENDOR.toml", "requirements.txt", "requirements-dev.txt"}

# How often the scope is lifted, and where; a new place needs a reason that everybody agrees with.
LIFTS_THE_SCOPE = {
    "automation/workers.py": 1,  # the pump: it works for all tenants in turn, each timer in its own scope
    "tenants/permissions.py": 1,  # which tenants a person belongs to
    "tenants/site.py": 1,  # the staff's admin
}
STATES = {"state", "effect_state"}
WRITES_ENGINE_ROWS = re.compile(
    r"(UPDATE|INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO)\s+automation_(run|step|attempt|timer|deadletter|lane)",
    re.I,
)

each = pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)


@each
def test_a_module_begins_with_one_sentence_that_says_its_job(module: Module):
    text = ast.get_docstring(module.tree) or ""
    first = text.partition("\n")[0]
    assert first.endswith((".", "?", "!")), "the first line is the docstring, one sentence"
    assert not re.search(r"[.!?] [A-Z]", first), "one sentence: with two jobs it is two modules"


@each
def test_a_module_keeps_below_its_ceiling(module: Module):
    assert len(module.text.splitlines()) <= (CORE_CEILING if inside(module.name, "automation/core") else CEILING)


@each
def test_a_module_imports_at_its_top(module: Module):
    inner = [
        node.lineno
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not inner


@each
def test_kinds_are_found_by_name_and_never_listed(module: Module):
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if any(isinstance(target, ast.Name) and target.id == "kind" for target in node.targets):
            assert not [keyword for keyword in node.value.keywords if keyword.arg == "choices"]


@each
def test_states_are_written_under_store_only(module: Module):
    if inside(module.name, "automation/store"):
        return
    updates = [
        node.lineno
        for node in module.calls("update", "update_or_create", "bulk_update")
        if STATES & {keyword.arg for keyword in node.keywords} and not isinstance(node.func, ast.Name)
    ]
    written = [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and WRITES_ENGINE_ROWS.search(node.value)
    ]
    assert not updates + written


def test_the_scope_is_lifted_only_where_everybody_knows():
    found = {module.name: len(list(module.calls("every_tenant"))) for module in modules()}
    assert {name: count for name, count in found.items() if count} == LIFTS_THE_SCOPE


def test_the_top_level_holds_what_its_readme_names():
    root = modules()[0].path.parent
    ours = {
        path.name for path in root.iterdir() if not path.name.startswith((".", "__")) and path.suffix != ".egg-info"
    }
    assert ours <= LAYOUT | BESIDE


def test_no_class_has_a_name_that_says_nothing():
    empty = re.compile(r"(Handler|Service|Processor|Helper|Util|Utils)$")
    classes = {node.name for module in modules() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
    # A class of the standard library may be called a handler: it names what it stands for.
    assert not {name for name in classes if empty.search(name)}
