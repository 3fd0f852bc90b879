"""What a pause has held goes on as the person who resumes asks: at once, at a rate, only the recent, or not at all."""

from datetime import datetime, timedelta

import pytest
from database_clock import StoppedClock
from operating import Place, make_event, make_live_run, make_rule
from operating import place as new_place

from automation.engine.explain import explain_event
from automation.engine.operate import Refused, pause, resume
from automation.engine.operate import held as operate_held
from automation.engine.operate.pause import Choice
from automation.models import Connection, Drip, Event, Lane, Pause, Rule, Run, Timer
from automation.store import clock, drips, held, retention
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry

LATE = 0.2


def due_runs(rule: Rule, number: int, **about: object) -> list[int]:
    """Runs whose step is due, the first for the longest time."""
    return [make_live_run(rule, **about).pk for _ in range(number)]


def let_out_all(stopped: StoppedClock, *, every: float = 0.2, most: int = 1000) -> list[tuple[int, datetime]]:
    """Lets a drip go on until it ends, by looks as the workers do; (run, due time) in the order of the due times."""
    for _ in range(most):
        drips.let_out(late=LATE)
        if not Drip.objects.filter(ended_at=None).exists():
            break
        stopped.forward(every)
    return list(
        Timer.objects.filter(state="pending", kind="step").order_by("due_at", "id").values_list("run_id", "due_at")
    )


def test_what_was_held_goes_on_at_the_rate_asked_for_and_in_its_order(acme: Place) -> None:
    runs = due_runs(make_rule(acme.tenant), 30)
    stopped = StoppedClock()
    pause.pause(reason="the pager is broken")

    status = pause.resume(Choice(rate=600))

    assert status.state == "running"
    assert status.dripping is not None
    assert (status.dripping.steps, status.dripping.drip.rate) == (30, 600)
    assert Timer.objects.filter(state="held").count() == 30
    resumed_at = stopped.at
    out = let_out_all(stopped)
    assert [run for run, _due in out] == runs
    late = [due - (resumed_at + timedelta(seconds=place / 10)) for place, (_run, due) in enumerate(out)]
    assert timedelta(0) <= min(late) <= max(late) <= timedelta(seconds=LATE)
    assert acme.lane.due_hint or acme.lane.wake_at is not None
    assert pause.dripping() is None


def test_no_look_lets_more_out_than_the_rate_allows_however_often_or_seldom_workers_look(acme: Place) -> None:
    due_runs(make_rule(acme.tenant), 12)
    stopped = StoppedClock()
    pause.pause(reason="")
    pause.resume(Choice(rate=60))

    assert [drips.let_out(late=LATE) for _ in range(3)] == [1, 0, 0]
    stopped.forward(3600)  # all workers were away for an hour
    assert drips.let_out(late=LATE) == 1
    assert Timer.objects.filter(state="held").count() == 10


