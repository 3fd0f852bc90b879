"""The operators that look at what an event changed: its before and after."""

import operator as orders
from collections.abc import Callable
from typing import Any

from automation.core.comparisons import Bind, ordered
from automation.core.facts import Facts, same
from automation.core.moments import Moment
from automation.core.spec import Leaf
from automation.core.values import UNFIT

Judge = Callable[[Facts, Moment], bool | None]
_NOTHING: dict[str, Any] = {}


def change_judge(leaf: Leaf, bind: Bind, decode: Callable[[Any], Any]) -> Judge:
    """The closure of a change operator. A field that the event doesn't carry has not changed: false, not an error.

    A created record has no before: `changed` and `changed_to` then hold for a value that is there, `changed_from`,
    `changed_from_to`, `was` and the crossings never.
    """
    answer = _ANSWERS[leaf.op](leaf, bind, decode)

    def judge(facts: Facts, moment: Moment) -> bool | None:
        try:
            return answer(facts, moment)
        except UNFIT:
            return None

    return judge


Answer = Callable[[Facts, Moment], bool]
Decode = Callable[[Any], Any]


def _pair(facts: Facts, field: str) -> tuple[bool, Any, Any]:
    """(whether the event carries a change of the field, the value before, the value after)."""
    after = facts.get("after") or _NOTHING
    if field not in after:
        return False, None, None
    return True, (facts.get("before") or _NOTHING).get(field), after[field]


def _changed(leaf: Leaf, bind: Bind, decode: Decode) -> Answer:
    def answer(facts: Facts, moment: Moment) -> bool:
        carried, before, after = _pair(facts, leaf.field)
        return carried and not same(before, after, leaf.type)

    return answer


def _to(leaf: Leaf, bind: Bind, decode: Decode) -> Answer:
    return _move(leaf.field, None, _holds(bind(leaf.value), decode))


def _from(leaf: Leaf, bind: Bind, decode: Decode) -> Answer:
    return _move(leaf.field, _holds(bind(leaf.value), decode), None)


def _from_to(leaf: Leaf, bind: Bind, decode: Decode) -> Answer:
    pair: Any = leaf.value
    return _move(leaf.field, _holds(bind(pair[0]), decode), _holds(bind(pair[1]), decode))


Holds = Callable[[Any, Moment], bool]


def _holds(test: Holds, decode: Decode) -> Holds:
    return lambda raw, moment: raw is not None and test(decode(raw), moment)


def _move(field: str, old: Holds | None, new: Holds | None) -> Answer:
    """True when the value left `old` and came to `new`; None stands for "any other value"."""

    def answer(facts: Facts, moment: Moment) -> bool:
        carried, before, after = _pair(facts, field)
        if not carried:
            return False
        if old is None:
            return new is not None and new(after, moment) and not new(before, moment)
        if new is None:
            return old(before, moment) and not old(after, moment)
        return old(before, moment) and new(after, moment)

    return answer


def _was(leaf: Leaf, bind: Bind, decode: Decode) -> Answer:
    """The value before the event; of a field that the event left alone, the value it still has."""
    holds, field = _holds(bind(leaf.value), decode), leaf.field

    def answer(facts: Facts, moment: Moment) -> bool:
        old = facts.get("before") or _NOTHING
        if field in old or facts.get("change") == "created":
            return holds(old.get(field), moment)
        return holds((facts.get("snapshot") or _NOTHING).get(field), moment)

    return answer


def _crossing(other_side: Callable[[Any, Any], bool]) -> Callable[[Leaf, Bind, Decode], Answer]:
    """From the other side of a number, the number itself included, to this one. A first value is no crossing."""

    def build(leaf: Leaf, bind: Bind, decode: Decode) -> Answer:
        came_from = _holds(ordered(other_side)(leaf.value), decode)
        came_to = _holds(bind(leaf.value), decode)
        return _move(leaf.field, came_from, came_to)

    return build


_ANSWERS: dict[str, Callable[[Leaf, Bind, Decode], Answer]] = {
    "changed": _changed,
    "changed_to": _to,
    "changed_from": _from,
    "changed_from_to": _from_to,
    "was": _was,
    "rises_above": _crossing(orders.le),
    "falls_below": _crossing(orders.ge),
}
