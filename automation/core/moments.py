"""The moment of a judgement, and what relative and absolute times mean at it: an interval, for Python and SQL alike."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from automation.core.calendars import Span, add, day_start, move_date, subtract

_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Moment:
    """When something is judged: an aware instant, and the zone whose calendar counts."""

    now: datetime
    zone: ZoneInfo

    @cached_property
    def today(self) -> date:
        """The local date."""
        return self.now.astimezone(self.zone).date()


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, dates or instants, None where open-ended, and whether the ends themselves count."""

    low: Any = None
    high: Any = None
    with_low: bool = True
    with_high: bool = True

    def holds(self, value: Any) -> bool:
        """Whether a date, or an aware instant, lies in the interval. TypeError when it is of the other kind."""
        if self.low is not None and (value < self.low or (value == self.low and not self.with_low)):
            return False
        return self.high is None or value < self.high or (self.with_high and value == self.high)


def interval(op: str, wanted: Any, moment: Moment, *, of_dates: bool) -> Interval:
    """What a time operator means at a moment, for a date field or for a field of instants.

    TypeError when the wanted value can't be: a span with hours for a date field, an instant for a date field.
    """
    if of_dates and (isinstance(wanted, datetime) or (isinstance(wanted, Span) and wanted.seconds)):
        raise TypeError("a date is compared with a date, or with whole days")
    return _INTERVALS[op](wanted, moment, of_dates)


def _before(wanted: Any, moment: Moment, of_dates: bool) -> Interval:
    bound = wanted if of_dates or isinstance(wanted, datetime) else day_start(wanted, moment.zone)
    return Interval(high=bound, with_high=False)


def _after(wanted: Any, moment: Moment, of_dates: bool) -> Interval:
    if of_dates or isinstance(wanted, datetime):
        return Interval(low=wanted, with_low=False)
    return Interval(low=day_start(wanted + _ONE_DAY, moment.zone))


def _older_than(wanted: Span, moment: Moment, of_dates: bool) -> Interval:
    return Interval(high=_moved(moment, wanted, of_dates, sign=-1), with_high=False)


def _within_last(wanted: Span, moment: Moment, of_dates: bool) -> Interval:
    return Interval(_moved(moment, wanted, of_dates, sign=-1), moment.today if of_dates else moment.now)


def _within_next(wanted: Span, moment: Moment, of_dates: bool) -> Interval:
    return Interval(moment.today if of_dates else moment.now, _moved(moment, wanted, of_dates, sign=1))


def _on_day(day: date, moment: Moment, of_dates: bool) -> Interval:
    if of_dates:
        return Interval(day, day)
    return Interval(day_start(day, moment.zone), day_start(day + _ONE_DAY, moment.zone), with_high=False)


def _moved(moment: Moment, span: Span, of_dates: bool, *, sign: int) -> Any:
    if of_dates:
        return move_date(moment.today, span, sign=sign)
    return (add if sign > 0 else subtract)(moment.now, span, moment.zone)


_INTERVALS: dict[str, Callable[[Any, Moment, bool], Interval]] = {
    "before": _before,
    "after": _after,
    "older_than": _older_than,
    "within_last": _within_last,
    "within_next": _within_next,
    "is_today": lambda wanted, moment, of_dates: _on_day(moment.today, moment, of_dates),
    "is_ago": lambda wanted, moment, of_dates: _on_day(move_date(moment.today, wanted, sign=-1), moment, of_dates),
    "is_ahead": lambda wanted, moment, of_dates: _on_day(move_date(moment.today, wanted), moment, of_dates),
}
TIME_OPERATORS = frozenset(_INTERVALS)
