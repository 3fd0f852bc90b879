"""What a rule or connection holds lies still, costs no claim, and goes on in portions however much it is."""

import time
import uuid
from datetime import timedelta

import pytest
from database_clock import StoppedClock
from django.db import connection
from operating import Place, make_live_run, make_rule, make_run, make_step, make_timer
from operating import place as new_place

from automation.engine import rules
from automation.engine.operate import Refused, pause, resume, timers
from automation.engine.operate.pause import Choice
from automation.models import Drip, Lane, Pause, Rule, Run, StepExecution, Timer, Worker
from automation.store import claims, clock, drips, shelves
from automation.store.shelves import Shelved
from tenants.context import acting_for
from tenants.models import AuditEntry

PORTION = 1000


def put(rule: Rule) -> int:
    """Holds what waits of a rule, as workers do that claim it."""
    steps = StepExecution.objects.filter(run__rule=rule, state="pending").values_list("id", flat=True)
    return shelves.put([Shelved(rule.tenant_id, "rule", rule.pk, one) for one in steps])


def many(rule: Rule, number: int) -> None:
    """So many runs whose step waits, written all at once."""
    first = make_live_run(rule, reason="paused").pk
    copy("automation_run", f"x.id = {first}", f"generate_series(2, {number})", {"forked_from_run_id": str(first)})
    copies = f"(SELECT id FROM automation_run WHERE forked_from_run_id = {first}) r"
    copy("automation_stepexecution", f"x.run_id = {first}", copies, {"run_id": "r.id"})
    steps = f"(SELECT s.id, s.run_id FROM automation_stepexecution s JOIN {copies} ON r.id = s.run_id) r"
    copy("automation_timer", f"x.run_id = {first}", steps, {"run_id": "r.run_id", "step_id": "r.id"})


