"""A definition is compiled, or everything that is wrong with it is said at its place."""

import json
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from definition_rules import CATALOG, References, compiled, mark, page, rule, trigger

from automation.core.calendars import Span
from automation.core.errors import DefinitionError
from automation.core.spec import Group, Leaf, Retry
from automation.definitions.compile import compile_definition
from automation.definitions.schema import load_json, parse


def problems(definition: Any) -> dict[str, str]:
    """Pointer → code of everything that is wrong; {} when nothing is."""
    try:
        compiled(definition)
    except DefinitionError as error:
        return {problem.pointer: problem.code for problem in error.problems}
    return {}


def of_leaf(leaf: dict[str, Any], **more: Any) -> dict[str, str]:
    """What is wrong with a condition of one leaf, by the place below it."""
    found = problems(rule(condition={"all": [leaf]}, **more))
    return {pointer.removeprefix("/condition/all/0"): code for pointer, code in found.items()}


def a_branch(steps: list[Any], otherwise: list[Any] | None = None) -> dict[str, Any]:
    arm = {"if": {"field": "count", "op": "gt", "value": 1}, "steps": steps}
    return {"kind": "branch", "arms": [arm], "otherwise": otherwise or []}


def test_a_rule_becomes_frozen_values() -> None:
    spec = compiled(
        rule(
            trigger=trigger(on=["created", "updated"], fields=["title"], sources=["api"]),
            condition={"all": [{"field": "firm.plan", "op": "is", "value": "gold"}]},
            steps=[page(), {"kind": "delay", "for": "P1DT2H"}, a_branch([mark(), {"kind": "stop"}]), mark()],
        )
    )
    assert spec.trigger.on == {"created", "updated"}
    assert (spec.trigger.fields, spec.trigger.sources) == ({"title"}, {"api"})
    assert spec.condition == Group("g_1", "all", (Leaf("c_1", "firm.plan", "is", "gold", "choice"),))
    assert [(node.id, node.kind, node.next) for node in spec.nodes] == [
        ("page", "action", 1),
        ("delay", "delay", 2),
        ("branch", "branch", 5),
        ("mark", "action", 4),
        ("stop", "stop", 5),
        ("mark_2", "action", None),
    ]
    assert spec.nodes[1].span == Span(days=1, seconds=7200)
    assert (spec.nodes[2].arms[0].first, spec.nodes[2].otherwise) == (3, None)
    assert (spec.nodes[0].local, spec.nodes[0].effect, spec.nodes[3].local) == (False, "idempotent", True)
    assert spec.reads == {"firm.plan", "count"} | {"title"}


@pytest.mark.parametrize(
    ("leaf", "value", "type_"),
    [
        ({"field": "amount", "op": "gt", "value": 1.5}, Decimal("1.5"), "number"),
        ({"field": "count", "op": "in", "value": [1, 2]}, frozenset({Decimal(1), Decimal(2)}), "number"),
        ({"field": "day", "op": "before", "value": "2026-05-01"}, date(2026, 5, 1), "date"),
        (
            {"field": "moment", "op": "after", "value": "2026-05-01T12:00:00+02:00"},
            datetime(2026, 5, 1, 10, tzinfo=UTC),
            "datetime",
        ),
        ({"field": "moment", "op": "older_than", "value": "P7D"}, Span(days=7), "datetime"),
        ({"field": "tags", "op": "has_any", "value": ["vip"]}, frozenset({"vip"}), "tags"),
        ({"field": "followers", "op": "has_all", "value": [7]}, frozenset({7}), "references"),
        ({"field": "kind", "op": "changed_from_to", "value": {"from": "a", "to": "b"}}, ("a", "b"), "choice"),
        ({"field": "flag", "op": "is", "value": False}, False, "boolean"),
        ({"field": "title", "op": "is_empty"}, None, "text"),
    ],
)
def test_what_a_condition_compares_with_is_converted_once(leaf: dict[str, Any], value: Any, type_: str) -> None:
    condition = compiled(rule(condition=leaf)).condition
    assert isinstance(condition, Leaf)
    assert (condition.value, condition.type) == (value, type_)


@pytest.mark.case("C05")
def test_a_list_keeps_all_its_values() -> None:
    condition = compiled(rule(condition={"field": "firm.plan", "op": "in", "value": ["gold", "free"]})).condition
    assert isinstance(condition, Leaf)
    assert condition.value == {"gold", "free"}


