"""Runs that don't get on are found, with the reason and the verb that helps."""

from datetime import timedelta
from typing import Any

import pytest
import structlog
from operating import Place, make_dead_run, make_live_run, make_rule, make_run, make_step
from operating import place as new_place

from automation.engine import stuck
from automation.engine.operate import Refused
from automation.engine.operate.runs import pause
from automation.engine.operate.waking import wake
from automation.engine.simulate import succeed
from automation.engine.stuck import Watch, find
from automation.models import DeadLetter, Lane, Rule, Run, StepExecution, Timer
from automation.store import clock
from tenants.models import AuditEntry
from tests.engine.crew import Crew
from tests.engine.world import World, step, when
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db
LIFE = timedelta(days=400)


@pytest.fixture
def rule(acme: Place) -> Rule:
    return make_rule(acme.tenant)


def reasons() -> list[tuple[int, str, str]]:
    return [(one.run_id, one.why, one.verb) for one in find()]


def test_a_run_that_has_what_wakes_it_is_not_stuck(rule: Rule) -> None:
    make_live_run(rule)
    make_live_run(rule, state="waiting", step="waiting", kind="delay")
    make_dead_run(rule, state="waiting", reason="delivery_unknown")
    make_run(rule, state="succeeded")
    pause(make_live_run(rule).pk)

    assert reasons() == []


def test_each_way_of_being_forgotten_has_its_reason(rule: Rule) -> None:
    lost = make_live_run(rule)
    Timer.objects.all().delete()
    ended = make_run(rule)
    make_step(ended, state="succeeded")
    closed = make_dead_run(rule, state="waiting", reason="delivery_unknown")
    DeadLetter.objects.update(resolved_at=clock.now())

    assert sorted(reasons()) == sorted(
        [
            (lost.pk, "timer_lost", "wake"),
            (ended.pk, "not_advanced", "wake"),
            (closed.run_id, "letter_closed", "cancel"),
        ]
    )
    assert all(one.forgotten and one.sentence for one in find())
    assert stuck.run_ids() == stuck.run_ids(rule.tenant_id) == [closed.run_id, ended.pk, lost.pk]
    assert stuck.run_ids(limit=1) == [closed.run_id]


@pytest.mark.parametrize(
    ("lane", "workers", "why"),
    [
        ({"paused": True}, 0, "paused"),
        ({"pool": "whale"}, 0, "no_worker"),
        ({"max_running": 0}, 1, "no_share"),
        ({}, 1, "tenant_busy"),
    ],
)
def test_what_has_been_due_for_long_says_why(
    acme: Place, rule: Rule, monkeypatch: pytest.MonkeyPatch, lane: dict[str, Any], workers: int, why: str
) -> None:
    run = make_live_run(rule)
    Timer.objects.update(due_at=clock.now() - timedelta(minutes=6))
    Lane.objects.filter(tenant=acme.tenant).update(**lane)
    monkeypatch.setattr(stuck.watch, "live_workers", lambda pool: workers)

    [found] = find()

    assert (found.run_id, found.why, found.forgotten) == (run.pk, why, False)
    assert find(longer_than=timedelta(minutes=7)) == []
    assert stuck.run_ids() == stuck.run_ids(acme.tenant.pk) == [run.pk]
    assert stuck.run_ids(new_place().tenant.pk) == []


def test_an_action_that_this_release_lacks_and_lost_workers_are_told_apart(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_live_run(rule)
    make_live_run(rule)
    StepExecution.objects.filter(run=Run.objects.order_by("id").first()).update(action="post_to_moon@3")
    Timer.objects.update(due_at=clock.now() - timedelta(minutes=6), lost=2)
    monkeypatch.setattr(stuck.watch, "live_workers", lambda pool: 1)

    assert [one.why for one in find()] == ["unknown_action", "workers_lost"]


def test_the_watch_goes_round_over_all_tenants_and_tells_each_once(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck, "AT_ONCE", 2)
    monkeypatch.setattr(stuck, "SLICE", 0)
    runs = [make_live_run(rule, deadline_at=clock.now() + LIFE) for _ in range(5)]
    Timer.objects.filter(run_id__in=[runs[0].pk, runs[3].pk]).delete()
    watch = Watch()

    with structlog.testing.capture_logs() as lines:
        found = [watch.look() for _ in range(6)]

    assert found[:3] == [1, 1, 0]
    assert [line["run_id"] for line in lines if line["what"] == "stuck run"] == [runs[0].pk, runs[3].pk]


class TestWaking:
    def lost(self, world: World, crew: Crew, *steps: dict[str, Any]) -> Run:
        world.rule("Tell", *steps, trigger=when("updated", fields=["priority"]))
        ticket = TicketFactory(tenant=world.tenant)
        crew.work()
        world.change(ticket, run=False, priority="urgent")
        crew.work()
        run = world.runs()[0]
        Timer.objects.filter(run_id=run.pk).delete()
        return run

    def test_a_lost_delay_ends_when_it_was_to_end(self, world: World, crew: Crew) -> None:
        run = self.lost(
            world, crew, {"id": "wait", "kind": "delay", "for": "PT1H"}, step("tell", "add_note", text="Hi")
        )

        wake(run.pk, "a lost timer")

        timer = Timer.objects.get(run_id=run.pk)
        assert (timer.kind, timer.due_at > clock.now() + timedelta(minutes=59)) == ("delay", True)
        with pytest.raises(Refused, match="has what wakes it"):
            wake(run.pk)
        crew.skip_waiting()
        assert world.states() == ["succeeded"]
        assert AuditEntry.objects.get(verb="wake").reason == "a lost timer"

    def test_a_run_whose_next_step_is_missing_goes_on_with_it(self, world: World, crew: Crew) -> None:
        crew.script = succeed
        run = self.lost(
            world,
            crew,
            step("first", "add_note", text="One"),
            {"id": "wait", "kind": "delay", "for": "PT1H"},
            step("last", "add_note", text="Two"),
        )
        StepExecution.objects.filter(run=run, path="wait").update(state="succeeded", ended_at=clock.now())

        wake(run.pk)
        crew.work()

        assert world.states() == ["succeeded"]
        assert set(world.steps(run)) == {"first", "wait", "last"}

    def test_what_ended_or_was_given_up_is_refused(self, rule: Rule) -> None:
        with pytest.raises(Refused, match="has ended"):
            wake(make_run(rule, state="failed").pk)
        letter = make_dead_run(rule, state="waiting", reason="delivery_unknown")
        DeadLetter.objects.update(resolved_at=clock.now())
        with pytest.raises(Refused, match="only be cancelled"):
            wake(letter.run_id or 0)
