"""Whatever people do in whatever order, between whatever the workers do: the engine's invariants hold."""

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from automation.catalog.action import Outcome
from automation.engine.effects import EffectCall
from automation.engine.operate import Refused, dead_letters, runs, steps
from automation.engine.operate import timers as timer_verbs
from automation.engine.operate.expiry import expire_due
from automation.engine.operate.replay import replay
from automation.engine.operate.waking import wake
from automation.engine.stuck import find
from automation.models import DeadLetter, Lane, Run, StepExecution, Timer
from automation.store import clock
from tenants.context import every_tenant
from tests.engine.crew import Crew
from tests.engine.world import World, leaf, step, when
from tests.factories import TicketFactory

SENSELESS = (Refused, DeadLetter.DoesNotExist, Timer.DoesNotExist, Run.DoesNotExist, StepExecution.DoesNotExist)
pytestmark = pytest.mark.django_db
TWICE = {"max_attempts": 2, "base_delay": "PT1M", "factor": 1.0, "max_delay": "PT1M", "jitter": False}
ENDS = (
    Outcome.done,
    partial(Outcome.retry, "503"),
    partial(Outcome.rejected, "400"),
    partial(Outcome.uncertain, "?"),
)
INVARIANTS = {
    "a lane's counter is its leases": """
        SELECT l.id FROM automation_lane l WHERE l.running <>
          (SELECT count(*) FROM automation_timer x WHERE x.lane_id = l.id AND x.state = 'leased')""",
    "a run that ended has no timer": """
        SELECT r.id, r.state FROM automation_run r JOIN automation_timer x ON x.run_id = r.id
         WHERE r.state IN ('succeeded', 'failed', 'cancelled')""",
    "an ended run's steps have ended": """
        SELECT s.id, s.state, r.state FROM automation_stepexecution s JOIN automation_run r ON r.id = s.run_id
         WHERE r.state IN ('succeeded', 'failed', 'cancelled')
           AND s.state IN ('pending', 'running', 'waiting', 'retrying')""",
    "a live run has what wakes it": """
        SELECT r.id, r.state, r.reason FROM automation_run r
         WHERE r.state IN ('pending', 'running', 'waiting', 'paused')
           AND NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.run_id = r.id)
           AND NOT EXISTS (SELECT 1 FROM automation_deadletter d WHERE d.run_id = r.id AND d.resolved_at IS NULL)""",
    "a timer is held exactly where somebody paused the run": """
        SELECT r.id, r.state, x.state FROM automation_run r JOIN automation_timer x ON x.run_id = r.id
         WHERE x.state <> 'leased' AND (r.state = 'paused') <> (x.state = 'held')""",
    "one confirmed attempt a step and epoch": """
        SELECT a.step_id FROM automation_attempt a JOIN automation_stepexecution s ON s.id = a.step_id
         WHERE a.outcome = 'ok' GROUP BY a.step_id, s.epoch HAVING count(*) > s.epoch + 1""",
    "an open dead letter is of a dead step": """
        SELECT d.id, s.state FROM automation_deadletter d JOIN automation_stepexecution s ON s.id = d.step_id
         WHERE d.resolved_at IS NULL AND s.state <> 'dead'""",
    "an attempt is open only while its step is under way": """
        SELECT a.id, s.state FROM automation_attempt a JOIN automation_stepexecution s ON s.id = a.step_id
         WHERE a.outcome = '' AND s.state <> 'running'""",
    "no due timer sleeps": """
        SELECT l.id FROM automation_lane l WHERE NOT l.due_hint AND EXISTS (SELECT 1 FROM automation_timer x
         WHERE x.lane_id = l.id AND x.state = 'pending' AND x.due_at < automation_now() - interval '1 second')""",
}


def rules_of(world: World) -> None:
    """Rules with every kind of step."""
    hook = {**step("hook", "call_webhook", connection="hook"), "retry": TWICE}
    text = {"connection": "sms", "to": "number", "number": "+15550100", "text": "Hello"}
    sms = {**step("sms", "send_sms", **text), "retry": TWICE}
    wait = {"id": "wait", "kind": "delay", "for": "PT1H"}
    arm = {"id": "a", "if": leaf("priority", "is", "urgent"), "steps": [step("in_arm", "add_note", text="In")]}
    split = {"id": "split", "kind": "branch", "arms": [arm], "otherwise": []}
    for name, chosen in {
        "One": [hook, wait, split, sms],
        "Two": [wait, sms, {"id": "end", "kind": "stop"}],
        "Three": [step("first", "add_note", text="First"), {**hook, "if_it_fails": "continue"}, sms],
    }.items():
        world.rule(name, *chosen, trigger=when("updated", fields=["priority"]), again="both")


