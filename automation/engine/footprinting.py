"""Reads from a tenant's rules, compiled, what each listens to and writes, for the search for loops."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.catalog.fitting import Unfit, fit
from automation.core.footprints import Footprint, Write, Writing, reached
from automation.core.known import Follows, Known
from automation.core.spec import Node, RuleSpec
from automation.models import Rule


def footprint(rule: Rule, spec: RuleSpec, zone: ZoneInfo) -> Footprint:
    """One rule, whose definition is the spec. What no event is written for isn't in it: nothing can start by it."""
    writes: list[Write] = []
    for index, slept in reached(spec):
        writes += _writes(spec, spec.nodes[index], slept=slept, zone=zone)
    return Footprint(rule.pk, rule.name, rule.position, spec, tuple(writes))


def known_fields() -> dict[str, Mapping[str, Known]]:
    """What is known of every field of every model, by model and path."""
    return {name: {path: _known(entry, path) for path in entry.fields} for name, entry in registry.models.items()}


def _known(entry: Automatable, path: str) -> Known:
    field = entry.fields[path]
    return Known(
        field.type,
        field.choice_values,
        nullable=field.nullable or "." in path,
        watched=field.watch,
        whole=field.whole,
        follows=_follows(entry, path),
    )


def _follows(entry: Automatable, path: str) -> Follows | None:
    """What a field follows from; for one of another record, "ticket.status_category", what is said there."""
    way, _dot, last = path.rpartition(".")
    if not way:
        return entry.fields[path].follows
    link = entry.fields.get(way)
    target = registry.models.get(link.target) if link is not None else None
    known = target.fields[last].follows if target is not None and last in target.fields else None
    there = f"{way}.{known.field}" if known is not None else ""
    return Follows(there, known.values) if known is not None and there in entry.fields else None


def _writes(spec: RuleSpec, node: Node, *, slept: bool, zone: ZoneInfo) -> Iterable[Write]:
    action = registry.actions.get(node.action)
    if action is None or node.arguments is None:
        return
    own = registry.models.get(spec.trigger.model)
    writings = _fitting(own, action.writings(node.arguments), zone) if own is not None else ()
    if writings:
        yield Write(node.id, spec.trigger.model, writings, slept=slept)
    made = action.creates(node.arguments)
    entry = registry.models.get(made[0]) if made is not None else None
    if made is not None and entry is not None and entry.watched:
        yield Write(node.id, entry.name, _fitting(entry, made[1], zone), created=True, slept=slept)


def _fitting(entry: Automatable, writings: Iterable[Writing], zone: ZoneInfo) -> tuple[Writing, ...]:
    """The writings of watched fields, their values as events keep them."""
    return tuple(replace(one, values=_raw(entry, one, zone)) for one in writings if one.field in entry.watched)


def _raw(entry: Automatable, writing: Writing, zone: ZoneInfo) -> tuple[Any, ...] | None:
    if writing.values is None:
        return None
    try:
        values = [fit(entry, writing.field, value, zone=zone) for value in writing.values]
    except Unfit:
        return None
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)
