"""Which leaves decided a condition: those that a person must look at to see why."""

from collections.abc import Mapping, Sequence

from automation.core.explaining import LeafReport
from automation.core.spec import Condition, Leaf

Result = bool | None


def decisive(condition: Condition | None, reports: Sequence[LeafReport]) -> list[str]:
    """The ids of the leaves because of which a condition came out as it did, in document order.

    Of "all" that failed it is the first item that did, of "any" all of them; what is unknown stands for itself.
    """
    if condition is None:
        return []
    results = {report.id: _RESULTS[report.result] for report in reports if report.result != "not_needed"}
    return _decisive(condition, results)


_RESULTS: Mapping[str, Result] = {"true": True, "false": False, "unknown": None}


def _value(condition: Condition, results: Mapping[str, Result]) -> Result:
    if isinstance(condition, Leaf):
        return results.get(condition.id)
    decides, answer = condition.mode != "all", condition.mode == "any"
    values = [_value(item, results) for item in condition.items if _was_needed(item, results)]
    if decides in values:
        return answer
    return None if None in values or not condition.items else not answer


def _was_needed(condition: Condition, results: Mapping[str, Result]) -> bool:
    if isinstance(condition, Leaf):
        return condition.id in results
    return not condition.items or any(_was_needed(item, results) for item in condition.items)


def _decisive(condition: Condition, results: Mapping[str, Result]) -> list[str]:
    if isinstance(condition, Leaf):
        return [condition.id]
    needed = [item for item in condition.items if _was_needed(item, results)]
    values = [_value(item, results) for item in needed]
    decides = condition.mode != "all"
    if decides in values:
        wanted = [needed[values.index(decides)]]
    elif None in values:
        wanted = [item for item, value in zip(needed, values, strict=True) if value is None]
    else:
        wanted = needed
    return [leaf_id for item in wanted for leaf_id in _decisive(item, results)]