class Chaos:
    """Draws what happens next."""

    def __init__(self, world: World, crew: Crew, seed: int) -> None:
        self.world, self.crew, self.rng = world, crew, random.Random(seed)
        self.acting_amid = False

    def answer(self, call: EffectCall) -> Outcome:
        """Succeeds, fails or stays unknown; sometimes somebody acts on the run meanwhile."""
        if call.step_id is None:
            return Outcome.done()
        self.look(call)
        if not self.acting_amid and self.rng.random() < 0.3:
            self.acting_amid = True
            with self.world.acting():
                self.verb(run_id=call.run_id)
            self.acting_amid = False
        return self.rng.choice(ENDS)()

    def look(self, call: EffectCall) -> None:
        """What other runs know of this effect, at the moment in which it is sent."""
        with self.world.acting():
            others = StepExecution.objects.filter(idempotency_key=call.door.key).exclude(pk=call.step_id)
            states = set(others.values_list("effect_state", flat=True))
        assert "confirmed" not in states, "sent again although it is known to have arrived"
        assert call.effect != "at_most_once" or not states & {"intended", "uncertain"}, "it may have arrived"

    def verb(self, run_id: int | None = None) -> None:
        """Some verb on some row, sensible or not."""
        chosen = run_id or self.some(Run)
        step_id = self.some(StepExecution, run_id=chosen) if run_id else self.some(StepExecution)
        letter, timer = self.some(DeadLetter), self.some(Timer, run_id__isnull=False)
        later = clock.now() + timedelta(minutes=self.rng.randint(1, 600))
        acts: list[Callable[[], Any]] = [
            lambda: runs.pause(chosen),
            lambda: runs.resume(chosen),
            lambda: runs.cancel(chosen),
            lambda: replay(chosen, step=self.rng.choice(["", "hook", "sms", "wait"]), live=self.rng.random() < 0.5),
            lambda: replay(chosen, as_new=True),
            lambda: wake(chosen),
            lambda: steps.complete(step_id, output={"by": "hand"}),
            lambda: steps.skip(step_id),
            lambda: dead_letters.retry(letter),
            lambda: dead_letters.retry(letter, as_new=True),
            lambda: dead_letters.discard(letter),
            lambda: timer_verbs.run_now(timer),
            lambda: timer_verbs.postpone(timer, until=later),
        ]
        act = self.rng.choice(acts)
        for _ in range(self.rng.choice([1, 1, 2])):
            with suppress(*SENSELESS):
                act()

    def some(self, model: Any, **where: Any) -> int:
        ids = list(model.objects.filter(**where).values_list("pk", flat=True))
        return self.rng.choice(ids) if ids else 0

    def turn(self) -> None:
        """One thing that happens."""
        what = self.rng.random()
        if what < 0.15:
            ticket = TicketFactory(tenant=self.world.tenant)
            self.world.commit()
            self.world.change(ticket, run=False, priority="urgent")
            self.world.commit()
        elif what < 0.6:
            self.verb()
        elif what < 0.8:
            self.crew.work()
        elif what < 0.85:
            run = self.some(Run)
            Run.objects.filter(pk=run).update(deadline_at=clock.now() - timedelta(seconds=1))
            expire_due()
        else:
            Timer.objects.filter(state="pending").update(due_at=F("due_at") - timedelta(hours=1))
            Lane.objects.update(due_hint=True)


def broken() -> dict[str, list[Any]]:
    found = {}
    with connection.cursor() as cursor:
        for name, sql in INVARIANTS.items():
            cursor.execute(sql)
            rows = cursor.fetchall()
            if rows:
                found[name] = rows
    return found


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_people_do_breaks_an_invariant_or_sends_twice(world: World, crew: Crew, seed: int) -> None:
    world.connection("sms", "sms")
    rules_of(world)
    chaos = Chaos(world, crew, seed)
    crew.script = chaos.answer

    for number in range(70):
        chaos.turn()
        assert not broken(), f"after turn {number}"
    with every_tenant():
        crew.work()

    assert not broken()
    assert [one for one in find() if one.forgotten] == []
    assert Run.objects.count() > 5