def copy(table: str, which: str, times: str, changes: dict[str, str]) -> None:
    """Copies a row of a table, once for each of another, with these columns changed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attname <> 'id' AND attgenerated = ''",
            [table],
        )
        names = [f'"{row[0]}"' for row in cursor.fetchall()]
        values = [changes.get(name.strip('"'), f"x.{name}") for name in names]
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {table} x, {times} WHERE {which}"
        )


def held() -> int:
    return Timer.objects.filter(state="held").count()


def claimable(acme: Place) -> list[int]:
    """The runs that a worker would claim at this moment."""
    worker = uuid.uuid4()
    claims.enlist(worker, pool=acme.lane.pool, release="1", host="alpha", pid=1, lease=60)
    found = claims.claim(worker, pool=acme.lane.pool, most=8, take=8, deadline=40, floor=-1, match_only=False)
    return [one.run_id for one in found if one.run_id]


def test_what_a_paused_rule_holds_is_claimed_by_nobody_until_it_is_resumed(acme: Place) -> None:
    rule, other = make_rule(acme.tenant), make_rule(acme.tenant, name="Other")
    runs = [make_live_run(rule, reason="paused").pk for _ in range(3)]
    pause.pause_rule(rule.pk, "too many pages")
    assert put(rule) == 3
    (goes,) = [make_live_run(other).pk]

    StoppedClock().forward(3600)
    assert claimable(acme) == [goes]
    assert [(one.rule_name, one.steps) for one in pause.held_by("rule", rule.pk)] == [(rule.name, 3)]
    assert pause.held_by_rule() == []  # of the tenant's own pauses, of which there is none

    pause.resume_rule(rule.pk)
    assert sorted(claimable(acme)) == runs
    assert not Drip.objects.filter(ended_at=None).exists()


def test_a_rule_that_is_off_holds_in_the_same_way_and_its_pause_ends_in_vain(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    pause.pause_rule(rule.pk, "x")
    rules.switch_off(rule.pk)
    make_live_run(rule, reason="rule_off")
    assert put(rule) == 1

    pause.resume_rule(rule.pk)
    assert (held(), drips.let_out(late=1.0)) == (1, 0)
    rules.switch_off(rule.pk, waiting="finish")
    assert held() == 0


def test_nothing_goes_on_a_shelf_that_is_open_already(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    make_live_run(rule, reason="paused")
    pause.pause_rule(rule.pk, "x")
    pause.resume_rule(rule.pk)
    assert put(rule) == 0
    assert Timer.objects.get().state == "pending"


def test_a_shelf_that_stands_otherwise_than_its_rule_is_set_right_by_the_chores(acme: Place) -> None:
    rule, paused = make_rule(acme.tenant), make_rule(acme.tenant, name="Paused")
    for one in (rule, paused):
        make_live_run(one, reason="paused")
        pause.pause_rule(one.pk, "x")
    put(rule)
    Pause.objects.filter(subject_id=rule.pk).update(ended_at=clock.now())  # as a release without shelves does it
    Drip.objects.filter(subject_id=paused.pk).delete()

    assert pause.heal_pauses() == 2
    assert pause.heal_pauses() == 0
    assert put(paused) == 1
    drips.let_out(late=1.0)
    assert Timer.objects.get(state="pending").run_id == Run.objects.get(rule=rule).pk


def test_shelves_are_made_by_the_chores_once_no_worker_of_a_release_without_them_is_left(acme: Place) -> None:
    paused, off = make_rule(acme.tenant), make_rule(acme.tenant, name="Off", on=False)
    pause.pause_rule(paused.pk, "x")
    Drip.objects.all().delete()
    old = uuid.uuid4()
    claims.enlist(old, pool=acme.lane.pool, release="1-abc", host="alpha", pid=1, lease=60)

    assert pause.heal_pauses() == 0
    assert not Drip.objects.exists()

    claims.enlist(uuid.uuid4(), pool=acme.lane.pool, release="2-abc", host="alpha", pid=2, lease=60)
    Worker.objects.filter(pk=old).delete()
    assert pause.heal_pauses() == 2
    assert set(Drip.objects.values_list("subject_id", "next_at")) == {(paused.pk, None), (off.pk, None)}


def test_a_rule_that_was_paused_without_a_shelf_gets_one_with_its_end(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    make_live_run(rule, reason="paused")
    pause.pause_rule(rule.pk, "x")
    Drip.objects.all().delete()
    pause.resume_rule(rule.pk, Choice(rate=1))
    assert held() == 1


def test_a_rule_that_comes_back_from_being_deleted_holds_what_it_gets(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    rules.delete(rule.pk)
    drips.let_out(late=1.0)
    rules.undelete(rule.pk)
    make_live_run(rule, reason="rule_off")
    assert put(rule) == 1


def test_a_deleted_rule_holds_nothing(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    rules.switch_off(rule.pk)
    make_live_run(rule, reason="rule_off")
    put(rule)
    rules.delete(rule.pk)
    assert not Timer.objects.exists()
    drips.let_out(late=1.0)
    assert not Drip.objects.filter(ended_at=None).exists()


def test_a_step_that_is_held_for_its_rule_can_not_be_run_by_hand(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    make_live_run(rule, reason="paused")
    pause.pause_rule(rule.pk, "x")
    put(rule)
    timer, later = Timer.objects.get(), clock.now() + timedelta(minutes=5)
    with pytest.raises(Refused, match="stopped"):
        timers.run_now(timer.pk)
    with pytest.raises(Refused, match="stopped"):
        timers.postpone(timer.pk, until=later)

    pause.resume_rule(rule.pk, Choice(rate=1))
    Timer.objects.update(state="held", drip_id=Drip.objects.get().pk)
    Drip.objects.update(ended_at=None)
    with pytest.raises(Refused, match="in its turn"):
        timers.postpone(timer.pk, until=later)
    assert timers.run_now(timer.pk)
    timer.refresh_from_db()
    assert (timer.state, timer.drip_id) == ("pending", None)


def test_more_than_a_portion_goes_on_by_several_looks_and_is_seen_to(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    pause.pause_rule(rule.pk, "x")
    many(rule, 2 * PORTION + 5)
    put(rule)
    assert held() == 2 * PORTION + 5

    pause.resume_rule(rule.pk)

    assert pause.open_pause(rule.pk) is None
    still = pause.dripping("rule", rule.pk)
    assert still is not None
    assert (still.steps, still.drip.rate) == (PORTION + 5, None)
    assert [drips.let_out(late=1.0) for _ in range(3)] == [PORTION, 5, 0]
    assert pause.dripping("rule", rule.pk) is None
    assert acme.lane.due_hint


@pytest.mark.long
def test_the_verb_is_quick_for_a_hundred_thousand_held_runs(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    pause.pause_rule(rule.pk, "x")
    many(rule, 100_000)
    put(rule)
    for verb in (lambda: pause.resume_rule(rule.pk, Choice(rate=600)), lambda: rules.switch_on(rule.pk)):
        begun = time.perf_counter()
        verb()
        assert time.perf_counter() - begun < 2.0
    assert held() >= 98_000


def test_the_end_of_a_pause_that_takes_longer_is_gone_on_with_by_workers(
    acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "AT_ONE_GO", -1.0)
    monkeypatch.setattr(resume, "RUNS_AT_A_TIME", 2)
    rule = make_rule(acme.tenant)
    pause.pause_rule(rule.pk, "x")
    runs = [make_live_run(rule, reason="paused").pk for _ in range(5)]
    put(rule)

    pause.resume_rule(rule.pk, Choice("drop"))

    assert Run.objects.filter(pk__in=runs, state="cancelled").count() == 2
    assert pause.open_pause(rule.pk) is not None
    assert pause.is_due()
    looks = 0
    while pause.resume_due(seconds=-1.0) == 0:
        looks += 1
        assert looks < 10
    assert Run.objects.filter(pk__in=runs, state="cancelled").count() == 5
    assert Pause.objects.get().dropped_runs == 5
    entry = AuditEntry.objects.get(verb="resume")
    assert (entry.actor_name, entry.after["dropped_runs"]) == (acme.actor.name, 5)
    assert not pause.is_due()


def test_the_end_of_a_tenants_pause_is_gone_on_with_as_well_and_holds_all_until_then(
    acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "AT_A_TIME", 2)
    monkeypatch.setattr(resume, "AT_ONE_GO", -1.0)
    rule = make_rule(acme.tenant)
    for _ in range(5):
        make_live_run(rule)
    pause.pause(reason="x")
    assert pause.resume(Choice(rate=60)).state == "paused"
    assert Lane.objects.get(tenant=acme.tenant).paused
    looks = 0
    while pause.resume_due(seconds=-1.0) == 0:
        looks += 1
        assert looks < 10
    assert not Lane.objects.get(tenant=acme.tenant).paused
    assert pause.dripping() is not None
    assert held() == 5


def test_the_end_of_the_installations_pause_goes_on_with_the_next_tenant(
    acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "AT_ONE_GO", -1.0)
    monkeypatch.setattr(resume, "AT_A_TIME", 2)
    for one in (acme, new_place(), new_place()):
        with acting_for(one.tenant.pk):
            rule = make_rule(one.tenant)
            for _ in range(3):
                make_live_run(rule)
    pause.pause_installation(reason="restored")
    assert pause.resume_installation(Choice(rate=60)).state == "paused"
    looks = 0
    while pause.resume_due(seconds=-1.0) == 0:
        looks += 1
        assert looks < 20
    assert pause.installation_status().state == "running"
    assert sorted(Drip.objects.values_list("held", flat=True)) == [3, 3, 3]
    assert held() == 9


def test_a_pause_amid_the_end_of_another_takes_its_place(acme: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "AT_A_TIME", 1)
    monkeypatch.setattr(resume, "AT_ONE_GO", -1.0)
    rule = make_rule(acme.tenant)
    for _ in range(3):
        make_live_run(rule)
    pause.pause(reason="x")
    pause.resume(Choice(rate=60))
    pause.pause(reason="again", rate=60)
    assert pause.resume_due() == 0
    assert pause.status().state == "paused"


def test_a_pause_that_ends_by_itself_does_so_at_its_time(acme: Place) -> None:
    stopped = StoppedClock()
    pause.pause(reason="x", until=stopped.at + timedelta(minutes=1))
    assert not pause.is_due()
    stopped.forward(60)
    assert pause.is_due()
    assert pause.resume_due() == 1
    assert pause.open_pause() is None


def test_work_that_no_worker_has_looked_at_keeps_to_the_rate_too(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    pause.pause_rule(rule.pk, "x")
    make_timer(make_step(make_run(rule)), due_at=clock.now() - timedelta(minutes=5))
    later = make_timer(make_step(make_run(rule, state="waiting"), state="waiting"), kind="delay",
                       due_at=clock.now() + timedelta(minutes=5))  # fmt: skip
    (found,) = pause.held_by("rule", rule.pk)
    assert found.steps == 1

    pause.resume_rule(rule.pk, Choice(rate=1))

    assert held() == 1
    assert Timer.objects.get(pk=later.pk).state == "pending"


def test_a_drip_makes_up_for_late_looks_and_not_for_a_standstill(acme: Place) -> None:
    stopped = StoppedClock()
    rule = make_rule(acme.tenant)
    pause.pause_rule(rule.pk, "x")
    many(rule, 500)
    put(rule)
    pause.resume_rule(rule.pk, Choice(rate=3000))
    begun, out = stopped.at, 0
    for late in (0.1, 0.9, 0.1, 0.4, 0.1, 0.5, 0.1, 0.1):  # a busy machine
        stopped.forward(late)
        out += drips.let_out(late=0.5)
        assert out <= (stopped.at - begun).total_seconds() * 50 + 1
    for _ in range(60):
        stopped.forward(0.1)
        out += drips.let_out(late=0.5)
    assert out >= 0.98 * (stopped.at - begun).total_seconds() * 50
    due = [one.timestamp() for one in Timer.objects.filter(state="pending").values_list("due_at", flat=True)]
    assert max(sum(1 for other in due if start <= other < start + 1) for start in due) <= 56
    stopped.forward(60)
    assert drips.let_out(late=0.5) == 1
