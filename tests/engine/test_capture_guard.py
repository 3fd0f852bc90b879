"""Nothing in the host's apps writes records past the doors that capture changes."""

import ast

import pytest
from django.apps import apps
from django.db import connection, models
from django.test.utils import isolate_apps

from automation.catalog import registry
from automation.engine.reading import link_of
from automation.extend import Watched
from tenants.models import Membership
from tests.architecture.sources import Module, called, inside, modules

HOST = [module for module in modules() if inside(module.name, "northwind/helpdesk", "northwind/crm")]
AROUND = {
    "_base_manager",
    "_every",
    "raw",
    "RawSQL",
    "cursor",
    "connection",
    "connections",
    "_raw_delete",
    "_insert",
    "_update",
}
AROUND |= {"save_base", "UpdateQuery", "InsertQuery", "DeleteQuery"}
HIDES = {"ignore_conflicts", "update_conflicts"}


@pytest.mark.case("S04")
@pytest.mark.parametrize("module", HOST, ids=lambda module: module.name)
def test_the_host_never_writes_around_the_watched_queryset(module: Module):
    used = {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
    used |= {name.name for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    used |= {keyword.arg for call in module.calls("bulk_create") for keyword in call.keywords if keyword.arg in HIDES}
    used |= {called(call) for call in module.calls(*AROUND)}
    assert not used & (AROUND | HIDES)


def test_every_record_and_every_part_of_one_is_watched():
    for entry in registry.models.values():
        assert issubclass(entry.model, Watched)
        for item in entry.watched.values():
            if not item.column:
                assert issubclass(link_of(entry.model, item)[0], Watched)


@pytest.mark.case("C02")
def test_what_only_the_database_moves_is_not_offered_as_a_change():
    for entry in registry.models.values():
        kept = entry.model.KEPT_BY_DATABASE | {"created_at"}
        assert kept.isdisjoint(entry.watched)
        assert "updated_at" not in entry.fields


def test_every_watched_model_of_the_host_is_read_through_links_by_a_captured_queryset():
    for model in apps.get_models():
        if issubclass(model, Watched):
            assert model._base_manager.name == "_every"
            assert type(model._base_manager.all()) is type(model._default_manager._queryset_class(model))


@isolate_apps("northwind.helpdesk")
def test_a_cascade_that_no_event_would_tell_of_is_refused_by_the_checks(django_db_blocker):
    class Folder(Watched):
        owner = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="+")

        class Meta:
            app_label = "helpdesk"

        def __str__(self) -> str:
            return "folder"

    class Paper(Watched):
        folder = models.ForeignKey(Folder, on_delete=models.CASCADE, related_name="papers")
        boss = models.ForeignKey(Membership, on_delete=models.DO_NOTHING, related_name="+")

        class Meta:
            app_label = "helpdesk"

        def __str__(self) -> str:
            return "paper"

    with django_db_blocker.unblock():
        assert connection.vendor == "postgresql"
        found = [
            str(problem.msg)
            for model in (Folder, Paper)
            for problem in model.check()
            if problem.id == "automation.E010"
        ]
    assert [message.split()[0] for message in found] == ["'owner'", "'boss'"]