@pytest.mark.case("C10")
@pytest.mark.case("C13")
@pytest.mark.case("C16")
@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        ({"field": "{{ old.status }}", "op": "is_not", "value": "x"}, {"/field": "unknown_field"}),
        ({"field": "title", "op": "resembles", "value": "x"}, {"/op": "unknown_operator"}),
        ({"field": "title", "op": "matches", "value": "(a+)+b"}, {"/op": "unknown_operator"}),
        ({"field": "title", "op": "gt", "value": 5}, {"/op": "wrong_operator"}),
        ({"field": "title", "op": "is_within", "value": "business"}, {"/op": "not_available"}),
        ({"field": "title", "op": "is", "value": 5}, {"/value": "wrong_value"}),
        ({"field": "title", "op": "is", "value": None}, {"/value": "wrong_value"}),
        ({"field": "title", "op": "is", "value": " "}, {"/value": "wrong_value"}),
        ({"field": "title", "op": "is"}, {"/value": "missing"}),
        ({"field": "title", "op": "is_empty", "value": "x"}, {"/value": "wrong_value"}),
        ({"field": "count", "op": "is", "value": "5"}, {"/value": "wrong_value"}),
        ({"field": "count", "op": "is", "value": True}, {"/value": "wrong_value"}),
        ({"field": "kind", "op": "is", "value": "z"}, {"/value": "wrong_value"}),
        ({"field": "kind", "op": "in", "value": ["a", "z"]}, {"/value/1": "wrong_value"}),
        ({"field": "kind", "op": "in", "value": []}, {"/value": "wrong_value"}),
        ({"field": "kind", "op": "changed_from_to", "value": {"from": "a"}}, {"/value": "wrong_value"}),
        ({"field": "kind", "op": "changed_from_to", "value": {"from": "a", "to": "z"}}, {"/value/to": "wrong_value"}),
        ({"field": "day", "op": "is", "value": "01.05.2026"}, {"/value": "wrong_value"}),
        ({"field": "day", "op": "before", "value": "2026-05-01T12:00:00Z"}, {"/value": "wrong_value"}),
        ({"field": "moment", "op": "before", "value": "2026-05-01T12:00:00"}, {"/value": "wrong_value"}),
        ({"field": "day", "op": "older_than", "value": "PT5H"}, {"/value": "wrong_value"}),
        ({"field": "moment", "op": "is_ago", "value": "PT24H"}, {"/value": "wrong_value"}),
        ({"field": "moment", "op": "older_than", "value": 7}, {"/value": "wrong_value"}),
        ({"field": "tags", "op": "has_any", "value": [5]}, {"/value/0": "wrong_value"}),
        ({"field": "firm", "op": "is", "value": {"id": 5}}, {"/value": "wrong_value"}),
        ({"field": "title", "op": "is", "value": "x", "value_of": "other"}, {"/value_of": "wrong_value"}),
        ({"field": "title", "op": "is", "value_of": "gone"}, {"/value_of": "unknown_field"}),
        ({"field": "title", "op": "is", "value_of": "count"}, {"/value_of": "wrong_value"}),
        ({"field": "title", "op": "in", "value_of": "other"}, {"/value_of": "wrong_value"}),
        ({"field": "title", "op": "is", "value": "x", "case": "no"}, {"/case": "extra_forbidden"}),
        ({"field": "event.amount", "op": "is", "value": "x"}, {"/field": "unknown_field"}),
    ],
)
def test_a_condition_that_cannot_be_judged_is_refused_at_its_place(
    leaf: dict[str, Any], expected: dict[str, str]
) -> None:
    assert of_leaf(leaf) == expected


@pytest.mark.case("C02")
def test_a_change_is_refused_where_no_event_could_carry_it() -> None:
    assert of_leaf({"field": "firm.plan", "op": "changed"}) == {"/op": "never_changes"}
    assert of_leaf({"field": "title", "op": "changed"}, trigger=trigger("manual")) == {"/op": "never_changes"}
    assert of_leaf({"field": "title", "op": "changed"}) == {}


