"""A backtest says which events a draft would match that the live version doesn't, and the other way round."""

import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from automation.core.errors import DefinitionError
from automation.engine import backtest
from automation.engine.backtest_chore import BacktestChore
from automation.engine.backtest_report import report
from automation.engine.operate import Refused
from automation.engine.retention.erase import erase
from automation.engine.rules import create, save_draft
from automation.models import Backtest, Event, Rule, Run
from tests.engine.world import World, leaf, make_world, set_field, step, when

pytestmark = pytest.mark.django_db

HIGH = {"id": "c", "all": [leaf("priority", "changed_to", "high")]}


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def rule(world) -> Rule:
    """A live rule on tickets that become high, whose draft listens to urgent ones and wants them open."""
    world.connection()
    rule = world.rule("Priority", step("s", "add_tags", tags=["seen"]), condition=HIGH)
    draft(
        world,
        rule,
        step("tell", "call_webhook", connection="hook"),
        step("mail", "send_email", to="customer", subject="x", text="y"),
        condition={"id": "c", "any": [leaf("priority", "changed_to", "urgent"), both_high()]},
    )
    return rule


def both_high():
    return {"id": "g", "all": [leaf("priority", "changed_to", "high"), leaf("status", "is", "open")]}


def draft(world, rule, *steps, condition, **more):
    whole = {"schema_version": 1, "trigger": when("updated"), "condition": condition, "steps": list(steps)} | more
    with world.acting():
        rule.draft.refresh_from_db()
        save_draft(rule.pk, whole, base_revision=rule.draft.revision)


def done(world, rule, **options):
    with world.acting():
        made = backtest.start(rule.pk, **options)
        while backtest.work(0, backtest_id=made.pk):
            pass
        return report(Backtest.objects.get(pk=made.pk))


def history(world) -> None:
    """Three tickets: one becomes high and open, one high and new, one urgent; and a change that concerns nobody."""
    opened, new, urgent = (world.ticket(status=status, priority="low") for status in ("open", "new", "new"))
    world.change(opened, priority="high")
    world.change(new, priority="high")
    world.change(urgent, priority="urgent")
    world.change(urgent, status="open")


def test_new_lost_and_common_matches_are_counted_and_shown_with_their_reason(world, rule):
    history(world)
    found = done(world, rule)
    assert found.state == "done"
    counts = {kind: found.counts[kind] for kind in ("live", "draft", "both", "new", "lost", "undecidable")}
    assert counts == {"live": 2, "draft": 2, "both": 1, "new": 1, "lost": 1, "undecidable": 0}
    [lost] = found.samples["lost"]
    assert (lost["because"]["field"], lost["because"]["read"]) == ("priority", {"before": "low", "after": "high"})
    [new] = found.samples["new"]
    assert new["because"]["field"] == "priority"
    assert found.judged == found.total
    with world.acting():
        kept = Backtest.objects.get(pk=found.id).result["samples"]
    assert {name for one in kept["new"] + kept["lost"] for name in one} == {"event", "record", "at", "approximate"}


def test_runs_mails_and_calls_are_estimated(world, rule):
    history(world)
    found = done(world, rule)
    assert found.estimates["sends"] == {"call": 2, "mail": 2}
    assert found.estimate == "2 runs, 4 steps, 2 mails, 0 text messages, 2 calls"


def test_it_acts_on_nothing(world, rule):
    history(world)
    with world.acting():
        before = Event.objects.count(), Run.objects.count()
        done(world, rule)
        assert (Event.objects.count(), Run.objects.count()) == before
    assert not world.calls()


def test_a_rule_that_was_never_published_is_judged_alone(world):
    history(world)
    whole = {
        "schema_version": 1,
        "trigger": when("updated"),
        "condition": HIGH,
        "steps": [set_field("s", "status", "open")],
    }
    with world.acting():
        rule = create("Draft only", definition=whole)
    found = done(world, rule)
    assert (found.against, found.counts["new"], found.counts["live"]) == (None, 2, 0)


def test_a_field_that_old_events_lack_is_read_as_of_today_and_said_to_be_approximate(world, rule):
    history(world)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE automation_event SET facts = facts #- '{snapshot,status}'")
    found = done(world, rule)
    assert found.counts["approximate"] == 2
    assert found.counts["undecidable"] == 0
    assert "status" in found.remarks[0]
    assert {one["approximate"] for one in found.samples["both"] + found.samples["lost"]} == {True}


def test_an_event_whose_details_are_gone_can_not_be_judged(world, rule):
    history(world)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE automation_event SET facts = facts - 'snapshot'")
    with world.acting():
        Event.objects.filter(change="created").update(matched_at=None)
    found = done(world, rule)
    assert found.counts["undecidable"] == 2
    assert found.samples["undecidable"][0]["because"]["reason"] == "unknown_field"


def test_branches_are_followed_on_the_events_own_values(world, rule):
    arm = {
        "id": "a",
        "if": {"id": "i", "all": [leaf("status", "is", "open")]},
        "steps": [step("m", "add_tags", tags=["x"])],
    }
    branch = {"id": "b", "kind": "branch", "arms": [arm], "otherwise": []}
    draft(world, rule, {"id": "w", "kind": "delay", "for": "P1D"}, branch, condition=HIGH)
    history(world)
    found = done(world, rule)
    assert found.estimates["actions"] == {"add_tags@1": 1}
    assert len([one for one in found.remarks if "after a wait" in one or "waits already" in one]) == 2


