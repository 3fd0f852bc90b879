"""One broken endpoint slows nobody else, and burns nothing: breaker, places and hosts of a connection."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from automation.catalog.action import Outcome
from automation.core import breaker
from automation.engine import connections, health, turns
from automation.engine.effects import EffectCall, Finished
from automation.engine.operate import pause
from automation.engine.operate import steps as operate_steps
from automation.engine.operate import timers as operate_timers
from automation.models import Connection, ConnectionCall, Event, Notice, Run, StepExecution, Timer
from automation.store import breakers, claims, clock, pauses, timers
from tenants.context import every_tenant
from tenants.models import AuditEntry
from tests.engine.crew import Crew
from tests.engine.world import World, make_world, step

SLOW = {"max_attempts": 20, "base_delay": "PT30S", "factor": 1.0, "max_delay": "PT30S", "jitter": False}


def hook(connection: str = "hook", id_: str = "call") -> dict:
    return step(id_, "call_webhook", connection=connection) | {"retry": SLOW}


def down(call: EffectCall) -> Outcome:
    """What a dead endpoint answers; mails that tell people still go out."""
    return Outcome.retry("503 Service Unavailable") if call.step_id is not None else Outcome.done()


def of(world: World, name: str = "hook") -> Connection:
    with world.acting():
        return Connection.objects.get(name=name)


def break_it(world: World, records: int = 5) -> None:
    """So many records' calls fail."""
    change_some(world, records)
    world.answer = down
    world.run_until_held()


def change_some(world: World, records: int) -> None:
    """So many records are changed, and nothing is done yet."""
    for ticket in [world.ticket() for _ in range(records)]:
        world.change(ticket, subject="Changed", run=False)


@pytest.mark.parametrize(
    ("failing", "succeeding", "opens"), [(4, 0, False), (5, 0, True), (5, 5, True), (5, 6, False), (60, 59, True)]
)
def test_it_opens_with_five_failures_that_are_half_of_what_was_tried(failing: int, succeeding: int, opens: bool):
    assert breaker.opens(failing=failing, succeeding=succeeding) is opens


