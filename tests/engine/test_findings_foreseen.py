"""No loop that rules make by themselves was unforeseen."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automation.engine.findings import findings_of
from automation.engine.references import problems_of
from automation.engine.ruleset import Anything
from tests.engine.world import leaf, make_world, set_field, step, when

VALUES = {"subject": ["One", "Two"], "priority": ["low", "high"], "status": ["open", "pending"]}
NAMES = st.sampled_from(sorted(VALUES))
PAIRS = NAMES.flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(VALUES[name])))
LEAVES = st.one_of(
    st.builds(
        lambda pair, op: leaf(pair[0], op, pair[1]),
        PAIRS,
        st.sampled_from(["is", "is_not", "changed_to", "changed_from", "was"]),
    ),
    NAMES.map(lambda name: leaf(name, "changed")),
    st.sampled_from(["has_any", "has_none"]).map(lambda op: leaf("tags", op, ["hot"])),
)
CONDITIONS = st.one_of(
    st.none(),
    LEAVES,
    st.dictionaries(st.sampled_from(["all", "any"]), st.lists(LEAVES, min_size=2, max_size=3), min_size=1, max_size=1),
)
STEPS = st.one_of(
    PAIRS.map(lambda pair: set_field("", *pair)),
    st.just(set_field("", "subject", "{{ ticket.subject }}!")),
    st.sampled_from(["add_tags", "remove_tags"]).map(lambda action: step("", action, tags=["hot"])),
    st.just({"kind": "delay", "for": "PT1H"}),
)
RULES = st.tuples(
    st.one_of(st.none(), st.lists(NAMES, min_size=1, max_size=2, unique=True)),
    CONDITIONS,
    st.lists(STEPS, min_size=1, max_size=3),
)


def _definition(rule: Any) -> dict[str, Any]:
    fields, condition, steps = rule
    numbered = [{**one, "id": f"s{place}"} for place, one in enumerate(steps)]
    parts = json.loads(json.dumps(condition))  # no part twice: ids are given in place
    return {"trigger": when("updated", fields=fields), "condition": parts, "steps": numbered, "again": "both"}


def _can_be_published(definition: dict[str, Any]) -> bool:
    return not problems_of({"schema_version": 1, **definition}, Anything())


LOOSE: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
SOME = given(
    drawn=st.lists(RULES.map(_definition).filter(_can_be_published), min_size=1, max_size=4),
    changes=st.lists(PAIRS, min_size=1, max_size=3),
)


@settings(max_examples=8, **LOOSE)
@SOME
def test_every_loop_that_was_stopped_had_been_shown_before(db: None, drawn: list[Any], changes: list[Any]) -> None:
    assert not_foreseen(drawn, changes) == []


@pytest.mark.long
@settings(max_examples=200, **LOOSE)
@SOME
def test_of_many_rules_every_loop_that_was_stopped_had_been_shown(
    db: None, drawn: list[Any], changes: list[Any]
) -> None:
    assert not_foreseen(drawn, changes) == []


def not_foreseen(drawn: list[Any], changes: list[Any]) -> list[Any]:
    """Rules, all that there are, of which the loop guard stopped one that had no loop among its findings."""
    world = make_world()
    for place, one in enumerate(drawn):
        world.rule(f"Rule {place}", *one["steps"], **{name: value for name, value in one.items() if name != "steps"})
    ticket = world.ticket(subject="One", priority="low", status="open")
    for name, value in changes:
        world.change(ticket, **{name: value})
    looped = {run.rule_id for run in world.runs() if run.reason == "loop_same_rule"}
    with world.acting():
        if all("loop" in [one.kind for one in findings_of(rule_id)] for rule_id in looped):
            return []
    return [(one["condition"], one["steps"]) for one in drawn]
