"""A tenant's rules can't keep a worker for themselves: what they may cost in a transaction is bounded."""

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from pytest_django import Settings

from automation.core.conditions import compile_condition
from automation.core.moments import Moment
from automation.core.spec import Leaf
from automation.engine.local_turn import LocalTurn
from automation.engine.rendering import LONGEST
from automation.store.claims import Claimed
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, make_world, step, when
from tests.factories import TicketFactory

BUSY = "{% for i in (1..700) %}" + "{{ 1 | plus: 1 | times: 3 | minus: 2 }}" * 10 + "{% endfor %}"
PLAIN = step("n", "add_note", text="Hello {{ ticket.subject }}")


@pytest.fixture
def world(db: None) -> World:
    """A tenant with a runner."""
    return make_world()


def test_a_rule_of_a_hundred_busy_templates_ends_in_seconds_and_says_why(world: World) -> None:
    steps = [step(f"n{number}", "add_note", text=BUSY) for number in range(100)]
    busy = world.rule("Busy", *steps, trigger=when("created"))
    started = time.thread_time()
    world.ticket()
    assert time.thread_time() - started < 4 * LONGEST + 2
    assert world.states(busy) == ["failed template_error"]
    assert "take too long" in world.dead_letters()[0].error
    plain = world.rule(
        "Plain", *[{**PLAIN, "id": f"n{number}"} for number in range(100)], trigger=when(fields=["subject"])
    )
    ticket = world.runs(busy)[0].record
    with world.acting():
        world.change(Ticket.objects.get(pk=ticket), subject="Another")
    assert world.states(plain) == ["succeeded"]


def test_the_rules_of_one_event_do_not_all_start_in_one_transaction_where_they_are_too_many(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("automation.engine.starting.LEADING", 3)
    rules = [
        world.rule(f"R{n}", *[step(f"t{m}", "add_tags", tags=[f"r{n}s{m}"]) for m in range(2)], trigger=when("created"))
        for n in range(4)
    ]
    waited = 0
    really = LocalTurn.run

    def noticed(turn: LocalTurn, claimed: Claimed) -> None:
        nonlocal waited
        waited += 1
        really(turn, claimed)

    monkeypatch.setattr(LocalTurn, "run", noticed)
    ticket = world.ticket()
    assert [world.states(rule) for rule in rules] == [["succeeded"]] * 4
    assert world.fresh(ticket).tags == sorted(f"r{n}s{m}" for n in range(4) for m in range(2))
    assert waited == 2  # the third and the fourth


@pytest.mark.django_db
def test_a_turn_that_is_over_as_soon_as_it_begins_still_gets_on(settings: Settings) -> None:
    settings.AUTOMATION_MATCH_SLICE = 0.0
    slow = make_world()
    rule = slow.rule("Tag", step("t", "add_tags", tags=["seen"]), trigger=when("created"))
    with slow.acting():
        tickets = [TicketFactory(tenant=slow.tenant) for _ in range(5)]
    slow.run()
    assert slow.states(rule) == ["succeeded"] * 5
    assert [slow.fresh(ticket).tags for ticket in tickets] == [["seen"]] * 5


def test_a_long_text_that_many_conditions_read_is_prepared_once() -> None:
    facts = {"snapshot": {"description": "ä" * 4000}, "before": {}, "after": {}, "data": {}, "cut": []}
    moment = Moment(now=datetime.now(UTC), zone=ZoneInfo("UTC"))
    judges = [compile_condition(Leaf(f"c{n}", "description", "contains", f"z{n}", "text", None)) for n in range(2000)]
    started = time.thread_time()
    assert {judge(facts, moment).value for judge in judges} == {"false"}
    assert time.thread_time() - started < 0.2
