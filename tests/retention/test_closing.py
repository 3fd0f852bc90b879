"""A closed tenant stops at once, can be had back for a while, and then goes whole without touching another one."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from factories import CommentFactory, CompanyFactory, CustomerFactory, GroupFactory, LeadFactory, TicketFactory
from operating import Place, lease, make_dead_run, make_live_run, make_rule
from operating import place as new_place

from automation.engine.operate import Refused
from automation.engine.retention import closing, purge
from automation.engine.retention.rounds import round_of
from automation.engine.retention.tables import owned
from automation.models import Connection, ConnectionCall, Lane, Retention, Timer
from automation.store import clock
from tenants.context import acting_for
from tenants.models import AuditEntry, GroupMember, Tenant
from tests.retention.aged import old_run, prune

pytestmark = pytest.mark.django_db


def furnish(place: Place) -> None:
    """Rows in every table that has some in practice."""
    with acting_for(place.tenant.pk, place.actor):
        group = GroupFactory(tenant=place.tenant)
        GroupMember.objects.create(group=group, member=place.admin)
        customer = CustomerFactory(tenant=place.tenant, email=f"c@{place.tenant.slug}.example")
        ticket = TicketFactory(tenant=place.tenant, customer=customer, assignee=place.admin, group=group)
        ticket.followers.add(place.admin, through_defaults={"tenant": place.tenant})
        CommentFactory(tenant=place.tenant, ticket=ticket)
        LeadFactory(tenant=place.tenant, company=CompanyFactory(tenant=place.tenant))
        hook = Connection(tenant=place.tenant, name="hook", kind="webhook")
        hook.save()
        ConnectionCall.objects.create(connection=hook, at=clock.now(), ok=True)
        rule = make_rule(place.tenant)
        first = old_run(rule, 40)
        old_run(rule, 1, event=first.event, forked_from_run=first)
        make_live_run(rule)
        make_dead_run(rule)


def rows(tenant: Tenant) -> dict[str, int]:
    """How many rows each table has of a tenant."""
    found = {}
    with connection.cursor() as cursor:
        for table in owned():
            cursor.execute(f"SELECT count(*) FROM {table.model._meta.db_table} WHERE {table.where()}", [tenant.pk])
            found[table.name] = cursor.fetchone()[0]
    return found


def close_days_ago(place: Place, days: int) -> None:
    closing.close(place.tenant.pk, reason="contract ended")
    Tenant.objects.filter(pk=place.tenant.pk).update(closed_at=clock.now() - timedelta(days=days))


def test_every_table_of_tenants_is_found_once_and_goes_after_those_that_refer_to_it():
    models = [table.model for table in owned()]
    assert len(models) == len(set(models))
    known = {model for model in apps.get_models() if hasattr(model, "tenant")} | {ConnectionCall}
    assert {model.__name__ for model in known - set(models)} == {"Lane", "Limits", "Retention"}
    for place, model in enumerate(models):
        for field in model._meta.concrete_fields:
            target: Any = field.related_model
            if target in models and target is not model and not field.null:
                assert models.index(target) > place, f"{model} refers to {target}"


def test_closing_stops_it_at_once_and_opening_gives_everything_back(acme: Place):
    furnish(acme)
    before = rows(acme.tenant)
    closing.close(acme.tenant.pk, reason="contract ended")
    closing.close(acme.tenant.pk)
    assert acme.lane.paused
    assert acme.lane.hold_new
    prune(acme.tenant)
    closing.reopen(acme.tenant.pk)
    assert not Lane.objects.get(tenant=acme.tenant).paused
    said = AuditEntry.objects.filter(target=f"tenant:{acme.tenant.pk}").order_by("id")
    assert [entry.verb for entry in said] == ["tenant.closed", "tenant.reopened"]
    assert rows(acme.tenant) == before | {"tenants.auditentry": before["tenants.auditentry"] + 2}


def test_thirty_days_later_nothing_is_left_of_it_and_the_others_have_everything(acme: Place):
    furnish(acme)
    other = new_place(slug="other")
    furnish(other)
    theirs = rows(other.tenant)
    close_days_ago(acme, 31)
    removed = prune(acme.tenant)
    connection.check_constraints()
    assert set(rows(acme.tenant).values()) == {0}
    assert removed["automation.run"] == 4
    assert removed["helpdesk.ticket"] == 1
    assert rows(other.tenant) == theirs
    entry = AuditEntry._base_manager.get(verb="tenant.purged")
    assert (entry.tenant_id, entry.target) == (None, f"tenant:{acme.tenant.pk}")
    assert entry.after["automation.run"] == 4
    assert Retention.objects.get(tenant=acme.tenant).purged_at
    assert prune(acme.tenant) == {}
    with pytest.raises(Refused, match="is over"):
        closing.reopen(acme.tenant.pk)


@pytest.mark.django_db(transaction=True)
def test_every_page_of_a_purge_can_be_the_last_one_before_a_crash(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(purge, "PAGE", 1)  # each row's going is committed, and its foreign keys are checked
    acme = new_place(name="Acme Retail", slug="acme")
    furnish(acme)
    close_days_ago(acme, 31)
    while any(rows(acme.tenant).values()):
        begun = round_of(acme.tenant.pk)
        next(begun)
        next(begun, None)
        begun.close()
    assert prune(acme.tenant) == {}
    assert Retention.objects.get(tenant=acme.tenant).purged_at


def test_nothing_goes_while_a_worker_is_on_one_of_its_steps(acme: Place):
    furnish(acme)
    close_days_ago(acme, 31)
    lease(Timer.objects.filter(tenant=acme.tenant).first())
    before = rows(acme.tenant)
    assert prune(acme.tenant) == {}
    assert rows(acme.tenant) == before


def test_nothing_goes_of_a_tenant_that_is_opened_meanwhile(acme: Place, monkeypatch: pytest.MonkeyPatch):
    furnish(acme)
    close_days_ago(acme, 31)
    before = rows(acme.tenant)
    monkeypatch.setattr(purge.owned_rows, "leases", lambda tenant_id: opened(acme))
    assert prune(acme.tenant) == {}
    assert rows(acme.tenant) == before


def opened(place: Place) -> bool:
    """As if somebody opened it between two statements; answers that no worker is on a step of it."""
    Tenant.objects.filter(pk=place.tenant.pk).update(closed_at=None)
    return False


def test_once_its_data_has_begun_to_go_a_tenant_is_not_opened_again(acme: Place):
    furnish(acme)
    closing.close(acme.tenant.pk)
    begun = round_of(acme.tenant.pk, purge_now=True)
    next(begun)
    begun.close()
    with pytest.raises(Refused, match="is over"):
        closing.reopen(acme.tenant.pk)
    assert not Tenant.objects.get(pk=acme.tenant.pk).is_open


def test_the_command_closes_opens_and_purges(acme: Place, capsys: pytest.CaptureFixture[str]):
    furnish(acme)
    call_command("automation_close", "--tenant", "acme", "--reason", "contract ended")
    assert "acme is closed. Its data is removed from" in capsys.readouterr().out
    call_command("automation_close", "--tenant", "acme", "--reopen")
    assert "acme is open" in capsys.readouterr().out
    with pytest.raises(CommandError, match="not 'acme': nothing was done"):
        call_command("automation_close", "--tenant", "acme", "--purge-now", "acne")
    with pytest.raises(CommandError, match="acme is open, and nothing was done"):
        call_command("automation_close", "--tenant", "acme", "--purge-now", "acme")
    assert Tenant.objects.get(slug="acme").is_open
    assert rows(acme.tenant)["helpdesk.ticket"] == 1
    call_command("automation_close", "--tenant", "acme", "--reason", "contract ended")
    call_command("automation_close", "--tenant", "acme", "--purge-now", "acme")
    assert "nothing is left of it" in capsys.readouterr().out
    assert set(rows(acme.tenant).values()) == {0}
    call_command("automation_prune", "--json")
    assert json.loads(capsys.readouterr().out)["removed"]["acme"] == {}


def test_the_tenants_page_in_the_admin_says_how_far_it_has_come(acme: Place, client: Client):
    client.force_login(User.objects.create_superuser("root"))
    furnish(acme)

    def page() -> str:
        return str(client.get(f"/admin/tenants/tenant/{acme.tenant.pk}/change/").content.decode())

    prune(acme.tenant)
    assert "Last round of retention" in page()
    close_days_ago(acme, 3)
    assert "Its data is removed from" in page()
    close_days_ago(acme, 31)
    prune(acme.tenant)
    assert "all of its data was removed" in page()
    listed = client.get("/admin/automation/retention/").content.decode()
    assert "automation.run" in listed
    assert client.get(f"/admin/automation/retention/{acme.tenant.pk}/change/").status_code == 200
