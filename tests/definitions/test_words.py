"""A rule read back in plain words, and what is different between two versions of it."""

from typing import Any

import pytest
from definition_rules import CATALOG, mark, page, rule, trigger
from hypothesis import given
from hypothesis import strategies as st

from automation.core.calendars import Span
from automation.core.errors import DefinitionError
from automation.core.operators import OPERATORS
from automation.definitions.diff import Change, diff
from automation.definitions.phrases import _PHRASES, duration_words
from automation.definitions.schema import parse
from automation.definitions.sentences import sentence


def read_back(**more: Any) -> str:
    return sentence(rule(**more), CATALOG)


def test_a_whole_rule_reads_like_a_sentence() -> None:
    words = read_back(
        condition={
            "all": [
                {"field": "kind", "op": "changed_to", "value": "b"},
                {
                    "any": [
                        {"field": "firm.plan", "op": "is", "value": "gold"},
                        {"field": "tags", "op": "has_any", "value": ["vip", "new"]},
                    ]
                },
            ]
        },
        steps=[mark(), {"kind": "delay", "for": "P1DT2H"}, page()],
    )
    assert words == (
        "When a case is updated and kind becomes b and (firm plan is gold or tags include any of vip, new): "
        "mark it “seen”, then wait 1 day 2 hours, then Page somebody"
    )


@pytest.mark.case("C01")
def test_is_and_becomes_are_told_apart() -> None:
    assert "kind is a" in read_back(condition={"field": "kind", "op": "is", "value": "a"})
    assert "kind becomes a" in read_back(condition={"field": "kind", "op": "changed_to", "value": "a"})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"on": ["created"]}, "When a case is created"),
        ({"on": ["created", "updated", "deleted"]}, "When a case is created, updated or deleted"),
        ({"on": ["deleted", "updated"]}, "When a case is updated or deleted"),
        ({"fields": ["kind", "title"]}, "When kind or title of a case changes"),
        ({"on": ["created", "updated"], "fields": ["kind"]}, "When a case is created or its kind changes"),
    ],
)
def test_the_trigger_says_which_changes_of_what(params: dict[str, Any], words: str) -> None:
    assert read_back(trigger=trigger(**params)) == f"{words}: mark it “seen”"


def test_custom_events_and_people_start_rules_in_their_own_words() -> None:
    custom = trigger("custom_event", name="order.paid")
    assert read_back(trigger=custom).startswith("When the event “order.paid” is posted for a case")
    assert read_back(trigger=trigger("manual")).startswith("When somebody starts this rule on a case")
    amount = {"field": "event.amount", "op": "gt", "value": 5}
    assert "and the event's “amount” is greater than 5:" in read_back(trigger=custom, condition=amount)


def test_branches_stops_and_steps_that_are_off_are_told() -> None:
    arm = {"if": {"field": "flag", "op": "is", "value": True}, "steps": [{"kind": "stop", "ends": "later_rules"}]}
    words = read_back(steps=[{"kind": "branch", "arms": [arm], "otherwise": [mark(off=True)]}, {"kind": "stop"}])
    assert words.endswith(
        "[if flag is yes: stop, and run no later rule for this event; "
        "otherwise: (switched off: mark it “seen”)], then stop"
    )


def test_names_of_records_are_told_where_they_are_known() -> None:
    condition = {
        "all": [{"field": "firm", "op": "is", "value": 5}, {"field": "followers", "op": "has_none", "value": [7, 8]}]
    }
    definition = rule(condition=condition)
    known = {("automation.firm", 5): "Acme", ("automation.person", 7): "Ann"}
    words = sentence(definition, CATALOG, name_of=lambda model, number: known.get((model, number)))
    assert "firm is Acme and followers include none of Ann, #8" in words


def test_what_the_catalog_no_longer_knows_is_shown_by_its_name() -> None:
    condition = {"field": "gone", "op": "resembles", "value": "x"}
    words = read_back(trigger={"kind": "full_moon"}, condition=condition, steps=[mark(version=9), page(params={})])
    assert (
        words == "When “full_moon” happens and gone resembles “x”: “mark”, which is not known here, then Page somebody"
    )
    assert "{'model'" not in words


