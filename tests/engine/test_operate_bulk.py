"""Many dead letters are worked off at a pace that is kept through restarts, and stop by themselves."""

from datetime import datetime

import pytest
from database_clock import StoppedClock
from django.db import OperationalError
from operating import Place, make_dead_run, make_rule
from operating import place as new_place
from psycopg.errors import LockNotAvailable

from automation.engine.operate import Refused, bulk, pause
from automation.engine.operate.dead_letters import discard
from automation.engine.troubles import error_groups
from automation.models import BulkJob, DeadLetter, Notice, Rule, Run, StepExecution, Timer
from automation.store import letters as letter_rows
from tenants.context import acting_for
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def rule(acme: Place) -> Rule:
    return make_rule(acme.tenant)


def dead(rule: Rule, number: int, *, error: str = "503 in 12 s") -> list[DeadLetter]:
    letters = [make_dead_run(rule) for _ in range(number)]
    DeadLetter.objects.filter(pk__in=[one.pk for one in letters]).update(error=error)
    return letters


def dues() -> list[datetime]:
    return list(Timer.objects.order_by("due_at").values_list("due_at", flat=True))


def work_for_a_second(stopped: StoppedClock) -> None:
    for _ in range(5):
        stopped.forward(0.2)
        bulk.work(late=1)


def fails_again(acme: Place, letter: DeadLetter) -> None:
    """It ran and is dead once more."""
    Timer.objects.filter(step_id=letter.step_id).delete()
    StepExecution.objects.filter(pk=letter.step_id).update(state="dead", attempts=4)
    Run.objects.filter(pk=letter.run_id).update(state="failed")
    DeadLetter(tenant=acme.tenant, run_id=letter.run_id, step_id=letter.step_id, reason="exhausted").save()


def test_they_fall_due_one_after_the_other_at_the_rate_and_none_is_in_line_beforehand(acme: Place, rule: Rule) -> None:
    dead(rule, 30)
    stopped = StoppedClock()

    job = bulk.start("retry", rate=2, reason="the pager is back")
    done = [bulk.work(late=1)]
    for _ in range(39):
        stopped.forward(0.4)
        done.append(bulk.work(late=1))
        assert all(due <= stopped.at for due in dues())

    assert (sum(done), max(done)) == (30, 1)
    gaps = [(after - before).total_seconds() for before, after in zip(dues(), dues()[1:], strict=False)]
    assert gaps == [0.5] * 29
    job.refresh_from_db()
    assert (job.state, job.done, job.refused) == ("finished", 30, 0)
    assert set(Run.objects.values_list("state", flat=True)) == {"running"}
    assert AuditEntry.objects.filter(verb="retry", actor_name="Ana Admin").count() == 30
    assert AuditEntry.objects.get(verb="bulk").reason == "the pager is back"


def test_what_was_missed_while_no_worker_lived_is_not_made_up_for_at_once(acme: Place, rule: Rule) -> None:
    dead(rule, 90)
    stopped = StoppedClock()
    bulk.start("retry", rate=4)
    bulk.work(late=1)

    stopped.forward(13)
    assert bulk.work(late=1) == 1
    for _ in range(10):
        stopped.forward(0.25)
        assert bulk.work(late=1) == 1
    stopped.forward(2)  # all workers were busy: a second is made up for
    assert bulk.work(late=1) == 5


def test_while_the_tenant_is_paused_none_is_put_into_the_line_but_they_may_be_given_up(acme: Place, rule: Rule) -> None:
    dead(rule, 3)
    bulk.start("retry", rate=100)
    pause.pause(reason="the pager is broken")
    assert bulk.work(late=1) == 0

    bulk.start("discard", rate=100)
    assert bulk.work(late=1) >= 1


def test_at_most_so_many(acme: Place, rule: Rule) -> None:
    dead(rule, 5)

    stopped = StoppedClock()
    job = bulk.start("retry", rate=100, most=2)
    for _ in range(3):
        stopped.forward(0.5)
        bulk.work(late=1)

    job.refresh_from_db()
    assert (job.state, job.done) == ("finished", 2)
    assert DeadLetter.objects.filter(resolved_at=None).count() == 3


