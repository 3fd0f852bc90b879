"""How values are compared: each function takes what is wanted and gives the test of a value that is there."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from automation.core.folding import fold, is_blank
from automation.core.moments import Moment, interval

Test = Callable[[Any, Moment], bool]
Bind = Callable[[Any], Test]


def equals(wanted: Any) -> Test:
    """Equality; of texts by their folded form."""
    if isinstance(wanted, str):
        folded = fold(wanted)
        return lambda value, moment: value == wanted or fold(value) == folded
    wanted = _quick(wanted)
    return lambda value, moment: value == wanted


def exactly(wanted: Any) -> Test:
    """Equality to the letter."""
    return lambda value, moment: value == wanted


def one_of(wanted: Any) -> Test:
    """Equality with one of several; of texts by their folded forms."""
    if any(isinstance(item, str) for item in wanted):
        folded = frozenset(fold(item) for item in wanted)
        return lambda value, moment: fold(value) in folded
    return lambda value, moment: value in wanted


def one_of_exactly(wanted: Any) -> Test:
    """Equality to the letter with one of several."""
    return lambda value, moment: value in wanted


def has_any(wanted: frozenset[Any]) -> Test:
    """At least one item in common."""
    return lambda value, moment: not wanted.isdisjoint(value)


def has_all(wanted: frozenset[Any]) -> Test:
    """Every wanted item is there."""
    return lambda value, moment: wanted.issubset(value)


def has_none(wanted: frozenset[Any]) -> Test:
    """No wanted item is there."""
    return lambda value, moment: wanted.isdisjoint(value)


def same_set(wanted: frozenset[Any]) -> Test:
    """The wanted items and no others."""
    return lambda value, moment: wanted == frozenset(value)


def contains(wanted: str) -> Test:
    """A text somewhere in another, both folded."""
    folded = fold(wanted)
    return lambda value, moment: folded in fold(value)


def starts_with(wanted: str) -> Test:
    """A text at the start of another, both folded."""
    folded = fold(wanted)
    return lambda value, moment: fold(value).startswith(folded)


def negated(bind: Callable[[Any], Test]) -> Callable[[Any], Test]:
    """The opposite of another comparison, for a value that is there."""

    def bound(wanted: Any) -> Test:
        test = bind(wanted)
        return lambda value, moment: not test(value, moment)

    return bound


def empty(wanted: Any) -> Test:
    """Nothing but white space, or no items."""
    return lambda value, moment: is_blank(value) if isinstance(value, str) else value in ([], {})


def _quick(wanted: Any) -> Any:
    """A whole Decimal as an int, which compares faster with the ints that most facts hold."""
    if isinstance(wanted, Decimal) and abs(wanted) < 2**53 and wanted == wanted.to_integral_value():
        return int(wanted)
    return wanted


def ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    """An order of numbers."""

    def bound(wanted: Any) -> Test:
        quick = _quick(wanted)
        return lambda value, moment: compare(value, quick)

    return bound


def timed(op: str) -> Callable[[Any], Test]:
    """Lying in the interval that a time operator means at the moment of the judgement."""

    def bound(wanted: Any) -> Test:
        return lambda value, moment: interval(op, wanted, moment, of_dates=not isinstance(value, datetime)).holds(value)

    return bound
