"""What a job on many dead letters takes back is as if the job had never come to it."""

from typing import Any

import pytest

from automation.catalog.action import Outcome
from automation.engine.operate import bulk
from automation.engine.operate.dead_letters import discard, retry
from automation.engine.operate.replay import replay
from automation.engine.simulate import succeed
from automation.models import DeadLetter, Run, StepExecution
from tests.engine.crew import Crew
from tests.engine.world import World, step, when
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db
ONCE = {"max_attempts": 1, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}


def dead(world: World, crew: Crew, one: dict[str, Any], outcome: Outcome) -> DeadLetter:
    """The letter of a run whose only step failed for good."""
    world.rule("Tell", one, trigger=when("updated", fields=["priority"]))
    ticket = TicketFactory(tenant=world.tenant)
    crew.work()
    crew.script = lambda call: outcome
    world.change(ticket, run=False, priority="urgent")
    crew.work()
    crew.script = succeed
    return DeadLetter.objects.get()


def let_out_and_cancelled(verb: str) -> None:
    job = bulk.start(verb)
    assert bulk.work(late=1) == 1
    assert bulk.cancel(job.pk) == 1


def as_it_stands(letter: DeadLetter) -> tuple[Any, ...]:
    steps = StepExecution.objects.filter(dead_letters=letter)
    letter.refresh_from_db()
    return (
        steps.values_list(
            "state", "reason", "error", "epoch", "effect_state", "idempotency_key", "request_sha256"
        ).get(),
        Run.objects.values_list("state", "reason").get(),
        letter.resolved_at,
    )


def test_an_effect_that_was_to_be_sent_as_new_keeps_its_key(world: World, crew: Crew) -> None:
    letter = dead(
        world, crew, {**step("hook", "call_webhook", connection="hook"), "retry": ONCE}, Outcome.timeout("no answer")
    )
    before = as_it_stands(letter)
    let_out_and_cancelled("retry_as_new")

    assert as_it_stands(letter) == before
    assert Run.objects.get().ended_at == letter.opened_at  # it has failed no second time, for its rule's breaker
    retry(letter.pk)
    crew.work()

    (first, _), (again, _) = crew.calls()
    assert first == again


def test_what_may_have_been_sent_is_still_asked_for_when_its_run_is_replayed(world: World, crew: Crew) -> None:
    world.connection("phone", "sms")
    text = step("sms", "send_sms", connection="phone", to="number", number="+15550100", text="Hi")
    letter = dead(world, crew, text, Outcome.uncertain("no answer"))
    before = as_it_stands(letter)
    let_out_and_cancelled("retry")
    assert as_it_stands(letter) == before
    discard(letter.pk)

    replay(letter.run_id or 0)
    crew.work()

    assert world.states() == ["failed delivery_unknown", "waiting delivery_unknown"]
    assert len(crew.calls()) == 1