def test_data_of_a_custom_event_takes_the_type_of_what_it_is_compared_with() -> None:
    custom = trigger("custom_event", name="order.paid")
    leaves = [
        {"field": "event.amount", "op": "gt", "value": 5},
        {"field": "event.tags", "op": "has_any", "value": ["a"]},
        {"field": "event.at", "op": "older_than", "value": "P1D"},
        {"field": "event.name", "op": "contains", "value": "x"},
    ]
    condition = compiled(rule(trigger=custom, condition={"all": leaves})).condition
    assert isinstance(condition, Group)
    assert [item.type for item in condition.items if isinstance(item, Leaf)] == ["number", "tags", "any", "text"]
    assert of_leaf({"field": "event.amount", "op": "gt", "value": "5"}, trigger=custom) == {"/value": "wrong_value"}
    assert of_leaf({"field": "event.name", "op": "contains", "value": 5}, trigger=custom) == {"/value": "wrong_value"}
    assert of_leaf({"field": "event.a.b", "op": "is", "value": 5}, trigger=custom) == {"/field": "unknown_field"}


@pytest.mark.case("C17")
@pytest.mark.parametrize("mode", ["all", "any", "none"])
def test_an_empty_group_is_refused_and_always_is_written_as_null(mode: str) -> None:
    assert problems(rule(condition={mode: []})) == {f"/condition/{mode}": "empty_group"}
    assert problems(rule(condition={"all": [{mode: []}]})) == {f"/condition/all/0/{mode}": "empty_group"}
    assert problems(rule(condition={})) != {}
    assert problems(rule(condition=None)) == {}
    without = rule()
    del without["condition"]
    assert problems(without) == {"/condition": "missing"}


def test_everything_that_is_wrong_is_said_at_once() -> None:
    broken = rule(
        trigger=trigger(fields=["gone"]),
        condition={"any": [{"field": "gone", "op": "is", "value": 1}, {"field": "title", "op": "huh", "value": 1}]},
        steps=[
            page(params={"connection": "nowhere", "summary": "{{ case.gone }} {{ case.title"}),
            mark(params={"text": "{{ case.gone }}", "field": "nothing", "group": "Nobody", "member": 8}),
            mark(version=9),
            page(params={"connection": "mail", "extra": 1}),
            page(params={"connection": "mail"}, effect="db_local"),
            mark(params={"text": "LOUD"}),
        ],
    )
    assert problems(broken) == {
        "/trigger/params/fields/0": "wrong_trigger",
        "/condition/any/0/field": "unknown_field",
        "/condition/any/1/op": "unknown_operator",
        "/steps/0/params/connection": "missing_connection",
        "/steps/0/params/summary": "template_error",
        "/steps/1/params/text": "template_error",
        "/steps/1/params/field": "unknown_field",
        "/steps/1/params/group": "missing_group",
        "/steps/1/params/member": "missing_member",
        "/steps/2/action": "unknown_action",
        "/steps/3/params/extra": "extra_forbidden",
        "/steps/4/params/connection": "wrong_connection",
        "/steps/4/effect": "wrong_effect",
        "/steps/5/params/text": "wrong_params",
    }


def test_templates_may_use_the_record_and_earlier_steps_and_what_they_read_is_known() -> None:
    text = (
        "{{ case.title }} {{ case.firm.name }} {{ case.firm.id }} {{ tenant.name }} {{ rule.name }} {{ steps.page.id }}"
    )
    assert compiled(rule(steps=[page(), mark(params={"text": text})])).reads >= {"title", "firm.name", "firm"}
    assert problems(rule(steps=[mark(params={"text": "{{ steps.page.id }}"}), page()])) != {}
    assert problems(rule(steps=[mark(params={"text": "{{ event.x }}"})])) != {}
    custom = rule(trigger=trigger("custom_event", name="x"), steps=[mark(params={"text": "{{ event.x }}"})])
    assert compiled(custom).reads == {"event.x", "title"}


@pytest.mark.case("L05")
@pytest.mark.parametrize("model", ["*", "automation.run", "automation.*", "auth.user", "helpdesk", ""])
def test_no_rule_listens_to_a_model_that_is_not_in_the_catalog(model: str) -> None:
    assert problems(rule(trigger=trigger(model=model))) == {"/trigger/params/model": "unknown_model"}


@pytest.mark.case("X05")
def test_a_rule_on_deleted_records_can_only_do_what_needs_no_record() -> None:
    assert problems(rule(trigger=trigger(on=["deleted"]))) == {"/steps/0/action": "needs_record"}
    assert problems(rule(trigger=trigger(on=["deleted"]), steps=[page()])) == {}


