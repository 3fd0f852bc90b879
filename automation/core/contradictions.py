"""Finds what can never be true in a rule, or always is: its condition, and the arms of its branches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from automation.core.deducing import Question, possible
from automation.core.footprints import any_scene
from automation.core.known import Known
from automation.core.moments import Moment
from automation.core.scenes import Scene
from automation.core.spec import Condition, Group, Node, RuleSpec

Kind = Literal["never", "always", "nearly_always", "arm_never", "otherwise_never"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What was found: `node` is the id of the condition, of the arm, or, of a way "otherwise", of the branch."""

    kind: Kind
    node: str


def contradictions(spec: RuleSpec, fields: Mapping[str, Known], moment: Moment) -> list[Contradiction]:
    """Everything in one rule that its trigger's events can't make true, or can't make false. In document order."""
    scenes = any_scene(spec.trigger)
    search = _Search(spec, fields, moment)
    found = list(search.of_condition(scenes))
    if not any(one.kind == "never" for one in found):
        search.walk(spec.first, None, [spec.condition] if spec.condition else [], scenes)
    return [*found, *search.found]


@dataclass(slots=True)
class _Search:
    spec: RuleSpec
    fields: Mapping[str, Known]
    moment: Moment
    found: list[Contradiction] = field(default_factory=list)

    def of_condition(self, scenes: Sequence[Scene]) -> Iterator[Contradiction]:
        condition = self.spec.condition
        if condition is None:
            return
        if not self._can(condition, scenes):
            yield Contradiction("never", condition.id)
        elif not self._can(condition, scenes, wanted=False):
            yield Contradiction("always", condition.id)
        elif not self._can(condition, scenes, wanted=False, common=True):
            yield Contradiction("nearly_always", condition.id)

    def walk(self, index: int | None, until: int | None, holds: list[Condition], scenes: Sequence[Scene]) -> bool:
        """Goes through the steps up to a place, under what holds there; whether a delay was passed.

        What was judged on the event holds until the run has slept: then records are read again.
        """
        slept = False
        while index is not None and index != until:
            node = self.spec.nodes[index]
            if node.off:
                index = node.next
                continue
            if slept:
                holds, scenes = [], [Scene()]
            if node.kind == "branch":
                slept = self._arms(node, holds, scenes) or slept
            slept = slept or node.kind == "delay"
            index = None if node.kind == "stop" else node.next
        return slept

    def _arms(self, node: Node, holds: list[Condition], scenes: Sequence[Scene]) -> bool:
        passed, slept = list(holds), False
        for arm in node.arms:
            taken = [*passed, arm.condition] if arm.condition is not None else passed
            if not self._can(Group("", "all", tuple(taken)) if taken else None, scenes):
                self.found.append(Contradiction("arm_never", arm.id))
            else:
                slept = self.walk(arm.first, node.next, taken, scenes) or slept
            passed = [*passed, Group("", "none", (arm.condition,) if arm.condition else ())]
        if node.otherwise is None:
            return slept
        if not self._can(Group("", "all", tuple(passed)), scenes):
            self.found.append(Contradiction("otherwise_never", node.id))
            return slept
        return self.walk(node.otherwise, node.next, passed, scenes) or slept

    def _can(
        self, condition: Condition | None, scenes: Sequence[Scene], *, wanted: bool = True, common: bool = False
    ) -> bool:
        questions = (Question(condition, scene, self.fields, self.moment) for scene in scenes)
        return any(possible(question, wanted=wanted, common=common) for question in questions)
