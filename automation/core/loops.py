"""Finds the loops that rules could make: what each writes against what each listens to."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from automation.core.asking import Asked, asked
from automation.core.circles import Hop
from automation.core.conditions import leaves
from automation.core.deducing import Question, possible
from automation.core.facts import same
from automation.core.footprints import Footprint, Write, scene_of
from automation.core.known import Known, base_of
from automation.core.lasting import lasting, moved_by, required
from automation.core.moments import Moment
from automation.core.scenes import Scene
from automation.core.spec import Condition, Group, Leaf, TriggerSpec

ENDED = "run_ended"
Fields = Mapping[str, Mapping[str, Known]]
"""What is known of the fields of each model, by path."""


class Made(NamedTuple):
    """A write, the events that it makes, and what the rule's condition says of the record and lasts."""

    write: Write
    scene: Scene
    lasts: tuple[Leaf, ...]


class Search:
    """What was asked once of a sort of event and a rule isn't asked again: many rules write alike."""

    def __init__(self, footprints: Sequence[Footprint], fields: Fields, moment: Moment) -> None:
        self.fields, self.moment = fields, moment
        self.moved = moved_by(footprints, fields)
        self._written = Counter(name for one in footprints for write in one.writes for name in write.fields)
        self._reads = {one.rule_id: self._read_by(one) for one in footprints}
        self._ready: dict[int, tuple[Asked, ...]] = {}
        self._scenes: dict[Scene, int] = {}
        self._answers: dict[tuple[int, int], tuple[bool, bool]] = {}
        self._lasting: dict[tuple[int, int, tuple[Hashable, ...]], bool] = {}

    def _read_by(self, one: Footprint) -> frozenset[str]:
        known = self.fields.get(one.spec.trigger.model, {})
        return frozenset(base_of(leaf.field, known) for leaf in leaves(one.spec.condition))

    def made(self, one: Footprint) -> list[Made]:
        """What a rule's steps write, and which events that makes."""
        writes = (write for write in one.writes if not self._is_idle(one, write))
        known = self.fields.get(one.spec.trigger.model, {})
        return [Made(write, scene_of(one, write), tuple(lasting(one, write, self.moved, known))) for write in writes]

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

    def between(self, one: Footprint, other: Footprint, made: Iterable[Made]) -> Iterator[Hop]:
        """The hops from a rule, which makes that, to another one or to itself."""
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
        if not lasts or other.spec.condition is None:
            return True
        known = self.fields.get(other.spec.trigger.model, {})
        more = [leaf for leaf in lasts if base_of(leaf.field, known) in self._reads[other.rule_id]]
        if not more:
            return True
        said = tuple((leaf.field, leaf.op, leaf.value, leaf.type) for leaf in more)
        key = (self._scenes[scene], other.rule_id, said)
        found = self._lasting.get(key)
        if found is None:
            condition = Group("", "all", (other.spec.condition, *more))
            found = self._lasting[key] = possible(self._question(condition, other, scene))
        return found

    def _question(self, condition: Condition | None, other: Footprint, scene: Scene) -> Question:
        trigger = other.spec.trigger
        if trigger.fields and scene.change == "updated":
            scene = replace(scene, must_change=(*scene.must_change, trigger.fields))
        known = self.fields.get(trigger.model, {})
        ready = self._ready.get(other.rule_id) if condition is other.spec.condition else None
        if ready is None:
            ready = asked(condition, known, self.moment)
            if condition is other.spec.condition:
                self._ready[other.rule_id] = ready
        return Question(condition, scene, known, self.moment, ready)


def _hears(trigger: TriggerSpec, write: Write) -> bool:
    """Whether a rule listens to such changes at all, before its condition is asked."""
    change = "created" if write.created else "updated"
    if trigger.kind != "record_changed" or trigger.model != write.model or (trigger.on and change not in trigger.on):
        return False
    return not trigger.sources or "automation" in trigger.sources