def test_every_operator_has_its_own_words() -> None:
    assert _PHRASES.keys() == OPERATORS.keys()
    assert len({phrase() for phrase in _PHRASES.values()}) == len(_PHRASES)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (Span(), "no time"),
        (Span(1, 2, 3661), "1 month 2 days 1 hour 1 minute 1 second"),
        (Span(seconds=86_400), "24 hours"),
    ],
)
def test_durations_are_written_out(span: Span, words: str) -> None:
    assert duration_words(span) == words


def test_a_rule_says_what_it_makes_of_imports() -> None:
    assert read_back(imports="skip") == f"{read_back()} (not for imported records)"
    assert read_back(imports="once") == f"{read_back()} (once for each import)"
    assert read_back(imports="run") == read_back()


def test_a_definition_of_the_wrong_shape_has_no_sentence() -> None:
    with pytest.raises(DefinitionError):
        sentence({"steps": 5}, CATALOG)


def with_ids(**more: Any) -> dict[str, Any]:
    return parse(rule(**more)).to_json()


def told(old: Any, new: Any) -> list[tuple[str, str, str]]:
    return [(change.kind, change.id, change.pointer) for change in diff(old, new)]


def test_nothing_is_different_between_a_rule_and_itself() -> None:
    assert diff(with_ids(), with_ids()) == []
    assert diff(None, None) == []


def test_a_changed_part_is_told_with_before_and_after() -> None:
    old = with_ids(condition={"all": [{"field": "kind", "op": "is", "value": "a"}]})
    new = with_ids(condition={"all": [{"field": "kind", "op": "is", "value": "b"}]}, again="keep")
    leaf = {"id": "c_1", "field": "kind", "op": "is"}
    assert diff(old, new) == [
        Change("added", "", "/again", None, "keep"),
        Change("changed", "c_1", "/condition/all/0", leaf | {"value": "a"}, leaf | {"value": "b"}),
    ]


def test_a_group_that_asks_for_any_instead_of_all_has_changed_and_its_conditions_have_not() -> None:
    leaf = {"id": "c_1", "field": "kind", "op": "is", "value": "a"}
    old, new = with_ids(condition={"id": "g", "all": [leaf]}), with_ids(condition={"id": "g", "any": [leaf]})
    assert ("changed", "g", "/condition") in told(old, new)
    assert not [change for change in told(old, new) if change[:2] == ("changed", "c_1")]


def test_a_step_put_in_before_others_moves_none_of_them() -> None:
    old, new = with_ids(steps=[mark(id="a"), mark(id="b")]), with_ids(steps=[page(id="x"), mark(id="a"), mark(id="b")])
    assert told(old, new) == [("added", "x", "/steps/0")]
    assert told(new, old) == [("removed", "x", "/steps/0")]


def test_steps_that_change_places_are_told_once() -> None:
    old, new = with_ids(steps=[mark(id=name) for name in "abc"]), with_ids(steps=[mark(id=name) for name in "cab"])
    assert told(old, new) == [("moved", "c", "/steps/0")]


def test_a_step_moved_into_a_branch_is_the_same_step() -> None:
    def branch(steps: list[Any]) -> dict[str, Any]:
        arm = {"id": "arm", "if": {"id": "c", "field": "kind", "op": "is_empty"}, "steps": steps}
        return {"id": "split", "kind": "branch", "arms": [arm]}

    old, new = with_ids(steps=[mark(id="a"), branch([])]), with_ids(steps=[branch([mark(id="a")])])
    assert diff(old, new) == [Change("moved", "a", "/steps/0/arms/0/steps/0", "/steps/0", "/steps/0/arms/0/steps/0")]


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef"), unique=True))
def test_what_is_told_leads_from_one_list_of_steps_to_the_other(old: list[str], new: list[str]) -> None:
    changes = diff(with_ids(steps=[mark(id=name) for name in old]), with_ids(steps=[mark(id=name) for name in new]))
    kinds = {kind: {change.id for change in changes if change.kind == kind} for kind in ("added", "removed", "moved")}
    assert kinds["added"] == set(new) - set(old)
    assert kinds["removed"] == set(old) - set(new)
    stayed = [name for name in old if name not in kinds["removed"] | kinds["moved"]]
    assert stayed == [name for name in new if name not in kinds["added"] | kinds["moved"]]
