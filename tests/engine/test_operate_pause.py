"""A person pauses a tenant or a rule, sees how far it has come, and resumes."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from operating import Place, lease, make_dead_run, make_event, make_live_run, make_rule, make_run, make_step, make_timer
from operating import place as new_place

from automation.engine.operate import Refused, pause
from automation.models import Lane, Pause, Rule, Run, Timer
from automation.store import claims, clock
from automation.store.timers import arm_match
from tenants.context import acting_for
from tenants.models import AuditEntry


def claimed(most: int = 8) -> int:
    """How many timers a new worker gets."""
    worker = uuid.uuid4()
    claims.enlist(worker, pool="northwind", release="", host="beta", pid=1, lease=60)
    return len(claims.claim(worker, pool="northwind", most=most, take=most, deadline=40, floor=-1, match_only=False))


def test_a_pause_is_shown_as_paused_only_when_no_step_runs(acme: Place) -> None:
    run = make_run(make_rule(acme.tenant))
    timer = make_timer(make_step(run, state="running"))
    lease(timer, host="alpha", pid=7)

    status = pause.pause(reason="the pager is broken")
    assert (status.state, status.in_flight, status.workers) == ("pausing", 1, ["alpha:7"])

    Timer.objects.filter(pk=timer.pk).update(state="pending", worker_id=None, deadline_at=None)
    status = pause.status()
    assert (status.state, status.in_flight, status.workers, status.timers_due, status.held_runs) == (
        "paused",
        0,
        [],
        1,
        1,
    )
    assert status.pause is not None
    assert (status.pause.level, status.pause.reason, status.pause.actor) == ("hold", "the pager is broken", "Ana Admin")


def test_nothing_is_claimed_while_a_tenant_is_paused_and_other_tenants_go_on(acme: Place) -> None:
    make_live_run(make_rule(acme.tenant))
    other = new_place()
    with acting_for(other.tenant.pk):
        make_live_run(make_rule(other.tenant))

    pause.pause(reason="")

    assert claimed() == 1
    assert Timer.objects.get(tenant=other.tenant).state == "leased"


def test_a_pause_of_new_runs_keeps_events_and_lets_running_ones_go_on(acme: Place) -> None:
    make_live_run(make_rule(acme.tenant))
    make_event(acme.tenant, matched_at=None)
    arm_match(acme.tenant.pk)

    status = pause.pause(level="new", reason="")

    assert (status.state, status.kept_events) == ("paused", 1)
    assert not Timer.objects.filter(kind="match").exists()
    assert not arm_match(acme.tenant.pk)
    assert claimed() == 1


def test_cancelling_everything_cancels_each_live_run(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    runs = [make_live_run(rule, state=state) for state in ("pending", "running", "waiting")]

    status = pause.pause(level="cancel", reason="wrong text")

    assert status.state == "paused"
    assert {run.state for run in Run.objects.filter(pk__in=[run.pk for run in runs])} == {"cancelled"}


def test_the_same_pause_twice_is_one_pause(acme: Place) -> None:
    pause.pause(reason="one")
    pause.pause(reason="two")

    assert Pause.objects.get().reason == "one"
    assert AuditEntry.objects.filter(verb="pause").count() == 1


def test_a_pause_can_be_moved_to_another_level(acme: Place) -> None:
    make_live_run(make_rule(acme.tenant))
    pause.pause(level="new", reason="")
    pause.pause(level="hold", reason="")
    assert claimed() == 0

    pause.pause(level="new", reason="")

    assert claimed() == 1
    assert (acme.lane.hold_new, acme.lane.paused) == (True, False)
    assert [one.level for one in Pause.objects.order_by("id")] == ["new", "hold", "new"]
    assert Pause.objects.filter(ended_at=None).count() == 1


def test_resuming_lets_held_work_be_claimed_and_arms_the_matcher(
    acme: Place, django_capture_on_commit_callbacks: object
) -> None:
    make_live_run(make_rule(acme.tenant))
    make_event(acme.tenant, matched_at=None)
    pause.pause(reason="")
    assert claimed() == 0

    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        status = pause.resume()

    assert status.state == "running"
    assert claimed() == 2
    ended = Pause.objects.get()
    assert (ended.ended_at is not None, ended.ended_by) == (True, "Ana Admin")
    entry = AuditEntry.objects.get(verb="resume")
    assert entry.before["level"] == "hold"


def test_resuming_twice_does_nothing_more(acme: Place) -> None:
    pause.pause(reason="")
    pause.resume()
    pause.resume()

    assert AuditEntry.objects.filter(verb="resume").count() == 1


def test_a_tenant_that_was_paused_saves_up_no_credit(acme: Place) -> None:
    other = new_place()
    make_live_run(make_rule(acme.tenant))
    pause.pause(reason="")
    Lane.objects.filter(tenant=other.tenant).update(stride_pass=500_000)

    pause.resume()

    assert acme.lane.stride_pass >= 500_000


def test_a_pause_ends_by_itself_at_its_time(acme: Place) -> None:
    now = clock.now()
    pause.pause(reason="", until=now + timedelta(hours=1))
    assert pause.resume_due() == 0

    Pause.objects.update(until=now - timedelta(seconds=1))
    assert pause.resume_due() == 1

    assert pause.status().state == "running"
    assert Pause.objects.get().ended_by == ""


def test_a_time_that_is_past_is_refused(acme: Place) -> None:
    with pytest.raises(Refused, match="past already"):
        pause.pause(reason="", until=clock.now() - timedelta(minutes=1))
    assert pause.status().state == "running"


def test_it_says_beforehand_what_a_pause_concerns(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    make_live_run(rule)
    make_dead_run(rule)
    make_event(acme.tenant, matched_at=None)
    other = new_place()
    with acting_for(other.tenant.pk):
        make_live_run(make_rule(other.tenant))

    assert pause.concerned() == pause.Concerned(live_runs=1, in_flight=0, unmatched_events=1, timers_due=1)


def test_a_paused_rule_is_known_to_workers_by_a_new_rules_version(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    before = acme.lane.rules_version

    pause.pause_rule(rule.pk, "too many pages")
    pause.pause_rule(rule.pk, "again")

    assert acme.lane.rules_version == before + 1
    found = pause.open_pause(rule.pk)
    assert found is not None
    assert (found.scope, found.reason) == ("rule", "too many pages")


def test_resuming_a_rule_makes_its_held_runs_due_now_but_not_those_that_back_off(acme: Place) -> None:
    rule, later = make_rule(acme.tenant), clock.now() + timedelta(seconds=30)
    held = make_timer(make_step(make_run(rule, reason="paused")), due_at=later)
    backing_off = make_timer(make_step(make_run(rule), state="retrying"), kind="retry", due_at=later)
    put_back = make_timer(make_step(make_run(rule, reason="paused"), state="retrying"), kind="retry", due_at=later)
    sleeping = make_timer(make_step(make_run(rule, state="waiting"), state="waiting"), kind="delay", due_at=later)
    pause.pause_rule(rule.pk, "")

    pause.resume_rule(rule.pk)

    now = clock.now()
    due = {timer.pk: timer.due_at <= now for timer in Timer.objects.all()}
    assert due == {held.pk: True, put_back.pk: True, backing_off.pk: False, sleeping.pk: False}
    assert pause.open_pause(rule.pk) is None
    assert acme.lane.due_hint


def test_another_tenants_rule_can_not_be_paused(acme: Place) -> None:
    other = new_place()
    with acting_for(other.tenant.pk):
        rule = make_rule(other.tenant)

    with pytest.raises(Rule.DoesNotExist):
        pause.pause_rule(rule.pk, "")
    with pytest.raises(Rule.DoesNotExist):
        pause.resume_rule(rule.pk)
    assert not Pause.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_people_who_pause_at_one_moment_make_one_pause() -> None:
    acme = new_place()
    meet = threading.Barrier(2)
    states: list[str] = []

    def press() -> None:
        with acting_for(acme.tenant.pk, acme.actor):
            meet.wait()
            states.append(pause.pause(reason="now").state)
        connection.close()

    threads = [threading.Thread(target=press) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert states == ["paused", "paused"]
    assert Pause.objects.filter(ended_at=None).count() == 1
