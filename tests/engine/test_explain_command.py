"""The command that answers why a rule did not run, for people and for programs."""

import json
from typing import Any

import pytest
from commands import told
from django.core.management.base import CommandError

from automation.engine import rules
from automation.engine.posting import run_by_hand
from automation.models import Event
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, leaf, make_world, set_field


def said(world: World, *arguments: Any, **options: Any) -> str:
    return told("automation_explain", *arguments, tenant=world.tenant.slug, **options)


@pytest.fixture
def ticket(world: World) -> Ticket:
    world.rule("Urgent", set_field("s", "status", "open"), condition=leaf("priority", "is", "urgent"))
    ticket = world.ticket(priority="low", subject="Printer")
    world.change(ticket, subject="Printer on fire")
    return ticket


def test_every_event_is_a_line_with_its_gate_and_the_values_read(world: World, ticket: Ticket) -> None:
    text = said(world, "--rule", "Urgent", "--record", f"helpdesk.ticket:{ticket.pk}")
    assert "Urgent (rule " in text
    assert "(updated by Ana): condition · version 1\n    Its condition did not hold: “priority is urgent”" in text
    assert '  > false      priority is urgent · read "low"' in text


def test_a_program_gets_one_object_with_the_same_answer(world: World, ticket: Ticket) -> None:
    found = json.loads(said(world, "--rule", "Urgent", "--record", f"helpdesk.ticket:{ticket.pk}", "--json"))
    assert found["counts"] == {"change": 1, "condition": 1}
    answer = found["answers"][-1]
    assert (answer["gate"], answer["reason"], answer["ran"], answer["agrees"]) == (
        "condition",
        "not_matched",
        False,
        True,
    )
    assert answer["comparisons"][0]["read"] == "low"


def test_what_comes_before_or_after_is_said(world: World, ticket: Ticket) -> None:
    record = f"helpdesk.ticket:{ticket.pk}"
    newest = said(world, "--rule", "Urgent", "--record", record, "--limit", 1)
    assert "There are earlier events: name a time with --since or --at." in newest
    first = said(world, "--rule", "Urgent", "--record", record, "--limit", 1, "--since", "2020-01-01")
    after = first.partition("More events follow: --after ")[2].strip()
    assert ": condition" in said(world, "--rule", "Urgent", "--record", record, "--after", after)


def test_one_event_is_explained_at_every_rule(world: World, ticket: Ticket) -> None:
    with world.acting():
        event = Event.objects.order_by("-id")[0]
    assert said(world, "--event", event.pk).startswith("Urgent (rule ")
    assert json.loads(said(world, "--event", event.pk, "--json"))["answers"][0]["gate"] == "condition"


def test_a_time_narrows_the_events_in_the_tenants_zone(world: World, ticket: Ticket) -> None:
    narrowed = said(world, "--rule", "Urgent", "--record", f"helpdesk.ticket:{ticket.pk}", "--at", "2020-01-01 09:00")
    assert "Nothing happened to the record in this time" in narrowed
    rest = said(world, "--rule", "Urgent", "--record", f"helpdesk.ticket:{ticket.pk}", "--since", "2020-01-01")
    assert "condition" in rest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rule", "Nothing", "--record", "helpdesk.ticket:1"], "There is no rule 'Nothing' of this tenant."),
        (["--rule", "Urgent", "--record", "ticket"], "--record is a model and a number"),
        (["--rule", "Urgent", "--record", "helpdesk.ticket:1", "--at", "soon"], "--at is a time such as"),
        (["--rule", "Urgent", "--record", "helpdesk.ticket:1", "--at", "2020-02-31 10:00"], "--at is a time such as"),
        (["--rule", "Urgent"], "Name --rule and --record, or --event."),
        (["--event", "999999"], "There is no event 999999 of this tenant."),
    ],
)
def test_a_bad_argument_is_said_in_one_line(world: World, ticket: Ticket, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        said(world, *arguments)


@pytest.mark.case("P01")
def test_another_tenants_rule_is_as_if_it_did_not_exist(world: World, ticket: Ticket) -> None:
    other = make_world()
    with world.acting():
        rule_id = rules.order()[0]
    with pytest.raises(CommandError, match=f"There is no rule '{rule_id}' of this tenant."):
        said(other, "--rule", rule_id, "--record", f"helpdesk.ticket:{ticket.pk}")


def test_a_start_by_hand_is_called_one(world: World) -> None:
    rule = world.rule(
        "Ask", set_field("s", "status", "open"), trigger={"kind": "manual", "params": {"model": "helpdesk.ticket"}}
    )
    ticket = world.ticket()
    with world.acting():
        run_by_hand(rule.pk, ticket)
    world.run()
    text = said(world, "--rule", "Ask", "--record", f"helpdesk.ticket:{ticket.pk}")
    assert f"(rule {rule.pk} started by hand by " in text
