"""Steps of a definition flattened into nodes, each checked against the catalog."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from automation.core.calendars import Span
from automation.core.spec import Arm, Node
from automation.definitions.actions import compile_action
from automation.definitions.conditions import compile_part
from automation.definitions.names import Names
from automation.definitions.schema import ActionStep, AnyStep, BranchStep, DelayStep, StopStep
from automation.definitions.scope import Scope


def compile_steps(steps: Sequence[AnyStep], scope: Scope) -> tuple[Node, ...]:
    """All steps as nodes in document order, the first at index 0; problems are noted in the scope."""
    flattening = _Flattening(scope)
    flattening.number(steps)
    flattening.lay(steps, "/steps", after=None)
    _check_stops(steps, "/steps", scope, leading=True)
    return tuple(node for _index, node in sorted(flattening.nodes.items()))


class _Flattening:
    """The nodes made so far, and the index that each step has."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.names = Names(scope)
        self.indexes: dict[int, int] = {}
        self.nodes: dict[int, Node] = {}

    def number(self, steps: Sequence[AnyStep]) -> None:
        """Give every step its index, in document order."""
        for step in steps:
            self.indexes[id(step)] = len(self.indexes)
            if isinstance(step, BranchStep):
                for arm in step.arms:
                    self.number(arm.steps)
                self.number(step.otherwise)

    def lay(self, steps: Sequence[AnyStep], pointer: str, *, after: int | None) -> int | None:
        """Make the nodes of a list, its last leading to `after`; returns the index of the first, None when empty."""
        for place, step in enumerate(steps):
            following = self.indexes[id(steps[place + 1])] if place + 1 < len(steps) else after
            index = self.indexes[id(step)]
            self.nodes[index] = self._node(step, f"{pointer}/{place}", index=index, following=following)
            self.names.add_step(step.id)
        return self.indexes[id(steps[0])] if steps else None

    def _node(self, step: AnyStep, pointer: str, *, index: int, following: int | None) -> Node:
        common: dict[str, Any] = {
            "index": index,
            "id": step.id,
            "path": step.id,
            "kind": step.kind,
            "next": following,
            "off": step.off,
        }
        if isinstance(step, ActionStep):
            return Node(**common, **compile_action(step, pointer, self.scope, self.names))
        if isinstance(step, DelayStep):
            return Node(**common, span=Span.parse(step.duration))
        if isinstance(step, StopStep):
            return Node(**common, ends=step.ends)
        arms = tuple(
            Arm(
                id=arm.id,
                condition=compile_part(arm.condition, f"{pointer}/arms/{place}/if", self.scope),
                first=self.lay(arm.steps, f"{pointer}/arms/{place}/steps", after=following),
            )
            for place, arm in enumerate(step.arms)
        )
        otherwise = self.lay(step.otherwise, f"{pointer}/otherwise", after=following)
        return Node(**common, arms=arms, otherwise=otherwise)


def _check_stops(steps: Sequence[AnyStep], pointer: str, scope: Scope, *, leading: bool) -> bool:
    """Note each stop of later rules that isn't among the leading local steps; returns whether what follows still leads.

    A step that is switched off holds nobody up. After a branch only that leads which leads through all of its exits.
    """
    for place, step in enumerate(steps):
        here = f"{pointer}/{place}"
        if step.off:
            continue
        if isinstance(step, BranchStep):
            exits = [
                _check_stops(arm.steps, f"{here}/arms/{number}/steps", scope, leading=leading)
                for number, arm in enumerate(step.arms)
            ]
            leading = all([*exits, _check_stops(step.otherwise, f"{here}/otherwise", scope, leading=leading)])
        elif isinstance(step, StopStep):
            if step.ends == "later_rules" and not leading:
                message = _("Later rules can only be stopped before the first delay and the first outside action.")
                scope.wrong(f"{here}/ends", message, "stops_too_late")
        else:
            leading = leading and _is_local(step, scope)
    return leading


def _is_local(step: AnyStep, scope: Scope) -> bool:
    if not isinstance(step, ActionStep):
        return False
    action = scope.catalog.actions.get(f"{step.action}@{step.version}")
    return action is None or action.is_local()
