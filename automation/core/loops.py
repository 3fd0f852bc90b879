"""Finds the loops that rules could make: what each writes against what each listens to."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from automation.core.circles import Hop
from automation.core.conditions import leaves
from automation.core.deducing import Question, possible
from automation.core.facts import same
from automation.core.footprints import Footprint, Write, scene_of
from automation.core.known import Known, base_of
from automation.core.lasting import lasting, moved_by, required
from automation.core.moments import Moment
from automation.core.spec import Condition, Group, Leaf, TriggerSpec
from automation.core.standing import Scene

ENDED = "run_ended"
Fields = Mapping[str, Mapping[str, Known]]
"""What is known of the fields of each model, by path."""


def hops(footprints: Sequence[Footprint], fields: Fields, moment: Moment, *, start: int | None = None) -> list[Hop]:
    """Everything by which one of the rules can start one of them, through conditions where that can be decided.

    With `start` only what begins at that rule, or at one that it can start, and so on.
    """
    search = _Search(footprints, fields, moment)
    if start is None:
        return [hop for one in footprints for hop in search.of(one)]
    by_rule, found, seen, next_ones = {one.rule_id: one for one in footprints}, list[Hop](), {start}, [start]
    while next_ones:
        some = search.of(by_rule[next_ones.pop()])
        found += some
        fresh = {hop.to_rule for hop in some} - seen
        seen |= fresh
        next_ones += sorted(fresh)
    return found


class _Made(NamedTuple):
    """A write, the events that it makes, and what the rule's condition says of the record and lasts."""

    write: Write
    scene: Scene
    lasts: tuple[Leaf, ...]


class _Search:
    """What was asked once of a sort of event and a rule isn't asked again: many rules write alike."""

    def __init__(self, footprints: Sequence[Footprint], fields: Fields, moment: Moment) -> None:
        self.footprints, self.fields, self.moment = footprints, fields, moment
        self.moved = moved_by(footprints, fields)
        self._written = Counter(name for one in footprints for write in one.writes for name in write.fields)
        self._reads = {one.rule_id: self._read_by(one) for one in footprints}
        self._scenes: dict[Scene, int] = {}
        self._answers: dict[tuple[int, int], tuple[bool, bool]] = {}

    def _read_by(self, one: Footprint) -> frozenset[str]:
        known = self.fields.get(one.spec.trigger.model, {})
        return frozenset(base_of(leaf.field, known) for leaf in leaves(one.spec.condition))

    def of(self, one: Footprint) -> list[Hop]:
        """The hops that begin at a rule."""
        writes = (write for write in one.writes if not self._is_idle(one, write))
        known = self.fields.get(one.spec.trigger.model, {})
        made = [_Made(write, scene_of(one, write), tuple(lasting(one, write, self.moved, known))) for write in writes]
        return [hop for other in self.footprints for hop in self._between(one, other, made)]

    def _is_idle(self, one: Footprint, write: Write) -> bool:
        """Whether a write changes nothing where only this rule writes: its condition asks for just those values."""
        if write.created or write.slept or one.spec.trigger.model != write.model:
            return False
        asked = {leaf.field: leaf for leaf in required(one.spec.condition) if leaf.op == "is" and leaf.value_of is None}
        return all(
            writing.values is not None
            and writing.field in asked
            and self._written[writing.field] == 1
            and all(same(value, asked[writing.field].value, asked[writing.field].type) for value in writing.values)
            for writing in write.writings
        )

    def _between(self, one: Footprint, other: Footprint, made: Iterable[_Made]) -> Iterator[Hop]:
        trigger = other.spec.trigger
        if trigger.kind == ENDED:
            if one.spec.trigger.kind != ENDED and one.spec.trigger.model == trigger.model and one is not other:
                yield Hop(one.rule_id, "", (), created=False, to_rule=other.rule_id, certain=False)
            return
        for write, scene, lasts in made:
            if not _hears(trigger, write):
                continue
            starts, certain = self._answer(other, write, scene)
            if starts and self._still(other, scene, lasts):
                named = tuple(sorted(write.fields))
                yield Hop(one.rule_id, write.node, named, created=write.created, to_rule=other.rule_id, certain=certain)

    def _answer(self, other: Footprint, write: Write, scene: Scene) -> tuple[bool, bool]:
        """Whether such an event can start the rule, and whether it does whatever else is true."""
        key = (self._scenes.setdefault(scene, len(self._scenes)), other.rule_id)
        known = self._answers.get(key)
        if known is None:
            trigger, condition = other.spec.trigger, other.spec.condition
            starts = possible(self._question(condition, other, scene))
            sure = not trigger.fields or write.created or write.fields <= trigger.fields
            certain = starts and sure and not possible(self._question(condition, other, scene), wanted=False)
            known = self._answers[key] = (starts, certain)
        return known

    def _still(self, other: Footprint, scene: Scene, lasts: Sequence[Leaf]) -> bool:
        """Whether it still can with what the first rule's own condition says of the record and the second one reads."""
        known = self.fields.get(other.spec.trigger.model, {})
        more = [leaf for leaf in lasts if base_of(leaf.field, known) in self._reads[other.rule_id]]
        if not more or other.spec.condition is None:
            return True
        return possible(self._question(Group("", "all", (other.spec.condition, *more)), other, scene))

    def _question(self, condition: Condition | None, other: Footprint, scene: Scene) -> Question:
        trigger = other.spec.trigger
        if trigger.fields and scene.change == "updated":
            scene = replace(scene, must_change=(*scene.must_change, trigger.fields))
        return Question(condition, scene, self.fields.get(trigger.model, {}), self.moment)


def _hears(trigger: TriggerSpec, write: Write) -> bool:
    """Whether a rule listens to such changes at all, before its condition is asked."""
    change = "created" if write.created else "updated"
    if trigger.kind != "record_changed" or trigger.model != write.model or (trigger.on and change not in trigger.on):
        return False
    return not trigger.sources or "automation" in trigger.sources
