"""Judges conditions on events of which values were erased: what hangs on those is unknown."""

from dataclasses import replace
from typing import Any

from automation.core.conditions import Verdict, compile_condition
from automation.core.erasing import BEFORE, EVERYTHING
from automation.core.explaining import LeafReport, explain, leaves
from automation.core.facts import Facts
from automation.core.moments import Moment
from automation.core.operators import OPERATORS
from automation.core.spec import Condition, Leaf

GONE = "erased"
WITHOUT_VALUE = "changed"  # says only that the field changed, which stays


def judge_stored(condition: Condition | None, facts: Facts, moment: Moment) -> tuple[Verdict, list[LeafReport]]:
    """The verdict on a stored event with a report on each leaf; "unknown" for the reason "erased" where it must be."""
    masked = _masked(condition, frozenset(facts.get("erased") or ())) if condition is not None else None
    verdict, reports = compile_condition(masked)(facts, moment), explain(masked, facts, moment)
    if masked is condition:
        return verdict, reports
    ops = {leaf.id: leaf.op for leaf in leaves(condition)}
    reports = [_named(one, ops) for one in reports]
    if verdict.value == "unknown" and any(one.reason == GONE for one in reports):
        verdict = replace(verdict, reason=GONE)
    return verdict, reports


def _masked(condition: Condition, erased: frozenset[str]) -> Condition:
    """The condition with an operator that nobody knows where a leaf reads what was erased; itself where none does."""
    if not erased:
        return condition
    if isinstance(condition, Leaf):
        return replace(condition, op=GONE) if _hangs(condition, erased) else condition
    items = tuple(_masked(item, erased) for item in condition.items)
    same = all(new is old for new, old in zip(items, condition.items, strict=True))
    return condition if same else replace(condition, items=items)


def _hangs(leaf: Leaf, erased: frozenset[str]) -> bool:
    if EVERYTHING in erased:
        return True
    if leaf.op in OPERATORS and OPERATORS[leaf.op].reads == "change":
        return leaf.op != WITHOUT_VALUE and not erased.isdisjoint((leaf.field, BEFORE + leaf.field))
    return leaf.field in erased or leaf.value_of in erased


def _named(report: LeafReport, ops: dict[str, str]) -> LeafReport:
    if report.op != GONE:
        return report
    told: dict[str, Any] = {"reason": GONE, "read": None} if report.result == "unknown" else {}
    return replace(report, op=ops.get(report.id, report.op), **told)