def test_an_action_for_other_records_is_refused() -> None:
    only = {"kind": "action", "action": "only", "version": 1}
    assert problems(rule(steps=[only])) == {"/steps/0/action": "wrong_model"}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([mark(), {"kind": "stop", "ends": "later_rules"}], {}),
        ([a_branch([mark(), {"kind": "stop", "ends": "later_rules"}])], {}),
        ([a_branch([mark()]), {"kind": "stop", "ends": "later_rules"}], {}),
        ([page(off=True), {"kind": "stop", "ends": "later_rules"}], {}),
        ([page(), {"kind": "stop", "ends": "later_rules"}], {"/steps/1/ends": "stops_too_late"}),
        (
            [{"kind": "delay", "for": "PT0S"}, {"kind": "stop", "ends": "later_rules"}],
            {"/steps/1/ends": "stops_too_late"},
        ),
        ([a_branch([page()]), {"kind": "stop", "ends": "later_rules"}], {"/steps/1/ends": "stops_too_late"}),
        (
            [page(), a_branch([{"kind": "stop", "ends": "later_rules"}])],
            {"/steps/1/arms/0/steps/0/ends": "stops_too_late"},
        ),
        ([a_branch([page()], [mark(), {"kind": "stop", "ends": "later_rules"}])], {}),
    ],
)
def test_later_rules_are_stopped_only_from_among_the_leading_local_steps(steps: Any, expected: dict[str, str]) -> None:
    assert problems(rule(steps=steps)) == expected


def test_a_rule_that_waits_first_keeps_the_run_that_waits() -> None:
    delay = {"kind": "delay", "for": "PT1H"}
    assert compiled(rule(steps=[delay, mark()])).again == "keep"
    assert compiled(rule(steps=[mark(), delay])).again == "both"
    assert compiled(rule(steps=[delay], again="restart")).again == "restart"


def test_retries_are_the_actions_where_the_step_says_nothing_else() -> None:
    assert compiled(rule(steps=[page()])).nodes[0].retry == Retry()
    retry = {"max_attempts": 3, "base_delay": "PT5S", "jitter": False}
    node = compiled(rule(steps=[page(retry=retry, timeout="PT5S", if_it_fails="continue")])).nodes[0]
    assert node.retry == Retry(max_attempts=3, base_delay=5, factor=3, max_delay=3600, jitter=False)
    assert (node.timeout, node.if_it_fails) == (5, "continue")


@pytest.mark.parametrize(
    ("step", "pointer"),
    [
        (page(retry={"max_attempts": 21}), "/retry/max_attempts"),
        (page(retry={"max_attempts": 0}), "/retry/max_attempts"),
        (page(retry={"base_delay": "P1D"}), "/retry/base_delay"),
        (page(retry={"factor": 0.5}), "/retry/factor"),
        (page(retry={"max_attempts": 20, "base_delay": "PT200H", "max_delay": "PT200H"}), "/retry"),
        (page(timeout="PT0S"), "/timeout"),
        (page(timeout="PT31S"), "/timeout"),
        (page(timeout="P1D"), "/timeout"),
        ({"kind": "delay", "for": "P401D"}, "/for"),
        ({"kind": "delay", "for": "tomorrow"}, "/for"),
        ({"kind": "delay", "for": 5}, "/for"),
    ],
)
def test_times_out_of_bounds_are_refused(step: dict[str, Any], pointer: str) -> None:
    assert set(problems(rule(steps=[step]))) == {f"/steps/0{pointer}"}


@pytest.mark.parametrize(("expires", "fits"), [("P30D", True), ("PT1H", True), ("P400D", True), ("PT0S", False),
                                                  ("P401D", False), ("soon", False), (30, False)])  # fmt: skip
def test_the_longest_life_of_a_run_is_a_duration_of_up_to_400_days(expires: Any, fits: bool) -> None:
    found = problems(rule(expires=expires))
    assert set(found) == (set() if fits else {"/expires"})


