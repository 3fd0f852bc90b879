"""Every table of a tenant is limited to it, in queries and in the database."""

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import ForeignKey, Model

from tenants.managers import TenantManager
from tenants.models import AuditEntry, TenantOwned

OURS = {"tenants", "automation", "northwind", "helpdesk", "crm", "imports"}
# The engine serves all tenants at once from these, and no page of a tenant reads them but through the engine.
SHARED = {"Lane", "Timer", "Worker", "Sweep", "Limits", "Pause", "Drip", "Retention"}
# On the engine's own hot rows a further index would cost more than it protects; an invariant checks them instead.
HOT = {"Event", "Run", "StepExecution", "Attempt", "DeadLetter", "Notice"}


def models_of_tenants() -> list[type[Model]]:
    models = [model for model in apps.get_models() if model._meta.app_label in OURS and hasattr(model, "tenant")]
    return [model for model in models if model.__name__ not in SHARED]


each = pytest.mark.parametrize("model", models_of_tenants(), ids=lambda model: model._meta.label)


@each
def test_queries_are_limited_by_the_default_manager(model):
    assert isinstance(model._default_manager, TenantManager)


@each
def test_it_belongs_to_exactly_one_tenant(model):
    assert issubclass(model, TenantOwned) or model is AuditEntry
    assert model is AuditEntry or not model._meta.get_field("tenant").null


@each
@pytest.mark.django_db
def test_the_database_keeps_its_references_inside_the_tenant(model):
    if model.__name__ in HOT:
        return
    references = {
        field.column
        for field in model._meta.concrete_fields
        if isinstance(field, ForeignKey) and issubclass(field.related_model, TenantOwned)
    }
    assert references <= guarded_columns(model)


def guarded_columns(model: type[Model]) -> set[str]:
    """Return the columns that a foreign key of the database binds together with the tenant."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(a.attname::text) FROM pg_constraint c, unnest(c.conkey) k, pg_attribute a "
            "WHERE c.contype = 'f' AND c.conrelid = %s::regclass AND a.attrelid = c.conrelid AND a.attnum = k "
            "GROUP BY c.oid",
            [model._meta.db_table],
        )
        keys = [set(columns) for (columns,) in cursor.fetchall()]
    return {column for key in keys if "tenant_id" in key for column in key} - {"tenant_id"}
