"""The command that lists what people should look at in rules."""

import json
from typing import Any

import pytest
from commands import told
from django.core.management.base import CommandError

from automation.engine import rules
from tests.engine.world import World, leaf, set_field


def said(world: World, *arguments: Any) -> str:
    return told("automation_findings", *arguments, tenant=world.tenant.slug)


def test_findings_are_lines_for_people_and_objects_for_programs(world: World) -> None:
    rule = world.rule("Rewrite", set_field("s", "priority", "high"))
    assert said(world).startswith("warning loop: “Rewrite” sets priority, which starts it again.")
    assert said(world).rstrip().endswith(f"[rule {rule.pk} s]")
    [found] = json.loads(said(world, "--json"))["findings"]
    assert (found["kind"], found["certain"]) == ("loop", True)
    assert found["places"] == [{"rule": rule.pk, "name": "Rewrite", "node": "s", "pointer": ""}]
    assert said(world, "--least", "problem") == "Nothing found.\n"


def test_a_draft_is_looked_at_as_if_it_were_live(world: World) -> None:
    rule = world.rule("Quiet", set_field("s", "priority", "high"), condition=leaf("subject", "changed"))
    definition = {**rule.published.definition, "condition": None}
    with world.acting():
        rules.save_draft(rule.pk, definition, base_revision=rule.draft.revision)
    assert said(world, "--rule", rule.pk) == "Nothing found.\n"
    assert "starts it again" in said(world, "--rule", rule.pk, "--draft")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--draft"], "--draft goes with --rule."), (["--rule", "999999"], "There is no rule '999999' of this tenant.")],
)
def test_a_bad_argument_is_said_in_one_line(world: World, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        said(world, *arguments)
