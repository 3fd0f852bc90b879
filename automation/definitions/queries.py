"""Conditions as queries: which records a condition holds for now, exactly as core judges them one by one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from automation.catalog.automatable import Automatable, Field
from automation.core.facts import EVENT_PREFIX
from automation.core.moments import TIME_OPERATORS, Interval, Moment, interval
from automation.core.operators import OPERATORS
from automation.core.spec import Condition, Group, Leaf
from automation.core.values import UNFIT
from automation.definitions import sql

NOTHING = Q(pk__in=[])


class NotAQuery(ValueError):
    """A condition that only an event can answer: one on what changed, or on the event's own data."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows for which a condition is true, and those for which it is false; rows in neither are unknown."""

    true: Q
    false: Q


def to_q(condition: Condition | None, automatable: Automatable, moment: Moment) -> Q:
    """The rows of the model for which the condition is true at a moment; those it is unknown for are left out.

    No condition holds for all rows, an empty group for none. NotAQuery for conditions that read an event.
    """
    if condition is None:
        return Q()
    return _answer(condition, automatable, moment).true


def _answer(condition: Condition, automatable: Automatable, moment: Moment) -> Answer:
    if isinstance(condition, Leaf):
        return _leaf(condition, automatable, moment)
    items = [_answer(item, automatable, moment) for item in condition.items]
    return _joined(condition, items)


def _joined(group: Group, items: list[Answer]) -> Answer:
    """Kleene's tables. An empty group is neither true nor false."""
    if not items:
        return Answer(NOTHING, NOTHING)
    every_true, some_false = items[0].true, items[0].false
    some_true, every_false = items[0].true, items[0].false
    for item in items[1:]:
        every_true, some_false = every_true & item.true, some_false | item.false
        some_true, every_false = some_true | item.true, every_false & item.false
    if group.mode == "all":
        return Answer(every_true, some_false)
    return Answer(some_true, every_false) if group.mode == "any" else Answer(every_false, some_true)


def _leaf(leaf: Leaf, automatable: Automatable, moment: Moment) -> Answer:
    operator = OPERATORS.get(leaf.op)
    if leaf.field.startswith(EVENT_PREFIX) or (operator is not None and operator.reads == "change"):
        raise NotAQuery(f"“{leaf.field} {leaf.op}” asks about an event; a record can't answer it")
    field = automatable.fields.get(leaf.field)
    other = None if leaf.value_of is None else automatable.fields.get(leaf.value_of)
    if operator is None or field is None or (leaf.value_of is not None and other is None):
        return Answer(NOTHING, NOTHING)
    try:
        return _QUERIES[leaf.op](sql.Column(field, automatable.model), _wanted(leaf, other, automatable), moment, leaf)
    except UNFIT:
        return Answer(NOTHING, NOTHING)


def _wanted(leaf: Leaf, other: Field | None, automatable: Automatable) -> Any:
    return leaf.value if other is None else sql.Column(other, automatable.model)


Build = Callable[[sql.Column, Any, Moment, Leaf], Answer]


def _test(build: Callable[[sql.Column, Any], Q], *, missing: bool = False) -> Build:
    """A test that is false for a missing value, or with `missing` true: then its opposite is built and turned round."""

    def query(column: sql.Column, wanted: Any, moment: Moment, leaf: Leaf) -> Answer:
        holds = build(column, wanted)
        fails = sql.isnt_true(holds)
        return Answer(fails, holds) if missing else Answer(holds, fails)

    return query


def _equals(column: sql.Column, wanted: Any) -> Q:
    if column.folds:
        return sql.equal(column.folded(), sql.folded(wanted))
    return column.equals(wanted)


def _one_of(column: sql.Column, wanted: frozenset[Any]) -> Q:
    if column.folds:
        return sql.among(column.folded(), {sql.folded(item) for item in wanted})
    return column.among(wanted)


def _order(op: str) -> Callable[[sql.Column, Any], Q]:
    return lambda column, wanted: column.ordered(op, wanted)


def _timed(column: sql.Column, wanted: Any, moment: Moment, leaf: Leaf) -> Answer:
    if isinstance(wanted, sql.Column):
        holds = column.ordered("lt" if leaf.op == "before" else "gt", wanted)
    else:
        holds = _within(column, interval(leaf.op, wanted, moment, of_dates=column.field.type == "date"))
    return Answer(holds, sql.isnt_true(holds))


def _within(column: sql.Column, span: Interval) -> Q:
    holds = Q()
    if span.low is not None:
        holds &= column.ordered("gte" if span.with_low else "gt", span.low)
    if span.high is not None:
        holds &= column.ordered("lte" if span.with_high else "lt", span.high)
    return holds


_QUERIES: dict[str, Build] = {
    "is": _test(_equals),
    "is_not": _test(_equals, missing=True),
    "is_exactly": _test(lambda column, wanted: column.equals(wanted)),
    "in": _test(_one_of),
    "not_in": _test(_one_of, missing=True),
    "contains": _test(lambda column, wanted: sql.contains(column.folded(), sql.folded(wanted))),
    "not_contains": _test(lambda column, wanted: sql.contains(column.folded(), sql.folded(wanted)), missing=True),
    "starts_with": _test(lambda column, wanted: sql.starts(column.folded(), sql.folded(wanted))),
    **{op: _test(_order(op)) for op in ("gt", "gte", "lt", "lte")},
    "is_empty": _test(lambda column, wanted: column.is_filled(), missing=True),
    "is_not_empty": _test(lambda column, wanted: column.is_filled()),
    "has_any": _test(lambda column, wanted: column.has_any(wanted)),
    "has_none": _test(lambda column, wanted: column.has_any(wanted), missing=True),
    "has_all": _test(lambda column, wanted: column.has_all(wanted)),
    "is_exactly_set": _test(lambda column, wanted: column.has_exactly(wanted)),
    **dict.fromkeys(TIME_OPERATORS, _timed),
}
