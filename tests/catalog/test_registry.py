"""The catalog finds kinds by name, and says by their path what is wrong with what apps declare."""

from collections.abc import Iterator
from typing import Any

import pytest
from definition_models import CASE, Case
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.utils.translation import override

from automation.catalog import registry
from automation.catalog.action import Action, ActionParams, Effect, Outcome
from automation.catalog.fields import build_fields
from automation.catalog.registry import UnknownKind, automatable, discover, register


@pytest.fixture
def _own_catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("actions", "triggers", "models"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setattr(registry, "problems", list(registry.problems))
    return


def an_action(label: Any = "Wave") -> type[Action]:
    class Wave(Action):
        kind, version = "wave", 1
        effects = (Effect.DB_LOCAL,)

        class Params(ActionParams):
            """Nothing to say."""

        def perform(self, params: Params, context: Any) -> Outcome:
            return Outcome.done()

    Wave.label = label
    return Wave


def test_every_built_in_kind_is_found_by_its_file() -> None:
    discover()
    assert {"record_changed", "custom_event", "manual"} <= registry.triggers.keys()
    assert {"set_fields@1", "page_on_call@1"} <= registry.actions.keys()
    assert "helpdesk.ticket" in registry.models
    assert registry.problems == []


@pytest.mark.usefixtures("_own_catalog")
def test_a_registered_action_is_known_by_kind_and_version() -> None:
    wave = register(an_action())
    assert isinstance(registry.action("wave", 1), wave)
    assert registry.action("wave", 1).works_on_record()


@pytest.mark.usefixtures("_own_catalog")
def test_two_actions_cannot_have_one_name() -> None:
    register(an_action())
    with pytest.raises(ValueError, match="wave@1"):
        register(an_action())


@pytest.mark.parametrize(
    "look",
    [lambda: registry.action("wave", 7), lambda: registry.trigger("full_moon"), lambda: registry.model("x.y")],
)
def test_an_unknown_kind_is_named_in_the_error(look: Any) -> None:
    with pytest.raises(UnknownKind, match=r"wave@7|full_moon|x\.y"):
        look()


@pytest.mark.usefixtures("_own_catalog")
def test_a_misspelt_path_fails_the_check_with_that_path() -> None:
    automatable(Case, read=["titel", "firm.nmae", "count.x"])
    with pytest.raises(SystemCheckError) as error:
        call_command("check")
    assert "'titel' names nothing: automation.case has no field 'titel'" in str(error.value)
    assert "'firm.nmae' names nothing: automation.firm has no field 'nmae'" in str(error.value)
    assert "'count.x' goes through 'count'" in str(error.value)


@pytest.mark.usefixtures("_own_catalog")
@pytest.mark.parametrize(
    ("fields", "follows", "told"),
    [
        ({"read": ["kind", "title"]}, {"kind": ("title", {})}, "both must be choices"),
        ({"read": ["kind"]}, {"kind": ("other_kind", {})}, "one of them is no field that rules know"),
        ({"read": ["kind"]}, {"kind": ("kind", {})}, "'kind' says nothing for"),
        ({"watch": ["kind"]}, {"kind": ("kind", {})}, "a change of it is none of its own"),
    ],
)
def test_a_field_that_can_not_follow_another_fails_the_check(fields: Any, follows: Any, told: str) -> None:
    automatable(Case, **fields, follows=follows)
    with pytest.raises(SystemCheckError) as error:
        call_command("check")
    assert told in str(error.value)


def test_whole_numbers_are_known_by_their_columns() -> None:
    assert [path for path, field in CASE.fields.items() if field.whole] == ["count", "remarks", "firm.size"]


@pytest.mark.usefixtures("_own_catalog")
def test_a_watched_model_whose_changes_would_go_unseen_fails_the_check() -> None:
    automatable(Case, watch=["title"])
    with pytest.raises(SystemCheckError, match=r"automation\.case is watched but doesn't inherit"):
        call_command("check")


def test_the_types_of_fields_are_those_of_their_columns() -> None:
    types = {path: field.type for path, field in CASE.fields.items()}
    assert types == {
        "title": "text",
        "other": "text",
        "kind": "choice",
        "count": "number",
        "amount": "number",
        "flag": "boolean",
        "day": "date",
        "moment": "datetime",
        "later": "datetime",
        "tags": "tags",
        "short_tags": "tags",
        "firm": "reference",
        "followers": "references",
        "remarks": "number",
        "firm.name": "text",
        "firm.plan": "choice",
        "firm.size": "number",
    }


def test_a_field_knows_where_it_lives_and_what_it_points_to() -> None:
    firm, plan, remarks = (CASE.fields[path] for path in ("firm", "firm.plan", "remarks"))
    assert (firm.column, firm.target) == ("firm_id", "automation.firm")
    assert (plan.orm_path, plan.column, plan.nullable) == ("firm__plan", "", True)
    assert plan.choice_values == {"gold", "Gold", "free"}
    assert (remarks.counts, remarks.column, remarks.nullable) == (True, "", False)


def test_what_lives_in_another_record_can_only_be_read() -> None:
    fields, wrong = build_fields(Case, watch=["firm.name"], read=[], change=["firm.plan", "remarks"])
    assert fields == {}
    assert len(wrong) == 3
    assert "that record's own event" in wrong[0]


def test_labels_follow_the_language_of_the_reader() -> None:
    fields, _wrong = build_fields(Group, watch=["name"], read=["permissions"], change=[])
    with override("de"):
        assert fields["permissions"].label == "Berechtigungen"
