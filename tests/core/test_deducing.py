"""What can be said of a condition before any event comes is what judging events says."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automation.core.calendars import Span
from automation.core.conditions import compile_condition
from automation.core.deducing import Question, possible
from automation.core.known import Follows, Known
from automation.core.moments import Moment
from automation.core.scenes import Scene
from automation.core.spec import Condition, Group, Leaf

NOW = Moment(datetime(2026, 3, 2, 9, tzinfo=UTC), ZoneInfo("Europe/Zurich"))
STATUSES = ("new", "open", "solved")
STAGES = (("new", "begun"), ("open", "begun"), ("solved", "over"))
FIELDS = {
    "status": Known("choice", frozenset(STATUSES), nullable=False),
    "subject": Known("text", nullable=False),
    "size": Known("number"),
    "count": Known("number", nullable=False, whole=True),
    "made": Known("datetime", nullable=False),
    "tags": Known("tags", nullable=False),
    "agent": Known("reference"),
    "seen_at": Known("datetime"),
    "stage": Known("choice", frozenset({"begun", "over"}), watched=False, follows=Follows("status", STAGES)),
    "plan": Known("choice", frozenset({"gold", "free"}), watched=False),
}


def leaf(field: str, op: str, value: Any = None) -> Leaf:
    return Leaf(f"{field}_{op}_{value}", field, op, value, FIELDS[field].type)


def both(*items: Condition) -> Group:
    return Group("g", "all", items)


def either(*items: Condition) -> Group:
    return Group("g", "any", items)


def can(condition: Condition, scene: Scene | None = None, **more: Any) -> bool:
    return possible(Question(condition, scene or Scene(), FIELDS, NOW), **more)


@pytest.mark.parametrize(
    "never",
    [
        both(leaf("status", "is", "open"), leaf("status", "is", "solved")),
        both(leaf("size", "gt", 5), leaf("size", "lte", 5)),
        both(leaf("tags", "has_any", frozenset({"a"})), leaf("tags", "has_none", frozenset({"a", "b"}))),
        both(leaf("subject", "starts_with", "Re: "), leaf("subject", "not_contains", "re:")),
        both(leaf("status", "changed_to", "open"), leaf("status", "changed_from", "open")),
        both(leaf("agent", "is_empty"), leaf("agent", "is", 3)),
        both(leaf("seen_at", "older_than", Span(days=7)), leaf("seen_at", "within_last", Span(days=3))),
        both(leaf("seen_at", "before", date(2026, 1, 1)), leaf("seen_at", "after", date(2026, 6, 1))),
        both(leaf("seen_at", "before", date(2026, 1, 1)), leaf("seen_at", "after", NOW.now)),
        both(leaf("count", "gt", 5), leaf("count", "lt", 6)),
        both(leaf("made", "older_than", Span(days=1)), leaf("made", "within_last", Span(seconds=3600))),
        leaf("plan", "changed"),
        both(leaf("status", "is", "solved"), leaf("stage", "is", "begun")),
        both(leaf("stage", "is", "over"), leaf("status", "changed_to", "open")),
        both(leaf("stage", "is", "over"), leaf("stage", "is", "begun")),
        Group("g", "none", (leaf("status", "in", frozenset(STATUSES)), leaf("status", "is_empty"))),
    ],
)
def test_a_contradiction_is_seen(never: Condition) -> None:
    assert not can(never)


@pytest.mark.parametrize(
    "always",
    [
        either(leaf("status", "is_not", "open"), leaf("status", "is_not", "solved")),
        either(leaf("status", "is", "solved"), leaf("stage", "is", "begun"), leaf("status", "is_empty")),
        either(leaf("size", "gt", 5), leaf("size", "lte", 5), leaf("size", "is_empty")),
        either(leaf("subject", "contains", "a"), leaf("subject", "not_contains", "A")),
        either(leaf("status", "changed"), leaf("status", "is_not_empty"), leaf("status", "is_empty")),
    ],
)
def test_what_always_holds_is_seen(always: Condition) -> None:
    assert not can(always, wanted=False)


@pytest.mark.parametrize(
    "sometimes",
    [
        both(leaf("subject", "contains", "ab"), leaf("subject", "contains", "bc"), leaf("subject", "is_not", "abc")),
        both(leaf("size", "gt", 5), leaf("size", "lt", 6)),
        both(leaf("seen_at", "older_than", Span(months=1)), leaf("seen_at", "within_last", Span(days=31))),
        both(leaf("seen_at", "older_than", Span(days=1)), leaf("seen_at", "after", datetime(2030, 1, 1, tzinfo=UTC))),
        both(leaf("subject", "changed"), leaf("subject", "is", "a"), leaf("subject", "was", "a")),
        either(leaf("size", "gt", 5), leaf("size", "lte", 5)),
    ],
)
def test_what_may_hold_and_may_fail_is_not_called_impossible(sometimes: Condition) -> None:
    assert can(sometimes)
    assert can(sometimes, wanted=False)


def test_a_condition_that_only_a_few_values_fail_is_nearly_always_true() -> None:
    assert not can(leaf("subject", "is_not", "Test"), wanted=False, common=True)
    assert not can(either(leaf("agent", "is_not", 3), leaf("size", "gt", 7)), wanted=False, common=True)
    assert can(leaf("status", "is_not", "open"), wanted=False, common=True)
    assert can(leaf("size", "gt", 7), wanted=False, common=True)


def test_a_scene_narrows_what_can_be() -> None:
    opened = Scene(
        may_change=frozenset({"status"}), after=(("status", ("open",)),), must_change=(frozenset({"status"}),)
    )
    assert can(leaf("status", "changed_to", "open"), opened)
    assert not can(leaf("status", "changed_to", "solved"), opened)
    assert not can(leaf("status", "is", "new"), opened)
    assert not can(leaf("subject", "changed"), opened)
    assert not can(leaf("stage", "is", "over"), opened)
    assert not can(leaf("status", "changed"), opened, wanted=False)
    assert not can(both(leaf("status", "changed_to", "open"), leaf("subject", "changed")), opened)
    tagged = Scene(may_change=frozenset({"tags"}), holds=(("tags", frozenset({"vip"})),))
    assert can(leaf("tags", "has_any", frozenset({"vip", "late"})), tagged)
    assert not can(leaf("tags", "has_none", frozenset({"vip"})), tagged)
    assert not can(leaf("status", "changed_from", "open"), Scene(change="created"))
    perhaps = Scene(may_change=frozenset({"status", "tags"}), moved=(("status", ("solved",)),))
    assert can(leaf("status", "is", "open"), perhaps)
    assert can(leaf("status", "changed_to", "solved"), perhaps)
    assert not can(leaf("status", "changed_to", "open"), perhaps)


VALUES: dict[str, Any] = {
    "status": STATUSES,
    "subject": ("", "a", "A", "ab", "b a", "other"),
    "size": (None, 1, 3, 5, 7, "2.5"),
    "tags": ([], ["a"], ["b"], ["a", "b"], ["c"]),
    "agent": (None, 1, 2, 9),
}
OPERATORS_AND_VALUES = {
    "stage": (["is", "is_not"], ["begun", "over"]),
    "status": (["is", "is_not", "changed_to", "changed_from", "was"], STATUSES),
    "subject": (["is", "is_not", "contains", "not_contains", "starts_with", "is_exactly"], ["a", "A", "ab", "b"]),
    "size": (["gt", "gte", "lt", "lte", "is", "is_not", "rises_above"], [1, 3, 5]),
    "tags": (["has_any", "has_all", "has_none", "is_exactly_set"], [frozenset("a"), frozenset("ab")]),
    "agent": (["is", "is_not"], [1, 2]),
}
NO_VALUE = st.sampled_from(["is_empty", "is_not_empty", "changed"])
LEAVES = st.one_of(
    *(
        st.builds(leaf, st.just(name), st.sampled_from(names), st.sampled_from(values))
        for name, (names, values) in OPERATORS_AND_VALUES.items()
    ),
    st.builds(leaf, st.sampled_from(["subject", "size", "tags", "agent"]), NO_VALUE),
)
MODES = st.sampled_from(["all", "any", "none"])
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda mode, items: Group("g", mode, tuple(items)), MODES, st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=7,
)
RECORDS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})


@settings(max_examples=400, deadline=None)
@given(condition=CONDITIONS, before=RECORDS, after=RECORDS)
def test_nothing_that_happens_was_called_impossible(condition: Condition, before: Any, after: Any) -> None:
    changed = {name for name in VALUES if before[name] != after[name]}
    facts = {
        "change": "updated",
        "before": {name: before[name] for name in changed},
        "after": {name: after[name] for name in changed},
        "snapshot": {**after, "stage": dict(STAGES)[after["status"]]},
    }
    verdict = compile_condition(condition)(facts, NOW)
    assert verdict.value != "unknown"
    assert can(condition, wanted=verdict.is_true)
    known = {name: tuple(value) if isinstance(value, list) else value for name, value in after.items()}
    exact = Scene(may_change=frozenset(changed), after=tuple((name, (known[name],)) for name in VALUES))
    assert can(condition, exact, wanted=verdict.is_true)
    loose = Scene(may_change=frozenset(changed), moved=tuple((name, (known[name],)) for name in changed))
    assert can(condition, loose, wanted=verdict.is_true)


@pytest.mark.parametrize(
    "possible_",
    [
        both(leaf("count", "gt", 5), leaf("count", "lt", 7)),
        both(leaf("size", "gt", 5), leaf("size", "lt", 6)),
        both(leaf("made", "older_than", Span(days=1)), leaf("made", "within_last", Span(seconds=86_400))),
        both(leaf("made", "older_than", Span(seconds=3600)), leaf("made", "within_last", Span(days=1))),
    ],
)
def test_what_only_looks_like_a_contradiction_is_none(possible_: Condition) -> None:
    assert can(possible_)
