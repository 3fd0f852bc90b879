"""What goes wrong with one run hurts that run alone, and leaves none without a way on."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection
from structlog.testing import capture_logs

from automation.actions.add_tags import AddTags
from automation.actions.call_webhook import CallWebhook
from automation.catalog.action import Outcome
from automation.conf import Conf
from automation.engine import lease as leases
from automation.engine import rules, ruleset, threads
from automation.engine.advance import Advance
from automation.engine.cycle import Cycle
from automation.engine.effects import EffectCall, guarded
from automation.engine.lease import Lease
from automation.engine.operate.runs import Cancelled, cancel
from automation.engine.ports import LaneTimers
from automation.engine.threads import FENCED, Flight, ThreadDoor
from automation.engine.wave_turn import Done, WaveTurn
from automation.models import Attempt, DeadLetter, Event, Lane, Notice, Run, StepExecution, Timer
from automation.store import claims, runs, timers
from automation.store.timers import NewTimer
from automation.store.waves import Stale
from tenants.context import every_tenant
from tests.engine.crew import Crew
from tests.engine.world import World, leaf, set_field, step
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db
ONCE = {"max_attempts": 1, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}
TWICE = {**ONCE, "max_attempts": 2}
HOUR = {"id": "wait", "kind": "delay", "for": "PT1H"}


def hook(id_: str = "hook", **more: Any) -> dict[str, Any]:
    """A step that goes outside."""
    return {**step(id_, "call_webhook", connection="hook"), "retry": ONCE, **more}


def urgent(world: World, crew: Crew, **fields: Any) -> None:
    """A ticket whose creation was judged, and which Ana changes then, before any worker looks."""
    ticket = TicketFactory(tenant=world.tenant, **fields)
    crew.work()
    world.change(ticket, run=False, priority="urgent")


def broken(*args: Any, **kwargs: Any) -> Any:
    """A fault in somebody's code."""
    raise KeyError("a fault")


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Makes every version one that this process can't read any more, as after a release that dropped a field."""

    def make() -> None:
        monkeypatch.setattr(ruleset, "compile_definition", broken_definition)
        ruleset.forget()

    yield make
    ruleset.forget()


def broken_definition(*args: Any, **kwargs: Any) -> Any:
    """What compiling says of such a version."""
    raise ruleset.DefinitionError([])


@pytest.mark.parametrize("then", [hook(), step("tag", "add_tags", tags=["late"])], ids=["outside", "local"])
def test_a_run_whose_version_cannot_be_read_waits_until_it_can(
    world: World, crew: Crew, unreadable: Callable[[], None], monkeypatch: pytest.MonkeyPatch, then: dict[str, Any]
) -> None:
    rule = world.rule("Later", HOUR, then)
    urgent(world, crew)
    crew.work()
    assert world.states(rule) == ["waiting"]

    unreadable()
    crew.skip_waiting()
    assert world.states(rule) == ["waiting broken_reference"]
    assert Timer.objects.filter(kind="delay", state="pending").count() == 1

    monkeypatch.undo()
    ruleset.forget()
    crew.skip_waiting()
    assert "succeeded" in world.states(rule)


def test_a_run_whose_version_cannot_be_read_can_be_cancelled_while_a_worker_has_it(
    world: World, crew: Crew, unreadable: Callable[[], None]
) -> None:
    rule = world.rule("Later", HOUR, hook())
    urgent(world, crew)
    crew.work()
    unreadable()
    Timer.objects.update(due_at=datetime(2020, 1, 1, tzinfo=UTC))
    Lane.objects.update(due_hint=True)
    with every_tenant():
        [found] = claims.claim(crew.worker, pool="northwind", most=8, take=4, deadline=40, floor=-1, match_only=False)
        with world.acting():
            assert cancel(found.run_id or 0) == Cancelled(asked=1)
        crew.cycle.turn([found])
    assert world.states(rule) == ["cancelled cancelled_by"]
    assert not Timer.objects.exists()


