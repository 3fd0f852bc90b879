"""A rule or a connection is paused while everything else goes on, in runs of the engine itself."""

from datetime import timedelta
from typing import Any

import pytest

from automation.engine.operate import pause, runs
from automation.engine.operate.pause import Choice
from automation.models import Drip, Pause, Timer
from automation.store import clock, drips
from tests.engine.world import World, make_world, step


@pytest.fixture
def world(db: Any) -> World:
    return make_world()


def call(id_: str = "call", connection: str = "hook") -> dict[str, Any]:
    return step(id_, "call_webhook", connection=connection)


def test_steps_of_a_paused_connection_wait_and_those_of_another_go_on(world: World) -> None:
    hook, _other = world.connection("hook"), world.connection("other")
    waits, goes = world.rule("Waits", call()), world.rule("Goes", call(connection="other"))
    ticket = world.ticket()
    with world.acting():
        pause.pause_connection(hook.pk, "the receiver is being moved")

    world.change(ticket, run=False, subject="Changed")
    world.run_until_held()

    assert world.states(waits) == ["pending paused"]
    assert world.states(goes) == ["succeeded"]
    assert world.attempts(world.runs(waits)[0], "call") == []

    with world.acting():
        pause.resume_connection(hook.pk)
    world.pass_time(timedelta(seconds=31))
    assert world.states(waits) == ["succeeded"]


def test_what_waited_for_a_connection_is_dropped_or_let_out_at_a_rate_and_nothing_else_is(world: World) -> None:
    hook = world.connection("hook")
    rule, held = world.rule("Calls", call()), world.rule("Held", step("note", "add_note", text="Noted"), call("later"))
    ticket = world.ticket()
    with world.acting():
        pause.pause_connection(hook.pk, "x")
        pause.pause_rule(held.pk, "y")
    world.change(ticket, run=False, subject="Changed")
    world.run_until_held()
    put_off_in_the_database(world)

    with world.acting():
        pause.resume_connection(hook.pk, Choice(rate=60))
        assert Drip.objects.get(scope="connection").held == 1
        pause.pause_connection(hook.pk, "again")
        pause.resume_connection(hook.pk, Choice("drop"))

    assert world.states(rule) == ["cancelled cancelled_by"]
    assert world.states(held) == ["pending paused"]
    assert Pause.objects.filter(scope="connection").latest("id").dropped_runs == 1


def test_a_run_that_is_paused_and_resumed_by_itself_leaves_the_drip(world: World) -> None:
    world.connection("hook")
    rule = world.rule("Calls", call())
    ticket = world.ticket()
    with world.acting():
        pause.pause_rule(rule.pk, "x")
    world.change(ticket, run=False, subject="Changed")
    world.run_until_held()
    put_off_in_the_database(world)
    (run,) = world.runs(rule)
    with world.acting():
        pause.resume_rule(rule.pk, Choice(rate=1))
        runs.pause(run.pk)
        runs.resume(run.pk)
        timer = Timer.objects.get(run_id=run.pk)
        assert (timer.state, timer.drip_id) == ("pending", None)
        drips.let_out(late=1.0)
        assert not Drip.objects.filter(ended_at=None).exists()


def test_what_a_rule_or_connection_holds_is_counted_while_it_is_put_off_again_and_again(world: World) -> None:
    hook = world.connection("hook")
    calls, quiet = world.rule("Calls", call()), world.rule("Quiet", call())
    ticket = world.ticket()
    with world.acting():
        pause.pause_connection(hook.pk, "x")
        pause.pause_rule(quiet.pk, "y")
        assert pause.held_by("rule", quiet.pk) == []
    world.change(ticket, run=False, subject="Changed")
    world.run_until_held()
    put_off_in_the_database(world)
    Timer.objects.update(due_at=clock.now() + timedelta(seconds=27))

    with world.acting():
        assert [(one.rule_name, one.steps) for one in pause.held_by("rule", quiet.pk)] == [("Quiet", 1)]
        held = pause.held_by("connection", hook.pk)
        assert ("Calls", 1) in [(one.rule_name, one.steps) for one in held]
        assert held[0].oldest == world.runs(calls)[0].created_at
        pause.resume_rule(quiet.pk)
        assert pause.held_by("rule", quiet.pk) == []


def put_off_in_the_database(world: World) -> None:
    """Writes the timers of the runner into the database, where verbs find them."""
    for run in world.runs():
        for found in world.steps(run).values():
            if found.state == "pending":
                Timer.objects.create(
                    lane=world.tenant.lane, tenant=world.tenant, kind="step", due_at=run.created_at,
                    run_id=run.pk, step_id=found.pk,
                )  # fmt: skip
