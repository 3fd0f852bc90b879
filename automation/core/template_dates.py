"""Dates and instants written out in templates, by a closed list of tokens."""

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from liquid.exceptions import FilterValueError
from liquid.undefined import is_undefined

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

DATE_TOKENS: dict[str, Callable[[datetime], str]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "m": lambda moment: f"{moment.month:02}",
    "B": lambda moment: _MONTHS[moment.month - 1],
    "b": lambda moment: _MONTHS[moment.month - 1][:3],
    "d": lambda moment: f"{moment.day:02}",
    "e": lambda moment: f"{moment.day}",
    "A": lambda moment: _DAYS[moment.weekday()],
    "a": lambda moment: _DAYS[moment.weekday()][:3],
    "H": lambda moment: f"{moment.hour:02}",
    "I": lambda moment: f"{(moment.hour - 1) % 12 + 1:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "p": lambda moment: "AM" if moment.hour < 12 else "PM",
    "z": lambda moment: moment.strftime("%z"),
    "%": lambda moment: "%",
}
"""What may follow a percent sign in the format of `date`; there are no tokens of week years and days of the year."""


def unknown_tokens(pattern: str) -> list[str]:
    """The tokens of a date format that don't exist."""
    return [f"%{token}" for token in re.findall(r"%(.|$)", pattern, re.DOTALL) if token not in DATE_TOKENS]


def formatted(value: Any, pattern: str = "", *, context: Any) -> str:
    """A date, or an instant in the tenant's zone, written in a format of DATE_TOKENS; "" for no value."""
    if value is None or is_undefined(value) or value == "":
        return ""
    unknown = unknown_tokens(str(pattern))
    if unknown:
        raise FilterValueError(f"{unknown[0]} is not a token of date formats", token=None)
    try:
        text = str(value)
        is_day = len(text) == 10
        moment = (
            datetime.combine(date.fromisoformat(text), datetime.min.time()) if is_day else datetime.fromisoformat(text)
        )
    except ValueError:
        raise FilterValueError(f"{str(value)[:40]!r} is not a date", token=None) from None
    if moment.tzinfo is not None:
        moment = moment.astimezone(context.tag_namespace["zone"])
    chosen = str(pattern) or ("%Y-%m-%d" if is_day else "%Y-%m-%d %H:%M")
    return re.sub("%(.)", lambda match: DATE_TOKENS[match[1]](moment), chosen, flags=re.DOTALL)
