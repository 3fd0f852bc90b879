"""The gates between an event and a run of a rule, in their order, and those of a rule's trigger."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from automation.core.spec import TriggerSpec
from automation.core.states import Reason

UNASKED_SOURCES = frozenset({"import", "schedule"})
"""Sources that a trigger's list doesn't speak of: they have their own words in a definition."""


class Gate(StrEnum):
    """Where an event's way to a run of one rule ended; `RAN` where nothing stopped it."""

    WAITS = "waits"  # no matcher has seen the event yet
    SET_ASIDE = "set_aside"  # it ended its matchers, and nothing judged it
    FORGOTTEN = "forgotten"  # retention has removed what it would be judged on
    DROPPED = "dropped"  # it was kept by a pause, at whose end somebody dropped it
    QUIET = "quiet"  # it came by an import that said that no rule runs for it
    NOT_MADE = "not_made"  # the rule was made later
    DELETED = "deleted"
    UNPUBLISHED = "unpublished"
    OFF = "off"
    BROKEN = "broken"  # the version that was live can't be read any more
    KIND = "kind"  # another kind of event than the trigger's
    MODEL = "model"
    NAME = "name"  # a custom event of another name
    OTHER_RULE = "other_rule"  # it was made for another rule: started by hand, or taking up what is there already
    CHANGE = "change"  # created, updated or deleted, and the trigger asks for another
    SOURCE = "source"
    FIELDS = "fields"  # none of the trigger's fields changed
    CONDITION = "condition"  # judged false
    UNDECIDED = "undecided"  # couldn't be judged: a field or reference is gone
    ERASED = "erased"  # can't be judged any more: values that it hangs on were erased with a person
    GUARD = "guard"  # matched, and suppressed for the reason that its run keeps
    RAN = "ran"


_REASONS = {
    Gate.WAITS: "",
    Gate.SET_ASIDE: Reason.POISON,
    Gate.FORGOTTEN: "",
    Gate.DROPPED: Reason.PAUSED,
    Gate.QUIET: Reason.IMPORT_SKIPPED,
    Gate.OFF: Reason.RULE_OFF,
    Gate.ERASED: "",
    Gate.RAN: "",
}


@dataclass(frozen=True, slots=True)
class Heard:
    """What a trigger can tell events apart by.

    `name` of a manual event, and of a record that a rule takes up, is the id of that rule; `outcomes` are the words
    that a choosy trigger of another kind than a record's change looks for.
    """

    kind: str
    model: str
    name: str
    change: str
    source: str
    changed: Collection[str]
    outcomes: Collection[str] = ()


def trigger_gate(trigger: TriggerSpec, rule_id: int, heard: Heard) -> Gate | None:
    """The first gate of a rule's trigger that an event doesn't pass; None where the trigger accepts it."""
    if trigger.kind != heard.kind:
        return Gate.KIND
    if heard.kind == "manual":
        return None if heard.name == str(rule_id) else Gate.OTHER_RULE
    if heard.kind == "record_changed" and heard.name and heard.name != str(rule_id):
        return Gate.OTHER_RULE
    if trigger.model != heard.model:
        return Gate.MODEL
    if heard.kind != "record_changed" and trigger.name != heard.name:
        return Gate.NAME
    if heard.kind == "record_changed":
        return _change_gate(trigger, heard)
    return Gate.CHANGE if trigger.on and trigger.on.isdisjoint(heard.outcomes) else None


def reason_of(gate: Gate) -> str:
    """The reason code that stands for a gate which no run tells of; "" where there is none."""
    return str(_REASONS.get(gate, Reason.NOT_MATCHED))


def _change_gate(trigger: TriggerSpec, heard: Heard) -> Gate | None:
    if trigger.on and heard.change not in trigger.on:
        return Gate.CHANGE
    if trigger.sources and heard.source not in trigger.sources and heard.source not in UNASKED_SOURCES:
        return Gate.SOURCE
    if trigger.fields and heard.change == "updated" and trigger.fields.isdisjoint(heard.changed):
        return Gate.FIELDS
    return None