def test_it_goes_on_where_it_stopped_and_can_be_cancelled(world, rule, monkeypatch):
    monkeypatch.setattr("automation.engine.backtest_events.AT_ONCE", 2)
    history(world)
    with world.acting():
        made = backtest.start(rule.pk)
        assert backtest.work(0)
        made.refresh_from_db()
        assert (made.state, made.judged) == ("running", 2)
        assert backtest.work(0)
        made.refresh_from_db()
        assert made.judged == 4
        assert backtest.cancel(made.pk)
        assert not backtest.cancel(made.pk)
        assert backtest.work(0)
        made.refresh_from_db()
        assert (made.state, made.judged) == ("cancelled", 4)
        assert not backtest.work(0)
    assert done(world, rule).judged == 9


def test_only_the_newest_events_of_the_tenant_count(world, rule):
    other = make_world()
    other.ticket(priority="high")
    history(world)
    found = done(world, rule, most=2)
    assert (found.total, found.judged) == (2, 2)
    assert found.counts["new"] == 1


def test_senseless_ones_are_refused(world, rule):
    with world.acting():
        with pytest.raises(Refused, match="at most"):
            backtest.start(rule.pk, days=0)
        with pytest.raises(DefinitionError):
            backtest.start(rule.pk, definition={"schema_version": 1})
        backtest.start(rule.pk)
        backtest.start(rule.pk)
        with pytest.raises(Refused, match="Two backtests"):
            backtest.start(rule.pk)
    other = make_world()
    with other.acting(), pytest.raises(Rule.DoesNotExist):
        backtest.start(rule.pk)


def test_a_fault_in_one_is_that_ones_alone(world, rule, monkeypatch):
    history(world)
    monkeypatch.setattr("automation.engine.backtest_judging.foresee", lambda *words: 1 / 0)
    found = done(world, rule)
    assert found.state == "failed"
    assert "ZeroDivisionError" in found.error


def test_only_the_last_ones_of_a_rule_are_kept(world, rule, monkeypatch):
    monkeypatch.setattr(backtest, "KEPT", 3)
    numbers = [done(world, rule).id for _ in range(5)]
    with world.acting():
        assert list(Backtest.objects.order_by("id").values_list("id", flat=True)) == numbers[2:]


def test_the_command_shows_it_and_stops_one(world, rule, capsys):
    history(world)
    call_command("automation_backtest", "Priority", "--tenant", world.tenant.slug)
    said = capsys.readouterr().out
    assert "live matched 2 · draft matches 2 · +1 new · -1 no longer" in said
    assert "2 mails" in said
    call_command("automation_backtest", "Priority", "--tenant", world.tenant.slug, "--detach", "--json")
    made = json.loads(capsys.readouterr().out)
    assert made["state"] == "queued"
    call_command("automation_backtest", "--tenant", world.tenant.slug, "--cancel", str(made["id"]))
    assert backtest.work(0)
    call_command("automation_backtest", "--tenant", world.tenant.slug, "--show", str(made["id"]))
    assert "cancelled" in capsys.readouterr().out
    with pytest.raises(CommandError, match="has ended"):
        call_command("automation_backtest", "--tenant", world.tenant.slug, "--cancel", str(made["id"]))


def test_events_without_a_record_are_judged_too(world):
    limit = {"kind": "limit_reached", "params": {"limits": ["rules"]}}
    hook = step("t", "call_webhook", connection="hook")
    world.connection()
    world.ticket()
    rule = world.rule("Limits", hook, trigger=limit)
    draft(world, rule, hook, condition=None, trigger={"kind": "limit_reached", "params": {}})
    for name in ("rules", "running"):
        facts = {"snapshot": {}, "data": {"limit": name}, "outcomes": [name]}
        with world.acting():
            Event.objects.create(tenant=world.tenant, kind="limit_reached", source="automation", facts=facts)
    found = done(world, rule)
    assert (found.judged, found.counts["both"], found.counts["new"]) == (2, 1, 1)


def test_a_pump_works_on_it_in_its_pauses_and_now_and_then_when_it_has_none(world, rule):
    history(world)
    chore = BacktestChore()
    assert not chore.run(idle=True)
    with world.acting():
        made = backtest.start(rule.pk)
    assert not chore.run(idle=True), "it has just looked"
    chore._asked_at = -1e9
    assert chore.run(idle=False), "two seconds without a slice"
    made.refresh_from_db()
    assert made.state == "done"
    chore._asked_at = -1e9
    assert not chore.run(idle=True)


def test_what_hangs_on_erased_values_is_undecidable(world):
    rule = world.rule("Legs", step("s", "add_tags", tags=["seen"]), condition=leaf("subject", "contains", "nothing"))
    draft(world, rule, step("s", "add_tags", tags=["seen"]), condition=leaf("subject", "contains", "leg"))
    customer = world.customer(name="Gold Person")
    erased = world.ticket(subject="My left leg", customer=customer)
    other = world.ticket(subject="My right leg")
    for ticket in (erased, other):
        world.change(ticket, priority="urgent")
    with world.acting():
        erase("helpdesk.customer", customer.pk)
    found = done(world, rule)
    assert found.counts["undecidable"] == found.counts["new"] == 1
    [one] = found.samples["undecidable"]
    assert one["record"] == f"helpdesk.ticket:{erased.pk}"
    assert (one["because"]["reason"], one["because"]["read"]) == ("erased", None)
