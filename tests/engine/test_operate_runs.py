"""A person cancels a run, whatever it is doing."""

import pytest
from operating import Place, lease, make_dead_run, make_event, make_live_run, make_rule, make_run, make_step, make_timer
from operating import place as new_place

from automation.engine.operate import Refused
from automation.engine.operate.runs import Cancelled, cancel, cancel_all
from automation.models import Attempt, DeadLetter, Run, StepExecution, Timer
from automation.store import clock
from tenants.context import acting_for
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.mark.case("V04")
@pytest.mark.parametrize(
    ("state", "step", "kind"),
    [
        ("pending", "pending", "step"),
        ("running", "pending", "step"),
        ("running", "retrying", "retry"),
        ("waiting", "waiting", "delay"),
    ],
)
def test_a_run_that_no_worker_is_on_ends_at_once(acme: Place, state: str, step: str, kind: str) -> None:
    run = make_live_run(make_rule(acme.tenant), state=state, step=step, kind=kind)

    assert cancel(run.pk, "ordered twice") == Cancelled(ended=1)

    run.refresh_from_db()
    assert (run.state, run.reason, run.ended_at is not None) == ("cancelled", "cancelled_by", True)
    assert [one.state for one in StepExecution.objects.filter(run=run)] == ["cancelled"]
    assert not Timer.objects.filter(run_id=run.pk).exists()
    entry = AuditEntry.objects.get(target=f"run:{run.pk}")
    assert (entry.verb, entry.actor_name, entry.reason) == ("cancel", "Ana Admin", "ordered twice")
    assert entry.before == {"state": state, "reason": ""}


@pytest.mark.case("V04")
def test_a_run_that_a_worker_is_on_is_left_to_the_worker(acme: Place) -> None:
    run = make_run(make_rule(acme.tenant))
    timer = make_timer(make_step(run, state="running"))
    lease(timer)

    assert cancel(run.pk) == Cancelled(asked=1)
    assert cancel(run.pk) == Cancelled()

    run.refresh_from_db()
    assert (run.state, run.cancel_requested_at is not None) == ("running", True)
    assert Timer.objects.get(pk=timer.pk).state == "leased"
    assert AuditEntry.objects.filter(target=f"run:{run.pk}").count() == 1


def test_cancelling_twice_does_nothing_more(acme: Place) -> None:
    run = make_live_run(make_rule(acme.tenant))
    cancel(run.pk)

    assert cancel(run.pk) == Cancelled()
    assert AuditEntry.objects.filter(target=f"run:{run.pk}").count() == 1


@pytest.mark.parametrize("state", ["succeeded", "failed", "suppressed"])
def test_a_run_that_ended_otherwise_can_not_be_cancelled(acme: Place, state: str) -> None:
    run = make_run(make_rule(acme.tenant), state=state)

    with pytest.raises(Refused, match="ended already"):
        cancel(run.pk)

    run.refresh_from_db()
    assert run.state == state


def test_a_step_whose_worker_was_lost_is_cancelled_with_its_effect_uncertain(acme: Place) -> None:
    run = make_run(make_rule(acme.tenant))
    step = make_step(run, state="running", effect_state="intended", attempts=1)
    Attempt(tenant=acme.tenant, step=step, number=1, started_at=clock.now()).save()
    make_timer(step)

    cancel(run.pk)

    step.refresh_from_db()
    assert (step.state, step.effect_state) == ("cancelled", "uncertain")
    assert Attempt.objects.get(step=step).outcome == "lost"


def test_cancelling_a_parked_run_resolves_its_dead_letter(acme: Place) -> None:
    letter = make_dead_run(make_rule(acme.tenant), state="waiting", reason="delivery_unknown")

    cancel(letter.run_id)

    letter = DeadLetter.objects.get(pk=letter.pk)
    assert (letter.resolution, letter.actor) == ("cancelled", "Ana Admin")


def test_another_tenants_run_does_not_exist(acme: Place) -> None:
    other = new_place()
    with acting_for(other.tenant.pk):
        run = make_live_run(make_rule(other.tenant))

    with pytest.raises(Run.DoesNotExist):
        cancel(run.pk)

    with acting_for(other.tenant.pk):
        assert Run.objects.get(pk=run.pk).state == "running"
    with pytest.raises(Run.DoesNotExist):
        cancel(10**12)


@pytest.mark.case("V04")
def test_all_live_runs_of_one_rule_are_cancelled_and_no_others(acme: Place) -> None:
    rule, other = make_rule(acme.tenant), make_rule(acme.tenant, name="Other", position=2)
    states = [("pending", "pending"), ("running", "retrying"), ("waiting", "waiting")]
    mine = [make_live_run(rule, state=state, step=step) for state, step in states]
    busy = make_run(rule)
    lease(make_timer(make_step(busy, state="running")))
    done = make_run(rule, state="succeeded")
    theirs = make_live_run(other)

    assert cancel_all(rule_id=rule.pk, reason="switch_off") == Cancelled(ended=3, asked=1)
    assert cancel_all(rule_id=rule.pk) == Cancelled()

    found = {run.pk: run.state for run in Run.objects.all()}
    assert {found[run.pk] for run in mine} == {"cancelled"}
    assert (found[busy.pk], found[done.pk], found[theirs.pk]) == ("running", "succeeded", "running")
    assert AuditEntry.objects.filter(verb="cancel").count() == 4


def test_more_runs_than_a_batch_are_all_cancelled(acme: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, event = make_rule(acme.tenant), make_event(acme.tenant)
    runs = [make_run(rule, event=event, state="waiting", origin="test") for _ in range(205)]

    assert cancel_all(rule_id=rule.pk) == Cancelled(ended=len(runs))
    assert not Run.objects.exclude(state="cancelled").exists()
