"""Rules that listen to runs that ended."""

import pytest

from automation.catalog.action import Outcome
from automation.engine.operate.dead_letters import discard
from automation.models import DeadLetter, Event
from tests.engine.crew import Crew
from tests.engine.world import World, leaf, set_field, step


def on_end(*on: str) -> dict:
    return {"kind": "run_ended", "params": {"model": "helpdesk.ticket", "on": list(on)}}


def hook(id_: str = "call") -> dict:
    return step(id_, "call_webhook", connection="hook")


def ends(world: World) -> list[Event]:
    with world.acting():
        return list(Event.objects.filter(kind="run_ended").order_by("id"))


@pytest.mark.case("L11")
def test_a_rule_about_failures_that_fails_itself_raises_nothing_and_each_fails_once(world: World) -> None:
    world.connection()
    failing = world.rule("Pager", hook())
    handler = world.rule("On failure", hook("again"), trigger=on_end("failed"))
    world.answer = lambda call: Outcome.rejected("bad host")
    world.change(world.ticket(), subject="Broken")
    assert world.states(failing) == ["failed rejected"]
    assert world.states(handler) == ["failed rejected"]
    [event] = ends(world)
    assert event.facts["data"]["rule"] == "Pager"
    assert (event.facts["data"]["outcome"], event.facts["data"]["dead_lettered"]) == ("failed", True)


def test_the_handler_reads_which_rule_failed_and_why(world: World) -> None:
    world.connection()
    world.rule("Pager", hook())
    world.rule(
        "On failure",
        step("note", "add_note", text="{{ event.rule }}, {{ event.step }}: {{ event.error }}"),
        trigger=on_end("dead_lettered"),
        condition=leaf("event.rule", "is", "Pager"),
    )
    world.answer = lambda call: Outcome.rejected("bad host")
    ticket = world.ticket()
    world.change(ticket, subject="Broken")
    with world.acting():
        assert [one.body for one in ticket.comments.all()] == ["Pager, call: bad host"]


def test_local_runs_that_finish_in_the_matcher_are_heard_in_the_same_go(world: World) -> None:
    first = world.rule("Urgent", set_field("set", "priority", "urgent"), condition=leaf("subject", "changed"))
    after = world.rule("After", step("tag", "add_tags", tags=["done"]), trigger=on_end("finished"))
    ticket = world.ticket()
    world.change(ticket, subject="Now")
    assert world.states(first) == ["succeeded"]
    assert world.states(after) == ["succeeded"]
    assert world.fresh(ticket).tags == ["done"]
    assert ends(world)[0].depth == 1  # it goes on in the chain of the run's event


def test_without_a_rule_that_listens_there_is_no_event(world: World) -> None:
    world.rule("Urgent", set_field("set", "priority", "urgent"))
    world.rule("After", step("tag", "add_tags", tags=["done"]), trigger=on_end("finished"), on=False)
    world.change(world.ticket(), subject="Now")
    assert ends(world) == []


def test_only_the_ends_that_were_asked_for_start_it(world: World) -> None:
    world.rule("Urgent", set_field("set", "priority", "urgent"))
    after = world.rule("After", step("tag", "add_tags", tags=["done"]), trigger=on_end("failed"))
    world.change(world.ticket(), subject="Now")
    assert len(ends(world)) == 1
    assert world.states(after) == []


def test_workers_hear_of_it_at_once_whether_a_wave_or_a_matcher_ended_the_run(world: World) -> None:
    world.connection()
    world.rule("Pager", hook(), condition=leaf("subject", "changed"))
    handler = world.rule("Handler", step("tag", "add_tags", tags=["heard"]), trigger=on_end("failed", "finished"))
    world.rule("Local", set_field("set", "priority", "urgent"), condition=leaf("subject", "changed"))
    ticket = world.ticket()
    world.change(ticket, subject="Broken", run=False)
    crew = Crew(world.tenant.pk)
    crew.script = lambda call: Outcome.rejected("bad host")
    crew.work()
    assert world.states(handler) == ["succeeded", "succeeded"]


def test_a_run_that_waits_for_a_person_is_heard_of_before_it_has_ended(world: World) -> None:
    with world.acting():
        customer = world.customer(email="ana@example.org")
    ticket = world.ticket(customer=customer)
    world.rule("Mail", step("mail", "send_email", subject="Hi", text="Hello"), condition=leaf("subject", "changed"))
    after = world.rule("After", step("tag", "add_tags", tags=["asked"]), trigger=on_end("dead_lettered"))
    failed = world.rule("Failed", step("tag", "add_tags", tags=["failed"]), trigger=on_end("failed"))
    world.answer = lambda call: Outcome.uncertain("no answer") if call.step_id else Outcome.done()
    world.change(ticket, subject="Changed")
    assert world.states(after) == ["succeeded"]
    assert world.states(failed) == []

    with world.acting():
        discard(DeadLetter.objects.get().pk)
    world.commit()
    world.run()
    assert world.states(failed) == ["succeeded"]
    assert [event.facts["outcomes"] for event in ends(world)] == [["dead_lettered"], ["failed"]]
