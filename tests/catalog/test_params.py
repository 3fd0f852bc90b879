"""Parameters are strict, and the places that the engine must fill or check are found wherever they are."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ValidationError

from automation.catalog.params import (
    ActionParams,
    ConnectionRef,
    FieldRef,
    GroupRef,
    MemberRef,
    TagList,
    Template,
    filled,
    load,
    marked_schema,
    places,
)


class Line(BaseModel):
    """A nested part."""

    field: Annotated[str, FieldRef("change")]
    value: Template | int | None = None


class Params(ActionParams):
    """One of each kind of place."""

    connection: Annotated[str, ConnectionRef("smtp")]
    subject: Annotated[str, Template(target="header")]
    body: Template
    lines: list[Line] = []
    headers: dict[str, Template] = {}
    group: GroupRef | None = None
    member: MemberRef | None = None
    tags: TagList = []
    plain: str = "{{ not.a.template }}"


RAW: dict[str, Any] = {
    "connection": "mail",
    "subject": "Hello {{ ticket.subject }}",
    "body": "plain",
    "lines": [{"field": "status", "value": "{{ a }}"}, {"field": "count", "value": 3}],
    "headers": {"X-A/B": "{{ b }}"},
    "group": "Sales",
    "member": 7,
    "tags": ["vip"],
}


def test_every_marked_place_is_found_at_its_pointer() -> None:
    found = {place.pointer: (place.marker.name, place.value) for place in places(load(Params, RAW))}
    assert found == {
        "/connection": ("connection_ref", "mail"),
        "/subject": ("template", "Hello {{ ticket.subject }}"),
        "/body": ("template", "plain"),
        "/lines/0/field": ("field_ref", "status"),
        "/lines/0/value": ("template", "{{ a }}"),
        "/lines/1/field": ("field_ref", "count"),
        "/headers/X-A~1B": ("template", "{{ b }}"),
        "/group": ("group_ref", "Sales"),
        "/member": ("_reference", 7),
        "/tags": ("_reference", ["vip"]),
    }


def test_templates_are_filled_for_their_own_target_and_nothing_else_is_touched() -> None:
    params = filled(load(Params, RAW), lambda source, target: f"<{target}:{source}>")
    assert params.subject == "<header:Hello {{ ticket.subject }}>"
    assert params.body == "plain"
    assert params.lines[0].value == "<text:{{ a }}>"
    assert params.lines[1].value == 3
    assert params.headers == {"X-A/B": "<text:{{ b }}>"}
    assert params.plain == "{{ not.a.template }}"


def test_parameters_without_templates_are_handed_on_as_they_are() -> None:
    params = load(Params, {"connection": "mail", "subject": "a", "body": "b"})
    assert filled(params, lambda source, target: pytest.fail("nothing to render")) is params


@pytest.mark.parametrize("wrong", [{"body": 5}, {"tags": "vip"}, {"member": "7"}, {"nonsense": 1}, {"member": True}])
def test_types_are_strict_and_unknown_names_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        load(Params, RAW | wrong)


@pytest.mark.case("U05")
def test_an_object_in_place_of_an_id_is_refused() -> None:
    with pytest.raises(ValidationError):
        load(Params, RAW | {"member": {"id": 7, "name": "Ann"}})


def test_the_schema_says_what_each_place_means() -> None:
    properties = marked_schema(Params)["properties"]
    assert properties["connection"]["x-marker"] == "connection_ref"
    assert properties["connection"]["x-word"] == "smtp"
    assert properties["subject"]["x-word"] == "header"
    assert properties["member"]["x-marker"] == "member"
    assert properties["tags"]["x-marker"] == "tags"
    assert "x-marker" not in properties["plain"]
