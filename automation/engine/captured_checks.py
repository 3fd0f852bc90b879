"""Says at start-up where a watched model could be changed without anybody noticing."""

from collections.abc import Iterator
from typing import Any

from django.core import checks
from django.db import DEFAULT_DB_ALIAS, models
from django.db.models.deletion import CASCADE, DO_NOTHING, Collector

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.engine.reading import link_of


def problems_of(model: type[models.Model], watched: type[models.Model]) -> list[checks.CheckMessage]:
    """What is wrong with a model that inherits `watched`, the base of all such models."""
    found = [checks.Error(text, obj=model, id="automation.E010") for text in _cascades(model, watched)]
    entry = registry.models.get(model._meta.label_lower)
    if entry is not None and entry.model is model:
        found += [checks.Error(text, obj=model, id="automation.E011") for text in _parts(entry, watched)]
    return list(found)


def _cascades(model: type[models.Model], watched: type[models.Model]) -> Iterator[str]:
    """Links whose target can go, and take the row along, past every captured door."""
    for link in model._meta.concrete_fields:
        target: Any = link.related_model
        if not isinstance(link, models.ForeignKey) or issubclass(target, watched):
            continue
        how = link.remote_field.on_delete
        if how is DO_NOTHING:
            yield f"{link.name!r} is left dangling when its {target.__name__} is deleted: no event would say so."
        elif how is CASCADE and not _collector().can_fast_delete(model, from_field=link):
            yield f"{link.name!r} cascades from {target.__name__}, which isn't watched: no event would say so."


def _collector() -> Any:
    return Collector(using=DEFAULT_DB_ALIAS)


def _parts(entry: Automatable, watched: type[models.Model]) -> Iterator[str]:
    """Values kept in another table whose rows are written without capture."""
    for item in entry.watched.values():
        if not item.column:
            part, _depends = link_of(entry.model, item)
            if not issubclass(part, watched):
                yield f"{item.path!r} is watched, but {part._meta.label}, which holds it, doesn't inherit Watched."
