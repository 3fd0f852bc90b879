"""Conditions compiled into closures and judged: true, false or unknown, and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from automation.core.explaining import LeafReport, explain, leaves
from automation.core.facts import Facts
from automation.core.judging import Judge, judge_of
from automation.core.moments import Moment
from automation.core.spec import Condition, Leaf
from automation.core.states import Reason

__all__ = ["Facts", "LeafReport", "Moment", "Verdict", "compile_condition", "explain", "leaves"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a condition. When unknown, `reason` is a reason code and `leaf` the id of what couldn't say."""

    value: Literal["true", "false", "unknown"]
    reason: str = ""
    leaf: str = ""

    @property
    def is_true(self) -> bool:
        """Whether the condition holds; false and unknown both don't."""
        return self.value == "true"


TRUE, FALSE = Verdict("true"), Verdict("false")


def compile_condition(condition: Condition | None) -> Callable[[Facts, Moment], Verdict]:
    """A function that judges facts at a moment. No condition is always true; an empty group is never."""
    if condition is None:
        return lambda facts, moment: TRUE
    judge = _compiled(condition)

    def verdict(facts: Facts, moment: Moment) -> Verdict:
        answer = judge(facts, moment)
        if answer is None:
            return _unknown(condition, facts, moment)
        return TRUE if answer else FALSE

    return verdict


def _compiled(condition: Condition) -> Judge:
    if isinstance(condition, Leaf):
        return judge_of(condition)
    items = tuple(_compiled(item) for item in condition.items)
    if not items:
        return lambda facts, moment: None
    if len(items) == 1 and condition.mode != "none":
        return items[0]
    return _joined(items, stops_at=condition.mode != "all", answer=condition.mode == "any")


def _joined(items: Sequence[Judge], *, stops_at: bool, answer: bool) -> Judge:
    """The first item that is `stops_at` decides for `answer`; else the opposite, unless an item is unknown."""
    otherwise = not answer

    def judge(facts: Facts, moment: Moment) -> bool | None:
        result: bool | None = otherwise
        for item in items:
            one = item(facts, moment)
            if one is stops_at:
                return answer
            if one is None:
                result = None
        return result

    return judge


def _unknown(condition: Condition, facts: Facts, moment: Moment) -> Verdict:
    doubtful = (report.id for report in explain(condition, facts, moment) if report.result == "unknown")
    return Verdict("unknown", Reason.UNKNOWN_FIELD, next(doubtful, condition.id))
