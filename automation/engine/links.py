"""Which records a row of a watched model belongs to: itself, and the records of which it is a part."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import models

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.engine.reading import link_of


@dataclass(frozen=True, slots=True)
class Link:
    """How a row of a model leads to a record that rules watch.

    `attname` is the row's attribute with the record's id: its own key, or for a part (a comment of a ticket) the
    foreign key. `matters` are the attributes whose change can change the record as rules see it.
    """

    entry: Automatable
    attname: str
    matters: frozenset[str]
    is_part: bool

    def concerns(self, model: type[models.Model], names: Iterable[str]) -> bool:
        """Whether writing these fields (by name or attribute) can change the record."""
        return not self.matters.isdisjoint(attnames(model, names))


_links: dict[type[models.Model], tuple[tuple[int, ...], tuple[Link, ...]]] = {}


def links_of(model: type[models.Model]) -> tuple[Link, ...]:
    """A model's links, worked out once for what is registered."""
    registered = tuple(map(id, registry.models.values()))
    known = _links.get(model)
    if known is None or known[0] != registered:
        known = _links[model] = (registered, tuple(_find(model)))
    return known[1]


def attnames(model: type[models.Model], names: Iterable[str]) -> set[str]:
    """The attributes behind fields that are given by name, attribute or "pk"."""
    given = set(names)
    key: Any = model._meta.pk
    return {
        one.attname
        for one in model._meta.concrete_fields
        if one.name in given or one.attname in given or (one is key and "pk" in given)
    }


def _find(model: type[models.Model]) -> Iterator[Link]:
    key: Any = model._meta.pk
    for entry in registry.models.values():
        if entry.model is model:
            columns = {item.column for item in entry.watched.values() if item.column}
            matters = {one.attname for one in model._meta.concrete_fields if one.column in columns}
            yield Link(entry, key.attname, frozenset(matters), is_part=False)
        kept_elsewhere = [item for item in entry.watched.values() if not item.column]
        found = [link_of(entry.model, item) for item in kept_elsewhere]
        mine = [depends for part, depends in found if part is model]
        for attname in dict.fromkeys(depends[0] for depends in mine):
            matters = {name for depends in mine if depends[0] == attname for name in depends}
            yield Link(entry, attname, frozenset(matters), is_part=True)