def test_the_waits_double_up_to_an_hour() -> None:
    minutes = [breaker.wait_after(trips) // 60 for trips in (1, 2, 3, 4, 5, 6, 7, 8, 1000)]
    assert minutes == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_while_it_is_down_steps_wait_without_an_attempt_and_say_why(world: World) -> None:
    world.connection()
    rule = world.rule("Tell", hook())
    later = world.ticket()
    break_it(world)
    assert of(world).breaker == "open"
    calls = len(world.calls())
    world.change(later, subject="Later", run=False)
    world.run_until_held()
    late = world.runs(rule)[-1]
    assert len(world.calls()) == calls
    assert (late.state, late.reason) == ("pending", "endpoint_down")
    assert world.attempts(late, "call") == []
    with world.acting():
        [notice] = Notice.objects.filter(kind="connection_down")
    assert "hook" in notice.title
    assert notice.recipients == [world.ana.user.email]


def test_it_is_tried_with_one_step_and_goes_on_by_itself_when_it_answers(world: World) -> None:
    world.connection()
    rule = world.rule("Tell", hook())
    break_it(world, records=8)
    calls = len(world.calls())
    world.pass_time(timedelta(seconds=59))
    assert len(world.calls()) == calls
    world.pass_time(timedelta(seconds=10))
    assert len(world.calls()) == calls + 1  # one try, for all that wait
    assert (of(world).breaker, of(world).breaker_trips) == ("open", 2)
    world.answer = lambda call: Outcome.done()
    world.run()
    assert of(world).breaker == "closed"
    assert set(world.states(rule)) == {"succeeded"}
    assert world.dead_letters() == []


def test_who_comes_during_a_try_goes_on_soon_after_it_succeeded(world: World) -> None:
    """The worker that tries doesn't see them any more when it lets go on what waits."""
    world.connection()
    rule = world.rule("Tell", hook())
    hold = world.runner.timers.now() + breakers.PROBE
    Connection._base_manager.update(breaker="half_open", breaker_until=hold, breaker_since=hold, breaker_trips=1)
    with world.acting():
        pauses.bump_rules(world.tenant.pk)
    change_some(world, 1)
    world.run_until_held()
    assert world.states(rule) == ["pending endpoint_down"]
    assert breakers.close(of(world).pk)
    with world.acting():
        pauses.bump_rules(world.tenant.pk)
    world.pass_time(timedelta(seconds=10))
    assert world.states(rule) == ["succeeded"]


def test_after_a_day_without_a_success_it_is_off_until_somebody_switches_it_on(world: World) -> None:
    world.connection()
    rule = world.rule("Tell", hook())
    break_it(world, records=6)
    world.pass_time(timedelta(hours=26))
    assert of(world).breaker == "off"
    assert world.dead_letters() == []
    assert {run.reason for run in world.runs(rule)} == {"endpoint_down"}
    with world.acting():
        assert Notice.objects.filter(kind="connection_off").count() == 1
        assert Event.objects.get(kind="limit_reached").facts["data"]["connection"] == "hook"
        connections.switch_on(of(world).pk)
        assert AuditEntry.objects.filter(verb="switch_on", target=f"connection:{of(world).pk}").count() == 1
    world.answer = lambda call: Outcome.done()
    world.run()
    assert set(world.states(rule)) == {"succeeded"}


def test_one_record_that_fails_again_and_again_opens_nothing(world: World) -> None:
    world.connection()
    world.rule("Tell", hook())
    break_it(world, records=1)
    world.pass_time(timedelta(minutes=9))
    assert len(world.calls()) > 10
    assert of(world).breaker == "closed"


def test_refusals_come_from_a_system_that_is_there(world: World) -> None:
    world.connection()
    world.rule("Tell", hook())
    change_some(world, 8)
    world.answer = lambda call: Outcome.rejected("422")
    world.run()
    assert of(world).breaker == "closed"


def test_other_connections_of_the_tenant_and_other_tenants_go_on(world: World) -> None:
    other = make_world()
    for each in (world, other):
        each.connection()
    world.connection("second")
    world.rule("Tell", hook())
    beside = world.rule("Beside", hook("second"))
    elsewhere = other.rule("Tell", hook())
    change_some(world, 6)
    world.answer = lambda call: down(call) if "hook" in call.door.connections else Outcome.done()
    world.run_until_held()
    assert of(world).breaker == "open"
    assert set(world.states(beside)) == {"succeeded"}
    other.change(other.ticket(), subject="Now")
    assert other.states(elsewhere) == ["succeeded"]


def test_a_changed_endpoint_is_tried_at_once(world: World) -> None:
    world.connection()
    world.rule("Tell", hook())
    break_it(world)
    with world.acting():
        connection = of(world)
        connection.endpoint = "https://new.example.com/hook"
        connections.save(connection, base_revision=connection.revision)
    world.answer = lambda call: Outcome.done()
    world.run()
    assert of(world).breaker == "closed"


@pytest.fixture
def crew(world: World) -> Crew:
    world.connection()
    return Crew(world.tenant.pk)


def test_what_waits_is_hurried_when_the_system_answers_again(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook())
    change_some(world, 7)
    crew.script = down
    crew.work()
    assert of(world).breaker == "open"
    with world.acting():
        connections.switch_on(of(world).pk)
    crew.script = lambda call: Outcome.done()
    crew.work()
    crew.skip_waiting()  # those that had failed before come back by their retries
    assert set(world.states(rule)) == {"succeeded"}


class Holding:
    """Takes calls and brings none back before it is told to."""

    def __init__(self) -> None:
        self.calls: list[EffectCall] = []
        self.back: list[Finished] = []

    def free(self) -> int:
        return 8

    def submit(self, call: EffectCall) -> None:
        self.calls.append(call)

    def finished(self) -> list[Finished]:
        back, self.back = self.back, []
        return back


def test_no_more_calls_at_a_time_than_the_connection_allows(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook())
    with world.acting():
        connection = of(world)
        connection.concurrency = 2
        connections.save(connection, base_revision=connection.revision)
    door = crew.cycle.door = Holding()
    change_some(world, 4)
    crew.work()
    assert len(door.calls) == 2
    assert sorted(run.reason for run in world.runs(rule)) == ["", "", "endpoint_down", "endpoint_down"]
    crew.skip_waiting()
    assert len(door.calls) == 2
    come_back(crew, door.calls[:1])
    assert len(door.calls) == 3  # the place of the one that came back
    come_back(crew, door.calls[1:])
    come_back(crew, door.calls[-1:])
    assert set(world.states(rule)) == {"succeeded"}
    assert {step.attempts for step in steps(world)} == {1}


def come_back(crew: Crew, calls: list[EffectCall]) -> None:
    crew.cycle.door.back = [Finished(call, Outcome.done()) for call in calls]
    crew.work()


def steps(world: World) -> list[StepExecution]:
    with world.acting():
        return list(StepExecution.objects.order_by("id"))


def narrow(world: World, crew: Crew, places: int) -> Holding:
    """The hook takes so many calls at a time, and they come back when they are told to."""
    with world.acting():
        connection = of(world)
        connection.concurrency = places
        connections.save(connection, base_revision=connection.revision)
    door = crew.cycle.door = Holding()
    return door


def looks(world: World) -> int:
    return sum(Timer.objects.values_list("deliveries", flat=True))


def test_a_place_that_is_given_back_goes_to_the_oldest_that_waits_and_wakes_no_other(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    door = narrow(world, crew, 2)
    change_some(world, 10)
    crew.work()
    assert looks(world) == 10
    change_some(world, 1)
    crew.work()
    come_back(crew, door.calls[:1])
    assert [call.run_id for call in door.calls] == sorted(run.pk for run in all_runs(world))[:3]
    assert looks(world) == 10 + 1 + 1 - 1  # one look more, and a timer less
    come_back(crew, door.calls[1:3])
    assert [call.run_id for call in door.calls] == sorted(run.pk for run in all_runs(world))[:5]


def all_runs(world: World) -> list[Run]:
    with world.acting():
        return list(Run.objects.all())


def test_who_comes_while_another_has_its_turn_waits_behind_it(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    door = narrow(world, crew, 1)
    change_some(world, 3)
    crew.work()
    first, second, late = sorted(run.pk for run in all_runs(world))
    door.back = [Finished(door.calls[0], Outcome.done())]
    with every_tenant():
        crew.cycle.turn([])
        # The last one falls due only now, and is claimed before the second is, whose turn it is.
        Timer.objects.filter(run_id=late).update(due_at=clock.now() - timedelta(days=1))
        found = claims.claim(crew.worker, pool="northwind", most=1, take=1, deadline=40, floor=-1, match_only=False)
        crew.cycle.turn(found)
    assert [call.run_id for call in door.calls] == [first]
    crew.work()
    assert [call.run_id for call in door.calls] == [first, second]


def test_a_turn_that_its_step_does_not_take_goes_to_the_next(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    door = narrow(world, crew, 1)
    change_some(world, 3)
    crew.work()
    _first, second, third = sorted(run.pk for run in all_runs(world))
    Run._base_manager.filter(pk=second).update(cancel_requested_at=clock.now())
    come_back(crew, door.calls)
    assert [call.run_id for call in door.calls][1:] == [third]


def test_more_places_are_taken_as_soon_as_the_connection_is_saved(
    world: World, crew: Crew, django_capture_on_commit_callbacks: Any
) -> None:
    world.rule("Tell", hook())
    door = narrow(world, crew, 1)
    change_some(world, 4)
    crew.work()
    with django_capture_on_commit_callbacks(execute=True):
        narrow(world, crew, 3)
    crew.cycle.door = door
    crew.work()
    assert len(door.calls) == 3


def test_a_place_that_nobody_gave_back_is_found_by_the_sweep(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    door = narrow(world, crew, 1)
    change_some(world, 2)
    crew.work()
    with world.acting():
        operate_steps.complete(door.calls[0].step_id or 0, reason="Told by phone")
    crew.work()
    assert len(door.calls) == 1
    assert turns.give_all_places() == 1
    crew.work()
    assert len(door.calls) == 2


def test_a_step_whose_worker_died_amid_its_call_is_not_in_its_own_way(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    door = narrow(world, crew, 1)
    change_some(world, 1)
    crew.work()
    Timer.objects.filter(state="leased").update(deadline_at=clock.now() - timedelta(minutes=1))
    timers.reap()
    crew.work()
    assert len(door.calls) == 2


def test_what_waits_for_a_place_and_is_put_off_by_a_person_is_left_where_it_is(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    door = narrow(world, crew, 1)
    change_some(world, 2)
    crew.work()
    waiting = Timer.objects.get(state="pending", kind="step")
    with world.acting():
        operate_timers.postpone(waiting.pk, until=clock.now() + timedelta(days=1))
    come_back(crew, door.calls)
    assert len(door.calls) == 1


def test_successes_are_written_now_and_then_and_forgotten_after_an_hour(world: World) -> None:
    world.connection()
    world.rule("Tell", hook())
    for _ in range(5):
        world.change(world.ticket(), subject="Now")
    assert ConnectionCall.objects.count() == 1


def test_of_all_workers_one_tries_and_nobody_else_while_it_does(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    change_some(world, 8)
    crew.script = down
    crew.work()
    other = Crew(world.tenant.pk)
    other.cycle.door, crew.cycle.door = Holding(), Holding()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE automation_connection SET breaker_until = automation_now()")
        cursor.execute("UPDATE automation_lane SET rules_version = rules_version + 1")
    crew.skip_waiting()
    other.skip_waiting()
    assert (len(crew.cycle.door.calls), len(other.cycle.door.calls)) == (1, 0)
    assert of(world).breaker == "half_open"
    with connection.cursor() as cursor:  # the worker that tried never came back
        cursor.execute("UPDATE automation_connection SET breaker_until = automation_now()")
    other.skip_waiting()
    assert len(other.cycle.door.calls) == 1


def test_calls_of_long_ago_are_forgotten(world: World) -> None:
    found = world.connection()
    for hours in (0.5, 2, 3):
        ConnectionCall.objects.create(connection=found, ok=True, at=clock.now() - timedelta(hours=hours))
    assert health.forget_old_calls() == 2
    assert ConnectionCall.objects.count() == 1


def test_a_switch_of_experiments_leaves_everything_to_retries(world: World) -> None:
    world.runner.cycle.health.on = False
    world.connection()
    world.rule("Tell", hook())
    break_it(world, records=8)
    assert of(world).breaker == "closed"


def test_what_is_held_takes_up_no_try_of_a_system_that_was_down(world: World) -> None:
    world.connection()
    rule = world.rule("Tell", hook())
    break_it(world)
    calls = len(world.calls())
    with world.acting():
        pause.pause_rule(rule.pk, "wait")
    world.pass_time(timedelta(minutes=3))
    assert of(world).breaker == "open"  # and due, for whoever comes first

    with world.acting():
        pause.resume_rule(rule.pk)
        pause.pause_connection(of(world).pk, "wait")
    world.pass_time(timedelta(minutes=3))
    assert of(world).breaker == "open"
    assert {run.reason for run in world.runs(rule)} == {"paused"}
    assert len(world.calls()) == calls

    with world.acting():
        pause.resume_connection(of(world).pk)
    world.answer = lambda call: Outcome.done()
    world.run()
    assert of(world).breaker == "closed"
    assert set(world.states(rule)) == {"succeeded"}
