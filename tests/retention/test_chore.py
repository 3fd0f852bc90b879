"""Workers prune between their turns: one at a time, a slice at a time, and nobody waits for it."""

import os
import time
import uuid
from datetime import timedelta

import psycopg
import pytest
from django.db import DataError, OperationalError, connection
from django_q.models import Failure, Success
from operating import Place, make_event, make_rule
from operating import place as new_place
from structlog.testing import capture_logs

from automation import queue
from automation.conf import load
from automation.engine.retention import chore as chores
from automation.engine.retention import rounds
from automation.engine.retention.chore import RetentionChore, forget
from automation.models import Pause, Retention, Run, Sweep
from automation.store import clock, retention
from northwind import database
from tenants.context import acting_for, every_tenant
from tenants.models import Tenant
from tests.retention.aged import age, old_run, prune


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chores, "SLICE", 5.0)


def make_chore() -> RetentionChore:
    return RetentionChore(uuid.uuid4(), load())


def older(*tenants: Tenant) -> None:
    Tenant.objects.filter(pk__in=[one.pk for one in tenants]).update(created_at=clock.now() - timedelta(hours=2))


@pytest.mark.django_db
def test_every_tenant_has_its_turn_once_an_hour(acme: Place):
    other = new_place(slug="other")
    for place in (acme, other):
        with acting_for(place.tenant.pk):
            old_run(make_rule(place.tenant), 31)
    older(acme.tenant)
    chore = make_chore()
    with every_tenant():
        chore.run()
    assert Run._base_manager.get(tenant=acme.tenant).details_removed_at
    assert Run._base_manager.get(tenant=other.tenant).details_removed_at is None  # new tenants have nothing to lose
    assert Sweep.objects.get(name="retention").holder is None
    older(other.tenant)
    finished = Retention.objects.get(tenant=acme.tenant).finished_at
    Sweep.objects.update(last_seen_at=clock.now() - timedelta(hours=1))
    with every_tenant():
        chore.run()
    assert Run._base_manager.get(tenant=other.tenant).details_removed_at
    assert Retention.objects.get(tenant=acme.tenant).finished_at == finished


@pytest.mark.django_db
def test_one_process_at_a_time_and_the_next_goes_on_where_it_left(acme: Place, monkeypatch: pytest.MonkeyPatch):
    rule = make_rule(acme.tenant)
    for n in range(6):
        old_run(rule, 60, event=make_event(acme.tenant, record=n))
    older(acme.tenant)
    monkeypatch.setattr(rounds, "PAGE", 2)
    monkeypatch.setattr(chores, "SLICE", 1e-6)
    first, second = make_chore(), make_chore()

    def left() -> int:
        return Run.objects.filter(details_removed_at=None).count()

    with every_tenant():
        first.run()
        assert left() == 4
        second.run()
        assert left() == 4  # the first one has it
        first.run()
        assert left() == 2
        first.leave()
        Sweep.objects.update(last_seen_at=clock.now() - timedelta(hours=1))
        monkeypatch.setattr(chores, "SLICE", 5.0)
        second.run()
        assert left() == 0


@pytest.mark.django_db
def test_without_a_time_it_is_left_to_the_command(settings):
    settings.AUTOMATION_RETENTION = 0.0
    assert not make_chore().due()
    settings.AUTOMATION_RETENTION = 60.0
    assert make_chore().due()


@pytest.mark.django_db
@pytest.mark.parametrize("error", [DataError("a date out of range"), TypeError("a fault in a host's function")])
def test_a_round_that_fails_is_an_alarm_and_keeps_no_other_tenant_waiting(
    acme: Place, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    other = new_place(slug="other")
    older(acme.tenant, other.tenant)
    begin = rounds.Terms.of
    monkeypatch.setattr(rounds.Terms, "of", classmethod(lambda cls, tenant, row: fail(tenant) or begin(tenant, row)))

    def fail(tenant_id: int) -> None:
        if tenant_id == acme.tenant.pk:
            raise error

    with every_tenant(), capture_logs() as lines:
        make_chore().run()
    assert Retention.objects.filter(finished_at__isnull=False).count() == 2
    assert [line["what"] for line in lines if line["event"] == "alarm"] == ["retention"]


@pytest.mark.django_db
def test_a_database_that_is_away_is_the_pumps_affair(acme: Place, monkeypatch: pytest.MonkeyPatch):
    older(acme.tenant)

    def away(*args: object, **more: object) -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(rounds.Terms, "of", away)
    with every_tenant(), pytest.raises(OperationalError):
        make_chore().run()


@pytest.mark.django_db(transaction=True)
def test_a_run_that_somebody_is_working_on_is_skipped_and_not_waited_for(acme: Place):
    rule = make_rule(acme.tenant)
    held, free = (old_run(rule, 31, event=make_event(acme.tenant, record=n)) for n in range(2))
    with psycopg.connect(os.environ[database.VARIABLE]) as somebody:
        somebody.execute("SELECT 1 FROM automation_run WHERE id = %s FOR NO KEY UPDATE", [held.pk])
        begun = time.monotonic()
        assert prune(acme.tenant) == {"details": 1, "facts": 1}
        assert time.monotonic() - begun < 1
    free.refresh_from_db()
    assert free.details_removed_at
    assert prune(acme.tenant) == {"details": 1, "facts": 1}


@pytest.mark.django_db
def test_old_pauses_and_the_task_queues_own_failures_go(acme: Place):
    for days in (10, 401):
        pause = Pause.objects.create(scope="installation", since=clock.now(), ended_at=clock.now())
        Pause.objects.filter(pk=pause.pk).update(ended_at=clock.now() - timedelta(days=days))
    Pause.objects.create(scope="tenant", tenant=acme.tenant, since=clock.now() - timedelta(days=900))
    for name, model, days in (("old", Failure, 31), ("new", Failure, 29), ("done", Success, 31)):
        moment = clock.now() - timedelta(days=days)
        model.objects.create(id=name, name=name, func="x", started=moment, stopped=moment, success=model is Success)
    assert forget() == 2
    assert forget() == 0
    assert Pause.objects.count() == 2
    assert set(Failure.objects.values_list("id", flat=True)) == {"new"}
    assert Success.objects.filter(pk="done").exists()
    assert queue.forget_failures(before=clock.now(), limit=0) == 0


@pytest.mark.django_db
def test_the_first_event_of_a_time_is_found_among_gaps_and_other_tenants(acme: Place):
    other = new_place(slug="other")
    made = []
    for n in range(40):
        place = acme if n % 3 else other
        with acting_for(place.tenant.pk):
            made.append(age(make_event(place.tenant, record=n), 40 - n))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM automation_event WHERE id = ANY(%s)", [[one.pk for one in made[10:20]]])
    for days, expected in ((35.5, made[5].pk), (25.5, made[20].pk), (100, made[0].pk), (0, made[-1].pk + 1)):
        found = retention.first_event_since(clock.now() - timedelta(days=days))
        left = [one.pk for n, one in enumerate(made) if not 10 <= n < 20 and one.pk >= found]
        assert left[:1] == [expected] or (not left and found > made[-1].pk)
