"""Finds the loops that rules could make: what each writes against what each listens to."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from automation.core.deducing import Question, possible
from automation.core.footprints import Footprint, Write, lasting, moved_by, scene_of
from automation.core.moments import Moment
from automation.core.spec import Condition, Group, TriggerSpec
from automation.core.standing import Known, Scene

MOST = 50  # cycles that are named
ENDED = "run_ended"
Fields = Mapping[str, Mapping[str, Known]]
"""What is known of the fields of each model, by path."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A step of one rule that can start another: `certain` where it does whenever it changes something.

    `node` is empty where it is the end of the run that does; `fields` are those of the write, of one record or a new
    one (`created`).
    """

    rule_id: int
    node: str
    fields: tuple[str, ...]
    created: bool
    to_rule: int
    certain: bool


@dataclass(frozen=True, slots=True)
class Cycle:
    """Rules that start each other in a circle, each by a step of the one before."""

    hops: tuple[Hop, ...]

    @property
    def certain(self) -> bool:
        """Whether every hop is."""
        return all(hop.certain for hop in self.hops)

    @property
    def rules(self) -> tuple[int, ...]:
        """The rules in the order in which they start each other."""
        return tuple(hop.rule_id for hop in self.hops)


def hops(footprints: Sequence[Footprint], fields: Fields, moment: Moment) -> list[Hop]:
    """Everything by which one of the rules can start one of them, through conditions where that can be decided."""
    moved = moved_by(footprints)
    return [
        hop
        for one in footprints
        for other in footprints
        for hop in _between(one, other, fields=fields, moved=moved, moment=moment)
    ]


def cycles(found: Iterable[Hop], *, through: int | None = None) -> list[Cycle]:
    """The shortest circle through each hop, each circle once: certain ones first, then short ones; `MOST` at most.

    `through` a rule: only circles that it is in.
    """
    by_rule: dict[int, list[Hop]] = {}
    for hop in found:
        by_rule.setdefault(hop.rule_id, []).append(hop)
    starts = [hop for some in by_rule.values() for hop in some if through in (None, hop.rule_id)]
    circles: dict[tuple[int, ...], Cycle] = {}
    for start in starts:
        way = _way(by_rule, start)
        if way is not None:
            cycle = _turned(Cycle(way))
            known = circles.get(cycle.rules)
            circles[cycle.rules] = cycle if known is None or cycle.certain > known.certain else known
    return sorted(circles.values(), key=lambda one: (not one.certain, len(one.hops), one.rules))[:MOST]


def _between(
    one: Footprint, other: Footprint, *, fields: Fields, moved: frozenset[str], moment: Moment
) -> Iterator[Hop]:
    trigger = other.spec.trigger
    if trigger.kind == ENDED:
        if one.spec.trigger.kind != ENDED and one.spec.trigger.model == trigger.model and one.rule_id != other.rule_id:
            yield Hop(one.rule_id, "", (), created=False, to_rule=other.rule_id, certain=False)
        return
    for write in one.writes:
        if not _hears(trigger, write):
            continue
        scene = scene_of(one, write)
        if trigger.fields and not write.created:
            scene = replace(scene, must_change=(*scene.must_change, trigger.fields))
        condition = _joined(other.spec.condition, *lasting(one, write, moved))
        known = fields.get(write.model, {})
        if possible(Question(condition, scene, known, moment)):
            sure = not trigger.fields or write.created or write.fields <= trigger.fields
            certain = sure and not possible(Question(other.spec.condition, scene, known, moment), wanted=False)
            named = tuple(sorted(write.fields))
            yield Hop(one.rule_id, write.node, named, created=write.created, to_rule=other.rule_id, certain=certain)


def _hears(trigger: TriggerSpec, write: Write) -> bool:
    """Whether a rule listens to such changes at all, before its condition is asked."""
    change = "created" if write.created else "updated"
    if trigger.kind != "record_changed" or trigger.model != write.model or (trigger.on and change not in trigger.on):
        return False
    return not trigger.sources or "automation" in trigger.sources


def _joined(condition: Condition | None, *more: Condition) -> Condition | None:
    items = [one for one in (condition, *more) if one is not None]
    return Group("", "all", tuple(items)) if items else None


def _way(by_rule: Mapping[int, Sequence[Hop]], start: Hop) -> tuple[Hop, ...] | None:
    """The shortest way that begins with a hop and comes back to its rule; of equally short ones a certain one."""
    ways: deque[tuple[Hop, ...]] = deque([(start,)])
    seen = {start.to_rule}
    while ways:
        way = ways.popleft()
        if way[-1].to_rule == start.rule_id:
            return way
        for hop in sorted(by_rule.get(way[-1].to_rule, ()), key=lambda one: not one.certain):
            if hop.to_rule == start.rule_id or hop.to_rule not in seen:
                seen.add(hop.to_rule)
                ways.append((*way, hop))
    return None


def _turned(cycle: Cycle) -> Cycle:
    """The same circle, told from its smallest rule on."""
    first = cycle.rules.index(min(cycle.rules))
    return Cycle((*cycle.hops[first:], *cycle.hops[:first]))


def any_scene(trigger: TriggerSpec) -> list[Scene]:
    """The events that a trigger lets through, by kind of change; of other kinds of events nothing has changed."""
    if trigger.kind != "record_changed":
        return [Scene(change="", may_change=frozenset())]
    chosen = trigger.on or frozenset({"created", "updated", "deleted"})
    must = (trigger.fields,) if trigger.fields else ()
    return [Scene(change=change, must_change=must if change == "updated" else ()) for change in sorted(chosen)]