def test_it_stops_when_too_many_fail_again_and_takes_back_what_nobody_has_begun(acme: Place, rule: Rule) -> None:
    letters = dead(rule, 10)
    stopped = StoppedClock()
    job = bulk.start("retry", rate=1, stop_after=2)
    for _ in range(5):
        bulk.work(late=1)
        stopped.forward(1)
    assert Timer.objects.count() == 5
    fails_again(acme, letters[0])
    fails_again(acme, letters[1])

    assert bulk.work(late=1) == 0

    job.refresh_from_db()
    assert (job.state, job.failed_again, job.done) == ("stopped", 2, 2)
    assert (bulk.status(job.pk).tried, bulk.status(job.pk).in_line) == (2, 0)
    assert Notice.objects.get().title == "A retry of many dead letters has stopped"
    assert not Timer.objects.filter(run_id__isnull=False).exists()
    assert set(Run.objects.values_list("state", flat=True)) == {"failed"}
    assert set(StepExecution.objects.filter(path="page").values_list("state", flat=True)) == {"dead"}
    assert DeadLetter.objects.filter(resolved_at=None).count() == 10


def falls_over_once(patch: pytest.MonkeyPatch) -> None:
    """The next taking back loses its connection amid it."""
    take_back = letter_rows.take_back

    def broken(bulk_id: int, run_ids: list[int]) -> int:
        patch.setattr(letter_rows, "take_back", take_back)
        take_back(bulk_id, run_ids)
        raise OperationalError("canceling statement due to lock timeout") from LockNotAvailable()

    patch.setattr(letter_rows, "take_back", broken)


