"""A release that has lost an action version says who still needs it, before anything stands still."""

import json
from datetime import timedelta
from typing import Any

import pytest
from commands import told
from django.core.management import CommandError

from automation.catalog import registry
from automation.catalog.action import Outcome
from automation.engine import needed, rules
from automation.engine.needed import Need
from automation.models import Rule
from tests.engine.world import World, make_world, set_field, step, when

DAY = {"id": "wait", "kind": "delay", "for": "P1D"}
ON_SUBJECT = when(fields=["subject"])
NOTE = step("n", "add_note", text="N")


def drop(monkeypatch: pytest.MonkeyPatch, name: str = "add_note@1") -> None:
    monkeypatch.delitem(registry.actions, name)


def waiting(world: World, *steps: dict[str, Any]) -> Rule:
    rule = world.rule("Remind", *steps, trigger=ON_SUBJECT)
    world.change(world.ticket(), run=False, subject="Go")
    world.pass_time(timedelta(hours=1))
    return rule


def errors() -> list[tuple[str | None, str]]:
    return [(message.id, message.msg) for message in needed.check(None, databases=["default"])]


@pytest.mark.case("K05")
def test_an_action_that_waiting_runs_still_need_is_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = waiting(world, DAY, NOTE)
    world.republish(rule, set_field("s", "status", "open"))
    assert errors() == []
    drop(monkeypatch)

    [(code, said)] = errors()

    assert code == "automation.E003"
    assert said == (
        f"The action add_note@1 is gone from this release, and is still needed by {world.tenant.slug}: "
        f"rule {rule.pk} “Remind”, version 1; 1 runs."
    )


def test_runs_that_have_the_step_behind_them_need_it_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = waiting(world, NOTE, DAY, set_field("s", "status", "open"))
    world.republish(rule, set_field("s", "status", "open"))
    assert [(need.action, need.runs) for need in needed.needs(tenant_id=world.tenant.pk)] == [("set_fields@1", 1)]
    drop(monkeypatch)
    assert errors() == []


def test_when_the_runs_have_ended_the_action_may_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = waiting(world, DAY, NOTE)
    world.republish(rule, set_field("s", "status", "open"))
    world.run()
    drop(monkeypatch)
    assert errors() == []


def test_a_rule_that_is_on_needs_it_and_one_that_is_off_is_a_warning(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = world.rule("Note", NOTE)
    drop(monkeypatch)
    assert [code for code, _said in errors()] == ["automation.E003"]
    with world.acting():
        rules.switch_off(rule.pk)
    assert [code for code, _said in errors()] == ["automation.W003"]


def test_a_step_that_is_off_or_a_rule_that_is_deleted_needs_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.rule("Off", set_field("s", "status", "open"), NOTE | {"off": True})
    deleted = world.rule("Deleted", NOTE)
    with world.acting():
        rules.delete(deleted.pk)
    drop(monkeypatch)
    assert errors() == []


def test_steps_in_the_arms_of_a_branch_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = {"id": "b_1", "if": {"field": "status", "op": "is", "value": "new"}, "steps": [NOTE]}
    rule = world.rule("Branch", {"id": "b", "kind": "branch", "arms": [arm], "otherwise": []})
    drop(monkeypatch)
    assert [need.rule_id for need in needed.missing()] == [rule.pk]


def test_a_retry_of_a_dead_letter_needs_its_step_and_those_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.connection()
    world.answer = lambda call: Outcome.rejected("no")
    rule = world.rule("Call", step("c", "call_webhook", connection="hook"), NOTE, trigger=ON_SUBJECT)
    world.change(world.ticket(), subject="Go")
    world.republish(rule, set_field("s", "status", "open"))
    assert len(world.dead_letters()) == 1
    drop(monkeypatch)

    [need] = needed.missing()

    assert need == Need("add_note@1", world.tenant.slug, rule.pk, "Call", True, dead_letters=1, versions=(1,))
    assert [need.action for need in needed.missing(without=["call_webhook@1"])] == ["add_note@1", "call_webhook@1"]


def test_the_command_lists_what_is_needed_and_fails_for_what_would_be_missing(world: World) -> None:
    waiting(world, DAY, NOTE)
    other = make_world()
    other.rule("Theirs", set_field("s", "status", "open"))

    assert "add_note@1" in told("automation_actions")
    assert "add_note@1" not in told("automation_actions", "--tenant", other.tenant.slug)
    assert told("automation_actions", "--without", "page_on_call@1") == ""
    [line] = json.loads(told("automation_actions", "--tenant", world.tenant.slug, "--json"))
    assert (line["runs"], line["live"], line["missing"], line["pressing"]) == (1, True, False, True)
    with pytest.raises(CommandError, match="Still needed: add_note@1"):
        told("automation_actions", "--without", "add_note@1")
    with pytest.raises(CommandError, match="no tenant 'nobody'"):
        told("automation_actions", "--tenant", "nobody")
    with pytest.raises(CommandError, match="names no version"):
        told("automation_actions", "--without", "add_note")


def test_without_a_database_to_look_at_nothing_is_checked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.rule("Note", NOTE)
    drop(monkeypatch)
    assert needed.check(None) == []
