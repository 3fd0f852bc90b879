"""What a rule listens to and what it writes, as far as it can be told before it runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from automation.core.scenes import Scene
from automation.core.spec import RuleSpec, TriggerSpec

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Writing:
    """A field that an action may write: the values that it may get (raw, tags as tuples; None where unknown).

    `part` says whether the step sets the field, or adds to what is there (a note, tags) or takes from it, and so leaves
    the rest as it was. Of a set of tags, what is added (`holds`) and what is taken away (`lacks`), where it is known.
    """

    field: str
    values: Values | None = None
    holds: frozenset[Any] = frozenset()
    lacks: frozenset[Any] = frozenset()
    part: Literal["whole", "added", "removed"] = "whole"
    at: str = ""  # where in the step's parameters a value is written by hand, as a JSON pointer


@dataclass(frozen=True, slots=True)
class Write:
    """What one step writes: into the rule's own record (`created` False), or as a new record of a model.

    `slept` says that a delay comes before it, so that the record may be another by then.
    """

    node: str
    model: str
    writings: tuple[Writing, ...]
    created: bool = False
    slept: bool = False

    @property
    def fields(self) -> frozenset[str]:
        """The names of the fields."""
        return frozenset(one.field for one in self.writings)


@dataclass(frozen=True, slots=True)
class Footprint:
    """One rule among the others: `writes` in the order of its steps."""

    rule_id: int
    name: str
    position: int
    spec: RuleSpec
    writes: tuple[Write, ...]

    def written(self, model: str) -> frozenset[str]:
        """All fields of its own record that it may write, where that is of this model."""
        return frozenset(name for one in self.writes if one.model == model and not one.created for name in one.fields)


def scene_of(footprint: Footprint, write: Write) -> Scene:
    """The events that a write can make. Changes that one run makes together are one event, so others may be in it."""
    if write.created:
        known = tuple((one.field, one.values) for one in write.writings if one.values is not None)
        return Scene(change="created", after=known)
    others = [one for one in footprint.writes if one is not write and not one.created and one.model == write.model]
    alone = [one for one in write.writings if not any(one.field in other.fields for other in others)]
    return Scene(
        change="updated",
        may_change=footprint.written(write.model),
        after=tuple((one.field, one.values) for one in alone if one.values is not None),
        moved=tuple(_moved(footprint, write)),
        holds=tuple((one.field, one.holds) for one in alone if one.holds),
        lacks=tuple((one.field, one.lacks) for one in alone if one.lacks),
        must_change=(write.fields,),
    )


def _moved(footprint: Footprint, write: Write) -> Iterator[tuple[str, Values]]:
    """What fields become that other steps of the run write, where all of those say it."""
    mine = [one for one in footprint.writes if not one.created and one.model == write.model]
    for name in sorted(footprint.written(write.model)):
        writings = [writing for one in mine for writing in one.writings if writing.field == name]
        if name not in write.fields or len(writings) > 1:
            known = [writing.values for writing in writings if writing.values is not None]
            if len(known) == len(writings):
                yield name, tuple(dict.fromkeys(value for values in known for value in values))


def reached(spec: RuleSpec) -> list[tuple[int, bool]]:
    """(index, whether a delay comes before it) of the nodes that a run can come to, steps that are off apart."""
    found: dict[int, bool] = {}
    ways: list[tuple[int | None, bool]] = [(spec.first, False)]
    while ways:
        index, slept = ways.pop()
        if index is None or (index in found and found[index] >= slept):
            continue
        found[index] = slept or found.get(index, False)
        node = spec.nodes[index]
        if node.kind == "stop" and not node.off:
            continue
        later = slept or (node.kind == "delay" and not node.off)
        ways.append((node.next, later))
        if node.kind == "branch" and not node.off:
            ways += [(arm.first, later) for arm in node.arms]
            ways.append((node.otherwise, later))
    return [(index, found[index]) for index in sorted(found) if not spec.nodes[index].off]


def any_scene(trigger: TriggerSpec) -> list[Scene]:
    """The events that a trigger lets through, by kind of change; of other kinds of events nothing has changed."""
    if trigger.kind != "record_changed":
        return [Scene(change="", may_change=frozenset())]
    chosen = trigger.on or frozenset({"created", "updated", "deleted"})
    must = (trigger.fields,) if trigger.fields else ()
    return [Scene(change=change, must_change=must if change == "updated" else ()) for change in sorted(chosen)]
