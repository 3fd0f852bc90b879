"""A rule takes up the records that it concerns already, at a pace, once, and no other rule hears of it."""

from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automation.catalog import registry
from automation.core.conditions import compile_condition
from automation.core.moments import Moment
from automation.core.spec import Condition, Group, Leaf
from automation.definitions.standing import standing
from automation.engine import rules, ruleset
from automation.engine.match import listens
from automation.engine.operate import Refused, pause
from automation.engine.rules import taking_up
from automation.models import Event, Lane, Rule
from automation.store import clock, events
from automation.store import rules as rule_rows
from northwind.helpdesk.models import Ticket
from tenants.models import AuditEntry
from tests.engine.world import World, leaf, make_world, step, when

TAG = step("t", "add_tags", tags=["seen"])


def urgent(world: World, count: int = 3) -> list[Ticket]:
    return [world.ticket(priority="urgent") for _ in range(count)]


def rule_of(world: World, **definition: Any) -> Rule:
    definition = {"condition": leaf("priority", "changed_to", "urgent"), "trigger": when("updated")} | definition
    return world.rule("Tag urgent ones", TAG, **definition)


def work(world: World, *, seconds: float = 60) -> int:
    """What workers do once so long a time has gone by, and all that follows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_rule SET taking_up = jsonb_set(taking_up, '{next_at}',"
            " to_jsonb((taking_up ->> 'next_at')::timestamptz - make_interval(secs => %s)))"
            " WHERE taking_up IS NOT NULL",
            [seconds],
        )
    done = taking_up.work(late=seconds)
    world.commit()
    world.run()
    return done


def tagged(world: World) -> int:
    with world.acting():
        return Ticket.objects.filter(tags__contains=["seen"]).count()


def state(world: World, rule: Rule) -> rules.TakingUp | None:
    with world.acting():
        return rules.TakingUp.of(rules.find(rule.pk))


def test_the_records_that_are_so_already_are_done_and_the_others_left_alone(world: World) -> None:
    urgent(world)
    calm = world.ticket(priority="low")
    rule, other = rule_of(world), world.rule("Other", step("o", "add_tags", tags=["other"]))
    with world.acting():
        rules.take_up(rule.pk, rate=600, reason="new rule")

    assert work(world) == 3

    assert world.states(rule) == ["succeeded"] * 3
    assert tagged(world) == 3
    assert world.fresh(calm).tags == []
    # It hears of what the rule did, as always, but not of the records taken up.
    assert world.states(other).count("succeeded") == 3
    assert state(world, rule) is None
    with world.acting():
        begun, ended = AuditEntry.objects.filter(verb__in=["take_up", "taken_up"]).order_by("id")
        event = Event.objects.filter(name=str(rule.pk)).earliest("id")
    assert (begun.reason, ended.reason, ended.after["posted"]) == ("new rule", "finished", 3)
    assert (event.actor, event.source, event.change) == ("Ana", "schedule", "updated")


def test_an_event_that_is_for_one_rule_is_heard_by_no_other_wherever_it_is_judged(world: World) -> None:
    urgent(world, 1)
    rule, other = rule_of(world), world.rule("Other", TAG, trigger=when("updated"))
    with world.acting():
        rules.take_up(rule.pk, rate=600)
        taking_up.work(late=1)
        [event] = Event.objects.filter(name=str(rule.pk))
        row = events.unmatched(world.tenant.pk, 200)[-1]
        tenant = ruleset.of_tenant(world.tenant.pk, Lane.objects.get(tenant=world.tenant).rules_version)
    assert row.id == event.pk
    heard = {one.rule_id: listens(one, row) for one in tenant.rules}
    assert heard == {rule.pk: True, other.pk: False}


def test_it_keeps_to_its_pace(world: World) -> None:
    urgent(world, 5)
    rule = rule_of(world)
    with world.acting():
        rules.take_up(rule.pk, rate=6)

    assert work(world, seconds=10) == 2
    assert work(world, seconds=0) == 0
    assert work(world, seconds=10) == 1
    with world.acting():
        rules.take_up(rule.pk, rate=600)
        rules.take_up(rule.pk, rate=600)
        assert AuditEntry.objects.filter(verb="take_up").count() == 2
    assert work(world) == 2
    assert tagged(world) == 5


def test_a_standstill_of_the_workers_makes_no_burst(world: World) -> None:
    urgent(world, 30)
    rule = rule_of(world)
    with world.acting():
        rules.take_up(rule.pk, rate=600)
        rule_rows.set_taking_up(rule.pk, {**state(world, rule).kept(), "next_at": "2020-01-01T00:00:00+00:00"})  # type: ignore[union-attr]
    assert taking_up.work(late=0.5) == 1
    assert taking_up.work(late=0.5) <= 1


def test_records_that_came_later_are_events_of_their_own(world: World) -> None:
    urgent(world, 1)
    rule = rule_of(world)
    with world.acting():
        rules.take_up(rule.pk, rate=600)
    world.ticket(priority="urgent")
    assert work(world) == 1
    assert tagged(world) == 1


def test_a_record_is_taken_up_once_for_a_version(world: World) -> None:
    urgent(world, 2)
    rule = rule_of(world)
    for _time in range(2):
        with world.acting():
            rules.take_up(rule.pk, rate=600)
        work(world)
    assert world.states(rule) == ["succeeded"] * 2


def test_few_records_among_many_are_found_window_by_window(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking_up, "WINDOW", 1)
    for priority in ("low", "low", "low", "urgent", "low", "low", "urgent"):
        world.ticket(priority=priority)
    rule = rule_of(world)
    with world.acting():
        rules.take_up(rule.pk, rate=6000)
    done = [work(world) for _round in range(6)]
    assert sum(done) == tagged(world) == 2
    assert state(world, rule) is None


def test_a_pause_keeps_the_rest_for_later(world: World) -> None:
    urgent(world, 2)
    rule = rule_of(world)
    with world.acting():
        rules.take_up(rule.pk, rate=600)
        pause.pause(level="new", reason="wait")
    assert work(world) == 0
    with world.acting():
        pause.resume()
        pause.pause_rule(rule.pk, "wait")
    assert work(world) == 0
    with world.acting():
        pause.resume_rule(rule.pk)
    assert work(world) == 2


def test_switched_off_deleted_or_stopped_it_ends(world: World) -> None:
    urgent(world, 1)
    off, deleted, stopped = rule_of(world), rule_of(world), rule_of(world)
    with world.acting():
        for rule in (off, deleted, stopped):
            rules.take_up(rule.pk, rate=600)
        rules.switch_off(off.pk)
        rules.delete(deleted.pk)
        assert rules.stop_taking_up(stopped.pk)
        assert not rules.stop_taking_up(stopped.pk)
    assert work(world) == 0
    with world.acting():
        assert not Rule.objects.filter(taking_up__isnull=False).exists()


def test_what_makes_no_sense_is_refused(world: World) -> None:
    rule = rule_of(world)
    manual = world.rule("Hand", TAG, trigger={"kind": "manual", "params": {"model": "helpdesk.ticket"}})
    off = world.rule("Off", TAG, on=False)
    with world.acting():
        for rate in (0, -1, 6001):
            with pytest.raises(Refused, match="rate"):
                rules.take_up(rule.pk, rate=rate)
        for one in (manual, off):
            with pytest.raises(Refused, match="Only a rule"):
                rules.take_up(one.pk, rate=60)
    with make_world().acting(), pytest.raises(Rule.DoesNotExist):
        rules.take_up(rule.pk, rate=60)


def test_publishing_may_take_them_up_at_once(world: World) -> None:
    urgent(world, 2)
    rule = rule_of(world)
    with world.acting():
        draft = rules.find(rule.pk).draft
        whole = {**draft.definition, "steps": [{**TAG, "params": {"tags": ["seen", "twice"]}}]}
        saved = rules.save_draft(rule.pk, whole, base_revision=draft.revision)
        assert "They are run for at 600 a minute." in rules.plan(rule.pk).sentences(existing_rate=600)
        rules.publish(rule.pk, revision=saved.revision, existing_rate=600)
    assert work(world) == 2
    assert tagged(world) == 2


LEAVES = st.builds(
    lambda op, value: Leaf("c", "priority", op, *([] if op == "changed" else [value]), type="choice"),
    st.sampled_from(["is", "is_not", "changed_to", "changed_from", "changed", "was"]),
    st.sampled_from(["low", "urgent"]),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    LEAVES,
    lambda items: st.builds(
        lambda mode, some: Group("g", mode, tuple(some)),
        st.sampled_from(["all", "any", "none"]),
        st.lists(items, min_size=1, max_size=3),
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(condition=CONDITIONS, priority=st.sampled_from(["low", "urgent"]), before=st.sampled_from(["low", "urgent"]))
def test_what_is_surely_concerned_matches_and_what_matches_may_be_concerned(
    world: World, condition: Condition, priority: str, before: str
) -> None:
    with world.acting():
        ticket = Ticket.objects.first() or world.ticket()
        Ticket.objects.filter(pk=ticket.pk).update(priority=priority)
        moment = Moment(now=clock.now(), zone=world.tenant.zone)
        found = standing(condition, registry.models["helpdesk.ticket"], moment)
        least, most = (Ticket.objects.filter(wanted).exists() for wanted in (found.least, found.most))
    judge = compile_condition(condition)
    now = {"snapshot": {"priority": priority}, "after": {"priority": priority}, "before": {}, "data": {}, "cut": []}
    made, changed = now | {"change": "created"}, now | {"change": "updated", "before": {"priority": before}}
    if least:
        assert judge(made, moment).value == "true"
    if before != priority and judge(changed, moment).value == "true":
        assert most
    assert most or not least
