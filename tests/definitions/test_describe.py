"""The catalog described for the builder, the API and the docs."""

import json

import pytest
from definition_rules import CATALOG

from automation.catalog import registry
from automation.core.operators import OPERATORS
from automation.definitions.describe import describe, operators_for


@pytest.mark.parametrize("catalog", [CATALOG, registry])
def test_everything_is_told_as_json(catalog: object) -> None:
    told = describe(catalog)  # type: ignore[arg-type]
    assert json.loads(json.dumps(told)) == told
    assert {"triggers", "actions", "models", "operators", "definition"} == told.keys()


def test_an_action_is_told_with_its_parameters_and_promises() -> None:
    (page,) = [action for action in describe(CATALOG)["actions"] if action["kind"] == "page"]
    assert (page["version"], page["label"], page["effects"]) == (2, "Page somebody", ["idempotent", "at_most_once"])
    assert page["params"]["properties"]["connection"]["x-word"] == "pager"
    assert page["retry"]["max_attempts"] == 10


@pytest.mark.case("C02")
def test_a_field_is_offered_only_with_the_operators_that_are_accepted_for_it() -> None:
    (model,) = describe(CATALOG)["models"]
    fields = {field["path"]: field for field in model["fields"]}
    assert "changed" in fields["title"]["operators"]
    assert "changed" not in fields["firm.plan"]["operators"]
    assert "gt" not in fields["title"]["operators"]
    assert fields["kind"]["choices"][0] == {"value": "a", "label": "A"}
    assert fields["firm"]["template_name"] == "case.firm.id"
    for field in CATALOG.models["automation.case"].fields.values():
        assert set(operators_for(field)) <= OPERATORS.keys()


def test_the_schema_of_definitions_names_every_kind_of_step() -> None:
    text = json.dumps(describe(CATALOG)["definition"])
    for kind in ("action", "delay", "branch", "stop"):
        assert f'"const": "{kind}"' in text
