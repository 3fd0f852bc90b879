"""Staff pause, replay, complete, put off and retry in the admin, which asks for what a verb needs."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from operating import Place, make_dead_run, make_live_run, make_rule, make_run
from operating import place as new_place

from automation.admin import asking
from automation.engine.operate import bulk
from automation.models import BulkJob, DeadLetter, Run, StepExecution, Timer
from automation.store import clock
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Place:
    return new_place(name="Acme Retail")


def act(staff: Client, name: str, action: str, *ids: int, **given: Any) -> str:
    form = {"action": action, "_selected_action": [str(one) for one in ids], **given}
    return staff.post(f"/admin/automation/{name}/", form, follow=True).content.decode()


def applied(staff: Client, name: str, action: str, *ids: int, **given: Any) -> str:
    """The action's form filled in; what the form says before it is that it is there."""
    assert 'name="apply"' in act(staff, name, action, *ids)
    return act(staff, name, action, *ids, apply="yes", **given)


def test_a_run_is_paused_with_a_reason_and_goes_on(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        run = make_live_run(make_rule(acme.tenant))

    assert "Runs paused: 1." in applied(staff, "run", "pause", run.pk, reason="look first")
    again = applied(staff, "run", "pause", run.pk, reason="once more")
    assert "Done already, so nothing was changed: 1." in again
    assert "Runs paused" not in again
    page = staff.get(f"/admin/automation/run/{run.pk}/change/").content.decode()
    assert "paused by itself. Reason given: look first" in page
    assert "never happens: tell" in page
    assert "Runs that go on: 1." in act(staff, "run", "resume", run.pk)

    with every_tenant():
        assert Run.objects.get(pk=run.pk).state == "pending"
        entry = AuditEntry.objects.get(verb="pause")
    assert (entry.actor_name, entry.reason, entry.tenant_id) == ("Rosa Staff", "look first", acme.tenant.pk)


def test_more_runs_than_one_action_may_touch_are_refused_before_anything_is_asked(
    staff: Client, acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "AT_ONCE", 1)
    with acting_for(acme.tenant.pk):
        rule = make_rule(acme.tenant)
        runs = [make_live_run(rule) for _ in range(2)]

    page = act(staff, "run", "pause", *(run.pk for run in runs), select_across="1")

    assert "At most 1 at once: choose fewer." in page
    assert 'name="apply"' not in page


def test_a_run_is_replayed_from_a_step_and_what_makes_no_sense_is_said(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        run = make_run(make_rule(acme.tenant), state="failed")

    assert "has no step “nowhere”" in applied(staff, "run", "replay", run.pk, step="nowhere")
    assert "Runs replayed: 1." in applied(staff, "run", "replay", run.pk, step="tell", reason="again")

    with every_tenant():
        assert Run.objects.filter(forked_from_run_id=run.pk).count() == 1


def test_a_step_is_completed_with_its_output_or_skipped(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        rule = make_rule(acme.tenant)
        one, other = (StepExecution.objects.get(run=make_live_run(rule)) for _ in range(2))

    assert "Enter a valid JSON" in applied(staff, "stepexecution", "complete", one.pk, output="{")
    assert "Steps completed: 1." in applied(staff, "stepexecution", "complete", one.pk, output='{"by": "me"}')
    assert "Steps skipped: 1." in applied(staff, "stepexecution", "skip", other.pk)

    with every_tenant():
        assert StepExecution.objects.get(pk=one.pk).output == {"by": "me"}
        assert set(Run.objects.values_list("state", flat=True)) == {"succeeded"}


def test_a_timer_is_put_off_made_due_and_cancelled(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        make_live_run(make_rule(acme.tenant), state="waiting", step="waiting", kind="delay")
    timer = Timer.objects.get()
    until = (clock.now() + timedelta(days=1)).replace(microsecond=0)

    applied(staff, "timer", "postpone", timer.pk, until=f"{until:%Y-%m-%d %H:%M:%S}")
    assert Timer.objects.get().due_at == until
    assert "Timers due now: 1." in act(staff, "timer", "run_now", timer.pk)
    assert "Cancelled: 1." in applied(staff, "timer", "cancel", timer.pk, reason="not needed")

    assert not Timer.objects.exists()


def test_all_cases_of_an_error_are_retried_by_a_job_that_can_be_ended(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        rule = make_rule(acme.tenant)
        letters = [make_dead_run(rule) for _ in range(3)]

    page = applied(staff, "deadletter", "retry_alike", letters[0].pk, rate="0.5", stop_after="2", reason="is back")
    assert "Jobs begun: 1." in page
    with every_tenant():
        job = BulkJob.objects.get()
        assert (job.rate, job.stop_after, job.actor, job.filters["step"]) == (0.5, 2, "Rosa Staff", "page")
        bulk.work(late=1)
        assert DeadLetter.objects.filter(resolved_at=None).count() == 2
        entry = AuditEntry.objects.get(verb="retry")
        assert (entry.reason, entry.after["bulk"]) == ("is back", job.pk)
    page = applied(staff, "deadletter", "retry_alike", letters[1].pk, verb="discard", rate="5", reason="is over")
    assert "Jobs begun: 1." in page
    with every_tenant():
        assert BulkJob.objects.latest("id").verb == "discard"
    assert "Jobs ended: 1." in applied(staff, "bulkjob", "cancel", job.pk, reason="enough")


def test_stuck_runs_are_found_and_woken(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        rule = make_rule(acme.tenant)
        make_live_run(rule)
        stuck = make_live_run(rule)
    other = new_place(name="Other")
    with acting_for(other.tenant.pk):
        theirs = make_live_run(make_rule(other.tenant))
    Timer.objects.filter(run_id__in=(stuck.pk, theirs.pk)).delete()

    def found(query: str) -> list[int]:
        return [run.pk for run in staff.get(f"/admin/automation/run/?{query}").context["cl"].result_list]

    assert found("stuck=yes") == [theirs.pk, stuck.pk]
    assert found(f"stuck=yes&tenant__id__exact={acme.tenant.pk}") == [stuck.pk]
    assert "Runs woken: 1." in act(staff, "run", "wake", stuck.pk)
    assert found("stuck=yes") == [theirs.pk]


def test_what_is_gone_meanwhile_is_said(staff: Client, acme: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with acting_for(acme.tenant.pk):
        make_live_run(make_rule(acme.tenant))
    timer = Timer.objects.get()

    def gone(*about: Any, **more: Any) -> None:
        raise Timer.DoesNotExist

    monkeypatch.setattr("automation.engine.operate.timers._locked", gone)

    assert "it is gone already" in act(staff, "timer", "run_now", timer.pk)
