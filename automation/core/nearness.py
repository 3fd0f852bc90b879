"""Examples of whole numbers, and whether spans of time can be told apart on any day."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import Any

from automation.core.calendars import Span
from automation.core.spec import Leaf

HOURS = timedelta(hours=3)  # by so much the clocks may change in between
_MOVING = ("older_than", "within_last", "within_next")


def whole_numbers(raws: Iterable[Any]) -> list[int]:
    """The whole numbers among and around raw numbers: two in each gap between them that has two."""
    floors = {int(Decimal(str(raw)).to_integral_value(ROUND_FLOOR)) for raw in raws if raw is not None}
    return sorted({floor + step for floor in floors for step in (-1, 0, 1, 2)})


def in_one_measure(leaves: Sequence[Leaf]) -> bool:
    """Whether the spans of time operators can be told apart whatever the day."""
    spans = {leaf.value for leaf in leaves if isinstance(leaf.value, Span)}
    if len(spans) < 2 or (all(leaf.op in _MOVING for leaf in leaves) and told_apart(list(spans))):
        return True
    of_days = all(span.months == span.seconds == 0 for span in spans)
    return of_days or all(span.months == span.days == 0 for span in spans)


def told_apart(spans: Sequence[Span]) -> bool:
    """Whether the spans have the same order from whatever moment they are counted, and none are of one length."""
    lengths = sorted((_length(span, shortest=True), _length(span, shortest=False)) for span in spans)
    return all(one[1] < other[0] for one, other in pairwise(lengths))


def _length(span: Span, *, shortest: bool) -> timedelta:
    days = span.months * (28 if shortest else 31) + span.days
    clocks = HOURS if days else timedelta()
    return timedelta(days=days, seconds=span.seconds) + (-clocks if shortest else clocks)
