"""What holds for every action that is registered."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from automation.catalog import registry
from automation.catalog.action import Action
from automation.catalog.params import load, places

EXAMPLES: dict[str, dict[str, Any]] = {
    "set_fields@1": {"fields": [{"field": "status", "value": "open"}, {"field": "subject", "value": 5}]},
    "add_tags@1": {"tags": ["vip"]},
    "remove_tags@1": {"tags": ["vip"]},
    "add_note@1": {"text": "{{ ticket.subject }}"},
    "assign@1": {"to": "round_robin", "group": "Sales"},
    "create_record@1": {"model": "helpdesk.task", "values": {"title": "{{ ticket.subject }}", "is_done": False}},
    "send_email@1": {"subject": "Hi", "text": "Hello {{ ticket.customer.name }}"},
    "page_on_call@1": {"connection": "pager", "summary": "Urgent: {{ ticket.subject }}"},
    "call_webhook@1": {"connection": "hook"},
    "send_sms@1": {"connection": "sms", "text": "Hi"},
}


@pytest.fixture(params=sorted(EXAMPLES))
def kind(request: pytest.FixtureRequest) -> Action:
    return registry.actions[request.param]


def test_all_actions_of_the_product_are_found() -> None:
    assert set(EXAMPLES) <= set(registry.actions)


def test_an_action_has_a_label_a_schema_and_a_sentence(kind: Action) -> None:
    params = load(kind.Params, EXAMPLES[kind.name()])
    schema = kind.Params.model_json_schema()
    assert str(kind.label)
    assert json.dumps(schema)
    assert all(about.get("title") for about in schema["properties"].values())
    assert kind.sentence(params)
    assert kind.sentence(params) != str(kind.label)


def test_unknown_parameters_and_wrong_types_are_refused(kind: Action) -> None:
    with pytest.raises(ValidationError):
        load(kind.Params, EXAMPLES[kind.name()] | {"unheard_of": 1})
    with pytest.raises(ValidationError):
        load(kind.Params, {name: {"wrong": []} for name in EXAMPLES[kind.name()]})


def test_parameters_survive_being_stored(kind: Action) -> None:
    params = load(kind.Params, EXAMPLES[kind.name()])
    assert load(kind.Params, json.loads(params.model_dump_json())) == params


def test_templates_and_references_are_marked() -> None:
    marked = {
        name: sorted(
            (place.pointer, type(place.marker).__name__, str(place.marker))
            for place in places(load(registry.actions[name].Params, raw))
        )
        for name, raw in EXAMPLES.items()
    }
    assert marked["page_on_call@1"] == [
        ("/connection", "ConnectionRef", "pager"),
        ("/service", "Template", "header"),
        ("/summary", "Template", "header"),
    ]
    assert ("/values/title", "Template", "text") in marked["create_record@1"]
    assert ("/fields/0/field", "FieldRef", "change") in marked["set_fields@1"]
    assert ("/html", "Template", "html") in marked["send_email@1"]
    assert ("/body", "Template", "json") in marked["call_webhook@1"]
    assert ("/group", "GroupRef", "") in marked["assign@1"]
