"""A run's trace explains why it ran, what it did, what it waits for, and what it led to."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from factories import TicketFactory
from operating import (
    DEFINITION,
    Place,
    lease,
    make_dead_run,
    make_event,
    make_live_run,
    make_rule,
    make_run,
    make_step,
    make_timer,
)
from operating import place as new_place

from automation.engine import rules
from automation.engine.lists import dead_letters, rules_with_counts, runs
from automation.engine.operate import pause
from automation.engine.operate.dead_letters import retry
from automation.engine.trace import trace
from automation.models import Rule, RuleDraft, Run
from automation.store import clock
from tenants.context import acting_for
from tenants.models import Membership

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Iterator[Place]:
    acme = new_place(time_zone="Europe/Berlin")
    with acting_for(acme.tenant.pk, acme.actor):
        yield acme


def step(kind: str, step_id: str, **more: Any) -> dict[str, Any]:
    return {"id": step_id, "kind": kind, **more}


def note(step_id: str, **more: Any) -> dict[str, Any]:
    return step("action", step_id, action="add_note", version=1, params={"text": "Hello"}, **more)


def branching() -> dict[str, Any]:
    definition = deepcopy(DEFINITION)
    definition["condition"] = {
        "id": "g_1",
        "all": [
            {"id": "c_1", "field": "priority", "op": "changed_to", "value": "urgent"},
            {"id": "c_2", "field": "subject", "op": "contains", "value": "water"},
            {"id": "c_3", "field": "channel", "op": "is", "value": "email"},
        ],
    }
    gold = {"id": "c_4", "field": "customer.plan", "op": "is", "value": "gold"}
    definition["steps"] = [
        step(
            "branch",
            "split",
            arms=[{"id": "b_1", "if": gold, "steps": [note("thank", note="They pay for it")]}],
            otherwise=[note("say_no")],
        ),
        step("delay", "later", **{"for": "PT2H"}),
        note("after", off=True),
    ]
    return definition


def test_each_condition_is_shown_with_what_was_wanted_what_was_read_and_the_result(acme: Place) -> None:
    rule = make_rule(acme.tenant, definition=branching())
    run = make_run(rule, state="suppressed", reason="loop_depth")

    found = trace(run.pk)

    assert found.condition is not None
    assert found.condition.result == "false"
    shown = [(leaf.field, leaf.op, leaf.wanted, leaf.read, leaf.result) for leaf in found.condition.leaves]
    assert shown == [
        ("priority", "changed_to", "urgent", {"before": "normal", "after": "urgent"}, "true"),
        ("subject", "contains", "water", "Printer on fire", "false"),
        ("channel", "is", "email", None, "not_needed"),
    ]
    assert found.condition.labels["priority"] == "priority"
    assert (found.state, found.reason, found.waiting) == ("suppressed", "loop_depth", "")


def test_steps_come_in_the_order_of_the_definition_with_what_became_of_them(acme: Place) -> None:
    rule = make_rule(acme.tenant, definition=branching())
    run = make_run(rule, state="waiting")
    make_step(run, path="split", kind="branch", action="", state="succeeded", output={"taken": None})
    make_step(run, path="say_no", state="succeeded", attempts=1, output={"note": "added"})
    found = trace(run.pk)
    nodes = [one.path for one in found.steps]

    assert [one.id for one in found.steps] == ["split", "thank", "say_no", "later", "after"]
    states = {one.id: one.state for one in found.steps}
    assert (states["split"], states["thank"], states["later"]) == ("succeeded", "not_reached", "not_reached")
    [split, thank, _say_no, _later, after] = found.steps
    assert [(arm.id, arm.taken) for arm in split.arms] == [("b_1", False)]
    assert split.arms[0].condition is not None
    assert split.arms[0].condition.leaves[0].field == "customer.plan"
    assert (thank.note, thank.level > split.level, after.off) == ("They pay for it", True, True)
    assert str(thank.action_label)
    assert len(set(nodes)) == 5


def test_attempts_key_and_dead_letter_are_shown_at_their_step(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant))
    assert letter.run_id is not None

    found = trace(letter.run_id)

    [page] = [one for one in found.steps if one.path == "page"]
    assert page.row is not None
    assert (page.row.idempotency_key, page.row.error, page.row.effect_state) == (
        "a" * 64,
        "503 from the pager",
        "intended",
    )
    assert [(one.number, one.outcome, one.request, one.answer) for one in page.attempts] == [
        (1, "failed", "POST /page", "503"),
        (2, "failed", "POST /page", "503"),
        (3, "failed", "POST /page", "503"),
    ]
    assert (page.counted, page.dead_letter, found.dead_letter) == (3, letter, letter)

    retry(letter.pk)
    found = trace(letter.run_id)
    [page] = [one for one in found.steps if one.path == "page"]
    assert (page.counted, len(page.attempts), found.dead_letter) == (0, 3, None)
    assert [(one.verb, one.actor_name) for one in found.people] == [("retry", "Ana Admin")]


def delayed(acme: Place) -> Run:
    run = make_run(make_rule(acme.tenant), state="waiting")
    due_at = clock.now().replace(year=2031, month=1, day=2, hour=9, minute=0, second=0)
    make_timer(make_step(run, state="waiting"), kind="delay", due_at=due_at)
    return run


def backing_off(acme: Place) -> Run:
    run = make_run(make_rule(acme.tenant))
    make_timer(make_step(run, state="retrying"), kind="retry", due_at=clock.now() + timedelta(minutes=5))
    return run


def parked(acme: Place) -> Run:
    run = make_dead_run(make_rule(acme.tenant), state="waiting", reason="delivery_unknown").run
    assert run is not None
    return run


def in_line(acme: Place) -> Run:
    rule = make_rule(acme.tenant)
    for _ in range(3):
        make_live_run(rule)
    return make_live_run(rule)


def worked_on(acme: Place) -> Run:
    run = make_run(make_rule(acme.tenant))
    lease(make_timer(make_step(run, state="running")), host="alpha", pid=7)
    return run


def tenant_paused(acme: Place) -> Run:
    pause.pause(reason="the pager is broken")
    return make_live_run(make_rule(acme.tenant))


def rule_paused(acme: Place) -> Run:
    rule = make_rule(acme.tenant)
    pause.pause_rule(rule.pk, "rate")
    return make_live_run(rule)


def rule_off(acme: Place) -> Run:
    rule = make_rule(acme.tenant)
    Rule.objects.filter(pk=rule.pk).update(on=False)
    return make_live_run(rule)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (delayed, "Waits until 2 Jan 2031, 10:00:00."),
        (backing_off, "Failed and is tried again at"),
        (parked, "Waits for a person"),
        (in_line, "3 steps of this tenant are before it"),
        (worked_on, "Is being worked on by alpha:7"),
        (tenant_paused, "paused. Reason given: the pager is broken"),
        (rule_paused, "the rule is paused. Reason given: rate"),
        (rule_off, "the rule is off"),
    ],
)
def test_a_run_that_waits_says_for_what(acme: Place, make: Callable[[Place], Run], sentence: str) -> None:
    assert sentence in trace(make(acme).pk).waiting


def test_the_chain_is_followed_up_to_its_root_and_down_to_what_it_led_to(acme: Place) -> None:
    first, second = make_rule(acme.tenant, name="First"), make_rule(acme.tenant, name="Second", position=2)
    root = make_event(acme.tenant)
    start = make_run(first, event=root)
    wrote = make_step(start, path="set")
    caused = make_event(
        acme.tenant,
        source="automation",
        actor="First",
        root_event_id=root.pk,
        parent_event_id=root.pk,
        cause_rule_id=first.pk,
        cause_run_id=start.pk,
        cause_step_id=wrote.pk,
        depth=1,
    )
    stopped = make_run(second, event=caused, state="suppressed", reason="loop_same_rule")

    up = trace(stopped.pk).causes
    down = trace(start.pk).effects

    assert [(one.event_id, one.rule_name, one.run_id, one.step) for one in up] == [
        (root.pk, "", None, ""),
        (caused.pk, "First", start.pk, "set"),
    ]
    assert (up[0].actor, up[0].source) == ("Ana Admin", "person")
    assert [(one.run_id, one.rule_name, one.state, one.reason) for one in down] == [
        (stopped.pk, "Second", "suppressed", "loop_same_rule")
    ]
    assert trace(stopped.pk).effects == []


def test_a_record_is_named_and_one_that_is_gone_keeps_its_number(acme: Place) -> None:
    ticket = TicketFactory(tenant=acme.tenant, subject="Printer on fire")
    rule = make_rule(acme.tenant)
    known = make_run(rule, event=make_event(acme.tenant, record=ticket.pk))
    gone = make_run(rule, event=make_event(acme.tenant, record=10**9))

    assert trace(known.pk).record_label == f"Printer on fire (ticket {ticket.pk})"
    assert trace(gone.pk).record_label == f"ticket {10**9}"


def test_the_event_is_shown_with_what_changed(acme: Place) -> None:
    run = make_run(make_rule(acme.tenant))

    event = trace(run.pk).event

    assert [(one.field, one.before, one.after) for one in event.changes] == [("priority", "normal", "urgent")]
    assert (event.actor, event.source, event.snapshot["subject"]) == ("Ana Admin", "person", "Printer on fire")


def test_a_version_that_can_not_be_read_any_more_still_shows_what_happened(acme: Place) -> None:
    definition = deepcopy(DEFINITION)
    definition["condition"] = {"id": "c_1", "field": "gone_since", "op": "is", "value": "x"}
    run = make_run(make_rule(acme.tenant, definition=definition), state="failed")
    make_step(run, path="tell", state="succeeded")

    found = trace(run.pk)

    assert "gone_since" in found.broken
    assert found.condition is None
    assert [(one.path, one.state) for one in found.steps] == [("tell", "succeeded")]


def test_another_tenants_run_has_no_trace(acme: Place) -> None:
    other = new_place()
    with acting_for(other.tenant.pk):
        run = make_run(make_rule(other.tenant))

    with pytest.raises(Run.DoesNotExist):
        trace(run.pk)


class TestLists:
    def test_a_rules_line_tells_its_switch_its_counts_and_its_owner(self, acme: Place) -> None:
        rule = make_rule(acme.tenant, owner=acme.admin.user)
        make_live_run(rule)
        make_run(rule, state="succeeded")
        make_dead_run(rule)
        unpublished = make_rule(acme.tenant, name="Draft only", published=False, position=2)
        pause.pause_rule(rule.pk, "rate")

        [line, second] = rules_with_counts()

        assert (line.rule, line.version, line.unpublished, line.live, line.dead_letters) == (rule, 1, False, 1, 1)
        assert (line.recent, line.failed) == ({"running": 1, "succeeded": 1, "failed": 1}, 1)
        assert (line.owner, line.owner_gone) == ("Ana Admin", False)
        assert line.pause is not None
        assert line.last_run_at is not None
        assert (second.rule, second.version, second.unpublished, second.live) == (unpublished, None, True, 0)

    @pytest.mark.case("V02")
    def test_changes_that_are_not_published_are_marked(self, acme: Place) -> None:
        rule = make_rule(acme.tenant)
        changed = deepcopy(RuleDraft.objects.get(rule=rule).definition)
        changed["steps"][0]["params"]["text"] = "Different"
        rules.save_draft(rule.pk, changed, base_revision=0)

        assert rules_with_counts()[0].unpublished

    @pytest.mark.case("P04")
    def test_a_rule_whose_owner_left_is_flagged(self, acme: Place) -> None:
        make_rule(acme.tenant, owner=acme.admin.user)
        Membership.objects.update(is_active=False)

        assert rules_with_counts()[0].owner_gone

    def test_more_rules_cost_no_more_queries(self, acme: Place, django_assert_num_queries: Any) -> None:
        for position in range(1, 4):
            make_live_run(make_rule(acme.tenant, name=f"Rule {position}", position=position))
        with CaptureQueriesContext(connection) as before:
            rules_with_counts()
        for position in range(4, 12):
            make_live_run(make_rule(acme.tenant, name=f"Rule {position}", position=position))

        with django_assert_num_queries(len(before)):
            assert len(rules_with_counts()) == 11

    def test_runs_are_found_by_what_is_asked(self, acme: Place) -> None:
        rule, other = make_rule(acme.tenant), make_rule(acme.tenant, name="Other", position=2)
        imported = make_run(rule, state="failed", reason="exhausted", event=make_event(acme.tenant, batch="b1"))
        plain = make_run(rule, state="succeeded", event=make_event(acme.tenant, record=13))
        elsewhere = make_run(other)

        assert set(runs()) == {imported, plain, elsewhere}
        assert set(runs(rule_id=rule.pk)) == {imported, plain}
        assert set(runs(states=("failed", "succeeded"))) == {imported, plain}
        assert set(runs(reason="exhausted")) == {imported}
        assert set(runs(batch="b1")) == {imported}
        assert set(runs(model="helpdesk.ticket", record=13)) == {plain}
        assert set(runs(since=clock.now())) == set()
        assert set(runs(until=clock.now())) == {imported, plain, elsewhere}

    def test_dead_letters_are_grouped(self, acme: Place) -> None:
        rule = make_rule(acme.tenant)
        letters = [make_dead_run(rule) for _ in range(3)]
        make_dead_run(rule, reason="rejected")

        groups = dead_letters()

        assert [(one.rule_name, one.step, one.reason, one.count) for one in groups] == [
            ("Tell the lead", "page", "exhausted", 3),
            ("Tell the lead", "page", "rejected", 1),
        ]
        assert groups[0].newest_id == letters[-1].pk
