"""Rules that start each other in a circle: the shortest ways back to where they began."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MOST = 50  # circles that are named
SEARCHED = 400  # circles that are looked for, of which the shortest are named


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


def cycles(found: Iterable[Hop], *, through: int | None = None) -> list[Cycle]:
    """The shortest circle through each pair of rules, each circle once: certain ones first, then short ones.

    `through` a rule: only circles that it is in. `MOST` at most.
    """
    by_rule: dict[int, dict[int, Hop]] = {}
    for hop in sorted(found, key=lambda one: not one.certain):
        by_rule.setdefault(hop.rule_id, {}).setdefault(hop.to_rule, hop)
    starts = [hop for some in by_rule.values() for hop in some.values() if through in (None, hop.rule_id)]
    circles: dict[tuple[int, ...], Cycle] = {}
    for start in sorted(starts, key=lambda one: (not one.certain, one.to_rule != one.rule_id)):
        way = _way(by_rule, start)
        if way is not None:
            cycle = _turned(Cycle(tuple(way)))
            circles.setdefault(cycle.rules, cycle)
        if len(circles) >= SEARCHED:
            break
    return sorted(circles.values(), key=lambda one: (not one.certain, len(one.hops), one.rules))[:MOST]


def _way(by_rule: Mapping[int, Mapping[int, Hop]], start: Hop) -> Sequence[Hop] | None:
    """The shortest way that begins with a hop and comes back to its rule; of equally short ones a certain one."""
    came: dict[int, Hop] = {start.to_rule: start}
    next_ones = deque([start.to_rule])
    while next_ones:
        rule_id = next_ones.popleft()
        if rule_id == start.rule_id:
            break
        for to_rule, hop in by_rule.get(rule_id, {}).items():
            if to_rule not in came:
                came[to_rule] = hop
                next_ones.append(to_rule)
    if start.rule_id not in came:
        return None
    way = [came[start.rule_id]]
    while way[-1] is not start:
        way.append(came[way[-1].rule_id])
    return way[::-1]


def _turned(cycle: Cycle) -> Cycle:
    """The same circle, told from its smallest rule on."""
    first = cycle.rules.index(min(cycle.rules))
    return Cycle((*cycle.hops[first:], *cycle.hops[:first]))
