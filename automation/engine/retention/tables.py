"""Finds every table that holds rows of tenants, the host's and the engine's, in an order in which they can go."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db.models import ForeignKey, Model, UniqueConstraint

from automation.models import Lane, Limits, Retention
from automation.store.owned_rows import Table
from tenants.models import Tenant

# One row a tenant, without a word of it; they go on standing for the tenant that was.
STAY = {Lane, Limits, Retention}
Link = ForeignKey[Any, Any]


def owned() -> list[Table]:
    """All tables with rows of tenants, each before those that its rows refer to.

    A link that may be empty doesn't count where it would close a circle: `loose` names it.
    """
    of_tenants = {one for one in _models() if _has_tenant(one)}
    models = of_tenants | {one for one in _models() if one not in STAY and _parents(one, of_tenants)}
    return [_table(model, of_tenants) for model in _ordered(models)]


def loose(tables: list[Table]) -> Iterator[tuple[Table, str]]:
    """The links, as (table, column), that have to be emptied before the tables can go in this order."""
    models = [table.model for table in tables]
    for place, table in enumerate(tables):
        for link in _links(table.model):
            if link.null and link.related_model in models[:place]:
                yield table, str(link.column)


def _ordered(models: set[type[Model]]) -> list[type[Model]]:
    left = sorted(models, key=lambda one: one._meta.label_lower)
    found: list[type[Model]] = []
    while left:
        free = [one for one in left if not _needed_by(one, left, hard=False)]
        # In a circle: whatever nothing but empty links keep.
        free = free or [one for one in left if not _needed_by(one, left, hard=True)] or left
        found.append(free[0])
        left.remove(free[0])
    return found


def _needed_by(model: type[Model], others: list[type[Model]], *, hard: bool) -> bool:
    return any(
        link.related_model is model and other is not model and not (hard and link.null)
        for other in others
        for link in _links(other)
    )


def _table(model: type[Model], of_tenants: set[type[Model]]) -> Table:
    """A table without an index that begins with the tenant is read through what its rows belong to."""
    direct = _has_tenant(model)
    if direct and _leads(model, "tenant"):
        return Table(model)
    parents = [link for link in _parents(model, of_tenants) if not link.null]
    indexed = [link for link in parents if getattr(link, "db_index", False) or link.unique or _leads(model, link.name)]
    chosen = indexed or ([] if direct else parents)
    return Table(model, chosen[0]) if chosen else Table(model)


def _parents(model: type[Model], of_tenants: set[type[Model]]) -> list[Link]:
    return [link for link in _links(model) if link.related_model in of_tenants and link.related_model is not model]


def _leads(model: type[Model], name: str) -> bool:
    """Whether an index of all rows begins with a field."""
    uniques = [one for one in model._meta.constraints if isinstance(one, UniqueConstraint)]
    return any(
        one.fields and one.fields[0].lstrip("-") == name and one.condition is None
        for one in [*model._meta.indexes, *uniques]
    )


def _links(model: type[Model]) -> list[Link]:
    return [field for field in model._meta.concrete_fields if isinstance(field, ForeignKey)]


def _models() -> list[type[Model]]:
    return [one for one in apps.get_models() if one._meta.managed and not one._meta.proxy]


def _has_tenant(model: type[Model]) -> bool:
    return model not in STAY and any(link.name == "tenant" and link.related_model is Tenant for link in _links(model))
