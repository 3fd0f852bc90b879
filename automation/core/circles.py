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
    ways, circles = _Ways(by_rule), dict[tuple[int, ...], Cycle]()
    for start in sorted(starts, key=lambda one: (not one.certain, one.to_rule != one.rule_id)):
        way = ways.back(start)
        if way is not None:
            cycle = _turned(Cycle(tuple(way)))
            circles.setdefault(cycle.rules, cycle)
        if len(circles) >= SEARCHED:
            break
    return sorted(circles.values(), key=lambda one: (not one.certain, len(one.hops), one.rules))[:MOST]


class _Ways:
    """The shortest ways to a rule from all others, searched once for each rule; of equally short ones a certain one."""

    def __init__(self, by_rule: Mapping[int, Mapping[int, Hop]]) -> None:
        self._into: dict[int, list[Hop]] = {}
        hops = (hop for some in by_rule.values() for hop in some.values())
        for hop in sorted(hops, key=lambda one: not one.certain):
            self._into.setdefault(hop.to_rule, []).append(hop)
        self._onward: dict[int, dict[int, Hop]] = {}

    def back(self, start: Hop) -> Sequence[Hop] | None:
        """The shortest way that begins with a hop and comes back to its rule."""
        onward = self._onward.get(start.rule_id)
        if onward is None:
            onward = self._onward[start.rule_id] = self._to(start.rule_id)
        way, at = [start], start.to_rule
        while at != start.rule_id:
            if at not in onward:
                return None
            way.append(onward[at])
            at = way[-1].to_rule
        return way

    def _to(self, rule_id: int) -> dict[int, Hop]:
        """The next hop of each rule on its way to that one."""
        found: dict[int, Hop] = {}
        next_ones = deque([rule_id])
        while next_ones:
            at = next_ones.popleft()
            for hop in self._into.get(at, ()):
                if hop.rule_id not in found and hop.rule_id != rule_id:
                    found[hop.rule_id] = hop
                    next_ones.append(hop.rule_id)
        return found


def _turned(cycle: Cycle) -> Cycle:
    """The same circle, told from its smallest rule on."""
    first = cycle.rules.index(min(cycle.rules))
    return Cycle((*cycle.hops[first:], *cycle.hops[:first]))
