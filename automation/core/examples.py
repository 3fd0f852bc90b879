"""Values of a field among which every outcome of its comparisons is found: those named, those between, and others."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations, pairwise
from typing import Any

from automation.core.facts import encode
from automation.core.folding import is_blank
from automation.core.moments import TIME_OPERATORS, Moment, interval
from automation.core.nearness import in_one_measure, whole_numbers
from automation.core.operators import OPERATORS
from automation.core.spec import Leaf

SEPARATOR = "\u2042"  # an asterism, which nobody writes: it keeps words apart that stand in one text
WORDS, ITEMS = 4, 5  # beyond so many parts of texts, or tags, their combinations are too many
_SUBSTRING = ("contains", "not_contains")
_ABSOLUTE, _DAY, _INSTANT = ("before", "after"), timedelta(days=1), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Example:
    """A raw value; `rare` where it is a single one among the very many that the field can have."""

    raw: Any
    rare: bool = False


def examples(leaves: Sequence[Leaf], type: str, choices: Iterable[str], moment: Moment) -> list[Example] | None:
    """The values, empty ones among them; None where comparisons can't be decided by examples.

    That is: with another field, of several types, of relative times together with dates, and of too many words or tags.
    """
    types = {leaf.type for leaf in leaves}
    if len(types) > 1 or any(leaf.value_of is not None or leaf.op not in OPERATORS for leaf in leaves):
        return None
    kind = types.pop() if type == "any" else type
    if kind == "choice":
        return [Example(None), *_of_choices(leaves, frozenset(choices))]
    found = _MAKERS[kind](leaves, moment) if kind in _MAKERS else None
    return None if found is None else [Example(None), *found]


def _named(leaves: Iterable[Leaf], *, but: Sequence[str] = ()) -> list[Any]:
    """What the leaves compare with, each value once, in their order."""
    found: dict[Any, None] = {}
    for leaf in leaves:
        if leaf.op not in but and leaf.value is not None:
            many = isinstance(leaf.value, frozenset | tuple | list)
            found |= dict.fromkeys(leaf.value if many else [leaf.value])  # type: ignore[call-overload]
    return list(found)


def _of_choices(leaves: Sequence[Leaf], choices: frozenset[str]) -> list[Example]:
    others = () if choices else (f"{SEPARATOR}1", f"{SEPARATOR}2")
    return [Example(raw) for raw in ("", *sorted({*map(str, _named(leaves)), *choices}), *others)]


def _of_text(leaves: Sequence[Leaf], moment: Moment) -> list[Example] | None:
    parts = [str(word) for word in _named(leaf for leaf in leaves if leaf.op in _SUBSTRING)]
    starts = [str(word) for word in _named(leaf for leaf in leaves if leaf.op == "starts_with")]
    words = [*parts, *starts]
    if len(words) > WORDS or any(is_blank(word) or unicodedata.combining(word[0]) for word in words):
        return None
    whole = [str(word) for word in _named(leaves, but=(*_SUBSTRING, "starts_with"))]
    points = dict.fromkeys([*whole, *(word.swapcase() for word in whole)])
    made = [
        SEPARATOR.join([first, *some, end]) for first in ["", *starts] for some in _subsets(parts) for end in ("1", "2")
    ]
    return [Example(""), *(Example(raw, rare=True) for raw in points), *(Example(raw) for raw in made)]


def _of_numbers(leaves: Sequence[Leaf], moment: Moment) -> list[Example]:
    points = sorted({Decimal(value) for value in _named(leaves)}) or [Decimal(0)]
    between = [low + (high - low) * part / 3 for low, high in pairwise(points) for part in (1, 2)]
    around = [points[0] - 2, points[0] - 1, *between, points[-1] + 1, points[-1] + 2]
    return _encoded(points, around, "number")


def only_whole(found: Sequence[Example]) -> list[Example]:
    """The same for a field that holds whole numbers only."""
    rare = {one.raw for one in found if one.rare}
    return [Example(None), *(Example(raw, raw in rare) for raw in whole_numbers(one.raw for one in found))]


def _of_truth(leaves: Sequence[Leaf], moment: Moment) -> list[Example]:
    return [Example(True), Example(False)]


def _of_references(leaves: Sequence[Leaf], moment: Moment) -> list[Example]:
    named = [value for value in _named(leaves) if isinstance(value, int)]
    others = (max(named, default=0) + count for count in (1, 2))
    return [*(Example(value, rare=True) for value in named), *map(Example, others)]


def _of_sets(leaves: Sequence[Leaf], moment: Moment) -> list[Example] | None:
    named = sorted(_named(leaves), key=str)
    if len(named) > ITEMS:
        return None
    numbers = named and all(isinstance(item, int) for item in named)
    others: list[Any] = [max(named) + 1, max(named) + 2] if numbers else [f"{SEPARATOR}1", f"{SEPARATOR}2"]
    return [Example([*some, *more]) for some in _subsets(named) for more in ([], others[:1], others[1:])]


def _of_times(step: timedelta, type: str) -> Callable[[Sequence[Leaf], Moment], list[Example] | None]:
    """Around each end of what the leaves mean at the moment, which must be in one measure to be told apart for good."""

    def made(leaves: Sequence[Leaf], moment: Moment) -> list[Example] | None:
        timed = [leaf for leaf in leaves if leaf.op in TIME_OPERATORS]
        fixed = [leaf for leaf in leaves if leaf.op in _ABSOLUTE or leaf.op not in (*TIME_OPERATORS, *_EMPTY)]
        if len(fixed) not in (0, len([leaf for leaf in leaves if leaf.op not in _EMPTY])) or not in_one_measure(timed):
            return None
        found: set[Any] = {one for one in _named(fixed) if one.__class__ is (date if type == "date" else datetime)}
        for leaf in timed:
            ends = interval(leaf.op, leaf.value, moment, of_dates=type == "date")
            found |= {end for end in (ends.low, ends.high) if end is not None}
        points = sorted(found) or [moment.today if type == "date" else moment.now]
        around = [point + step * count for point in points for count in (-2, -1, 1, 2)]
        return _encoded(points, [one for one in dict.fromkeys(around) if one not in found], type)

    return made


_EMPTY = ("is_empty", "is_not_empty", "changed")


def _encoded(points: Iterable[Any], others: Iterable[Any], type: str) -> list[Example]:
    return [*(Example(encode(one, type), rare=True) for one in points), *(Example(encode(one, type)) for one in others)]


def _subsets(items: Sequence[Any]) -> list[list[Any]]:
    return [list(some) for count in range(len(items) + 1) for some in combinations(items, count)]


_MAKERS: dict[str, Callable[[Sequence[Leaf], Moment], list[Example] | None]] = {
    "text": _of_text,
    "number": _of_numbers,
    "boolean": _of_truth,
    "reference": _of_references,
    "tags": _of_sets,
    "references": _of_sets,
    "date": _of_times(_DAY, "date"),
    "datetime": _of_times(_INSTANT, "datetime"),
}
