"""A limit stops what is over it, and says so; what is honest work beside it runs at once."""

import pytest

from automation.engine import rules
from automation.engine.posting import run_by_hand
from tests.engine.world import World, step, when


@pytest.mark.case("F02")
def test_a_rule_over_its_rate_is_held_while_what_a_person_starts_runs_at_once(world: World) -> None:
    looping = world.rule("Loop", step("t", "add_tags", tags=["x"]), trigger=when(fields=["subject"]))
    by_hand = world.rule(
        "By hand",
        step("t", "add_tags", tags=["y"]),
        trigger={"kind": "manual", "params": {"model": "helpdesk.ticket"}},
    )
    ticket, other = world.ticket(), world.ticket()
    for number in range(25):
        with world.by_api():
            world.change(ticket, subject=f"Again {number}", run=False)
    world.run_until_held()
    assert world.states(looping) == ["succeeded"] * 20 + ["suppressed rate"] + ["pending paused"] * 4

    with world.acting():
        run_by_hand(by_hand.pk, other)
        world.commit()
    world.run_until_held()
    assert world.states(by_hand) == ["succeeded"]
    assert world.fresh(other).tags == ["y"]

    # What was over the limit was kept, counted, and goes on when a person has looked.
    with world.acting():
        rules.switch_off(looping.pk)
        rules.switch_on(looping.pk)
    world.run()
    assert world.states(looping) == ["succeeded"] * 20 + ["suppressed rate"] + ["succeeded"] * 4
