"""Says which records a condition concerns as they stand, where it asks about what only an event can answer."""

from dataclasses import dataclass, replace

from django.db.models import Q

from automation.catalog.automatable import Automatable
from automation.core.facts import EVENT_PREFIX
from automation.core.moments import Moment
from automation.core.operators import OPERATORS
from automation.core.spec import Condition, Group, Leaf
from automation.definitions.queries import NOTHING, to_q

# What holds after such a change: a ticket whose priority changed to urgent is urgent.
_AFTERWARDS = {"changed_to": "is"}
_DECIDES = {"all": False, "any": True, "none": True}  # the item by which alone a group is decided


@dataclass(frozen=True, slots=True)
class Standing:
    """Records that a condition surely concerns, and those that it may concern; the same where `unknown` is empty.

    `unknown` are the ids of the comparisons that a record can't answer: what changed, and an event's own data.
    """

    least: Q
    most: Q
    unknown: tuple[str, ...]


def standing(condition: Condition | None, automatable: Automatable, moment: Moment) -> Standing:
    """The records of the model that the condition concerns at a moment, however they came to be as they are."""
    if condition is None:
        return Standing(Q(), Q(), ())
    stated = _stated(condition)
    least, most = (_query(_assume(stated, value=value), automatable, moment) for value in (False, True))
    return Standing(least, most, tuple(_unanswerable(stated)))


def _query(condition: Condition | bool, automatable: Automatable, moment: Moment) -> Q:
    if isinstance(condition, bool):
        return Q() if condition else NOTHING
    return to_q(condition, automatable, moment)


def _stated(condition: Condition) -> Condition:
    """The condition with changes turned into the states that they leave behind."""
    if isinstance(condition, Group):
        return replace(condition, items=tuple(_stated(item) for item in condition.items))
    if condition.op == "changed_from_to" and isinstance(condition.value, tuple | list):
        return replace(condition, op="is", value=condition.value[1])
    return replace(condition, op=_AFTERWARDS.get(condition.op, condition.op))


def _asks_an_event(leaf: Leaf) -> bool:
    operator = OPERATORS.get(leaf.op)
    return leaf.field.startswith(EVENT_PREFIX) or (operator is not None and operator.reads == "change")


def _unanswerable(condition: Condition) -> list[str]:
    if isinstance(condition, Leaf):
        return [condition.id] if _asks_an_event(condition) else []
    return [found for item in condition.items for found in _unanswerable(item)]


def _assume(condition: Condition, *, value: bool) -> Condition | bool:
    """The condition with what an event alone answers taken for `value`; below "none of" for its opposite."""
    if isinstance(condition, Leaf):
        return value if _asks_an_event(condition) else condition
    if not condition.items:
        return False
    below = not value if condition.mode == "none" else value
    items = [_assume(item, value=below) for item in condition.items]
    decides = _DECIDES[condition.mode]
    if any(item is decides for item in items):
        return decides if condition.mode != "none" else False
    left = tuple(item for item in items if not isinstance(item, bool))
    return replace(condition, items=left) if left else condition.mode != "any"
