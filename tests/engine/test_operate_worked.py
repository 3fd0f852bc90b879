"""What people do, seen from the workers: the verbs act on lanes and timers of the database that a cycle works off."""

from typing import Any

import pytest

from automation.catalog.action import Outcome
from automation.engine import rules
from automation.engine.effects import EffectCall
from automation.engine.operate import pause
from automation.engine.operate.dead_letters import retry
from automation.engine.operate.runs import Cancelled, cancel
from automation.engine.simulate import succeed
from automation.engine.trace import trace
from automation.models import DeadLetter, Lane, Rule, Run, Timer
from automation.store import claims, timers
from northwind.helpdesk.models import Comment, Ticket
from tenants.context import every_tenant
from tests.engine.crew import Crew
from tests.engine.world import World, set_field, step, when
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db
URGENT = when("updated", fields=["priority"])


def hook(id_: str = "hook", **more: Any) -> dict[str, Any]:
    once = {"max_attempts": 1, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}
    return {**step(id_, "call_webhook", connection="hook"), "retry": once, **more}


def refused(call: EffectCall) -> Outcome:
    return Outcome.retry("503")


def changed(world: World, crew: Crew) -> Ticket:
    """A ticket whose creation nobody judged, and which Ana changes then; the worker does what follows."""
    ticket: Ticket = TicketFactory(tenant=world.tenant)
    crew.work()
    world.change(ticket, run=False, priority="urgent")
    crew.work()
    return ticket


def changed_only(world: World, crew: Crew) -> Ticket:
    """A ticket that Ana changes, before any worker looks."""
    ticket: Ticket = TicketFactory(tenant=world.tenant)
    world.commit()
    world.change(ticket, run=False, priority="urgent")
    return ticket


@pytest.mark.case("R05")
def test_a_retried_run_repeats_no_finished_step_and_keeps_the_key(world: World, crew: Crew) -> None:
    rule = world.rule(
        "Tell", step("first", "add_note", text="Once"), hook(), step("last", "add_tags", tags=["told"]), trigger=URGENT
    )
    crew.script = refused
    ticket = changed(world, crew)
    assert world.states(rule) == ["failed exhausted"]
    [letter] = world.dead_letters()

    crew.script = succeed
    retry(letter.pk)
    retry(letter.pk)
    crew.work()

    assert world.states(rule) == ["succeeded"]
    assert Comment.objects.filter(ticket=ticket).count() == 1
    assert world.fresh(ticket).tags == ["told"]
    [(key, first), (same_key, second)] = crew.calls()
    assert (key == same_key, first, second) == (True, "1", "2")
    assert world.attempts(world.runs(rule)[0], "hook") == ["failed", "ok"]


