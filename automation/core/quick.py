"""Leaves judged without a second call: plain equality and overlap on an event's snapshot, which most conditions are."""

from collections.abc import Callable
from typing import Any

from automation.core.facts import Facts
from automation.core.moments import Moment

Judge = Callable[[Facts, Moment], bool | None]
Build = Callable[[str, Any], Judge]


def quick_judge(op: str, type: str, field: str, wanted: Any) -> Judge | None:
    """A closure that says exactly what the operator's own test would, or None where there is no quick one."""
    build = _BUILDS.get(op) if type in _TYPES.get(op, ()) else None
    return None if build is None else build(field, wanted)


def _is(field: str, wanted: Any) -> Judge:
    def judge(facts: Facts, moment: Moment) -> bool | None:
        try:
            return bool(facts["snapshot"][field] == wanted)
        except KeyError:
            return None

    return judge


def _is_not(field: str, wanted: Any) -> Judge:
    def judge(facts: Facts, moment: Moment) -> bool | None:
        try:
            return bool(facts["snapshot"][field] != wanted)
        except KeyError:
            return None

    return judge


def _has_any(field: str, wanted: frozenset[Any]) -> Judge:
    def judge(facts: Facts, moment: Moment) -> bool | None:
        try:
            raw = facts["snapshot"][field]
            return raw is not None and not wanted.isdisjoint(raw)
        except (KeyError, TypeError):
            return None

    return judge


_PLAIN = frozenset({"choice", "boolean", "reference"})
_BUILDS: dict[str, Build] = {"is": _is, "is_not": _is_not, "has_any": _has_any}
_TYPES = {"is": _PLAIN, "is_not": _PLAIN, "has_any": frozenset({"tags", "references"})}
