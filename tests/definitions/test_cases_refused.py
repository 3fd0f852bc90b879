"""What a rule can't say is refused when it is saved, at its place; what it can say is kept as it was written."""

from typing import Any

import pytest
from django.utils.translation import override

from automation.catalog import registry
from automation.core.errors import DefinitionError
from automation.core.operators import OPERATORS
from automation.definitions.compile import compile_definition
from automation.definitions.schema import load_json, parse
from automation.definitions.sentences import sentence


class Ours:
    """A tenant with one connection, one member and one group."""

    def connection(self, name: str) -> str | None:
        return {"hook": "webhook"}.get(name)

    def member(self, member_id: int) -> bool:
        return member_id == 7

    def group(self, name: str) -> bool:
        return name == "Support"

    def record(self, target: str, record_id: int) -> bool:
        return record_id == 7


def note(text: str = "Hello", id_: str = "say") -> dict[str, Any]:
    return {"id": id_, "kind": "action", "action": "add_note", "version": 1, "params": {"text": text}}


def rule(condition: Any = None, *, steps: list[Any] | None = None, **trigger: Any) -> dict[str, Any]:
    params = {"model": "helpdesk.ticket", "on": ["updated"]} | trigger
    return {
        "schema_version": 1,
        "trigger": {"kind": "record_changed", "params": params},
        "condition": condition,
        "steps": [note()] if steps is None else steps,
    }


def leaf(field: str, op: str, value: Any = None, **more: Any) -> dict[str, Any]:
    return {"field": field, "op": op} | ({} if value is None else {"value": value}) | more


def problems(definition: Any) -> list[tuple[str, str]]:
    """The places of what is wrong, and the code of each."""
    try:
        compile_definition(definition, registry, Ours())
    except DefinitionError as error:
        return [(problem.pointer, problem.code if problem.message else "") for problem in error.problems]
    return []


@pytest.mark.case("L05")
@pytest.mark.parametrize(
    "model", ["automation.run", "automation.event", "automation.timer", "automation.rule", "tenants.auditentry", "*"]
)
def test_no_rule_listens_to_the_engines_own_tables_or_to_everything(model: str) -> None:
    assert problems(rule(model=model)) == [("/trigger/params/model", "unknown_model")]


@pytest.mark.case("L05")
def test_no_table_of_the_engine_or_of_the_tenancy_is_in_the_catalogue() -> None:
    apps = {name.partition(".")[0] for name in registry.models if not name.startswith("tests")}
    assert not apps & {"automation", "tenants", "auth", "django_q", "admin"}
    assert problems({**rule(), "trigger": {"kind": "*", "params": {}}}) == [("/trigger/kind", "unknown_trigger")]


@pytest.mark.case("C02")
def test_a_change_that_no_event_carries_is_neither_offered_nor_taken() -> None:
    assert "updated_at" not in registry.models["helpdesk.ticket"].fields
    assert problems(rule(leaf("updated_at", "changed"))) == [("/condition/field", "unknown_field")]
    assert problems(rule(leaf("created_at", "changed"))) == [("/condition/op", "never_changes")]
    assert problems(rule(leaf("customer.plan", "changed_to", "gold"))) == [("/condition/op", "never_changes")]
    assert problems(rule(leaf("subject", "changed"))) == []


@pytest.mark.case("C05")
def test_a_list_of_values_is_kept_as_it_was_written() -> None:
    written = rule(leaf("customer.plan", "in", ["gold", "silver"], id="c_1"))
    assert parse(written).to_json() == written
    condition = compile_definition(written, registry, Ours()).condition
    assert getattr(condition, "value", None) == frozenset({"gold", "silver"})


@pytest.mark.case("C10")
def test_more_and_less_are_refused_for_a_text() -> None:
    assert problems(rule(leaf("subject", "gt", 5))) == [("/condition/op", "wrong_operator")]
    assert problems(rule(leaf("customer.company_size", "gt", "five"))) == [("/condition/value", "wrong_value")]


@pytest.mark.case("C13")
@pytest.mark.parametrize(
    ("condition", "place"),
    [
        (leaf("{{ old.status }}", "is_not", "new"), "/condition/field"),
        (leaf("status", "resembles", "new"), "/condition/op"),
        (leaf("status", "is_not", "new", case_sensitive=True), "/condition/case_sensitive"),
        (leaf("status", "is_not", "active"), "/condition/value"),
        (leaf("status", "is_not", ["new"]), "/condition/value"),
    ],
)
def test_a_condition_that_is_not_supported_is_refused_at_its_place(condition: Any, place: str) -> None:
    assert [pointer for pointer, _code in problems(rule(condition))] == [place]


@pytest.mark.case("C16")
@pytest.mark.parametrize("op", ["matches", "regex", "matches_regex", "~"])
def test_there_are_no_regular_expressions(op: str) -> None:
    assert problems(rule(leaf("subject", op, "(a+)+b"))) == [("/condition/op", "unknown_operator")]
    assert not {name for name in OPERATORS if "regex" in name or "match" in name}