def test_sent_again_as_new_it_has_another_key(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    crew.script = refused
    changed(world, crew)

    crew.script = succeed
    retry(world.dead_letters()[0].pk, as_new=True)
    crew.work()

    [(key, _first), (other, _second)] = crew.calls()
    assert key != other
    assert Run.objects.get().state == "succeeded"


def test_after_a_persons_retry_a_step_has_all_its_attempts_again(world: World, crew: Crew) -> None:
    twice = {"max_attempts": 2, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}
    rule = world.rule("Tell", hook(retry=twice))
    crew.script = refused
    changed(world, crew)
    crew.skip_waiting()
    assert len(crew.calls()) == 2

    retry(world.dead_letters()[0].pk)
    crew.work()
    assert world.states(rule) == ["running"]
    crew.skip_waiting()

    assert world.states(rule) == ["failed exhausted"]
    assert [attempt for _key, attempt in crew.calls()] == ["1", "2", "3", "4"]
    assert DeadLetter.objects.count() == 2


@pytest.mark.case("V04")
def test_a_rule_that_is_off_sends_nothing_until_it_is_on_again(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", {"id": "wait", "kind": "delay", "for": "PT1H"}, hook())
    changed(world, crew)

    rules.switch_off(rule.pk)
    crew.skip_waiting()
    assert crew.calls() == []
    assert "the rule is off" in trace(Run.objects.get().pk).waiting

    rules.switch_on(rule.pk)
    crew.skip_waiting()

    assert len(crew.calls()) == 1
    assert world.states(rule) == ["succeeded"]


@pytest.mark.case("L10")
def test_switching_off_holds_runs_that_are_queued(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook())
    Lane.objects.filter(tenant=world.tenant).update(max_running=1)

    def switch_off(call: EffectCall) -> Outcome:
        with world.acting():
            rules.switch_off(rule.pk)
        return Outcome.done()

    crew.script = switch_off
    tickets = [changed_only(world, crew) for _ in range(5)]
    crew.work()

    assert len(crew.calls()) == 1
    assert len(tickets) == 5
    assert Run.objects.filter(state__in=["pending", "running"]).count() == 4
    crew.script = succeed
    rules.switch_on(rule.pk)
    crew.work()
    assert world.states(rule) == ["succeeded"] * 5


@pytest.mark.case("V04")
def test_waiting_runs_may_finish_although_their_rule_is_off(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", {"id": "wait", "kind": "delay", "for": "PT1H"}, hook())
    changed(world, crew)

    rules.switch_off(rule.pk, waiting="finish")
    changed(world, crew)
    crew.skip_waiting()

    assert world.states(rule) == ["succeeded"]
    assert len(crew.calls()) == 1


def test_a_paused_rule_keeps_its_events_as_runs_that_wait(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", set_field("s", "status", "open"))
    other = world.rule("Other", step("t", "add_tags", tags=["seen"]))
    pause.pause_rule(rule.pk, "too loud")

    ticket = changed(world, crew)
    assert (world.states(other)[0], world.fresh(ticket).tags) == ("succeeded", ["seen"])
    assert {state.split()[0] for state in world.states(rule)} <= {"pending", "running"}
    assert world.fresh(ticket).status == "new"

    pause.resume_rule(rule.pk)
    crew.work()

    assert world.states(rule)[0] == "succeeded"
    assert world.fresh(ticket).status == "open"


def test_a_paused_tenant_ends_the_step_at_hand_and_begins_no_other(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook("one"), hook("two"))

    def paused(call: EffectCall) -> Outcome:
        with world.acting():
            assert pause.pause(reason="stop").state == "pausing"
        return Outcome.done()

    crew.script = paused
    changed(world, crew)

    assert len(crew.calls()) == 1
    assert pause.status().state == "paused"
    crew.script = succeed
    pause.resume()
    crew.work()
    assert world.states(rule) == ["succeeded"]
    assert len(crew.calls()) == 2


@pytest.mark.case("V04")
def test_a_run_that_a_worker_is_on_ends_when_its_step_returns(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook("one"), hook("two"))
    answers: list[Cancelled] = []

    def cancelled(call: EffectCall) -> Outcome:
        with world.acting():
            answers.append(cancel(call.run_id or 0))
        return Outcome.done()

    crew.script = cancelled
    changed(world, crew)

    assert answers == [Cancelled(asked=1)]
    assert world.states(rule) == ["cancelled cancelled_by"]
    assert len(crew.calls()) == 1
    assert not Timer.objects.exclude(kind="match").exists()


@pytest.mark.case("V02")
def test_an_event_follows_the_version_that_is_live_when_it_happens(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", step("n", "add_tags", tags=["one"]), trigger=URGENT)
    world.republish(rule, step("n", "add_tags", tags=["two"]))
    draft = rules.save_draft(
        rule.pk,
        {**Rule.objects.get(pk=rule.pk).draft.definition, "steps": [step("n", "add_tags", tags=["three"])]},
        base_revision=Rule.objects.get(pk=rule.pk).draft.revision,
    )

    before = changed(world, crew)
    rules.publish(rule.pk, revision=draft.revision)
    after = changed(world, crew)

    assert (world.fresh(before).tags, world.fresh(after).tags) == (["two"], ["three"])
    assert [run.rule_version.number for run in Run.objects.order_by("id")] == [2, 3]


@pytest.mark.case("V05")
def test_runs_that_are_late_end_when_their_rule_is_deleted(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook())
    Lane.objects.filter(tenant=world.tenant).update(paused=True)
    for _ in range(3):
        changed_only(world, crew)
    Lane.objects.filter(tenant=world.tenant).update(paused=False, max_running=1)
    timers.arm_match(world.tenant.pk)
    [found] = claims.claim(crew.worker, pool="northwind", most=1, take=1, deadline=40, floor=-1, match_only=True)
    with every_tenant():
        crew.cycle.turn([found])
    assert Run.objects.count() == 3

    rules.delete(rule.pk)
    crew.work()

    assert {run.state for run in Run.objects.all()} == {"cancelled"}
    assert crew.calls() == []
