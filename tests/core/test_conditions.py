"""What conditions mean: empty, missing, letters, numbers, changes, time; and that every verdict can be explained."""

import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.core.calendars import Span
from automation.core.conditions import Moment, compile_condition, explain
from automation.core.folding import CASED_BELOW, fold
from automation.core.operators import OPERATORS
from automation.core.spec import Condition, Group, Leaf

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 5, 2, 10, tzinfo=UTC)
HERE = Moment(NOW, BERLIN)


def leaf(field: str, op: str, value: Any = None, type_: str = "text", **more: Any) -> Leaf:
    return Leaf(more.pop("id", "c_1"), field, op, value, type_, **more)


def judged(condition: Condition | None, moment: Moment = HERE, **facts: Any) -> str:
    return compile_condition(condition)(facts, moment).value


def now_is(value: Any, op: str, wanted: Any = None, type_: str = "text", moment: Moment = HERE) -> str:
    """The verdict on a field with that value."""
    return judged(leaf("x", op, wanted, type_), moment, snapshot={"x": value})


def changing(before: Any, after: Any, op: str, wanted: Any = None, type_: str = "text") -> str:
    """The verdict on a field that an update changed."""
    facts = {"change": "updated", "before": {"x": before}, "after": {"x": after}, "snapshot": {"x": after}}
    return judged(leaf("x", op, wanted, type_), **facts)


@pytest.mark.case("C07")
@pytest.mark.parametrize("value", [None, "", "  ", "\u3000\t", [], {}])
def test_nothing_blank_text_and_no_items_are_empty(value: Any) -> None:
    assert now_is(value, "is_empty") == "true"
    assert now_is(value, "is_not_empty") == "false"


@pytest.mark.case("C07")
@pytest.mark.parametrize("value", [0, False, "2026-05-01", "null", "0", [0], ["a"]])
def test_zero_false_dates_and_the_word_null_are_not_empty(value: Any) -> None:
    assert now_is(value, "is_empty") == "false"
    assert now_is(value, "is_not_empty") == "true"


@pytest.mark.case("C07")
def test_a_name_that_the_event_does_not_carry_is_empty() -> None:
    assert judged(leaf("event.gone", "is_empty"), data={}) == "true"
    assert judged(leaf("event.gone", "is_not_empty"), data={}) == "false"


@pytest.mark.case("C08")
@pytest.mark.parametrize(("op", "wanted"), [("is_not", "de"), ("not_in", frozenset({"de"})), ("not_contains", "de")])
def test_a_negation_holds_for_a_missing_value(op: str, wanted: Any) -> None:
    assert now_is(None, op, wanted) == "true"
    assert now_is("de", op, wanted) == "false"


@pytest.mark.parametrize("op", ["is", "is_exactly", "contains", "starts_with"])
def test_a_comparison_with_a_missing_value_is_false(op: str) -> None:
    assert now_is(None, op, "a") == "false"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Straẞe", "STRAße"), ("Ä", "a\u0308"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("\u212a", "k"), ("I", "ı")],  # noqa: RUF001
)
def test_letters_are_compared_without_case_and_composition(one: str, other: str) -> None:
    assert now_is(one, "is", other) == "true"
    assert now_is(f"x{one}y", "contains", other) == "true"
    assert now_is(one, "is_exactly", other) == "false"


@pytest.mark.parametrize(("one", "other"), [("ß", "ss"), ("ﬁ", "fi"), ("İ", "i"), ("a", "b")])
def test_no_letter_equals_two_others(one: str, other: str) -> None:
    assert now_is(one, "is", other) == "false"


def test_no_letter_beyond_those_that_the_table_looks_at_has_two_cases() -> None:
    beyond = "".join(map(chr, range(CASED_BELOW, sys.maxunicode + 1)))
    assert beyond == beyond.lower() == beyond.upper()


@given(st.text(max_size=8))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_percent_and_underscore_are_letters_like_any_other() -> None:
    assert now_is("100 percent", "contains", "%") == "false"
    assert now_is("a_b", "contains", "_") == "true"
    assert now_is("axb", "contains", "a_b") == "false"


def test_the_codes_of_a_choice_are_compared_to_the_letter() -> None:
    assert now_is("Gold", "is", "gold", "choice") == "false"
    assert now_is("Gold", "not_in", frozenset({"gold"}), "choice") == "true"


@pytest.mark.case("C10")
def test_numbers_are_compared_as_numbers_whatever_their_notation() -> None:
    assert now_is("10", "gt", Decimal(9), "number") == "true"
    assert now_is(None, "gt", Decimal(1000), "number") == "false"
    assert now_is(None, "lt", Decimal(1000), "number") == "false"
    assert now_is("1.50", "is", Decimal("1.5"), "number") == "true"
    assert now_is(1, "in", frozenset({Decimal("1.0")}), "number") == "true"
    assert judged(leaf("event.amount", "gt", Decimal(9), "number"), data={"amount": "10"}) == "true"
    assert judged(leaf("event.code", "is", "123"), data={"code": 123}) == "true"


