"""JSON values read as the types of fields, and cleaned of what no database text can hold."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_DEPTH = 32
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffd]")


UNFIT = (ValueError, TypeError, ArithmeticError, AttributeError)
"""What reading a value as a type that it isn't may raise; a verdict is then unknown, never false."""


class NotThisType(ValueError):
    """A value that can't be read as the field's type."""


def clean(value: Any, *, depth: int = MAX_DEPTH) -> Any:
    """A JSON value without NUL and lone surrogates, which no database holds; ValueError when nested too deeply."""
    if isinstance(value, str):
        return UNSTORABLE.sub("", value) if UNSTORABLE.search(value) else value
    if not isinstance(value, dict | list | tuple):
        return value
    if depth <= 0:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {clean(str(key)): clean(item, depth=depth - 1) for key, item in value.items()}
    return [clean(item, depth=depth - 1) for item in value]


def unstorable(value: Any) -> str | None:
    """The JSON pointer of the first text or name that no database holds; ValueError when nested too deeply."""
    return next(_unstorable(value, "", MAX_DEPTH), None)


def _unstorable(value: Any, pointer: str, depth: int) -> Iterator[str]:
    if isinstance(value, str) and UNSTORABLE.search(value):
        yield pointer
    if not isinstance(value, dict | list | tuple):
        return
    if depth <= 0:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        text = str(name)
        place = f"{pointer}/{_printed(text)}"
        if UNSTORABLE.search(text):
            yield place
        yield from _unstorable(item, place, depth - 1)


def _printed(name: str) -> str:
    """A name as a part of a pointer that can itself be stored and printed."""
    return UNSTORABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", name.replace("~", "~0").replace("/", "~1"))


def unshown(text: str) -> str | None:
    """The first character that no name shows, as "U+000A": control characters, line breaks, what was read wrongly."""
    found = UNSHOWN.search(text)
    return f"U+{ord(found[0]):04X}" if found else None


def decode_strictly(raw: object, type: str) -> Any:
    """As a definition is read: a number must be a JSON number, a date or an instant a text. NotThisType otherwise."""
    wanted = _JSON_TYPES.get(type, (str,))
    try:
        if not isinstance(raw, wanted):
            raise TypeError
        return DECODERS[type](raw)
    except UNFIT as error:
        raise NotThisType(f"not of type {type}") from error


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError
    return UNSTORABLE.sub("", raw) if UNSTORABLE.search(raw) else raw


def number(raw: object) -> Decimal:
    """A finite decimal from an int, float, Decimal or its text; never from a boolean."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | Decimal | str):
        raise TypeError
    value = raw if isinstance(raw, Decimal) else Decimal(str(raw).strip())
    if not value.is_finite():
        raise InvalidOperation
    return value


def _boolean(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise TypeError
    return raw


def _date(raw: object) -> date:
    if isinstance(raw, datetime):
        raise TypeError
    return raw if isinstance(raw, date) else date.fromisoformat(_text(raw))


def _datetime(raw: object) -> datetime:
    value = raw if isinstance(raw, datetime) else datetime.fromisoformat(_text(raw))
    if value.tzinfo is None:
        raise ValueError("an instant needs its offset")
    return value


def _reference(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise TypeError
    return raw


def _many(raw: object, one: Callable[[object], Any]) -> frozenset[Any]:
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Iterable):
        raise TypeError
    return frozenset(one(item) for item in raw)


def _any(raw: object) -> Any:
    if isinstance(raw, Decimal | datetime | date):
        return raw
    return clean(raw)


DECODERS: dict[str, Callable[[object], Any]] = {
    "text": _text,
    "choice": _text,
    "number": number,
    "boolean": _boolean,
    "date": _date,
    "datetime": _datetime,
    "tags": lambda raw: _many(raw, _text),
    "reference": _reference,
    "references": lambda raw: _many(raw, _reference),
    "any": _any,
}
_JSON_TYPES: dict[str, tuple[type, ...]] = {"number": (int, float), "reference": (int,), "boolean": (bool,)}
