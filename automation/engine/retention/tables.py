"""Finds every table that holds rows of tenants, the host's and the engine's, in an order in which they can go."""

from collections.abc import Iterator

from django.apps import apps
from django.db.models import ForeignKey, Model

from automation.models import Lane, Limits, Retention
from tenants.models import Tenant

# One row a tenant, without a word of it; they go on standing for the tenant that was.
STAY = {Lane, Limits, Retention}


def owned() -> list[type[Model]]:
    """All models with a tenant, each before those that its rows refer to.

    A link that may be empty doesn't count where it would close a circle: `loose` names it.
    """
    left = sorted((one for one in apps.get_models() if _has_tenant(one)), key=lambda one: one._meta.label_lower)
    found: list[type[Model]] = []
    while left:
        free = [one for one in left if not _needed_by(one, left, hard=False)]
        # In a circle: whatever nothing but empty links keep.
        free = free or [one for one in left if not _needed_by(one, left, hard=True)] or left
        found.append(free[0])
        left.remove(free[0])
    return found


def loose(models: list[type[Model]]) -> Iterator[tuple[type[Model], str]]:
    """The links, as (model, column), that have to be emptied before `models` can go in this order."""
    for place, model in enumerate(models):
        for link in _links(model):
            target = link.related_model
            if target in models and target is not model and models.index(target) < place and link.null:
                yield model, link.column


def _needed_by(model: type[Model], others: list[type[Model]], *, hard: bool) -> bool:
    return any(
        link.related_model is model and other is not model and not (hard and link.null)
        for other in others
        for link in _links(other)
    )


def _links(model: type[Model]) -> list[ForeignKey[Model, Model]]:
    return [field for field in model._meta.concrete_fields if isinstance(field, ForeignKey)]


def _has_tenant(model: type[Model]) -> bool:
    if model in STAY or not model._meta.managed or model._meta.proxy:
        return False
    return any(link.name == "tenant" and link.related_model is Tenant for link in _links(model))
