"""A rule is switched off by its breaker after ten runs that failed one after the other, each for another record."""

import pytest
from django.db import connection

from automation.catalog.action import Outcome
from automation.engine import rules
from automation.engine.effects import EffectCall
from automation.models import Event, Notice, Rule, Run
from automation.store import protection
from tenants.models import AuditEntry
from tests.engine.world import World, step, when


def hook() -> dict:
    return step("call", "call_webhook", connection="hook")


def refused(call: EffectCall) -> Outcome:
    return Outcome.rejected("422 Unprocessable") if call.step_id is not None else Outcome.done()


def fail(world: World, times: int) -> None:
    tickets = [world.ticket() for _ in range(times)]
    world.answer = refused
    for ticket in tickets:
        world.change(ticket, subject="Changed")


def is_on(rule: Rule) -> bool:
    rule.refresh_from_db()
    return rule.on


def test_ten_failures_over_distinct_records_switch_it_off_and_its_people_are_told_once(world: World) -> None:
    world.connection()
    with world.acting():
        rule, other = (
            world.rule("Tell", hook(), trigger=when(fields=["subject"])),
            world.rule("Other", step("note", "add_note", text="x")),
        )
        fail(world, 9)
        assert is_on(rule)
        fail(world, 1)
        assert not is_on(rule)
        assert is_on(other)
        entry = AuditEntry.objects.get(verb="switch_off", target=f"rule:{rule.pk}")
        assert (entry.reason, entry.actor_name) == ("breaker", "")
        [notice] = Notice.objects.filter(kind="rule_off")
        assert notice.recipients == [world.ana.user.email]
        event = Event.objects.get(kind="limit_reached")
        assert (event.facts["data"]["limit"], event.facts["data"]["rule"]) == ("failing_rule", "Tell")


def test_a_success_between_them_begins_the_count_anew(world: World) -> None:
    world.connection()
    with world.acting():
        rule = world.rule("Tell", hook(), trigger=when(fields=["subject"]))
        fail(world, 6)
        ticket = world.ticket()
        world.answer = lambda call: Outcome.done()
        world.change(ticket, subject="Fine")
        fail(world, 6)
        assert is_on(rule)


def test_one_record_that_fails_all_the_time_is_no_broken_rule(world: World) -> None:
    world.connection()
    with world.acting():
        rule, ticket = world.rule("Tell", hook(), trigger=when(fields=["subject"])), world.ticket()
        world.answer = refused
        for number in range(12):
            world.change(ticket, subject=f"Change {number}")
        assert is_on(rule)


def test_switched_on_again_it_has_ten_failures_before_it(world: World) -> None:
    world.connection()
    with world.acting():
        rule = world.rule("Tell", hook(), trigger=when(fields=["subject"]))
        fail(world, 10)
        assert not is_on(rule)
        rules.switch_on(rule.pk)
        fail(world, 1)
        assert is_on(rule)


def test_what_is_published_while_it_is_counted_has_ten_failures_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.connection()
    with world.acting():
        rule = world.rule("Tell", hook(), trigger=when(fields=["subject"]))
        fail(world, 9)
        count = protection.failed_in_a_row

        def meanwhile(tenant_id: int, rule_id: int) -> int:
            found = count(tenant_id, rule_id)
            monkeypatch.setattr(protection, "failed_in_a_row", count)
            world.republish(rule, step("note", "add_note", text="mended"))
            return found

        monkeypatch.setattr(protection, "failed_in_a_row", meanwhile)
        fail(world, 1)
        assert is_on(rule)


def test_a_rule_may_listen_to_what_was_switched_off(world: World) -> None:
    world.connection()
    world.connection("pager")
    with world.acting():
        world.rule("Tell", hook(), trigger=when(fields=["subject"]))
        alarm = world.rule(
            "Alarm",
            step("call", "call_webhook", connection="pager", body='{"off": "{{ event.rule }}"}'),
            trigger={"kind": "limit_reached", "params": {"limits": ["failing_rule"]}},
        )
        world.rule(
            "Not this one",
            step("call", "call_webhook", connection="pager"),
            trigger={"kind": "limit_reached", "params": {"limits": ["rules"]}},
        )
        fail(world, 10)
        world.run()
        assert [run.rule_id for run in world.runs() if run.model == ""] == [alarm.pk]


def test_failures_are_counted_however_many_newer_runs_still_wait(world: World) -> None:
    world.connection()
    with world.acting():
        rule = world.rule("Tell", hook(), trigger=when(fields=["subject"]))
        fail(world, 9)
        run = Run.objects.filter(rule=rule).latest("id")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO automation_run (tenant_id, rule_id, rule_version_id, event_id, state, model, root_event_id,"
            " depth) SELECT r.tenant_id, r.rule_id, r.rule_version_id, -n, 'waiting', r.model, r.root_event_id, 0"
            " FROM automation_run r, generate_series(1, 600) n WHERE r.id = %s",
            [run.pk],
        )
    assert protection.failed_in_a_row(world.tenant.pk, rule.pk) == 9
