"""Which rule can start which, kept from one look to the next: only what changed is searched anew."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from automation.core.circles import Hop
from automation.core.footprints import Footprint
from automation.core.loops import Fields, Made, Search
from automation.core.moments import Moment


@dataclass(slots=True)
class _Row:
    """One rule: what it makes, and its hops by the rules that they start, without those that start nothing."""

    footprint: Footprint
    made: list[Made]
    hops: dict[int, list[Hop]] = field(default_factory=dict)


@dataclass(slots=True)
class Graph:
    """The hops among some rules at a moment; the next look may be at others, and costs as much as differs."""

    fields: Fields
    moment: Moment
    _rows: dict[int, _Row] = field(default_factory=dict)

    def hops(self, footprints: Sequence[Footprint]) -> list[Hop]:
        """Everything by which one of the rules can start one of them, through conditions where that can be decided."""
        search = Search(footprints, self.fields, self.moment)
        known = {rule_id: row.footprint for rule_id, row in self._rows.items()}
        changed = [one for one in footprints if known.get(one.rule_id) != one]
        stale = {one.rule_id for one in changed} | (known.keys() - {one.rule_id for one in footprints})
        self._rows = {one.rule_id: self._row(search, one, footprints, changed, stale) for one in footprints}
        return [hop for row in self._rows.values() for some in row.hops.values() for hop in some]

    def _row(
        self,
        search: Search,
        one: Footprint,
        footprints: Sequence[Footprint],
        changed: Sequence[Footprint],
        stale: set[int],
    ) -> _Row:
        made, row = search.made(one), self._rows.get(one.rule_id)
        if row is None or one.rule_id in stale or row.made != made:
            row, changed = _Row(one, made), footprints
        for rule_id in stale & row.hops.keys():
            del row.hops[rule_id]
        for other in changed:
            some = list(search.between(one, other, made))
            if some:
                row.hops[other.rule_id] = some
        return row


def hops(footprints: Sequence[Footprint], fields: Fields, moment: Moment) -> list[Hop]:
    """All hops among some rules, once."""
    return Graph(fields, moment).hops(footprints)


__all__ = ["Graph", "hops"]
