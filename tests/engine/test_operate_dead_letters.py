"""A person retries what failed for good, or gives it up."""

import threading

import pytest
from django.db import connection
from operating import Place, make_dead_run, make_event, make_live_run, make_rule, make_step, make_timer
from operating import place as new_place

from automation.engine.operate import Refused
from automation.engine.operate.dead_letters import discard, retry
from automation.engine.operate.runs import cancel
from automation.models import DeadLetter, Event, Rule, Run, StepExecution, Timer
from automation.store import clock
from tenants.context import acting_for
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


def again(letter: DeadLetter) -> DeadLetter:
    return DeadLetter.objects.select_related("run", "step").get(pk=letter.pk)


@pytest.mark.case("R05")
def test_the_same_run_goes_on_at_its_dead_step_under_the_same_key(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant))

    retry(letter.pk)

    found = again(letter)
    assert (found.resolution, found.actor, found.resolved_at is not None) == ("retried", "Ana Admin", True)
    assert found.run is not None
    assert found.step is not None
    assert (found.run.state, found.run.reason, found.run.ended_at) == ("running", "", None)
    assert (found.step.state, found.step.epoch, found.step.idempotency_key) == ("pending", 0, "a" * 64)
    assert (found.step.attempts, found.step.retried_at_attempt) == (3, 3)
    timer = Timer.objects.get(run_id=found.run.pk)
    assert (timer.kind, timer.step_id, timer.state, timer.due_at <= clock.now()) == (
        "step",
        found.step.pk,
        "pending",
        True,
    )
    assert acme.lane.due_hint
    assert StepExecution.objects.get(run=found.run, path="first").state == "succeeded"


@pytest.mark.case("R05")
def test_pressing_retry_twice_retries_once(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant))

    retry(letter.pk)
    retry(letter.pk)

    assert Timer.objects.filter(run_id=letter.run_id).count() == 1
    assert AuditEntry.objects.filter(verb="retry").count() == 1


def test_as_new_makes_it_another_effect_for_the_receiver(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant))

    retry(letter.pk, as_new=True)

    step = StepExecution.objects.get(pk=letter.step_id)
    assert (step.epoch, step.idempotency_key) == (1, "")
    assert again(letter).resolution == "retried_as_new"


def test_a_parked_run_is_sent_again_when_a_person_says_so(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant), state="waiting", reason="delivery_unknown")

    retry(letter.pk)

    found = again(letter)
    assert found.run is not None
    assert found.step is not None
    assert (found.run.state, found.run.reason) == ("running", "")
    assert (found.step.state, found.step.effect_state) == ("pending", "uncertain")


@pytest.mark.case("R05")
@pytest.mark.parametrize("state", ["succeeded", "running"])
def test_a_run_that_went_on_is_not_retried(acme: Place, state: str) -> None:
    letter = make_dead_run(make_rule(acme.tenant), state=state)

    with pytest.raises(Refused, match="gone on"):
        retry(letter.pk)

    assert again(letter).resolved_at is None
    assert not Timer.objects.exists()


def test_a_dead_step_that_others_followed_is_not_repeated(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant))
    assert letter.run is not None
    make_timer(make_step(letter.run, path="later", state="pending"))

    with pytest.raises(Refused, match="gone on"):
        retry(letter.pk)


def test_a_cancelled_run_is_not_retried(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant), state="waiting", reason="delivery_unknown")
    assert letter.run_id is not None
    cancel(letter.run_id)

    with pytest.raises(Refused, match="cancelled"):
        retry(letter.pk)


def test_what_was_given_up_is_not_retried_and_what_was_retried_is_not_given_up(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    given_up, retried = make_dead_run(rule), make_dead_run(rule)
    discard(given_up.pk)
    retry(retried.pk)

    with pytest.raises(Refused, match="given up already"):
        retry(given_up.pk)
    with pytest.raises(Refused, match="retried already"):
        discard(retried.pk)


def test_runs_of_a_deleted_rule_stay_as_they_ended(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    letter = make_dead_run(rule)
    Rule.objects.filter(pk=rule.pk).update(deleted_at=clock.now())

    with pytest.raises(Refused, match="deleted"):
        retry(letter.pk)


def test_giving_up_leaves_the_run_failed(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant))

    discard(letter.pk)
    discard(letter.pk)

    found = again(letter)
    assert found.run is not None
    assert (found.resolution, found.run.state, found.run.reason) == ("discarded", "failed", "exhausted")
    assert AuditEntry.objects.filter(verb="discard").count() == 1


def test_giving_up_ends_a_parked_run(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant), state="waiting", reason="delivery_unknown")

    discard(letter.pk)

    run = Run.objects.get(pk=letter.run_id)
    assert (run.state, run.reason, run.ended_at is not None) == ("failed", "delivery_unknown", True)


def test_a_second_death_of_a_retried_step_opens_another_dead_letter(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant))
    retry(letter.pk)
    StepExecution.objects.filter(pk=letter.step_id).update(state="dead", attempts=6, ended_at=clock.now())
    Run.objects.filter(pk=letter.run_id).update(state="failed", reason="exhausted")
    Timer.objects.all().delete()
    second = DeadLetter(tenant=acme.tenant, run_id=letter.run_id, step_id=letter.step_id, reason="exhausted")
    second.save()

    retry(second.pk)

    assert StepExecution.objects.get(pk=letter.step_id).retried_at_attempt == 6


def test_an_event_that_was_set_aside_is_matched_again(acme: Place, django_capture_on_commit_callbacks: object) -> None:
    event = make_event(acme.tenant)
    letter = DeadLetter(tenant=acme.tenant, event=event, reason="poison")
    letter.save()

    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        retry(letter.pk)

    assert Event.objects.get(pk=event.pk).matched_at is None
    assert Timer.objects.filter(kind="match").exists()
    assert again(letter).resolution == "retried"


def test_another_tenants_dead_letter_does_not_exist(acme: Place) -> None:
    other = new_place()
    with acting_for(other.tenant.pk):
        letter = make_dead_run(make_rule(other.tenant))

    for verb in (retry, discard):
        with pytest.raises(DeadLetter.DoesNotExist):
            verb(letter.pk)

    with acting_for(other.tenant.pk):
        assert again(letter).resolved_at is None


def test_a_live_run_of_the_rule_is_left_alone(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    letter, live = make_dead_run(rule), make_live_run(rule)

    retry(letter.pk)

    assert Timer.objects.filter(run_id=live.pk).count() == 1


@pytest.mark.case("R05")
@pytest.mark.django_db(transaction=True)
def test_two_people_who_retry_at_one_moment_retry_once() -> None:
    acme = new_place()
    with acting_for(acme.tenant.pk):
        letter = make_dead_run(make_rule(acme.tenant))
    meet = threading.Barrier(4)
    errors: list[Exception] = []

    def press() -> None:
        try:
            with acting_for(acme.tenant.pk, acme.actor):
                meet.wait()
                retry(letter.pk)
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=press) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert Timer.objects.filter(run_id=letter.run_id).count() == 1
    with acting_for(acme.tenant.pk):
        assert AuditEntry.objects.filter(verb="retry").count() == 1
