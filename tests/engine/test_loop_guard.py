"""A rule can't trigger itself for ever, and legitimate chains aren't eaten."""

import pytest

from automation.engine import rules
from automation.models import Event, Pause
from northwind.helpdesk.models import Comment, Task
from tests.engine.world import World, leaf, set_field, step, when


@pytest.mark.case("L01")
def test_a_rule_that_rewrites_its_record_runs_once_and_others_still_see_the_change(world: World) -> None:
    rewriting = world.rule("Rewrite", set_field("s", "priority", "high"))
    watching = world.rule("Watch", step("n", "add_tags", tags=["seen"]), trigger=when(fields=["priority"]))
    ticket = world.ticket()
    world.change(ticket, subject="Another subject")
    assert world.states(rewriting)[0] == "succeeded"
    assert set(world.states(rewriting)[1:]) == {"suppressed loop_same_rule"}
    assert world.states(watching)[0] == "succeeded"
    with world.acting():
        written = Event.objects.filter(source="automation").order_by("id").first()
    assert written is not None
    assert written.path == [[rewriting.pk, f"helpdesk.ticket:{ticket.pk}"]]


@pytest.mark.case("L02")
def test_two_rules_that_flip_a_status_stop_by_what_their_events_record(world: World) -> None:
    there = world.rule("There", set_field("s", "status", "pending"), condition=leaf("status", "changed_to", "open"))
    back = world.rule("Back", set_field("s", "status", "open"), condition=leaf("status", "changed_to", "pending"))
    ticket = world.ticket()
    world.change(ticket, status="open")
    assert world.states(there) == ["succeeded", "suppressed loop_same_rule"]
    assert world.states(back) == ["succeeded"]
    assert [run.depth for run in world.runs()] == [0, 1, 2]


@pytest.mark.case("L04")
def test_a_second_different_change_by_a_person_is_a_new_root(world: World) -> None:
    rule = world.rule("Listen", step("t", "add_tags", tags=["x"]), trigger=when(fields=["subject", "priority"]))
    ticket = world.ticket()
    world.change(ticket, subject="One")
    world.change(ticket, priority="high")
    assert world.states(rule) == ["succeeded", "succeeded"]


@pytest.mark.case("L04")
def test_a_wanted_chain_of_rules_runs_through(world: World) -> None:
    first = world.rule("First", set_field("s", "priority", "high"), trigger=when("created"))
    second = world.rule(
        "Second", step("n", "add_note", text="It is high now"), condition=leaf("priority", "changed_to", "high")
    )
    world.ticket()
    assert world.states(first) == ["succeeded"]
    assert world.states(second)[0] == "succeeded"
    assert world.runs(second)[0].depth == 1


@pytest.mark.case("L10")
def test_a_rule_that_creates_records_of_its_own_kind_ends_at_the_depth_cap(world: World) -> None:
    rule = world.rule(
        "Breed",
        step("c", "create_record", model="helpdesk.task", values={"title": "Another"}),
        trigger=when("created", model="helpdesk.task"),
    )
    with world.acting():
        Task(tenant=world.tenant, title="First").save()
    world.run()
    states = world.states(rule)
    assert states == ["succeeded"] * 5 + ["suppressed loop_depth"]
    with world.acting():
        assert Task.objects.count() == 6


@pytest.mark.case("L13")
def test_a_write_that_changes_nothing_makes_no_event_and_says_so(world: World) -> None:
    rule = world.rule("Same", set_field("s", "priority", "high"), condition=leaf("priority", "is", "high"))
    ticket = world.ticket(priority="high")
    with world.acting():
        before = Event.objects.count()
        world.fresh(ticket).save()
        assert Event.objects.count() == before
    world.change(ticket, subject="Touched")
    assert world.states(rule) == ["succeeded"]
    assert world.steps(world.runs(rule)[0])["s"].output["note"] == "no change"


def test_a_rule_that_runs_too_often_on_a_record_is_held_and_its_events_are_kept(world: World) -> None:
    rule = world.rule("Often", step("n", "add_tags", tags=["x"]), trigger=when(fields=["subject"]))
    ticket = world.ticket()
    from_outside = [f"Subject {number}" for number in range(23)]
    for subject in from_outside:
        with world.acting(), world.by_api():
            ticket.subject = subject
            ticket.save()
        world.commit()
    world.run_until_held()
    states = world.states(rule)
    assert states[:20] == ["succeeded"] * 20
    assert states[20] == "suppressed rate"
    assert states[21:] == ["pending paused", "pending paused"]
    with world.acting():
        assert Pause.objects.filter(scope="rule", subject_id=rule.pk, ended_at=None, reason="rate").exists()
        rules.switch_off(rule.pk, waiting="hold")
        rules.switch_on(rule.pk)
    world.run()
    assert world.states(rule)[21:] == ["succeeded", "succeeded"]


def test_a_person_may_change_one_record_as_often_as_she_likes(world: World) -> None:
    rule = world.rule("Often", step("n", "add_tags", tags=["x"]), trigger=when(fields=["subject"]))
    ticket = world.ticket()
    for number in range(25):
        world.change(ticket, subject=f"Subject {number}")
    assert world.states(rule) == ["succeeded"] * 25


def test_a_root_event_has_a_budget_of_runs(world: World, settings: pytest.FixtureRequest) -> None:
    settings.AUTOMATION_LOOP_STOP = 3
    world = World(world.tenant, world.ana)
    world.rule(
        "Spread",
        *[step(f"c{n}", "create_record", model="helpdesk.task", values={"title": "More"}) for n in range(3)],
        trigger=when("created", model="helpdesk.task"),
    )
    with world.acting():
        Task(tenant=world.tenant, title="First").save()
    world.run()
    states = world.states()
    assert "suppressed loop_budget" in states
    counted = [run for run in world.runs() if run.depth >= 2 and run.state == "succeeded"]
    assert len(counted) == 3


def test_a_comment_by_a_rule_is_an_update_of_its_ticket(world: World) -> None:
    rule = world.rule("Note", step("n", "add_note", text="Seen"), trigger=when(fields=["comments"]))
    ticket = world.ticket()
    with world.acting():
        Comment(tenant=world.tenant, ticket=ticket, body="Hello").save()
    world.run()
    assert world.states(rule) == ["succeeded", "suppressed loop_same_rule"]