def test_a_stop_that_falls_over_midway_is_gone_on_with_and_told(
    acme: Place, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = dead(rule, 6)
    stopped = StoppedClock()
    job = bulk.start("retry", rate=1, stop_after=1)
    for _ in range(4):
        bulk.work(late=1)
        stopped.forward(1)
    fails_again(acme, letters[0])
    falls_over_once(monkeypatch)

    bulk.work(late=1)
    job.refresh_from_db()
    assert (job.state, Timer.objects.filter(kind="step").count(), Notice.objects.count()) == ("stopped", 3, 0)
    pause.pause(reason="what was let out is taken back also now")
    bulk.work(late=1)
    bulk.work(late=1)

    assert not Timer.objects.filter(kind="step").exists()
    assert DeadLetter.objects.filter(resolved_at=None).count() == 6
    assert (bulk.status(job.pk).tried, Notice.objects.get().title) == (1, "A retry of many dead letters has stopped")


@pytest.mark.parametrize("by", ["a worker", "asking again"])
def test_a_cancel_that_falls_over_midway_is_gone_on_with(
    acme: Place, rule: Rule, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    dead(rule, 5)
    stopped = StoppedClock()
    job = bulk.start("retry", rate=1)
    for _ in range(3):
        bulk.work(late=1)
        stopped.forward(1)
    falls_over_once(monkeypatch)
    monkeypatch.setattr(bulk, "PORTION", 2)

    with pytest.raises(OperationalError):
        bulk.cancel(job.pk)
    assert (BulkJob.objects.get().state, Timer.objects.count()) == ("cancelled", 3)
    if by == "a worker":
        bulk.work(late=1)
    else:
        assert bulk.cancel(job.pk) == 3

    assert (Timer.objects.count(), bulk.cancel(job.pk), bulk.status(job.pk).tried) == (0, 0, 0)
    assert DeadLetter.objects.filter(resolved_at=None).count() == 5
    assert not Notice.objects.exists()


def test_one_that_has_let_out_all_may_still_stop_until_they_are_begun(acme: Place, rule: Rule) -> None:
    letters = dead(rule, 4)
    stopped = StoppedClock()
    job = bulk.start("retry", rate=100, stop_after=1)
    for _ in range(3):
        stopped.forward(1)
        bulk.work(late=1)
    job.refresh_from_db()
    assert (job.state, job.done) == ("running", 4)

    fails_again(acme, letters[0])
    stopped.forward(1)
    bulk.work(late=1)

    job.refresh_from_db()
    assert job.state == "stopped"
    assert DeadLetter.objects.filter(resolved_at=None).count() == 4


def test_the_status_tells_what_was_tried_what_waits_in_line_and_what_failed_again(acme: Place, rule: Rule) -> None:
    letters = dead(rule, 5)
    stopped = StoppedClock()
    job = bulk.start("retry", rate=1)
    for _ in range(3):
        bulk.work(late=1)
        stopped.forward(1)
    fails_again(acme, letters[0])
    StepExecution.objects.filter(pk=letters[1].step_id).update(state="running", attempts=4)

    found = bulk.status(job.pk)

    assert (found.tried, found.in_line, found.left, found.failed_again) == (2, 1, 2, 1)


def test_cancelled_it_goes_no_further(acme: Place, rule: Rule) -> None:
    letters = dead(rule, 6)
    stopped = StoppedClock()
    job = bulk.start("retry", rate=1)
    for _ in range(3):
        bulk.work(late=1)
        stopped.forward(1)
    StepExecution.objects.filter(pk=letters[0].step_id).update(state="running", attempts=4)  # a worker is on it

    back = bulk.cancel(job.pk, "wrong ones")

    assert (back, bulk.cancel(job.pk), bulk.work(late=1)) == (2, 0, 0)
    assert bulk.status(job.pk).tried == 1
    assert DeadLetter.objects.filter(resolved_at=None).count() == 5
    assert Timer.objects.count() == 1


def test_only_those_of_the_group_are_touched(acme: Place, rule: Rule) -> None:
    dead(rule, 3, error="503 in 12 s from 'a'")
    dead(rule, 2, error="timed out")
    dead(make_rule(acme.tenant, name="Other"), 1, error="503 in 4 s from 'b'")

    stopped = StoppedClock()
    groups = error_groups(rule_id=rule.pk)
    assert [(group.count, group.error) for group in groups] == [(3, "# in # s from #"), (2, "timed out")]
    assert [group.count for group in error_groups()] == [3, 2, 1]
    filters = groups[0].filters
    bulk.start(
        "discard", rule_id=filters["rule_id"], step=filters["step"], reason_code=filters["reason"],
        error=filters["error"], rate=100,
    )  # fmt: skip
    work_for_a_second(stopped)

    assert [group.count for group in error_groups()] == [2, 1]
    assert DeadLetter.objects.filter(resolution="discarded").count() == 3


def test_the_same_job_twice_is_one_while_it_runs(acme: Place, rule: Rule) -> None:
    dead(rule, 2)

    assert bulk.start("retry").pk == bulk.start("retry").pk
    assert bulk.start("discard").pk != bulk.start("retry").pk


def test_those_that_went_on_meanwhile_are_counted_with_the_reason(acme: Place, rule: Rule) -> None:
    letters = dead(rule, 3)
    stopped = StoppedClock()
    job = bulk.start("retry", rate=100)
    Run.objects.filter(pk=letters[0].run_id).update(state="succeeded")
    discard(letters[1].pk)

    work_for_a_second(stopped)

    job.refresh_from_db()
    assert (job.done, job.refused) == (1, 1)
    assert "gone on without this step" in next(iter(job.refusals))


def test_numbers_that_make_no_sense_and_nothing_to_do_are_refused(acme: Place, rule: Rule) -> None:
    with pytest.raises(Refused, match="No open dead letter"):
        bulk.start("retry")
    dead(rule, 1)
    for wrong in ({"rate": 0}, {"rate": 2000}, {"most": 0}, {"stop_after": 0}):
        with pytest.raises(Refused):
            bulk.start("retry", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="verb"):
        bulk.start("delete")


def test_another_tenants_letters_are_left_alone(acme: Place, rule: Rule) -> None:
    dead(rule, 2)
    other = new_place()
    with acting_for(other.tenant.pk, other.actor):
        with pytest.raises(Refused):
            bulk.start("retry")
        assert error_groups() == []
    job = bulk.start("retry")
    with acting_for(other.tenant.pk, other.actor), pytest.raises(BulkJob.DoesNotExist):
        bulk.cancel(job.pk)
