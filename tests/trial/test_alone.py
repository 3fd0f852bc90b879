"""A trial has a connection of its own: it neither meets what its caller does nor waits for others for long."""

import threading
import time

import pytest
from django.db import connection, transaction

from automation.engine import samples
from automation.engine import trial as trial_module
from automation.engine.trial import TookTooLong, trial
from tests.engine.world import World, make_world, set_field, when

pytestmark = pytest.mark.django_db(transaction=True)
DEFINITION = {
    "schema_version": 1,
    "trigger": when("updated"),
    "condition": None,
    "steps": [set_field("s", "status", "open")],
}


@pytest.fixture
def world() -> World:
    return make_world()


def tried(world, ticket):
    with world.acting():
        return trial(DEFINITION, lambda spec: samples.of_record("helpdesk.ticket", ticket.pk, spec, rule_id=None))


def test_it_does_not_see_what_its_caller_has_not_committed_and_leaves_the_callers_transaction_alone(world):
    ticket = world.ticket(status="new", priority="low")
    with world.acting(), transaction.atomic():
        type(ticket).objects.create(tenant=world.tenant, subject="Not committed")
        report = tried(world, ticket)
        assert [(one.field, one.before) for one in report.changes if one.field == "status"] == [("status", "new")]
        assert type(ticket).objects.filter(subject="Not committed").exists()
    assert world.fresh(ticket).status == "new"


def test_it_gives_up_where_somebody_holds_the_record(world, monkeypatch):
    monkeypatch.setattr(trial_module, "SECONDS", 1.0)
    ticket = world.ticket(status="new")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with world.acting(), transaction.atomic():
                type(ticket).objects.select_for_update().get(pk=ticket.pk)
                held.set()
                done.wait(20)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(10)
        began = time.monotonic()
        with pytest.raises(TookTooLong):
            tried(world, ticket)
        assert time.monotonic() - began < 5
    finally:
        done.set()
        holder.join()
    assert tried(world, ticket).result == "would_run"


def test_one_that_does_too_much_is_given_up(world, monkeypatch):
    monkeypatch.setattr(trial_module, "SECONDS", 0.0)
    monkeypatch.setattr(trial_module, "STATEMENT_SECONDS", 5)
    ticket = world.ticket()
    with pytest.raises(TookTooLong, match="took too long"):
        tried(world, ticket)
