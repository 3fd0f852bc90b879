"""The plain values a rule is judged on: their JSON forms by field type, sameness, cutting and cleaning."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from automation.core.values import DECODERS, NotThisType, clean, number, unshown, unstorable

__all__ = [
    "FIELD_TYPES",
    "Facts",
    "NotThisType",
    "clean",
    "cut_text",
    "decode",
    "encode",
    "number",
    "read",
    "same",
    "unshown",
    "unstorable",
]

Facts = Mapping[str, Any]
"""{"change", "before": {field: raw}, "after", "snapshot": {path: raw}, "data": {name: raw}, "cut": [path], "source"}

"quiet": true beside them where an import said that no rule runs for it.
"""

FIELD_TYPES = ("text", "choice", "number", "boolean", "date", "datetime", "tags", "reference", "references", "any")
EVENT_PREFIX = "event."
TEXT_BYTES = 8 * 1024


def encode(value: object, type: str) -> Any:
    """The JSON form of a value: decimals and instants as text (instants in UTC), tags and references sorted.

    None stays None. NotThisType when the value doesn't fit the type.
    """
    value = decode(value, type)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return decimal_json(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return value


def decode(raw: object, type: str) -> Any:
    """The value behind a JSON form; a value that is decoded already passes. NotThisType when it doesn't fit.

    text, choice → str · number → Decimal · boolean → bool · date → date · datetime → aware datetime ·
    tags → frozenset of str · reference → int · references → frozenset of int · any → cleaned JSON.
    """
    if raw is None:
        return None
    try:
        return DECODERS[type](raw)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise NotThisType(f"{_short(raw)} is not of type {type}") from error


def same(one: object, other: object, type: str) -> bool:
    """Whether two values are one by their type: 1.0 and 1.00, two notations of an instant, tags in another order."""
    if one is None or other is None:
        return one is other
    try:
        return bool(decode(one, type) == decode(other, type))
    except NotThisType:
        return one == other


def cut_text(text: str) -> tuple[str, bool]:
    """The text cut to 8 KB of UTF-8 at a whole character, and whether it was cut."""
    if len(text) * 4 <= TEXT_BYTES:
        return text, False
    encoded = text.encode(errors="replace")
    if len(encoded) <= TEXT_BYTES:
        return text, False
    return encoded[:TEXT_BYTES].decode(errors="ignore"), True


def read(facts: Facts, path: str) -> tuple[bool, Any]:
    """Whether the facts know a path, and its raw value. An event's own data knows every name: absent ones are None."""
    if path.startswith(EVENT_PREFIX):
        return True, (facts.get("data") or {}).get(path[len(EVENT_PREFIX) :])
    snapshot = facts.get("snapshot") or {}
    return path in snapshot, snapshot.get(path)


def decimal_json(value: Decimal) -> int | str:
    """Whole numbers that every JSON reader keeps exactly stay numbers; all others become text."""
    if abs(value.adjusted()) > 60:
        return str(value)
    whole = abs(value) < 2**53 and value == value.to_integral_value()
    return int(value) if whole else format(value, "f")


def _short(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 60 else text[:57] + "…"
