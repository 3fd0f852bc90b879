"""Finds fields that two rules may write for one and the same event, each its own way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from automation.core.deducing import Question, possible
from automation.core.footprints import Footprint, Write, Writing, any_scene
from automation.core.loops import Fields
from automation.core.moments import Moment
from automation.core.scenes import Scene
from automation.core.spec import Group, TriggerSpec


@dataclass(frozen=True, slots=True)
class Overlap:
    """A field of a model that a step of one rule and one of a later rule may both write; the later one's stays."""

    model: str
    field: str
    rule_id: int
    node: str
    later_rule: int
    later_node: str


def overlaps(
    footprints: Sequence[Footprint], fields: Fields, moment: Moment, *, through: int | None = None
) -> Iterator[Overlap]:
    """Every pair of steps of two rules that one event can start both of, and that write a field to different values.

    `through` a rule: only pairs that it is in.
    """
    by_place = sorted(footprints, key=lambda one: (one.position, one.rule_id))
    for one, other in combinations(by_place, 2):
        if through in (None, one.rule_id, other.rule_id):
            pairs = list(_clashes(one, other))
            if pairs and _meet(one, other, fields, moment):
                yield from pairs


def _clashes(one: Footprint, other: Footprint) -> Iterator[Overlap]:
    for mine, theirs in ((mine, theirs) for mine in one.writes for theirs in other.writes):
        if mine.created or theirs.created or mine.model != theirs.model:
            continue
        for name in sorted(mine.fields & theirs.fields):
            if _differ(_of(mine, name), _of(theirs, name)):
                yield Overlap(mine.model, name, one.rule_id, mine.node, other.rule_id, theirs.node)


def _of(write: Write, name: str) -> Writing:
    return next(one for one in write.writings if one.field == name)


def _differ(one: Writing, later: Writing) -> bool:
    """Whether the later writing may undo something of the earlier one; what is added leaves what is there."""
    if one.part == later.part:
        return one.part == "whole" and (one.values is None or one.values != later.values)
    if later.part == "whole":
        return _undoes(later, one)
    if one.part == "whole":
        return later.part == "removed" and _undoes(one, later)
    named, others = one.holds or one.lacks, later.holds or later.lacks
    return not named or not others or bool(named & others)


def _undoes(whole: Writing, part: Writing) -> bool:
    """Whether setting a field and adding to it, or taking from it, may leave less than both asked for."""
    if whole.values is None or not (part.holds or part.lacks):
        return True
    return any(not part.holds <= items or part.lacks & items for items in map(_items, whole.values))


def _items(value: Any) -> frozenset[Any]:
    return frozenset(value) if isinstance(value, tuple) else frozenset()


def _meet(one: Footprint, other: Footprint, fields: Fields, moment: Moment) -> bool:
    """Whether one event can start both."""
    mine, theirs = one.spec.trigger, other.spec.trigger
    if (mine.kind, mine.model, mine.name) != (theirs.kind, theirs.model, theirs.name) or mine.kind == "manual":
        return False
    if mine.sources and theirs.sources and mine.sources.isdisjoint(theirs.sources):
        return False
    items = tuple(one for one in (one.spec.condition, other.spec.condition) if one is not None)
    condition = Group("", "all", items) if items else None
    known = fields.get(mine.model, {})
    return any(possible(Question(condition, scene, known, moment)) for scene in _scenes(mine, theirs))


def _scenes(mine: TriggerSpec, theirs: TriggerSpec) -> Iterator[Scene]:
    others = {scene.change: scene for scene in any_scene(theirs)}
    for scene in any_scene(mine):
        other = others.get(scene.change)
        if other is not None:
            yield replace(scene, must_change=(*scene.must_change, *other.must_change))
