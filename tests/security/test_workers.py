"""A tenant's rules can't keep a worker for themselves: what they may cost in a transaction is bounded."""

import time

import pytest

from automation.engine.local_turn import LocalTurn
from automation.engine.rendering import LONGEST
from automation.store.claims import Claimed
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, make_world, step, when

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