@pytest.mark.case("C05")
def test_a_list_matches_by_any_of_its_values() -> None:
    assert now_is("silver", "in", frozenset({"gold", "silver"}), "choice") == "true"


def test_tags_are_compared_as_sets() -> None:
    assert now_is(["a", "b"], "has_any", frozenset({"b", "c"}), "tags") == "true"
    assert now_is(["a", "b"], "has_all", frozenset({"b", "c"}), "tags") == "false"
    assert now_is(["a", "b"], "has_none", frozenset({"c"}), "tags") == "true"
    assert now_is(None, "has_none", frozenset({"c"}), "tags") == "true"
    assert now_is(["b", "a"], "is_exactly_set", frozenset({"a", "b"}), "tags") == "true"


@pytest.mark.case("C01")
def test_a_value_that_stays_is_no_change_to_it() -> None:
    facts = {
        "change": "updated",
        "before": {"subject": "a"},
        "after": {"subject": "b"},
        "snapshot": {"priority": "high"},
    }
    assert judged(leaf("priority", "is", "high", "choice"), **facts) == "true"
    assert judged(leaf("priority", "changed_to", "high", "choice"), **facts) == "false"


@pytest.mark.case("C04")
def test_a_change_of_a_field_that_the_event_does_not_carry_is_false_and_stops_nothing() -> None:
    facts = {
        "change": "updated",
        "before": {"status": "new"},
        "after": {"status": "open"},
        "snapshot": {"status": "open"},
    }
    either = Group(
        "g_1", "any", (leaf("assignee", "changed", None, "reference"), leaf("status", "is", "open", "choice"))
    )
    assert judged(either, **facts) == "true"
    assert judged(either.items[0], **facts) == "false"


def test_changes_look_at_both_values() -> None:
    assert changing("low", "high", "changed") == "true"
    assert changing("1.0", "1.00", "changed", None, "number") == "false"
    assert changing(["a", "b"], ["b", "a"], "changed", None, "tags") == "false"
    assert changing("low", "high", "changed_to", "HIGH") == "true"
    assert changing("high", "High", "changed_to", "high") == "false"
    assert changing("low", "high", "changed_from", "low") == "true"
    assert changing("low", None, "changed_from", "low") == "true"
    assert changing("low", "high", "changed_from_to", ("low", "high")) == "true"
    assert changing("low", "high", "changed_from_to", ("new", "high")) == "false"
    assert changing("low", "high", "was", "low") == "true"
    assert changing("low", "high", "was", "high") == "false"


def test_a_field_that_was_left_alone_was_what_it_is() -> None:
    facts = {"change": "updated", "before": {"y": 1}, "after": {"y": 2}, "snapshot": {"x": "low", "y": 2}}
    assert judged(leaf("x", "was", "low"), **facts) == "true"


def test_a_created_record_came_to_its_values_and_left_none() -> None:
    facts = {"change": "created", "before": {}, "after": {"x": "high"}, "snapshot": {"x": "high", "y": None}}
    assert judged(leaf("x", "changed_to", "high"), **facts) == "true"
    assert judged(leaf("x", "changed"), **facts) == "true"
    assert judged(leaf("y", "changed"), **facts) == "false"
    for op, value in (("changed_from", "high"), ("changed_from_to", ("low", "high")), ("was", "high")):
        assert judged(leaf("x", op, value), **facts) == "false"


@pytest.mark.case("C11")
@pytest.mark.parametrize(
    ("before", "after", "op", "expected"),
    [
        (None, 40, "falls_below", "false"),
        (50, 40, "falls_below", "true"),
        (50, 50, "falls_below", "false"),
        (49, 40, "falls_below", "false"),
        (50, 51, "rises_above", "true"),
        (51, 52, "rises_above", "false"),
        (None, 51, "rises_above", "false"),
        (51, None, "falls_below", "false"),
    ],
)
def test_a_crossing_needs_a_number_on_the_other_side(before: Any, after: Any, op: str, expected: str) -> None:
    assert changing(before, after, op, Decimal(50), "number") == expected
    assert now_is(40, "lt", Decimal(50), "number") == "true"


@pytest.mark.case("C14")
@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2026-05-02 00:00", "true"),
        ("2026-05-02 12:00", "true"),
        ("2026-05-02 23:59", "true"),
        ("2026-05-03 00:00", "false"),
    ],
)
def test_one_day_ago_is_a_whole_local_day(local: str, expected: str) -> None:
    moment = Moment(datetime.fromisoformat(local).replace(tzinfo=BERLIN), BERLIN)
    assert now_is("2026-05-01", "is_ago", Span(days=1), "date", moment) == expected
    assert now_is("2026-04-30T22:00:00+00:00", "is_ago", Span(days=1), "datetime", moment) == expected


