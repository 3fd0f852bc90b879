"""What a rule's condition says of a record and still holds when the rule writes to it."""

from collections.abc import Iterator, Mapping, Sequence

from automation.core.facts import EVENT_PREFIX
from automation.core.footprints import Footprint, Write
from automation.core.known import Known
from automation.core.moments import TIME_OPERATORS
from automation.core.operators import OPERATORS
from automation.core.spec import Condition, Leaf


def lasting(footprint: Footprint, write: Write, moved: frozenset[str], known: Mapping[str, Known]) -> Iterator[Leaf]:
    """What the rule's condition asks of the record and still holds when it writes: of fields that no rule moves.

    What no event carries may be moved by the host with any write, but for what follows from a field that is watched.
    """
    if write.created or write.slept or footprint.spec.trigger.model != write.model:
        return
    for leaf in required(footprint.spec.condition):
        name = leaf.field.rpartition(".")[2]
        timeless = leaf.op in OPERATORS and OPERATORS[leaf.op].reads == "value" and leaf.op not in TIME_OPERATORS
        steady = name not in moved and ("." in leaf.field or _is_told(leaf.field, known))
        if timeless and steady and leaf.value_of is None and not leaf.field.startswith(EVENT_PREFIX):
            yield leaf


def _is_told(name: str, known: Mapping[str, Known]) -> bool:
    """Whether an event tells when a field changes."""
    return name not in known or known[name].watched or known[name].follows is not None


def required(condition: Condition | None) -> Iterator[Leaf]:
    """The leaves without which the condition can't be true."""
    if isinstance(condition, Leaf):
        yield condition
    elif condition is not None and condition.mode == "all":
        for item in condition.items:
            yield from required(item)


def moved_by(footprints: Sequence[Footprint], fields: Mapping[str, Mapping[str, Known]]) -> frozenset[str]:
    """The names of all fields that any of the rules writes, with those that follow them, whichever record they are of.

    `fields`: what is known of them, by model.
    """
    written = frozenset(name for one in footprints for write in one.writes for name in write.fields)
    follows = ((name, one.follows) for known in fields.values() for name, one in known.items() if one.follows)
    return written | {name.rpartition(".")[2] for name, of in follows if of.field.rpartition(".")[2] in written}
