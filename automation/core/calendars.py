"""Spans of months, days and seconds, and their arithmetic in a time zone."""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_PATTERN = re.compile(
    r"P(?=.)(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?=.)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?",
    re.ASCII,
)
_LARGEST_DAYS = 36_525  # a hundred years: beyond it arithmetic would leave the range of datetime
_MONTH, _DAY = 31, 86_400  # upper bounds of a month in days and of a day in seconds, for `at_most`


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time in months, days and seconds, which never turn into one another."""

    months: int = 0
    days: int = 0
    seconds: int = 0

    @classmethod
    def parse(cls, text: str) -> "Span":
        """The span of an ISO 8601 duration ("P1DT2H"); ValueError when it isn't one or passes a hundred years."""
        match = _PATTERN.fullmatch(text) if len(text) <= 80 else None
        if match is None:
            raise ValueError(f"{text[:80]!r} is not a duration such as PT30M, P1D or P1M")
        years, months, weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        span = cls(years * 12 + months, weeks * 7 + days, hours * 3600 + minutes * 60 + seconds)
        if not span.at_most(days=_LARGEST_DAYS):
            raise ValueError(f"{text!r} is longer than a hundred years")
        return span

    @property
    def is_zero(self) -> bool:
        """Whether nothing is to be added; zero is a length like any other, never "unset"."""
        return not (self.months or self.days or self.seconds)

    @property
    def is_exact(self) -> bool:
        """Whether the span is seconds only, so that no calendar and no zone has a say in it."""
        return not (self.months or self.days)

    def at_most(self, *, days: int) -> bool:
        """Whether the span can't be longer than so many days, counting a month as 31."""
        return (self.months * _MONTH + self.days) * _DAY + self.seconds <= days * _DAY

    def iso(self) -> str:
        """The span as an ISO 8601 duration; "PT0S" for zero."""
        day_part = (f"{self.months}M" if self.months else "") + (f"{self.days}D" if self.days else "")
        hours, rest = divmod(self.seconds, 3600)
        minutes, seconds = divmod(rest, 60)
        parts = ((hours, "H"), (minutes, "M"), (seconds, "S"))
        time_part = "".join(f"{number}{unit}" for number, unit in parts if number)
        if not day_part and not time_part:
            return "PT0S"
        return "P" + day_part + (f"T{time_part}" if time_part else "")


def add(moment: datetime, span: Span, zone: ZoneInfo) -> datetime:
    """The aware moment a span later, in UTC: months and days by the calendar of the zone, then seconds exactly."""
    return _moved(moment, span, zone, sign=1)


def subtract(moment: datetime, span: Span, zone: ZoneInfo) -> datetime:
    """The aware moment a span earlier, in UTC; the same rules as `add`."""
    return _moved(moment, span, zone, sign=-1)


def move_date(day: date, span: Span, *, sign: int = 1) -> date:
    """The date so many months and days later (sign 1) or earlier (-1); a day past the month's end is its last one."""
    month = day.year * 12 + day.month - 1 + sign * span.months
    year, month = divmod(month, 12)
    last = monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last)) + timedelta(days=sign * span.days)


def at_local(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """The instant, in UTC, at which a zone's clocks show that day and time.

    A time that doesn't exist is the first instant after the gap; one that occurs twice is the first.
    """
    local = datetime.combine(day, clock.replace(fold=0), tzinfo=zone)
    before, after = local.utcoffset(), local.replace(fold=1).utcoffset()
    if before is None or after is None or after <= before:
        return local.astimezone(UTC)
    naive = local.replace(tzinfo=None)
    return _gap_end((naive - after).replace(tzinfo=UTC), (naive - before).replace(tzinfo=UTC), zone)


def day_start(day: date, zone: ZoneInfo) -> datetime:
    """The first instant of a local day, in UTC."""
    return at_local(day, time(0), zone)


def _moved(moment: datetime, span: Span, zone: ZoneInfo, *, sign: int) -> datetime:
    instant = moment.astimezone(UTC)
    if not span.is_exact:
        local = instant.astimezone(zone)
        instant = at_local(move_date(local.date(), span, sign=sign), local.time(), zone)
    return instant + timedelta(seconds=sign * span.seconds)


def _gap_end(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """The transition between two instants of which the first is before it: found by halving, to the second."""
    offset = low.astimezone(zone).utcoffset()
    low, high = low.replace(microsecond=0), high.replace(microsecond=0) + timedelta(seconds=1)
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high
