"""Some parts of the product may be used by some others only, and through one door."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.sources import Module, inside, modules

OURS = ("northwind", "automation", "tenants")


def imported(module: Module) -> Iterator[str]:
    """Give the full names of what a module imports, `from a import b` as a.b."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def of(names: Iterator[str], *packages: str) -> set[str]:
    return {name for name in names if any(name == package or name.startswith(f"{package}.") for package in packages)}


def modules_of(*folders: str) -> pytest.MarkDecorator:
    found = [module for module in modules() if inside(module.name, *folders)]
    return pytest.mark.parametrize("module", found, ids=lambda module: module.name)


@modules_of("northwind/helpdesk", "northwind/crm")
def test_the_hosts_apps_use_the_engine_through_its_public_door(module):
    assert of(imported(module), "automation") <= of(imported(module), "automation.extend")


@modules_of("automation/actions", "automation/triggers")
def test_plug_ins_use_the_engine_through_its_public_door_and_do_not_know_each_other(module):
    assert of(imported(module), "automation", "northwind") <= of(imported(module), "automation.extend")


@modules_of("northwind/loopback")
def test_what_stands_for_the_outside_knows_nothing_of_the_product(module):
    assert of(imported(module), *OURS) <= of(imported(module), "northwind.loopback")


@modules_of("automation")
def test_only_the_engine_asks_the_store(module):
    if not inside(module.name, "automation/engine", "automation/store"):
        assert not of(imported(module), "automation.store")


@modules_of("automation", "northwind", "tenants")
def test_only_the_queue_knows_the_task_queue(module):
    if module.name != "automation/queue.py":
        assert not of(imported(module), "django_q")


@modules_of("tenants")
def test_the_tenancy_knows_nothing_of_those_above_it(module):
    assert not of(imported(module), "automation", "northwind")