@pytest.mark.case("C14")
def test_older_than_is_strict_at_its_boundary() -> None:
    boundary = NOW - timedelta(days=14)
    assert now_is(boundary.isoformat(), "older_than", Span(days=14), "datetime") == "false"
    assert now_is((boundary - timedelta(microseconds=1)).isoformat(), "older_than", Span(days=14), "datetime") == "true"
    assert now_is("2026-04-18", "older_than", Span(days=14), "date") == "false"
    assert now_is("2026-04-17", "older_than", Span(days=14), "date") == "true"


def test_time_is_told_in_the_tenants_zone() -> None:
    just_after_midnight = Moment(datetime(2026, 5, 1, 22, 30, tzinfo=UTC), BERLIN)
    assert now_is("2026-05-01T21:59:00+00:00", "is_today", None, "datetime", just_after_midnight) == "false"
    assert now_is("2026-05-01T22:00:00+00:00", "is_today", None, "datetime", just_after_midnight) == "true"
    assert now_is("2026-05-02", "is_today", None, "date", just_after_midnight) == "true"
    assert now_is("2026-05-01T21:59:59+00:00", "before", date(2026, 5, 2), "datetime") == "true"
    assert now_is("2026-05-01T22:00:00+00:00", "before", date(2026, 5, 2), "datetime") == "false"
    assert now_is("2026-05-02T21:59:59+00:00", "after", date(2026, 5, 2), "datetime") == "false"
    assert now_is("2026-05-02T22:00:00+00:00", "after", date(2026, 5, 2), "datetime") == "true"


def test_windows_include_both_of_their_ends() -> None:
    day = Span(seconds=86_400)
    assert now_is((NOW - timedelta(days=1)).isoformat(), "within_last", day, "datetime") == "true"
    assert now_is((NOW + timedelta(seconds=1)).isoformat(), "within_last", day, "datetime") == "false"
    assert now_is((NOW + timedelta(days=1)).isoformat(), "within_next", day, "datetime") == "true"
    assert now_is("2026-05-09", "within_next", Span(days=7), "date") == "true"
    assert now_is("2026-05-09", "is_ahead", Span(days=7), "date") == "true"


def test_fields_can_be_compared_with_each_other() -> None:
    same = leaf("x", "is", None, "text", value_of="y")
    assert judged(same, snapshot={"x": "A", "y": "a"}) == "true"
    assert judged(same, snapshot={"x": None, "y": None}) == "false"
    assert judged(leaf("x", "is_not", None, "text", value_of="y"), snapshot={"x": "a", "y": None}) == "true"
    assert judged(leaf("x", "gt", None, "number", value_of="y"), snapshot={"x": "10", "y": 9}) == "true"
    assert judged(same, snapshot={"x": "A"}) == "unknown"


@pytest.mark.case("C13")
@pytest.mark.parametrize(
    "broken",
    [
        leaf("removed", "is_not", "a"),
        leaf("x", "resembles", "a"),
        leaf("x", "gt", "five", "number"),
        leaf("x", "is_not", Decimal(1), "number"),
    ],
)
def test_what_cannot_be_judged_is_unknown_and_never_true(broken: Leaf) -> None:
    facts = {"snapshot": {"x": "text"}}
    verdict = compile_condition(broken)(facts, HERE)
    assert (verdict.value, verdict.reason, verdict.leaf) == ("unknown", "unknown_field", "c_1")
    assert judged(Group("g_1", "none", (broken,)), **facts) == "unknown"
    assert judged(Group("g_1", "all", (broken,)), **facts) == "unknown"


def test_an_unknown_part_matters_only_where_the_others_do_not_decide() -> None:
    unknown, yes, no = leaf("removed", "is", "a"), leaf("x", "is", "a"), leaf("x", "is", "b")
    facts = {"snapshot": {"x": "a"}}
    assert judged(Group("g_1", "any", (unknown, yes)), **facts) == "true"
    assert judged(Group("g_1", "all", (unknown, no)), **facts) == "false"
    assert judged(Group("g_1", "none", (unknown, yes)), **facts) == "false"
    assert judged(Group("g_1", "any", (unknown, no)), **facts) == "unknown"


@pytest.mark.case("C17")
@pytest.mark.parametrize("mode", ["all", "any", "none"])
@pytest.mark.parametrize("outer", ["all", "any", "none"])
def test_an_empty_group_never_matches_alone_or_nested(mode: Any, outer: Any) -> None:
    empty = Group("g_1", mode, ())
    assert judged(empty, snapshot={}) != "true"
    assert judged(Group("g_2", outer, (empty,)), snapshot={}) != "true"