@pytest.mark.parametrize(
    ("more", "pointer", "word"),
    [
        ({"on_failure": "undo"}, "/on_failure", "on_failure"),
        ({"trigger": {"kind": "schedule", "params": {"cron": "0 9 * * *"}}}, "/trigger/kind", "schedule"),
        ({"trigger": {"kind": "elapsed"}}, "/trigger/kind", "elapsed"),
        ({"trigger": {"kind": "incoming_webhook"}}, "/trigger/kind", "incoming_webhook"),
        ({"steps": [{"kind": "wait", "for": {}, "then": []}]}, "/steps/0/kind", "wait"),
        ({"steps": [{"kind": "callback"}]}, "/steps/0/kind", "callback"),
        ({"steps": [{"kind": "parallel", "paths": []}]}, "/steps/0/kind", "parallel"),
        ({"steps": [{"kind": "for_each"}]}, "/steps/0/kind", "for_each"),
        ({"steps": [{"kind": "start_rule"}]}, "/steps/0/kind", "start_rule"),
        ({"steps": [mark(only_in="business")]}, "/steps/0/only_in", "only_in"),
        ({"steps": [mark(if_it_fails=[mark()])]}, "/steps/0/if_it_fails", "if_it_fails"),
        ({"steps": [{"kind": "action", "action": "post_message", "version": 1}]}, "/steps/0/action", "post_message"),
        ({"steps": [{"kind": "action", "action": "http_request", "version": 1}]}, "/steps/0/action", "http_request"),
        ({"steps": [a_branch([{"kind": "wait"}])]}, "/steps/0/arms/0/steps/0/kind", "wait"),
    ],
)
def test_what_is_to_come_is_refused_by_its_name(more: dict[str, Any], pointer: str, word: str) -> None:
    with pytest.raises(DefinitionError) as error:
        compiled(rule(**more))
    (problem,) = error.value.problems
    assert (problem.pointer, problem.code) == (pointer, "not_available")
    assert word in problem.message
    assert "not available yet" in problem.message


def test_the_words_of_later_versions_are_accepted_where_they_change_nothing() -> None:
    assert problems(rule(on_failure="keep")) == {}


@pytest.mark.parametrize("imports", ["run", "skip", "once"])
def test_a_rule_says_what_imported_records_are_to_it(imports: str) -> None:
    assert compiled(rule(imports=imports)).imports == imports
    assert compiled(rule()).imports == "run"


@pytest.mark.parametrize("imports", ["never", "", None, 1, ["once"]])
def test_another_word_about_imports_is_refused(imports: Any) -> None:
    assert set(problems(rule(imports=imports))) == {"/imports"}


def nested_groups(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"field": "title", "op": "is_empty"}
    for _level in range(depth):
        inner = {"all": [inner]}
    return inner


def nested_steps(depth: int) -> list[Any]:
    steps = [mark()]
    for _level in range(depth - 1):
        steps = [a_branch(steps)]
    return steps


@pytest.mark.parametrize(
    ("within", "beyond", "code"),
    [
        (rule(steps=[mark()] * 100), rule(steps=[mark()] * 101), "too_many_steps"),
        (
            rule(condition={"any": [{"field": "title", "op": "is_empty"}] * 50}),
            rule(condition={"any": [{"field": "title", "op": "is_empty"}] * 51}),
            "too_many_conditions",
        ),
        (rule(condition=nested_groups(3)), rule(condition=nested_groups(4)), "groups_too_deep"),
        (rule(steps=nested_steps(4)), rule(steps=nested_steps(5)), "steps_too_deep"),
        (
            rule(steps=[mark(params={"text": "x" * 15_000}, note="n" * 2000)] * 3),
            rule(steps=[mark(params={"text": "x" * 15_000})] * 5),
            "too_big",
        ),
    ],
)
def test_the_limits_are_exact_and_named(within: Any, beyond: Any, code: str) -> None:
    assert problems(within) == {}
    assert set(problems(beyond).values()) == {code}


def test_missing_ids_are_given_and_those_that_are_there_never_change() -> None:
    given = rule(
        condition={"all": [{"id": "c_1", "field": "title", "op": "is_empty"}, {"field": "title", "op": "is_empty"}]},
        steps=[mark(), mark(id="mark_2"), mark(), a_branch([])],
    )
    before = deepcopy(given)
    document = parse(given).to_json()
    assert given == before, "the argument stays as it was"
    assert [step["id"] for step in document["steps"]] == ["mark", "mark_2", "mark_3", "branch"]
    assert [item["id"] for item in document["condition"]["all"]] == ["c_1", "c_2"]
    assert document["condition"]["id"] == "g_1"
    assert document["steps"][3]["arms"][0]["id"] == "b_1"


