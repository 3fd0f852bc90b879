"""What one person decides about a pause never undoes what another has decided meanwhile."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from operating import Place, make_event, make_live_run, make_rule
from operating import place as new_place

from automation.engine.operate import pause, resume
from automation.engine.operate.pause import Choice
from automation.models import Connection, Drip, Event, Pause, Rule, Run, Timer
from automation.store import clock
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry

SCOPES = ["tenant", "rule", "connection", "installation"]


def make_hook(acme: Place) -> Connection:
    hook = Connection(tenant=acme.tenant, name="hook", kind="webhook", endpoint="https://example.com/hook")
    hook.save()
    return hook


def stop(scope: str, rule: Rule, hook: Connection, reason: str) -> Pause:
    """Pauses one of them; answers the open pause."""
    verbs: dict[str, Callable[[], object]] = {
        "tenant": lambda: pause.pause(reason=reason),
        "rule": lambda: pause.pause_rule(rule.pk, reason, rate=None if reason == "first" else 60),
        "connection": lambda: pause.pause_connection(hook.pk, reason, rate=None if reason == "first" else 60),
        "installation": lambda: pause.pause_installation(reason=reason),
    }
    verbs[scope]()
    return Pause.objects.get(ended_at=None)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("choice", [Choice(), Choice("drop"), Choice(rate=60)])
def test_a_pause_that_comes_amid_the_end_of_another_stays_and_holds_all(
    acme: Place, scope: str, choice: Choice
) -> None:
    rule, hook = make_rule(acme.tenant), make_hook(acme)
    run, event = make_live_run(rule), make_event(acme.tenant, matched_at=None)
    first = stop(scope, rule, hook, "first")
    going = resume.decide(first, choice)
    assert going is not None

    second = stop(scope, rule, hook, "second")
    end = {"tenant": pause.end_tenant, "installation": pause.end_installation}.get(scope, pause.end_part)
    assert not end(going)

    assert second.pk != first.pk
    assert Pause.objects.get(ended_at=None).pk == second.pk
    assert not AuditEntry.objects.filter(verb="resume").exists()
    assert Run.objects.get(pk=run.pk).state == "running"
    assert Event.objects.get(pk=event.pk).matched_at is None
    assert acme.lane.paused == (scope in ("tenant", "installation"))


def test_whoever_decides_last_about_a_pause_decides(acme: Place) -> None:
    run = make_live_run(make_rule(acme.tenant))
    pause.pause(reason="x")
    found = pause.find_pause("tenant")
    assert found is not None
    going = resume.decide(found, Choice("drop"))
    resume.decide(found, Choice())
    assert going is not None

    assert not pause.end_tenant(going)
    assert pause.resume_due() == 1

    assert Run.objects.get(pk=run.pk).state == "running"
    assert pause.open_pause() is None


def test_an_earlier_choice_for_the_installation_takes_no_tenant_from_a_later_one(acme: Place) -> None:
    run = make_live_run(make_rule(acme.tenant))
    pause.pause_installation(reason="restored from a backup")
    found = pause.find_pause("installation")
    assert found is not None
    going = resume.decide(found, Choice())
    resume.decide(found, Choice("drop"))
    assert going is not None

    assert not pause.end_installation(going)
    assert Pause.objects.get(ended_at=None).place is None
    with every_tenant():
        pause.resume_due()

    assert Run.objects.get(pk=run.pk).state == "cancelled"


def test_an_earlier_choice_of_at_once_leaves_the_rate_of_a_later_one(acme: Place) -> None:
    make_live_run(make_rule(acme.tenant))
    pause.pause(reason="x")
    pause.resume(Choice(rate=60))
    pause.pause(reason="y")
    found = pause.find_pause("tenant")
    assert found is not None
    going = resume.decide(found, Choice())
    resume.decide(found, Choice(rate=60))
    assert going is not None

    assert not resume.drop_and_hold(going)

    assert Drip.objects.get(scope="tenant", ended_at=None).rate == 60


@pytest.mark.parametrize("scope", ["tenant", "rule", "connection"])
def test_a_drop_of_what_is_still_let_out_ends_where_somebody_pauses_anew(acme: Place, scope: str) -> None:
    rule, hook = make_rule(acme.tenant), make_hook(acme)
    first = stop(scope, rule, hook, "first")
    drip = (
        Drip.objects.create(
            tenant=acme.tenant,
            pause=first,
            scope=scope,
            subject_id=first.subject_id,
            rate=60,
            since=clock.now(),
            next_at=clock.now(),
        )
        if scope == "tenant"
        else Drip.objects.get(scope=scope, ended_at=None)
    )
    Drip.objects.filter(pk=drip.pk).update(next_at=clock.now(), rate=60, pause=first)
    Pause.objects.filter(pk=first.pk).update(ended_at=clock.now())
    going = resume.Going(first, Choice("drop"), clock.now(), drip=drip)
    assert going.is_so_still()

    stop(scope, rule, hook, "second")

    assert not going.is_so_still()


@pytest.mark.django_db(transaction=True)
def test_a_rule_is_switched_while_workers_end_its_pause_and_neither_waits_for_ever() -> None:
    acme = new_place()
    told: list[BaseException] = []
    with acting_for(acme.tenant.pk, acme.actor):
        rule = make_rule(acme.tenant)
        for _ in range(2):
            make_live_run(rule, reason="paused")
        pause.pause_rule(rule.pk, "x")
        Timer.objects.update(due_at=clock.now() + timedelta(seconds=20))  # put off
        found = pause.open_pause(rule.pk)
        assert found is not None
        going = resume.decide(found, Choice(rate=60))

        assert going is not None
        with transaction.atomic():
            locked = Rule.objects.select_for_update(no_key=True).get(pk=rule.pk)
            pause.gather_put_off(locked)
            ending = meanwhile(acme, lambda: pause.end_part(going), told)
            assert "FROM automation_pause" in waits()  # before it has locked anything else
            pause.end_rule_pause(locked)
        ending.join()
    assert told == []
    assert pause_is_over(rule)
    assert Timer.objects.filter(state="held", drip_id__isnull=True).count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_tenant_drops_what_is_let_out_while_the_pause_of_all_ends_for_it_and_neither_waits_for_ever() -> None:
    acme = new_place()
    told: list[BaseException] = []
    with acting_for(acme.tenant.pk, acme.actor):
        run = make_live_run(make_rule(acme.tenant))
        pause.pause_installation(reason="x")
        found = pause.find_pause("installation")
        assert found is not None
        going = resume.decide(found, Choice(rate=1))
        assert going is not None
        assert resume.drop_and_hold(going)  # and time was over before the next tenant
        with transaction.atomic():
            assert going.is_so_still()
            dropping = meanwhile(acme, lambda: pause.resume(Choice("drop")), told)
            assert "FROM automation_pause" in waits()  # before it has locked what the end may put aside
            Timer.objects.select_for_update().get(run_id=run.pk)
        dropping.join()
    assert told == []
    run.refresh_from_db()
    assert run.state == "cancelled"


def meanwhile(acme: Place, work: Callable[[], object], told: list[BaseException]) -> threading.Thread:
    """Does it in another thread and with another connection; what it raises is told."""

    def run() -> None:
        try:
            with acting_for(acme.tenant.pk, acme.actor):
                work()
        except BaseException as error:
            told.append(error)
        finally:
            connection.close()

    made = threading.Thread(target=run)
    made.start()
    return made


def waits() -> str:
    """The statement that waits for what this connection has locked, as soon as one does."""
    ends_at = time.monotonic() + 10
    while time.monotonic() < ends_at:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees all the time what it saw first
            cursor.execute(
                "SELECT query FROM pg_stat_activity"
                " WHERE wait_event_type = 'Lock' AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            row = cursor.fetchone()
        if row:
            return str(row[0])
    raise AssertionError("nobody waits")


def pause_is_over(rule: Rule) -> bool:
    return not Pause.objects.filter(subject_id=rule.pk, ended_at=None).exists()