def test_a_step_that_falls_due_during_a_drip_does_not_queue_behind_it(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    due_runs(rule, 50)
    StoppedClock()
    pause.pause(reason="")
    pause.resume(Choice(rate=60))

    later = make_live_run(rule)

    assert Timer.objects.get(run_id=later.pk).state == "pending"


def test_a_pause_amid_a_drip_stops_it_and_resuming_at_once_lets_all_of_it_go(acme: Place) -> None:
    due_runs(make_rule(acme.tenant), 10)
    stopped = StoppedClock()
    pause.pause(reason="")
    pause.resume(Choice(rate=60))
    drips.let_out(late=LATE)
    pause.pause(reason="again")
    stopped.forward(60)

    assert drips.let_out(late=LATE) == 0

    pause.resume()
    assert Timer.objects.filter(state="pending", kind="step", due_at__lte=stopped.at).count() == 10
    assert not Drip.objects.filter(ended_at=None).exists()


def test_a_second_resume_at_a_rate_takes_over_what_the_first_has_left(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    first = due_runs(rule, 4)
    stopped = StoppedClock()
    pause.pause(reason="")
    pause.resume(Choice(rate=60))
    pause.pause(reason="again")
    second = due_runs(rule, 4)

    pause.resume(Choice(rate=6000))

    assert Drip.objects.get(ended_at=None).rate == 6000
    assert [run for run, _due in let_out_all(stopped)] == first + second


def test_the_rate_can_be_changed_while_it_drips(acme: Place) -> None:
    due_runs(make_rule(acme.tenant), 10)
    StoppedClock()
    pause.pause(reason="")
    pause.resume(Choice(rate=1))

    pause.resume(Choice(rate=6000))
    assert Drip.objects.get().rate == 6000

    pause.resume()
    assert Timer.objects.filter(state="pending", kind="step").count() == 10
    assert list(AuditEntry.objects.order_by("id").values_list("verb", flat=True))[-2:] == ["pace", "pace"]


def test_only_the_recent_goes_on_and_what_was_dropped_is_written_down(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    old, recent = due_runs(rule, 2)
    long_ago = clock.now() - timedelta(hours=3)
    Timer.objects.filter(run_id=old).update(due_at=long_ago)
    gone = make_event(acme.tenant, matched_at=None)
    Event.objects.filter(pk=gone.pk).update(created_at=long_ago)
    kept = make_event(acme.tenant, matched_at=None)
    pause.pause(reason="a storm")
    assert next((one.minutes, one.events, one.steps) for one in pause.younger()) == (60, 1, 1)

    pause.resume(Choice("recent", recent_minutes=60))

    states = dict(Run.objects.filter(pk__in=[old, recent]).values_list("pk", "state"))
    assert states == {old: "cancelled", recent: "running"}
    ended = Pause.objects.get()
    assert (ended.dropped_events, ended.dropped_runs) == (1, 1)
    assert Event.objects.get(pk=gone.pk).matched_at == ended.resumed_at
    assert Event.objects.get(pk=kept.pk).matched_at is None
    assert [one.gate.value for one in explain_event(gone.pk)] == ["dropped"]
    entry = AuditEntry.objects.get(verb="resume")
    assert entry.after["dropped_events"] == entry.after["dropped_runs"] == 1


def test_dropping_ends_what_was_held_and_leaves_what_sleeps(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    held = due_runs(rule, 3)
    sleeping = make_live_run(rule, state="waiting", step="waiting", kind="delay")
    Timer.objects.filter(run_id=sleeping.pk).update(due_at=clock.now() + timedelta(days=1))
    make_event(acme.tenant, matched_at=None)
    pause.pause(reason="")

    pause.resume(Choice("drop"))

    assert set(Run.objects.filter(pk__in=held).values_list("state", flat=True)) == {"cancelled"}
    assert Run.objects.get(pk=sleeping.pk).state == "waiting"
    assert not Event.objects.filter(matched_at=None).exists()
    assert pause.status().state == "running"


def test_a_pause_of_new_runs_drops_events_and_no_run(acme: Place) -> None:
    (run,) = due_runs(make_rule(acme.tenant), 1)
    make_event(acme.tenant, matched_at=None)
    pause.pause(level="new", reason="")

    pause.resume(Choice("drop"))

    assert Run.objects.get(pk=run).state == "running"
    assert not Event.objects.filter(matched_at=None).exists()


def test_kept_events_start_their_runs_at_the_rate_and_after_the_steps(acme: Place) -> None:
    due_runs(make_rule(acme.tenant), 2)
    for _ in range(20):
        make_event(acme.tenant, matched_at=None)
    stopped = StoppedClock()
    pause.pause(reason="")
    pause.resume(Choice(rate=600))
    drip = Drip.objects.get()

    assert drips.admit(drip.pk, wanted=20).granted == 0
    admitted = []
    for _ in range(10):
        drips.let_out(late=LATE)
        admitted.append(drips.admit(drip.pk, wanted=20).granted)
        stopped.forward(0.25)

    assert admitted[0] == 0
    assert 20 <= sum(admitted) <= 0.25 * 10 * 10 + 1 - 2
    assert pause.status().dripping is not None


def test_a_pause_may_say_beforehand_at_which_rate_it_goes_on_by_itself(acme: Place) -> None:
    due_runs(make_rule(acme.tenant), 5)
    pause.pause(reason="", until=clock.now() + timedelta(hours=1), rate=60)
    Pause.objects.update(until=clock.now() - timedelta(seconds=1))

    assert pause.resume_due() == 1

    assert Drip.objects.get().rate == 60
    assert Pause.objects.get().ended_by == ""


@pytest.mark.parametrize("choice", [Choice(rate=0), Choice(rate=60_001), Choice("recent"), Choice("recent", 0)])
def test_a_choice_that_makes_no_sense_is_refused_and_the_pause_stays(acme: Place, choice: Choice) -> None:
    pause.pause(reason="")
    with pytest.raises(Refused):
        pause.resume(choice)
    assert pause.status().state == "paused"


def test_what_is_held_is_shown_by_rule_and_by_kind_of_event(acme: Place) -> None:
    pager, mailer = make_rule(acme.tenant, name="Page"), make_rule(acme.tenant, name="Mail")
    due_runs(pager, 3)
    due_runs(mailer, 1)
    make_event(acme.tenant, matched_at=None)
    pause.pause(reason="")

    assert [(one.rule_name, one.steps) for one in pause.held_by_rule()] == [("Page", 3), ("Mail", 1)]
    assert [(one.model, one.change, one.events) for one in pause.kept_by_kind()] == [("helpdesk.ticket", "updated", 1)]


def test_a_rule_goes_on_at_a_rate_while_the_others_run_as_they_like(acme: Place) -> None:
    held, other = make_rule(acme.tenant), make_rule(acme.tenant, name="Other")
    runs = due_runs(held, 5)
    due_runs(other, 1)
    stopped = StoppedClock()
    pause.pause_rule(held.pk, "too many pages")

    pause.resume_rule(held.pk, Choice(rate=600))

    assert Timer.objects.filter(state="held").count() == 5
    assert pause.open_pause(held.pk) is None
    out = [run for run, _due in let_out_all(stopped) if run in runs]
    assert out == runs


def test_dropping_at_the_end_of_a_rules_pause_cancels_its_held_runs_only(acme: Place) -> None:
    held, other = make_rule(acme.tenant), make_rule(acme.tenant, name="Other")
    runs, (stays,) = due_runs(held, 3), due_runs(other, 1)
    pause.pause_rule(held.pk, "")

    pause.resume_rule(held.pk, Choice("drop"))

    assert set(Run.objects.filter(pk__in=runs).values_list("state", flat=True)) == {"cancelled"}
    assert Run.objects.get(pk=stays).state == "running"
    assert pause.held_by("rule", held.pk) == []
    assert Pause.objects.get().dropped_runs == 3


def test_switching_a_rule_on_lets_go_what_still_drips(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    due_runs(rule, 4)
    pause.pause_rule(rule.pk, "")
    pause.resume_rule(rule.pk, Choice(rate=1))
    pause.pause_rule(rule.pk, "again")

    pause.end_rule_pause(Rule.objects.get(pk=rule.pk))
    pause.let_out_some(pause.dripping("rule", rule.pk))

    assert not Timer.objects.filter(state="held").exists()
    assert not Drip.objects.filter(ended_at=None).exists()


def test_a_rules_pause_with_cancel_ends_its_runs_and_holds_those_that_come(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    (run,) = due_runs(rule, 1)

    pause.pause_rule(rule.pk, "wrong text", level="cancel")

    assert Run.objects.get(pk=run).state == "cancelled"
    found = pause.open_pause(rule.pk)
    assert found is not None
    assert found.level == "cancel"


def test_a_pause_of_the_installation_stops_every_tenant_and_those_that_come(acme: Place) -> None:
    other = new_place()

    pause.pause_installation(reason="restored from a backup")
    late = new_place()

    for one in (acme, other, late):
        assert (one.lane.paused, one.lane.hold_new) == (True, True)
    status = pause.status()
    assert (status.state, status.by_installation) == ("paused", True)
    assert pause.installation_status().state == "paused"
    with every_tenant():
        assert AuditEntry.objects.filter(tenant=None, verb="pause").count() == 1


def test_a_tenants_own_pause_outlives_that_of_the_installation_and_the_other_way_round(acme: Place) -> None:
    pause.pause(reason="own")
    pause.pause_installation(reason="all")

    pause.resume_installation()
    assert acme.lane.paused
    pause.pause_installation(reason="all")
    pause.resume()
    assert acme.lane.paused
    pause.resume_installation()
    assert not acme.lane.paused
    assert not acme.lane.hold_new


def test_each_tenant_goes_on_at_the_rate_when_the_installation_is_resumed(acme: Place) -> None:
    other, idle = new_place(), new_place()
    due_runs(make_rule(acme.tenant), 3)
    with acting_for(other.tenant.pk):
        due_runs(make_rule(other.tenant), 3)
    pause.pause_installation(reason="restored")
    assert pause.installation_status().timers_due == 6

    pause.resume_installation(Choice(rate=60))

    assert set(Drip.objects.values_list("tenant_id", "rate")) == {(acme.tenant.pk, 60), (other.tenant.pk, 60)}
    assert not Lane.objects.filter(paused=True).exists()
    assert idle.lane.rules_version > 0


def test_a_lane_that_missed_the_pause_of_the_installation_is_given_it(acme: Place) -> None:
    pause.pause_installation(reason="")
    Lane.objects.filter(tenant=acme.tenant).update(paused=False, hold_new=False)

    assert pause.heal_pauses() == 1

    assert acme.lane.paused
    assert pause.heal_pauses() == 0


@pytest.mark.parametrize(("own", "stands"), [(None, (False, False)), ("new", (True, False)), ("hold", (True, True))])
def test_a_lane_that_missed_the_end_of_a_pause_goes_on(acme: Place, own: str | None, stands: tuple[bool, bool]) -> None:
    if own is not None:
        pause.pause(level=own, reason="own")
    Lane.objects.filter(tenant=acme.tenant).update(hold_new=True, paused=True)

    pause.heal_pauses()

    assert (acme.lane.hold_new, acme.lane.paused) == stands
    assert pause.heal_pauses() == 0


@pytest.mark.parametrize(("choice", "goes"), [(Choice("drop"), 0), (Choice(rate=60), 0), (Choice(), 3)])
def test_a_tenant_that_starts_nothing_new_goes_on_with_its_steps_as_staff_choose(
    acme: Place, choice: Choice, goes: int
) -> None:
    due_runs(make_rule(acme.tenant), 3)
    event = make_event(acme.tenant, matched_at=None)
    pause.pause(level="new", reason="own")
    pause.pause_installation(reason="restored")

    pause.resume_installation(choice)

    assert (acme.lane.hold_new, acme.lane.paused) == (True, False)
    assert Timer.objects.filter(state="pending", kind="step").count() == goes
    event.refresh_from_db()
    assert event.matched_at is None
    assert Drip.objects.filter(rate=60, kept_until=None).count() == (1 if choice.rate else 0)


def test_the_end_of_the_installations_pause_leaves_the_rate_that_a_tenant_chose(acme: Place) -> None:
    due_runs(make_rule(acme.tenant), 3)
    pause.pause(reason="own")
    pause.resume(Choice(rate=60))
    make_event(acme.tenant, matched_at=None)
    pause.pause_installation(reason="all")

    pause.resume_installation()

    assert Drip.objects.get().rate == 60
    assert Timer.objects.filter(state="held").count() == 3


@pytest.mark.parametrize(("own", "stays"), [(10, True), (600, False), (None, False)])
def test_what_a_tenant_lets_out_no_faster_stays_its_own_where_the_installation_goes_on(
    acme: Place, own: int | None, *, stays: bool
) -> None:
    rule = make_rule(acme.tenant)
    due_runs(rule, 3)
    pause.pause_rule(rule.pk, "x", rate=60)
    pause.pause_installation(reason="all")
    Drip.objects.filter(scope="rule").update(next_at=clock.now(), rate=own)  # as when it is let out meanwhile
    Pause.objects.filter(scope="rule").update(ended_at=clock.now())
    Timer.objects.update(state="held", drip_id=Drip.objects.get(scope="rule").pk)

    pause.resume_installation(Choice(rate=60))

    drips = Drip.objects.filter(pk__in=Timer.objects.values("drip_id"))
    assert set(drips.values_list("scope", flat=True)) == {"rule" if stays else "tenant"}


def test_a_pause_of_a_connection_that_is_gone_ends_by_itself_and_keeps_no_other_from_ending(acme: Place) -> None:
    hook = Connection(tenant=acme.tenant, name="hook", kind="webhook", endpoint="https://example.com/hook")
    hook.save()
    pause.pause_connection(hook.pk, "x", until=clock.now() + timedelta(hours=1))
    Pause.objects.update(subject_id=hook.pk + 1)
    pause.pause(reason="y", until=clock.now() + timedelta(hours=1))
    Pause.objects.update(until=clock.now() - timedelta(seconds=1))

    assert pause.resume_due() == 2

    assert not Pause.objects.filter(ended_at=None).exists()


def test_old_pauses_go_with_their_drips_once_nothing_drips_any_more(acme: Place) -> None:
    due_runs(make_rule(acme.tenant), 1)
    pause.pause(reason="x")
    pause.resume(Choice(rate=60))
    later = clock.now() + timedelta(days=1)
    assert retention.drop_pauses(before=later, limit=10) == 0

    pause.resume()

    assert retention.drop_pauses(before=later, limit=10) == 1
    assert not Drip.objects.exists()


def test_another_choice_for_the_installation_goes_through_all_tenants_once_more(
    acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_place()
    runs = []
    for one in (acme, other):
        with acting_for(one.tenant.pk):
            runs += due_runs(make_rule(one.tenant), 1)
    pause.pause_installation(reason="restored")
    monkeypatch.setattr(resume, "AT_ONE_GO", -1.0)
    pause.resume_installation(Choice(rate=60))
    monkeypatch.undo()

    pause.resume_installation(Choice("drop"))

    assert not pause.find_pause("installation")
    assert set(Run.objects.filter(pk__in=runs).values_list("state", flat=True)) == {"cancelled"}


def test_a_rate_that_the_end_of_the_installations_pause_has_given_is_taken_back_by_the_next_command(
    acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in (acme, new_place()):
        with acting_for(one.tenant.pk):
            due_runs(make_rule(one.tenant), 1)
    pause.pause_installation(reason="restored")
    monkeypatch.setattr(resume, "AT_ONE_GO", -1.0)
    pause.resume_installation(Choice(rate=60))
    monkeypatch.undo()

    pause.resume_installation()

    assert not Drip.objects.filter(rate__isnull=False).exists()


def test_what_a_rule_still_lets_out_is_dropped_with_the_rest_of_its_tenant(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    runs = due_runs(rule, 3)
    pause.pause_rule(rule.pk, "x")
    pause.resume_rule(rule.pk, Choice(rate=1))
    pause.pause(reason="y")

    pause.resume(Choice("drop"))

    assert set(Run.objects.filter(pk__in=runs).values_list("state", flat=True)) == {"cancelled"}


def test_what_a_rule_still_lets_out_keeps_to_the_rate_of_its_tenant(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    due_runs(rule, 3)
    pause.pause_rule(rule.pk, "x")
    pause.resume_rule(rule.pk, Choice(rate=60_000))
    pause.pause(reason="y")
    due_runs(rule, 3)

    pause.resume(Choice(rate=1))

    still = pause.dripping()
    assert still is not None
    assert still.steps == 6
    drips.let_out(late=LATE)
    assert Timer.objects.filter(state="pending").count() == 1


def test_what_is_left_is_not_counted_beyond_what_anybody_reads(acme: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (held, operate_held):
        monkeypatch.setattr(module, "COUNTED", 3)
    due_runs(make_rule(acme.tenant), 6)
    pause.pause(reason="x")
    pause.resume(Choice(rate=1))
    still = pause.dripping()
    assert still is not None
    assert (still.steps, still.steps_left, still.events_left) == (4, "more than 10,000", "0")
    assert still.ends_at - clock.now() > timedelta(minutes=5)  # all the same


@pytest.mark.parametrize(("choice", "left"), [(Choice("drop"), 0), (Choice("recent", 1, 600), 1)])
def test_what_a_rule_still_lets_out_can_be_dropped(acme: Place, choice: Choice, left: int) -> None:
    rule = make_rule(acme.tenant)
    old, (new,) = due_runs(rule, 3), due_runs(rule, 1)
    Timer.objects.filter(run_id__in=old).update(due_at=clock.now() - timedelta(hours=1))
    pause.pause_rule(rule.pk, "x")
    pause.resume_rule(rule.pk, Choice(rate=1))
    Timer.objects.filter(run_id=new).update(state="held", drip_id=Drip.objects.get().pk)

    pause.resume_rule(rule.pk, choice)

    assert set(Run.objects.filter(pk__in=old[1:]).values_list("state", flat=True)) == {"cancelled"}
    assert Run.objects.exclude(state="cancelled").filter(pk=new).count() == left
    entry = AuditEntry.objects.filter(verb="pace").latest("id")
    assert (entry.after["keep"], entry.after["rate"]) == (choice.keep, choice.rate)
    assert entry.after["dropped_runs"] == Pause.objects.get().dropped_runs >= 2