def test_no_condition_always_holds() -> None:
    assert judged(None) == "true"
    assert explain(None, {}, HERE) == []


def test_an_explanation_says_what_was_wanted_and_read_and_what_was_not_needed() -> None:
    tree = Group(
        "g_1",
        "all",
        (
            leaf("priority", "changed_to", "urgent", "choice", id="c_1"),
            Group(
                "g_2",
                "any",
                (
                    leaf("plan", "is", "gold", "choice", id="c_2"),
                    leaf("tags", "has_any", frozenset({"vip", "a"}), "tags", id="c_3"),
                    leaf("subject", "contains", "x", id="c_4"),
                ),
            ),
            leaf("removed", "is", "a", id="c_5"),
            leaf("due", "older_than", Span(days=7), "date", id="c_6"),
        ),
    )
    facts = {
        "before": {"priority": "low"},
        "after": {"priority": "urgent"},
        "snapshot": {"priority": "urgent", "plan": None, "tags": ["vip"], "subject": "x", "due": "2026-01-01"},
        "cut": ["due"],
    }
    reports = {report.id: report for report in explain(tree, facts, HERE)}
    assert [(one.id, one.result, one.reason) for one in reports.values()] == [
        ("c_1", "true", ""),
        ("c_2", "false", "no_value"),
        ("c_3", "true", ""),
        ("c_4", "not_needed", ""),
        ("c_5", "unknown", "unknown_field"),
        ("c_6", "true", "cut"),
    ]
    assert reports["c_1"].read == {"before": "low", "after": "urgent"}
    assert reports["c_3"].wanted == ["a", "vip"]
    assert reports["c_6"].wanted == "P7D"


VALUES = st.none() | st.sampled_from(["a", "B", "", "1"]) | st.integers(-3, 3) | st.booleans() | st.lists(st.just("a"))
LEAVES = st.builds(
    leaf,
    st.sampled_from(["x", "y", "gone"]),
    st.sampled_from(["is", "is_not", "is_empty", "contains", "gt", "changed_to", "older_than", "resembles"]),
    st.sampled_from(["a", "b", Decimal(1), Span(days=1)]),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda mode, items: Group("g", mode, tuple(items)),
        st.sampled_from(["all", "any", "none"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


@given(TREES, VALUES, VALUES)
def test_any_condition_on_any_facts_gets_a_verdict_that_its_explanation_bears_out(
    tree: Condition, x: Any, y: Any
) -> None:
    facts = {"before": {"x": y}, "after": {"x": x}, "snapshot": {"x": x, "y": y}}
    verdict = judged(tree, **facts)
    results = [report.result for report in explain(tree, facts, HERE)]
    assert verdict in {"true", "false", "unknown"}
    if isinstance(tree, Leaf):
        assert results == [verdict]
    assert results == [] or results[0] != "not_needed"


@pytest.mark.case("C02")
@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_every_operator_can_be_true_for_every_type_that_it_is_offered_for(op: str) -> None:
    operator = OPERATORS[op]
    for type_ in sorted(operator.types - {"any"}):
        old, new = _EXAMPLES[type_]
        verdicts = [
            judged(
                leaf("x", op, wanted, type_), change="updated", before={"x": one}, after={"x": two}, snapshot={"x": two}
            )
            for one, two in ((old, new), (new, old), (old, None))
            for wanted in _wanted(operator.wants, type_)
        ]
        assert "true" in verdicts, type_


_EXAMPLES: dict[str, tuple[Any, Any]] = {
    "text": ("a", "b"),
    "choice": ("a", "b"),
    "number": (1, 3),
    "boolean": (False, True),
    "date": ("2026-05-01", "2026-05-02"),
    "datetime": ("2026-05-01T10:00:00+00:00", "2026-05-02T10:00:00+00:00"),
    "tags": (["a"], ["b"]),
    "reference": (1, 3),
    "references": ([1], [3]),
}
_VALUES: dict[str, list[Any]] = {
    "text": ["a", "b"],
    "choice": ["a", "b"],
    "number": [Decimal(1), Decimal(2), Decimal(3)],
    "boolean": [False, True],
    "date": [date(2026, 5, 1), date(2026, 5, 2)],
    "datetime": [datetime(2026, 5, 1, 12, tzinfo=UTC), date(2026, 5, 1), date(2026, 5, 3)],
    "tags": ["a", "b"],
    "reference": [1, 3],
    "references": [1, 3],
}


def _wanted(wants: str, type_: str) -> list[Any]:
    values = _VALUES[type_]
    if wants in ("one", "time"):
        return values
    if wants == "list":
        return [frozenset({value}) for value in values]
    if wants == "pair":
        return [(values[0], values[-1])]
    return [None] if wants == "none" else [Span(), Span(days=1), Span(months=1)]
