"""The operators of conditions: which types each accepts, what it compares with, and how Python judges it."""

import operator as orders
from dataclasses import dataclass
from typing import Literal

from automation.core.comparisons import (
    Bind,
    contains,
    empty,
    equals,
    exactly,
    has_all,
    has_any,
    has_none,
    negated,
    one_of,
    one_of_exactly,
    ordered,
    same_set,
    starts_with,
    timed,
)
from automation.core.facts import FIELD_TYPES

Wants = Literal["none", "one", "list", "pair", "span", "days", "time"]
Reads = Literal["value", "change"]


@dataclass(frozen=True, slots=True)
class Operator:
    """One comparison.

    `wants` is what it compares with: nothing, one value of the field's type, a list, a from-to pair, a duration, whole
    days, or a date or instant. `bind(wanted)` gives the test of a value that is there; `missing` is the answer for one
    that isn't. `reads` "change": it looks at the event's before and after, `bind` giving the test of one such value.
    `other_field`: it may compare with another field. `exact` stands for `bind` where letters' case counts.
    """

    name: str
    types: frozenset[str]
    wants: Wants
    bind: Bind
    missing: bool = False
    reads: Reads = "value"
    other_field: bool = False
    exact: Bind | None = None

    def binder(self, type: str) -> Bind:
        """The `bind` for a field's type: the codes of a choice are compared to the letter."""
        return self.exact if self.exact is not None and type == "choice" else self.bind


_ONE = frozenset({"text", "choice", "number", "boolean", "date", "reference"})
_LISTED = frozenset({"text", "choice", "number", "date", "reference", "any"})
_TEXT = frozenset({"text", "any"})
_NUMBER = frozenset({"number", "any"})
_MANY = frozenset({"tags", "references", "any"})
_TIME = frozenset({"date", "datetime", "any"})
_ALL = frozenset(FIELD_TYPES)


def _table() -> dict[str, Operator]:
    is_one, one = _ONE | {"any"}, _ONE
    rows = [
        Operator("is", is_one, "one", equals, other_field=True, exact=exactly),
        Operator("is_not", is_one, "one", negated(equals), missing=True, other_field=True, exact=negated(exactly)),
        Operator("is_exactly", _TEXT, "one", exactly, other_field=True),
        Operator("in", _LISTED, "list", one_of, exact=one_of_exactly),
        Operator("not_in", _LISTED, "list", negated(one_of), missing=True, exact=negated(one_of_exactly)),
        Operator("contains", _TEXT, "one", contains, other_field=True),
        Operator("not_contains", _TEXT, "one", negated(contains), missing=True, other_field=True),
        Operator("starts_with", _TEXT, "one", starts_with, other_field=True),
        Operator("gt", _NUMBER, "one", ordered(orders.gt), other_field=True),
        Operator("gte", _NUMBER, "one", ordered(orders.ge), other_field=True),
        Operator("lt", _NUMBER, "one", ordered(orders.lt), other_field=True),
        Operator("lte", _NUMBER, "one", ordered(orders.le), other_field=True),
        Operator("is_empty", _ALL, "none", empty, missing=True),
        Operator("is_not_empty", _ALL, "none", negated(empty)),
        Operator("has_any", _MANY, "list", has_any),
        Operator("has_all", _MANY, "list", has_all),
        Operator("has_none", _MANY, "list", has_none, missing=True),
        Operator("is_exactly_set", _MANY, "list", same_set),
        Operator("changed", _ALL - {"any"}, "none", exactly, reads="change"),
        Operator("changed_to", one, "one", equals, reads="change", exact=exactly),
        Operator("changed_from", one, "one", equals, reads="change", exact=exactly),
        Operator("changed_from_to", one, "pair", equals, reads="change", exact=exactly),
        Operator("was", one, "one", equals, reads="change", exact=exactly),
        Operator("rises_above", frozenset({"number"}), "one", ordered(orders.gt), reads="change"),
        Operator("falls_below", frozenset({"number"}), "one", ordered(orders.lt), reads="change"),
        Operator("before", _TIME, "time", timed("before"), other_field=True),
        Operator("after", _TIME, "time", timed("after"), other_field=True),
        Operator("is_today", _TIME, "none", timed("is_today")),
        *(Operator(op, _TIME, "span", timed(op)) for op in ("older_than", "within_last", "within_next")),
        *(Operator(op, _TIME, "days", timed(op)) for op in ("is_ago", "is_ahead")),
    ]
    return {row.name: row for row in rows}


OPERATORS: dict[str, Operator] = _table()
LATER_OPERATORS = frozenset({"is_within", "is_outside"})
"""Operators of business hours, which come with calendars."""
