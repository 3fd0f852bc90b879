"""What a graph remembers of an earlier look is what a fresh search finds."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from automation.core.circles import Hop, cycles
from automation.core.footprints import Footprint, Write, Writing
from automation.core.known import Known
from automation.core.loop_graph import Graph, hops
from automation.core.moments import Moment
from automation.core.spec import Group, Leaf, RuleSpec, TriggerSpec

NOW = Moment(datetime(2026, 3, 2, 9, tzinfo=UTC), ZoneInfo("UTC"))
NAMES, VALUES = ("status", "priority", "plan"), ("a", "b")
FIELDS = {"x": {name: Known("choice", frozenset(VALUES), nullable=False) for name in NAMES}}
FIELD, VALUE = st.sampled_from(NAMES), st.sampled_from(VALUES)
LEAF = st.builds(
    lambda name, op, value: Leaf(f"{name}{op}{value}", name, op, value, "choice"),
    FIELD,
    st.sampled_from(["is", "is_not", "changed_to"]),
    VALUE,
)
CONDITION = st.one_of(
    st.none(), LEAF, st.lists(LEAF, min_size=2, max_size=3).map(lambda some: Group("g", "all", tuple(some)))
)
WRITE = st.builds(lambda name, value: Write("s", "x", (Writing(name, (value,)),)), FIELD, VALUE)


def rule(number: int, condition: Any, writes: list[Write]) -> Footprint:
    trigger = TriggerSpec("record_changed", "x", frozenset({"updated"}), frozenset(), frozenset(), "")
    spec = RuleSpec(trigger, condition, "both", (), None, frozenset())
    return Footprint(number, f"Rule {number}", number, spec, tuple(writes))


RULES = st.dictionaries(
    st.integers(1, 5), st.tuples(CONDITION, st.lists(WRITE, min_size=1, max_size=2)), max_size=5
).map(lambda some: [rule(number, *parts) for number, parts in sorted(some.items())])


@settings(max_examples=150, deadline=None)
@given(looks=st.lists(RULES, min_size=2, max_size=4))
def test_a_look_after_others_finds_what_a_first_one_would(looks: list[list[Footprint]]) -> None:
    graph = Graph(FIELDS, NOW)
    for footprints in looks:
        assert sorted(graph.hops(footprints), key=repr) == sorted(hops(footprints, FIELDS, NOW), key=repr)


HOPS = st.lists(
    st.builds(Hop, st.integers(1, 5), st.just("s"), st.just(("f",)), st.just(False), st.integers(1, 5), st.booleans())
)


@given(found=HOPS)
def test_each_pair_that_is_in_a_circle_is_in_one_that_is_named_and_none_is_longer_than_it_must_be(
    found: list[Hop],
) -> None:
    pairs = {(hop.rule_id, hop.to_rule) for hop in found}
    lengths = dict.fromkeys(pairs, 1)
    for _step in range(5):
        for (one, middle), length in list(lengths.items()):
            for other in {to for start, to in pairs if start == middle}:
                lengths[one, other] = min(lengths.get((one, other), 99), length + 1)
    circles = cycles(found)
    for cycle in circles:
        assert all((hop.rule_id, hop.to_rule) in pairs for hop in cycle.hops)
        assert [hop.to_rule for hop in cycle.hops] == [*cycle.rules[1:], cycle.rules[0]]
        assert len(set(cycle.rules)) == len(cycle.rules)
    for one, other in pairs:
        if one == other or (other, one) in lengths:
            shortest = 1 if one == other else 1 + lengths[other, one]
            named = [cycle for cycle in circles if any((h.rule_id, h.to_rule) == (one, other) for h in cycle.hops)]
            assert min(len(cycle.hops) for cycle in named) == shortest
