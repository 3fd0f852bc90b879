"""How each leaf of a condition was judged, for people."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

from automation.core.calendars import Span
from automation.core.facts import Facts, decimal_json, read
from automation.core.judging import judge_of
from automation.core.moments import Moment
from automation.core.operators import OPERATORS
from automation.core.spec import Condition, Leaf


@dataclass(frozen=True, slots=True)
class LeafReport:
    """How one leaf was judged: what was wanted, what was read (JSON forms), the result, and a code for people.

    `reason` is "" or: unknown_operator, unknown_field, unfit_value, no_value (there is none), cut (only the first 8 KB
    of the text were judged).
    """

    id: str
    field: str
    op: str
    wanted: Any
    read: Any
    result: Literal["true", "false", "unknown", "not_needed"]
    reason: str = ""


def explain(condition: Condition | None, facts: Facts, moment: Moment) -> list[LeafReport]:
    """One report per leaf, in document order; leaves behind a decided group are "not_needed"."""
    reports: list[LeafReport] = []
    if condition is not None:
        _judge(condition, facts, moment, reports)
    return reports


def leaves(condition: Condition | None) -> Iterator[Leaf]:
    """All leaves of a condition, in document order."""
    if isinstance(condition, Leaf):
        yield condition
    elif condition is not None:
        for item in condition.items:
            yield from leaves(item)


def wanted_json(leaf: Leaf) -> Any:
    """What a leaf compares with, in the JSON form of a definition."""
    if leaf.value_of is not None:
        return {"value_of": leaf.value_of}
    if isinstance(leaf.value, tuple):
        old, new = leaf.value
        return {"from": _json(old), "to": _json(new)}
    return _json(leaf.value)


def _judge(condition: Condition, facts: Facts, moment: Moment, reports: list[LeafReport]) -> bool | None:
    if isinstance(condition, Leaf):
        answer = judge_of(condition)(facts, moment)
        reports.append(_report(condition, facts, answer))
        return answer
    decides, answer = condition.mode != "all", condition.mode == "any"
    result: bool | None = not answer if condition.items else None
    decided = False
    for item in condition.items:
        if decided:
            reports.extend(_not_needed(leaf) for leaf in leaves(item))
            continue
        one = _judge(item, facts, moment, reports)
        decided = one is decides
        result = answer if decided else None if one is None else result
    return result


def _report(leaf: Leaf, facts: Facts, answer: bool | None) -> LeafReport:
    known, raw = _read(leaf, facts)
    result: Literal["true", "false", "unknown"] = "unknown" if answer is None else "true" if answer else "false"
    reason = _doubt(leaf, known) if answer is None else _remark(leaf, raw, facts)
    return LeafReport(leaf.id, leaf.field, leaf.op, wanted_json(leaf), raw, result, reason)


def _not_needed(leaf: Leaf) -> LeafReport:
    return LeafReport(leaf.id, leaf.field, leaf.op, wanted_json(leaf), None, "not_needed")


def _read(leaf: Leaf, facts: Facts) -> tuple[bool, Any]:
    operator = OPERATORS.get(leaf.op)
    if operator is None or operator.reads == "value":
        return read(facts, leaf.field)
    before, after = facts.get("before") or {}, facts.get("after") or {}
    if leaf.field in after:
        return True, {"before": before.get(leaf.field), "after": after[leaf.field]}
    return True, None


def _doubt(leaf: Leaf, known: bool) -> str:
    if leaf.op not in OPERATORS:
        return "unknown_operator"
    return "unfit_value" if known else "unknown_field"


def _remark(leaf: Leaf, raw: Any, facts: Facts) -> str:
    if leaf.field in (facts.get("cut") or ()):
        return "cut"
    return "no_value" if raw is None else ""


def _json(value: Any) -> Any:
    if isinstance(value, Span):
        return value.iso()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return decimal_json(value)
    return [_json(item) for item in sorted(value)] if isinstance(value, frozenset) else value