@pytest.mark.case("C17")
@pytest.mark.parametrize("mode", ["all", "any", "none"])
def test_an_empty_group_is_refused_wherever_it_stands_and_always_is_said_by_null(mode: str) -> None:
    assert problems(rule({mode: []})) == [(f"/condition/{mode}", "empty_group")]
    assert problems(rule({"all": [{mode: []}]})) == [(f"/condition/all/0/{mode}", "empty_group")]
    assert problems(rule(None)) == []
    without = rule()
    del without["condition"]
    assert [pointer for pointer, _code in problems(without)] == ["/condition"]


@pytest.mark.case("C01")
def test_that_a_value_holds_and_that_it_changed_to_it_are_told_apart_in_words() -> None:
    def told(op: str) -> str:
        return sentence(parse(rule(leaf("priority", op, "high"))), registry)

    with override("en"):
        assert told("is").startswith("When a ticket is updated and priority is high")
        assert told("changed_to").startswith("When a ticket is updated and priority becomes high")


@pytest.mark.case("M01")
def test_names_that_a_template_cannot_know_are_listed_when_it_is_saved() -> None:
    definition = rule(steps=[note("{{ title }} {{ ticket.custom.removed }} {{ ticket.subject }}")])
    assert problems(definition) == [("/steps/0/params/text", "template_error")] * 2
    assert problems(rule(steps=[note("{{ ticket.created_at }} {{ ticket.customer.name }}")])) == []


@pytest.mark.case("M04")
@pytest.mark.parametrize(
    "source",
    [
        "{{ ticket.__class__ }}",
        "{{ ticket.tenant.webhook_secret }}",
        "{{ ticket.delete }}",
        "{% include 'settings' %}",
        "{{ tenant.secret }}",
        "{{ steps.say.output.__init__ }}",
    ],
)
def test_a_template_that_reaches_beyond_the_fields_is_refused(source: str) -> None:
    assert {place for place, _code in problems(rule(steps=[note(source)]))} == {"/steps/0/params/text"}


@pytest.mark.case("M05")
def test_a_date_token_that_is_not_documented_is_refused() -> None:
    assert problems(rule(steps=[note("{{ ticket.created_at | date: '%G-%m-%j' }}")])) != []
    assert problems(rule(steps=[note("{{ ticket.created_at | date: '%Y-%m-%d' }}")])) == []


@pytest.mark.case("P01")
def test_somebody_elses_person_group_and_connection_are_as_if_they_were_not_there() -> None:
    def assign(**params: Any) -> dict[str, Any]:
        return rule(steps=[{"id": "a", "kind": "action", "action": "assign", "version": 1, "params": params}])

    assert problems(assign(to="person", person=8)) == [("/steps/0/params/person", "missing_member")]
    assert problems(assign(to="person", person=10**12)) == [("/steps/0/params/person", "missing_member")]
    assert problems(rule(leaf("assignee", "is", 8))) == [("/condition/value", "missing_member")]


TEMPLATE = {"id": "say", "kind": "action", "action": "add_note", "version": 1}


@pytest.mark.parametrize(
    ("definition", "place"),
    [
        ([], ""),
        ("a rule", ""),
        ({}, "/schema_version"),
        ({**rule(), "schema_version": 2}, "/schema_version"),
        ({**rule(), "steps": {"id": "a"}}, "/steps"),
        ({**rule(), "trigger": "record_changed"}, "/trigger"),
        ({**rule(), "owner": 5}, "/owner"),
        ({**rule(), "condition": "always"}, "/condition"),
        (rule(steps=[{"id": "x", "kind": "loop"}]), "/steps/0"),
        (rule(steps=[{**note(), "parameters": {}}]), "/steps/0/parameters"),
        (rule(steps=[{**TEMPLATE, "params": {"text": 5}}]), "/steps/0/params/text"),
        (rule(steps=[{**TEMPLATE, "params": {"txt": "a"}}]), "/steps/0/params"),
        (rule(steps=[note("{{ ticket.subject")]), "/steps/0/params/text"),
        (rule(steps=[note("{% if ticket.subject %}yes")]), "/steps/0/params/text"),
        (rule(steps=[]), "/steps"),
        (rule(leaf("colour", "is", "red")), "/condition/field"),
        (rule(fields=["colour"]), "/trigger/params/fields/0"),
    ],
)
def test_a_definition_of_the_wrong_shape_is_refused_at_the_place_where_it_is_wrong(definition: Any, place: str) -> None:
    assert any(pointer.startswith(place) for pointer, _code in problems(definition)), problems(definition)


def test_a_deeply_nested_document_is_refused_in_words_whichever_way_it_comes() -> None:
    with pytest.raises(DefinitionError) as raised:
        load_json("[" * 5_000 + "]" * 5_000)
    assert [problem.code for problem in raised.value.problems] == ["too_deep"]
    deep: Any = "x"
    for _level in range(3_000):
        deep = {"a": deep}
    assert problems(rule(deep))[0][1] == "too_deep"


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_a_character_that_no_database_keeps_is_refused_at_its_place(text: str) -> None:
    assert problems(rule(steps=[note(text)]))[0][0] == "/steps/0/params/text"