def test_an_action_whose_code_fails_after_an_outside_step_is_tried_again_and_then_waits_for_a_person(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = world.rule("Tag", hook(), {**step("tag", "add_tags", tags=["x"]), "retry": TWICE})
    monkeypatch.setattr(AddTags, "perform", broken)
    urgent(world, crew)
    crew.work()
    [run] = world.runs(rule)
    assert (run.state, world.steps(run)["tag"].state) == ("running", "retrying")
    crew.skip_waiting()
    assert world.states(rule) == ["failed exhausted"]
    assert world.attempts(run, "tag") == ["failed", "failed"]
    assert not Timer.objects.filter(step_id__isnull=False).exists()


def test_nothing_stays_of_a_local_action_that_gives_up_half_way(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    def perform(self: AddTags, params: Any, context: Any) -> Outcome:
        context.change(tags=["half"])
        context.add_note("half")
        return Outcome.rejected("no")

    rule = world.rule("Half", set_field("first", "priority", "high"), step("tag", "add_tags", tags=["x"]))
    monkeypatch.setattr(AddTags, "perform", perform)
    ticket = TicketFactory(tenant=world.tenant)
    crew.work()
    event = world.change(ticket, run=False, status="pending")
    crew.work()
    assert world.states(rule)[0] == "failed rejected"
    after = world.fresh(ticket)
    assert (after.priority, after.tags, after.comments.count()) == ("high", [], 0)
    [written] = Event.objects.filter(parent_event_id=event.pk)
    assert list(written.facts["after"]) == ["priority"]


def test_a_version_that_breaks_the_compiler_is_one_that_cannot_be_read(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = world.rule("Tell", hook())
    ticket = TicketFactory(tenant=world.tenant)
    crew.work()
    monkeypatch.setattr(ruleset, "compile_definition", broken)
    ruleset.forget()
    world.change(ticket, run=False, priority="urgent")
    crew.work()
    assert world.runs(rule) == []
    ruleset.forget()


def test_a_fault_in_judging_an_arm_is_an_arm_that_nobody_knows(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = {"id": "a", "if": leaf("priority", "is", "urgent"), "steps": [hook("inside")]}
    rule = world.rule("Branch", {"id": "b", "kind": "branch", "arms": [arm], "otherwise": [hook("outside")]})
    ticket = TicketFactory(tenant=world.tenant)
    crew.work()
    healthy = ruleset.compile_condition
    monkeypatch.setattr(ruleset, "compile_condition", lambda condition: broken if condition else healthy(condition))
    ruleset.forget()
    world.change(ticket, run=False, priority="urgent")
    crew.work()
    [run] = world.runs(rule)
    assert (run.state, world.steps(run)["b"].output) == ("succeeded", {"taken": None, "unknown": ["a"]})
    ruleset.forget()


def test_an_action_whose_preparing_fails_costs_an_attempt_and_its_neighbours_nothing(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = CallWebhook.prepare

    def prepare(self: CallWebhook, params: Any, context: Any) -> Outcome | None:
        return broken() if context.current("subject") == "bad" else healthy(self, params, context)

    rule = world.rule("Tell", hook())
    monkeypatch.setattr(CallWebhook, "prepare", prepare)
    for subject in ("good", "bad", "good"):
        urgent(world, crew, subject=subject)
    crew.work()
    assert sorted(world.states(rule)) == ["failed exhausted", "succeeded", "succeeded"]
    assert len(crew.calls()) == 2


@pytest.mark.fault(34)
def test_an_outcome_that_breaks_the_wave_leaves_its_neighbours_settled(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = world.rule("Tell", hook())
    healthy, calls = Advance.after_attempt, []

    def after(self: Advance, run: Any, step_: Any, outcome: Outcome, wave: Any) -> Any:
        calls.append(run.id)
        return broken() if outcome.state == "done" and run.id == calls[0] else healthy(self, run, step_, outcome, wave)

    monkeypatch.setattr(Advance, "after_attempt", after)
    for _ in range(3):
        urgent(world, crew)
    crew.work()
    assert sorted(world.states(rule)) == ["failed rejected", "succeeded", "succeeded"]
    assert len(crew.calls()) == 3


def test_a_fault_in_one_local_step_leaves_those_claimed_with_it_done() -> None:
    done: list[int] = []

    def run(one: Any) -> None:
        if one.timer_id == 1:
            broken()
        done.append(one.timer_id)

    cycle = Cycle.__new__(Cycle)
    cycle.unsettled = []
    cycle.door = SimpleNamespace(finished=list)  # type: ignore[assignment]
    cycle.waves = SimpleNamespace(run=lambda *given: Done())  # type: ignore[assignment]
    cycle.health = SimpleNamespace(note=list)  # type: ignore[assignment]
    cycle.locals = SimpleNamespace(run=run)  # type: ignore[assignment]
    claimed = [SimpleNamespace(timer_id=number, kind="step", step_kind="stop", action="") for number in (1, 2, 3)]
    with pytest.raises(KeyError):
        cycle.turn(claimed)  # type: ignore[arg-type]
    assert done == [2, 3]


def test_intents_that_were_committed_before_the_connection_broke_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """All together they are refused; alone the first is committed, and with the second the connection breaks."""
    turn = WaveTurn.__new__(WaveTurn)

    def write(self: WaveTurn, finished: list[Any], claimed: list[Any]) -> Done:
        if len(finished) + len(claimed) > 1:
            raise Stale
        if claimed == ["a"]:
            return Done(calls=["call"])  # type: ignore[list-item]
        connection.connection = object()
        raise OperationalError("the connection broke")

    own = connection.connection
    monkeypatch.setattr(WaveTurn, "_in_transaction", write)
    try:
        done = turn.run([], ["a", "b", "c"])  # type: ignore[list-item]
    finally:
        connection.connection = own
    assert done.calls == ["call"]
    assert isinstance(done.broken, OperationalError)

    cycle, sent = Cycle.__new__(Cycle), []
    cycle.unsettled = []
    cycle.waves = SimpleNamespace(run=lambda *given: done)  # type: ignore[assignment]
    cycle.door = SimpleNamespace(submit=sent.append)  # type: ignore[assignment]
    with pytest.raises(OperationalError):
        cycle._wave([], [])
    assert sent == ["call"]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_breaks_in_a_wave_loses_no_outcome(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = world.rule("Tell", hook())
    urgent(world, crew)
    healthy = LaneTimers.settle

    def cut(self: LaneTimers, settlements: Any) -> None:
        if any(one.kind is None for one in settlements):
            with connection.copy().cursor() as other, connection.cursor() as own:
                own.execute("SELECT pg_backend_pid()")
                other.execute("SELECT pg_terminate_backend(%s)", own.fetchone())
                other.connection.close()
        healthy(self, settlements)

    monkeypatch.setattr(LaneTimers, "settle", cut)
    with pytest.raises(OperationalError):
        crew.work()
    assert [one.outcome.state for one in crew.cycle.unsettled] == ["done"]
    monkeypatch.undo()
    crew.work()
    assert world.states(rule) == ["succeeded"]
    assert len(crew.calls()) == 1


@pytest.mark.fault(3)
@pytest.mark.parametrize(("effect", "state"), [("at_most_once", "uncertain"), ("idempotent", "retry")])
def test_a_fault_of_the_action_may_have_come_after_the_sending(effect: str, state: str) -> None:
    call = SimpleNamespace(act=broken, door=None, effect=effect)
    assert guarded(call).state == state  # type: ignore[arg-type]


@pytest.mark.case("V04")
def test_a_message_on_its_way_when_its_run_is_cancelled_ends_it_and_is_said_to_be_uncertain(
    world: World, crew: Crew
) -> None:
    world.connection("phone", "sms")
    rule = world.rule(
        "Text", step("sms", "send_sms", connection="phone", to="number", number="+15550100", text="Hi"), hook()
    )

    def cut(call: EffectCall) -> Outcome:
        with world.acting():
            cancel(call.run_id or 0)
        return Outcome.uncertain("the socket was shut")

    crew.script = cut
    urgent(world, crew)
    crew.work()
    assert world.states(rule) == ["cancelled cancelled_by"]
    one = world.steps(world.runs(rule)[0])["sms"]
    assert (one.state, one.effect_state) == ("cancelled", "uncertain")
    assert not DeadLetter.objects.exists()


@pytest.mark.parametrize(
    "outcome",
    [Outcome.uncertain("the socket was shut"), Outcome.retry("503"), Outcome.rejected("404"), Outcome.done()],
    ids=lambda outcome: outcome.state,
)
def test_a_run_that_is_replaced_while_a_worker_has_it_blames_nobody(world: World, crew: Crew, outcome: Outcome) -> None:
    def replaced(call: EffectCall) -> Outcome:
        runs.supersede(world.tenant.pk, [call.run_id or 0])
        return outcome

    crew.script = replaced
    rule = world.rule("Tell", hook("one"), hook("two"))
    urgent(world, crew)
    crew.work()
    crew.skip_waiting()
    assert world.states(rule) == ["cancelled superseded"]
    left = world.steps(world.runs(rule)[0])
    assert [one.reason for one in left.values() if one.state == "cancelled"] == ["superseded"]


@pytest.mark.case("V05")
def test_a_refusal_that_comes_after_its_rule_was_deleted_is_no_dead_letter(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook())

    def deleted(call: EffectCall) -> Outcome:
        with world.acting():
            rules.delete(rule.pk)
        return Outcome.rejected("404 Not Found")

    crew.script = deleted
    urgent(world, crew)
    crew.work()
    assert world.states(rule) == ["cancelled cancelled_by"]
    assert world.attempts(world.runs(rule)[0], "hook") == ["failed"]
    assert not DeadLetter.objects.exists()
    assert not Notice.objects.exists()


@pytest.mark.case("V04")
def test_an_attempt_that_was_lost_is_closed_when_its_run_is_cancelled(world: World, crew: Crew) -> None:
    world.rule("Tell", hook())
    urgent(world, crew)
    timers.arm_match(world.tenant.pk)
    for _ in range(2):  # the matcher, then the intent
        with every_tenant():
            crew.cycle.turn(
                claims.claim(crew.worker, pool="northwind", most=8, take=4, deadline=40, floor=-1, match_only=False)
            )
    [attempt] = Attempt.objects.all()
    assert attempt.outcome == ""
    Run.objects.update(cancel_requested_at=datetime.now(UTC))
    crew.effects.finished()  # its worker died
    Timer.objects.update(state="pending", worker_id=None, deadline_at=None, lost=1)
    Lane.objects.update(due_hint=True, running=0)
    crew.work()
    attempt.refresh_from_db()
    [one] = StepExecution.objects.all()
    assert (attempt.outcome, one.state, one.effect_state) == ("lost", "cancelled", "uncertain")


@pytest.mark.case("V05")
def test_a_run_that_starts_while_its_rule_is_deleted_is_cancelled_by_the_worker(world: World, crew: Crew) -> None:
    rule = world.rule("Later", HOUR, hook())
    rules.delete(rule.pk)
    with connection.cursor() as cursor:  # its matcher had read the rules before
        cursor.execute('UPDATE automation_rule SET "on" = true, deleted_at = NULL WHERE id = %s', [rule.pk])
    ruleset.forget()
    urgent(world, crew)
    crew.work()
    with connection.cursor() as cursor:
        cursor.execute('UPDATE automation_rule SET "on" = false, deleted_at = now() WHERE id = %s', [rule.pk])
    ruleset.forget()
    assert world.states(rule) == ["waiting"]
    crew.skip_waiting()
    assert world.states(rule) == ["cancelled cancelled_by"]


def test_what_a_worker_may_no_longer_send_uses_up_no_attempt(world: World, crew: Crew) -> None:
    answers = iter([Outcome.retry(FENCED), Outcome.retry(FENCED), Outcome.done()])
    crew.script = lambda call: next(answers)
    rule = world.rule("Tell", hook())
    urgent(world, crew)
    crew.work()
    crew.skip_waiting()
    crew.skip_waiting()
    assert world.states(rule) == ["succeeded"]
    assert len({key for key, _attempt in crew.calls()}) == 1


def test_a_run_that_has_ended_meanwhile_is_replaced_by_nobody(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook())
    urgent(world, crew)
    crew.work()
    [run] = world.runs(rule)
    runs.supersede(world.tenant.pk, [run.pk])
    assert world.states(rule) == ["succeeded"]


def test_what_somebody_holds_goes_back_in_the_transaction_that_found_it_held(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", hook())
    urgent(world, crew)
    timers.arm_match(world.tenant.pk)
    with every_tenant():
        [match] = claims.claim(crew.worker, pool="northwind", most=8, take=4, deadline=40, floor=-1, match_only=False)
        crew.cycle.turn([match])
        Timer.objects.update(lost=1)
        [found] = claims.claim(crew.worker, pool="northwind", most=8, take=4, deadline=40, floor=-1, match_only=False)
        with world.acting():
            rules.switch_off(rule.pk)
        done = crew.cycle.waves.run([], [found])
    assert (done.calls, done.put_backs) == ([], [])
    timer = Timer.objects.get(pk=found.timer_id)
    assert (timer.state, timer.kind, timer.lost) == ("held", "step", 1)
    assert world.states(rule) == ["pending rule_off"]
    assert Lane.objects.get(tenant=world.tenant).running == 0


def test_a_notice_that_ends_its_worker_each_time_is_given_up(world: World, crew: Crew) -> None:
    notice = Notice.objects.create(
        tenant=world.tenant, kind="x", subject="y", period="z", title="Boo", recipients=["ana@example.com"]
    )
    timers.set_timers([NewTimer(world.tenant.pk, "deliver", None, subject_id=notice.pk)])
    Timer.objects.update(lost=5)
    crew.work()
    assert crew.effects.calls == []
    assert not Timer.objects.exclude(kind="match").exists()


def test_a_thread_that_came_back_at_the_last_moment_is_not_given_up_on_its_next_call() -> None:
    door = ThreadDoor(1, allow_loopback=False, may_start=lambda call: True)
    late, following = (Flight(SimpleNamespace(step_id=n), thread_id=7, ends_at=0.0) for n in (1, 2))  # type: ignore[arg-type]
    door._flights[7] = following
    door._give_up(late)
    assert (door.hung, len(door._done)) == (0, 0)
    door._give_up(following)
    assert (door.hung, len(door._done)) == (1, 1)


def test_an_effect_that_hung_before_it_sent_anything_is_tried_again_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = threading.Event(), threading.Event()

    def silent() -> None:
        asked.set()
        answered.wait(30)

    def effect(call: EffectCall) -> Outcome:
        with door.sockets.flight(time.monotonic() + 30) as flight:
            flight.sent = call.step_id == 2
            silent()
        return Outcome.retry("no answer")

    monkeypatch.setattr(threads, "guarded", effect)
    outcomes = []
    for step_id in (1, 2):
        door = ThreadDoor(1, False, may_start=lambda call: True)
        door.start()
        timer = SimpleNamespace(timer_id=step_id)
        calls = SimpleNamespace(call=None, key="", outbound=None)
        asked.clear()
        door.submit(SimpleNamespace(step_id=step_id, timeout=-1.0, claimed=timer, door=calls))  # type: ignore[arg-type]
        assert asked.wait(30)
        assert door.finished() == []  # its sockets are shut first
        flight = next(iter(door._flights.values()))
        flight.ends_at -= 10
        outcomes += [done.outcome for done in door.finished()]
        door.close()
    answered.set()
    assert [outcome.state for outcome in outcomes] == ["retry", "timeout"]
    assert "nothing was sent" in outcomes[0].error


def test_a_fault_in_a_connections_health_keeps_nothing_beside_it_from_going_on(
    world: World, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = world.rule("Both", hook(), set_field("low", "priority", "low"))
    monkeypatch.setattr(crew.cycle, "health", SimpleNamespace(note=broken))
    with capture_logs() as lines:
        urgent(world, crew)
        crew.work()
    assert "succeeded" in world.states(rule)
    assert {line["what"] for line in lines if line["event"] == "alarm"} == {"connection health"}


def test_a_beat_that_fails_in_any_way_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    beaten, answers = threading.Event(), iter([RuntimeError("odd"), True])

    def beat(worker: uuid.UUID, **given: Any) -> bool:
        answer = next(answers, None)
        if isinstance(answer, Exception):
            raise answer
        beaten.set()
        return True

    monkeypatch.setattr(leases.claims, "beat", beat)
    lease = Lease(uuid.uuid4(), Conf(beat=0.001))
    lease.start()
    assert beaten.wait(5)
    lease.stop()


def test_no_more_tenants_are_remembered_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruleset, "TENANTS_KEPT", 2)
    monkeypatch.setattr(ruleset, "_load", lambda tenant_id, version: SimpleNamespace(version=version, id=tenant_id))
    ruleset.forget()
    for tenant_id in (1, 2, 1, 3):
        ruleset.of_tenant(tenant_id, 1)
    assert list(ruleset._tenants) == [1, 3]
    ruleset.forget()
