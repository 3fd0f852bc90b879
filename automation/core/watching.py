"""Which fields must have changed for a rule to match: what its events are looked up by."""

from collections.abc import Iterator

from automation.core.spec import Condition, Group, Leaf, RuleSpec, TriggerSpec

CHANGE_OPERATORS = frozenset({"changed", "changed_to", "changed_from", "changed_from_to", "rises_above", "falls_below"})


def needed_changes(trigger: TriggerSpec, spec: RuleSpec | None) -> frozenset[str]:
    """The fields of which one must have changed for the rule to match; the empty name where any event may do."""
    if trigger.on != {"updated"}:
        return frozenset({""})
    if trigger.fields:
        return trigger.fields
    for leaf in _required(spec.condition if spec else None):
        if leaf.op in CHANGE_OPERATORS:
            return frozenset({leaf.field})
    return frozenset({""})


def _required(condition: Condition | None) -> Iterator[Leaf]:
    """The leaves without which the condition can't be true."""
    if isinstance(condition, Leaf):
        yield condition
    elif isinstance(condition, Group) and condition.mode == "all":
        for item in condition.items:
            yield from _required(item)