@pytest.mark.case("U02")
def test_loading_and_saving_changes_nothing_that_was_written() -> None:
    document = parse(
        rule(
            condition={
                "none": [
                    {"field": "title", "op": "is", "value_of": "other"},
                    {"field": "flag", "op": "is", "value": False},
                ]
            },
            steps=[
                page(retry={"max_attempts": 2}, off=False, note="why"),
                a_branch([], [{"kind": "stop", "ends": "run"}]),
            ],
            again="both",
        )
    ).to_json()
    assert parse(document).to_json() == document
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize("identity", ["Mark", "1st", "a-b", "", "x" * 41, "a\n", 5, None])
def test_an_id_of_another_form_is_refused(identity: Any) -> None:
    assert set(problems(rule(steps=[mark(id=identity)]))) == {"/steps/0/id"}


def test_an_id_twice_is_refused_wherever_it_is() -> None:
    twice = rule(condition={"id": "x", "all": [{"id": "x", "field": "title", "op": "is_empty"}]}, steps=[mark(id="x")])
    assert problems(twice) == {"/condition/all/0/id": "double_id", "/steps/0/id": "double_id"}


@pytest.mark.parametrize("data", [None, 5, "rule", [], [rule()], {}, {"steps": 5}, {"steps": [5], "condition": []}])
def test_a_definition_of_the_wrong_shape_gets_words_and_no_crash(data: Any) -> None:
    with pytest.raises(DefinitionError) as error:
        compile_definition(data, CATALOG, References())
    assert all(problem.message for problem in error.value.problems)


def deep_list() -> Any:
    deep: Any = []
    for _level in range(100_000):
        deep = [deep]
    return deep


@pytest.mark.parametrize("place", ["condition", "steps", "trigger", "nonsense"])
def test_deeply_nested_values_get_words_and_no_crash(place: str) -> None:
    assert set(problems(rule(**{place: deep_list()})).values()) == {"too_deep"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 60_000, "too_deep"),
        ("[" * 100_000, "too_big"),
        ("{", "not_json"),
        ("NaN", "not_json"),
        (b"\xff", "not_json"),
    ],
)
def test_text_that_is_no_definition_gets_words_and_no_crash(text: str | bytes, code: str) -> None:
    with pytest.raises(DefinitionError) as error:
        load_json(text)
    assert [problem.code for problem in error.value.problems] == [code]


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_characters_that_no_database_holds_are_refused_at_their_place(text: str) -> None:
    assert problems(rule(steps=[mark(params={"text": text})])) == {"/steps/0/params/text": "bad_character"}
    assert problems(rule(**{text: 1})) == {"": "bad_character"}


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"on": []}, "/on"),
        ({"on": ["touched"]}, "/on/0"),
        ({"sources": ["import"]}, "/sources/0"),
        ({"fields": ["firm.plan"]}, "/fields/0"),
        ({"fields": ["title"], "on": ["created"]}, "/fields"),
        ({"extra": 1}, "/extra"),
    ],
)
def test_a_trigger_that_could_never_fire_as_written_is_refused(params: dict[str, Any], pointer: str) -> None:
    assert set(problems(rule(trigger=trigger(**params), steps=[page()]))) == {f"/trigger/params{pointer}"}


def test_a_rule_needs_a_step_and_a_known_trigger() -> None:
    assert problems(rule(steps=[])) == {"/steps": "no_steps"}
    assert problems(rule(trigger={"kind": "full_moon"})) == {"/trigger/kind": "unknown_trigger"}
    assert set(problems(rule(trigger=trigger("custom_event", name="Not a name")))) == {"/trigger/params/name"}


def test_a_limit_is_a_number_of_runs_in_a_span() -> None:
    found = compiled(rule(limit={"runs": 2, "per": "P1DT3H"})).limit
    assert found is not None
    assert (found.runs, found.per.iso()) == (2, "P1DT3H")
    for wrong, pointer in (({"runs": 0, "per": "PT3H"}, "/limit/runs"), ({"runs": 1, "per": "PT0S"}, "/limit/per")):
        assert set(problems(rule(limit=wrong))) == {pointer}


def test_a_rule_about_limits_has_no_record_to_read_or_to_change() -> None:
    about = {"kind": "limit_reached", "params": {"limits": ["events_kept"]}}
    wrong = rule(trigger=about, condition={"field": "priority", "op": "is", "value": "high"}, steps=[mark()])
    assert problems(wrong)["/condition/field"] == "unknown_field"
    assert problems(wrong)["/steps/0/action"] == "needs_record"
