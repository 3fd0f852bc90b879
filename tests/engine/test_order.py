"""Order of rules and steps, re-entry, stops, branches, delays and versions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from automation.catalog import registry
from automation.engine import rules, ruleset
from automation.engine.operate import runs as run_verbs
from automation.engine.posting import post_event, run_by_hand
from automation.models import Event, Run
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, leaf, set_field, step, when

ON_SUBJECT = when(fields=["subject"])
SOLVED = leaf("status", "is", "solved")
IS_NEW = leaf("status", "is", "new")
DAY = {"id": "d", "kind": "delay", "for": "P1D"}


@pytest.mark.case("O10")
def test_the_later_position_has_the_last_word_and_a_swap_turns_it_round(world: World) -> None:
    first = world.rule("High", set_field("s", "priority", "high"), trigger=ON_SUBJECT)
    second = world.rule("Low", set_field("s", "priority", "low"), trigger=ON_SUBJECT)
    ticket = world.ticket(priority="normal")
    for number in range(10):
        world.change(ticket, subject=f"Go {number}")
        assert world.fresh(ticket).priority == "low"
    with world.acting():
        rules.move(second.pk, position=1)
    world.change(ticket, subject="After the swap")
    assert world.fresh(ticket).priority == "high"
    assert world.states(first)[-1] == "succeeded"


@pytest.mark.case("O10")
def test_stop_ends_the_later_rules_visibly(world: World) -> None:
    world.rule("Stop", {"id": "x", "kind": "stop", "ends": "later_rules"}, trigger=ON_SUBJECT)
    later = world.rule("Later", step("t", "add_tags", tags=["x"]), trigger=ON_SUBJECT)
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.states(later) == ["suppressed stopped_by_rule"]
    assert world.fresh(ticket).tags == []


@pytest.mark.case("O10")
def test_the_matching_set_is_decided_before_anything_acts(world: World) -> None:
    world.rule(
        "Close",
        set_field("s", "status", "closed"),
        condition=IS_NEW,
        trigger=ON_SUBJECT,
    )
    second = world.rule(
        "New",
        step("t", "add_tags", tags=["was-new"]),
        condition=IS_NEW,
        trigger=ON_SUBJECT,
    )
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.states(second) == ["succeeded"]
    assert world.fresh(ticket).tags == ["was-new"]


@pytest.mark.case("S08")
def test_a_rule_whose_condition_is_false_hides_no_other(world: World) -> None:
    first = world.rule("X", step("t", "add_tags", tags=["x"]), condition=leaf("status", "is", "closed"))
    second = world.rule("Y", step("t", "add_tags", tags=["y"]), condition=IS_NEW)
    world.change(world.ticket(), subject="Go")
    assert world.states(first) == []
    assert world.states(second)[0] == "succeeded"


@pytest.mark.case("O02")
def test_a_step_that_removes_the_trigger_undoes_no_earlier_one(world: World) -> None:
    rule = world.rule(
        "Check",
        set_field("s", "subject", "T"),
        step("u", "remove_tags", tags=["check"]),
        condition=leaf("tags", "has_any", ["check"]),
        trigger=when(fields=["tags"]),
    )
    ticket = world.ticket()
    world.change(ticket, tags=["check"])
    found = world.fresh(ticket)
    assert (found.subject, found.tags) == ("T", [])
    assert world.states(rule)[0] == "succeeded"


@pytest.mark.case("O01")
def test_a_later_step_keeps_what_a_person_changed_meanwhile(world: World) -> None:
    world.rule("Tag", DAY, step("t", "add_tags", tags=["x"]), trigger=when(fields=["priority"]))
    ticket = world.ticket(tags=["y"])
    world.change(ticket, run=False, priority="high")
    world.pass_time(timedelta(hours=1))
    world.change(ticket, run=False, subject="Hers", tags=[])
    world.run()
    found = world.fresh(ticket)
    assert (found.subject, found.tags) == ("Hers", ["x"])


def test_the_steps_of_one_run_on_one_record_are_one_event(world: World) -> None:
    world.rule(
        "Three",
        set_field("s", "status", "open"),
        step("t", "add_tags", tags=["x"]),
        step("n", "add_note", text="n"),
        trigger=ON_SUBJECT,
    )
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    with world.acting():
        (event,) = Event.objects.filter(source="automation")
    assert event.facts["before"] == {"status": "new", "tags": [], "comments": 0}
    assert event.facts["after"] == {"status": "open", "tags": ["x"], "comments": 1}
    assert event.actor == "Three"


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ("both", ["succeeded", "succeeded"]),
        ("keep", ["succeeded", "suppressed already_waiting"]),
        ("restart", ["cancelled superseded", "succeeded"]),
    ],
)
def test_a_rule_that_would_start_again_while_it_waits(world: World, again: str, expected: list[str]) -> None:
    rule = world.rule("Wait", DAY, step("t", "add_tags", tags=["x"]), trigger=ON_SUBJECT, again=again)
    ticket = world.ticket()
    world.change(ticket, run=False, subject="One")
    world.pass_time(timedelta(hours=1))
    world.change(ticket, run=False, subject="Two")
    world.adopt_timers()
    world.run()
    assert world.states(rule) == expected
    for run in world.runs(rule):
        ended = [one.reason for one in world.steps(run).values() if one.state == "cancelled"]
        assert ended == [run.reason] * (run.state == "cancelled")  # the step says what its run says, and names nobody


def test_the_default_of_again_is_keep_where_the_rule_begins_with_a_delay(world: World) -> None:
    rule = world.rule("Wait", DAY, trigger=ON_SUBJECT)
    ticket = world.ticket()
    world.change(ticket, run=False, subject="One")
    world.pass_time(timedelta(hours=1))
    world.change(ticket, subject="Two")
    assert world.states(rule) == ["succeeded", "suppressed already_waiting"]


def test_a_branch_after_a_delay_reads_the_record_again(world: World) -> None:
    rule = world.rule(
        "Close when quiet",
        {"id": "d", "kind": "delay", "for": "P7D"},
        {
            "id": "b",
            "kind": "branch",
            "arms": [
                {"id": "b_1", "if": leaf("status", "is", "solved"), "steps": [set_field("c", "status", "closed")]}
            ],
            "otherwise": [step("t", "add_tags", tags=["not-closed"])],
        },
        trigger=when(fields=["status"]),
        condition=leaf("status", "changed_to", "solved"),
    )
    ticket, other = world.ticket(), world.ticket()
    world.change(ticket, run=False, status="solved")
    world.change(other, run=False, status="solved")
    world.pass_time(timedelta(days=1))
    world.change(other, run=False, status="open")
    world.run()
    assert world.fresh(ticket).status == "closed"
    assert world.fresh(other).status == "open"
    taken = [world.steps(run)["b"].output["taken"] for run in world.runs(rule)[:2]]
    assert taken == ["b_1", None]


@pytest.mark.case("T19")
def test_a_delay_of_zero_is_a_delay_of_zero(world: World) -> None:
    rule = world.rule("Zero", {"id": "d", "kind": "delay", "for": "PT0S"}, step("t", "add_tags", tags=["x"]))
    ticket = world.ticket()
    started = world.runner.timers.clock
    world.change(ticket, subject="Go")
    assert world.states(rule)[0] == "succeeded"
    assert world.runner.timers.clock == started


def test_a_day_is_a_calendar_day_in_the_tenants_zone(world: World) -> None:
    world.tenant.time_zone = "Europe/Berlin"
    world.tenant.save()
    rule = world.rule("Next day", DAY)
    ticket = world.ticket()
    world.runner.timers.clock = world.runner.timers.clock.replace(month=3, day=28, hour=11)
    world.change(ticket, run=False, subject="Go")
    world.pass_time(timedelta(0))
    (step_,) = world.steps(world.runs(rule)[0]).values()
    assert datetime.fromisoformat(step_.input["until"]) == datetime(2026, 3, 29, 10, 0, tzinfo=UTC)


def test_a_step_that_is_off_is_passed_over_and_shown(world: World) -> None:
    rule = world.rule("Off", step("t", "add_tags", tags=["x"]) | {"off": True}, step("u", "add_tags", tags=["y"]))
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.fresh(ticket).tags == ["y"]
    assert world.steps(world.runs(rule)[0])["t"].state == "skipped"


@pytest.mark.case("V01")
def test_waiting_runs_finish_on_their_version_and_new_events_follow_the_new_one(world: World) -> None:
    rule = world.rule("Mail", DAY, step("a", "add_note", text="A"), step("b", "add_note", text="B"), trigger=ON_SUBJECT)
    tickets = [world.ticket() for _ in range(3)]
    for ticket in tickets:
        world.change(ticket, run=False, subject="Go")
    world.pass_time(timedelta(hours=1))
    world.republish(rule, step("x", "add_note", text="X"))
    late = world.ticket()
    world.change(late, subject="Go")
    runs = world.runs(rule)
    assert [sorted(world.steps(run)) for run in runs] == [["a", "b", "d"]] * 3 + [["x"]]
    with world.acting():
        numbers = list(Run.objects.filter(rule=rule).order_by("id").values_list("rule_version__number", flat=True))
    assert numbers == [1, 1, 1, 2]


@pytest.mark.case("V02")
def test_a_draft_that_is_not_published_runs_nowhere(world: World) -> None:
    rule = world.rule("Tag", step("t", "add_tags", tags=["one"]), trigger=ON_SUBJECT)
    with world.acting():
        definition = {**rule.published.definition, "steps": [step("t", "add_tags", tags=["two"])]}
        rules.save_draft(rule.pk, definition, base_revision=rule.draft.revision)
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.fresh(ticket).tags == ["one"]


@pytest.mark.case("V04")
def test_switching_off_holds_what_waits_and_switching_on_lets_it_go_on(world: World) -> None:
    rule = world.rule("Later", DAY, step("t", "add_tags", tags=["x"]), trigger=ON_SUBJECT)
    kept, stopped = world.ticket(), world.ticket()
    for ticket in (kept, stopped):
        world.change(ticket, run=False, subject="Go")
    world.pass_time(timedelta(hours=23))
    with world.acting():
        rules.switch_off(rule.pk, waiting="hold")
    world.pass_time(timedelta(hours=2))
    assert world.fresh(kept).tags == []
    assert [run.reason for run in world.runs(rule)] == ["rule_off", "rule_off"]
    with world.acting():
        run_verbs.cancel(world.runs(rule)[1].pk)
        rules.switch_on(rule.pk)
    world.run()
    assert world.fresh(kept).tags == ["x"]
    assert world.states(rule) == ["succeeded", "cancelled cancelled_by"]


@pytest.mark.case("X05")
def test_a_deleted_record_can_still_start_a_rule_that_reads_its_last_snapshot(world: World) -> None:
    world.connection()
    world.rule("Gone", step("c", "call_webhook", connection="hook"), trigger=when("deleted"))
    ticket = world.ticket(subject="The last words")
    with world.acting():
        Ticket.objects.get(pk=ticket.pk).delete()
    world.run()
    (call,) = world.calls()
    assert call.door.event["snapshot"]["subject"] == "The last words"


@pytest.mark.case("X02")
def test_a_rule_whose_field_is_gone_does_not_run_and_says_why(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = world.rule(
        "Cloud",
        step("t", "add_tags", tags=["x"]),
        condition={"all": [IS_NEW, leaf("channel", "is", "web")]},
    )
    other = world.rule("Fine", step("u", "add_tags", tags=["fine"]))
    ticket = world.ticket()
    entry = registry.models["helpdesk.ticket"]
    fields = {path: one for path, one in entry.fields.items() if path != "channel"}
    monkeypatch.setitem(registry.models, "helpdesk.ticket", replace(entry, fields=fields))
    ruleset.forget()
    world.change(ticket, subject="Go")
    ruleset.forget()
    assert world.states(rule)[0].startswith("suppressed")
    assert world.states(other)[0] == "succeeded"


def test_a_custom_event_and_a_press_of_the_button_start_rules(world: World) -> None:
    rule = world.rule(
        "Paid",
        step("t", "add_tags", tags=["paid"]),
        trigger={"kind": "custom_event", "params": {"name": "invoice_paid", "model": "helpdesk.ticket"}},
    )
    manual = world.rule(
        "By hand",
        step("t", "add_tags", tags=["hand"]),
        trigger={"kind": "manual", "params": {"model": "helpdesk.ticket"}},
    )
    ticket = world.ticket()
    with world.acting():
        post_event(world.tenant, "invoice_paid", record=ticket, data={"amount": 5}, key="k1")
        run_by_hand(manual.pk, ticket)
    world.run()
    assert world.states(rule) == ["succeeded"]
    assert world.states(manual) == ["succeeded"]
    assert world.fresh(ticket).tags == ["hand", "paid"]
