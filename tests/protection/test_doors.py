"""Commands and admin pages of what protects."""

import json
from typing import Any

import pytest
from commands import told
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse

from automation.catalog.action import Outcome
from automation.engine import waiting
from automation.models import Connection, OwnAddress
from tests.engine.world import World, step


def command(name: str, world: World, **options: Any) -> Any:
    return json.loads(told(name, tenant=world.tenant.slug, json=True, **options))


def put_down(world: World) -> Connection:
    """The connection "hook", down since its calls for five records failed."""
    world.connection()
    world.rule("Tell", step("call", "call_webhook", connection="hook"))
    for ticket in [world.ticket() for _ in range(6)]:
        world.change(ticket, subject="Changed", run=False)
    world.answer = lambda call: Outcome.retry("503") if call.step_id else Outcome.done()
    world.run_until_held()
    with world.acting():
        return Connection.objects.get(name="hook")


def test_a_connection_that_is_down_is_listed_and_switched_on_by_command(world: World) -> None:
    assert put_down(world).breaker == "open"
    [found] = command("automation_connections", world)
    assert (found["breaker"], found["error"]) == ("open", "503")
    assert found["sentence"].startswith("Down since")
    [would] = command("automation_connections", world, switch_on="hook", dry_run=True)
    assert (would["breaker"], would["would_switch_on"]) == ("open", True)
    [after] = command("automation_connections", world, switch_on="hook")
    assert after["breaker"] == "closed"
    with pytest.raises(CommandError):
        command("automation_connections", world, switch_on="no such")
    assert "hook (webhook):" in told("automation_connections", tenant=world.tenant.slug)


def test_a_run_that_waits_for_it_says_so(world: World) -> None:
    put_down(world)
    with world.acting():
        run = next(run for run in world.runs() if run.reason == "endpoint_down")
        due = world.runner.timers.clock
        timer = waiting.TimerRow(
            1, "step", "pending", due, is_due=False, deliveries=1, lost=0, worker="", deadline_at=None, ahead=None
        )
        text = waiting.sentence(run, run.rule, {1: timer}, world.tenant.zone)
    assert "“hook”" in text


def test_limits_are_shown_with_their_use_by_command_and_on_the_admins_page(world: World, staff: Client) -> None:
    world.rule("One", step("note", "add_note", text="x"))
    by_name = {use["name"]: use for use in command("automation_limits", world)}
    assert by_name["rules"]["used"] == 1
    page = staff.get(reverse("admin:automation_limits_change", args=[world.tenant.automation_limits.pk]))
    assert "rules: 1 of 500 (0 %)" in page.content.decode()


def test_staff_see_the_health_switch_on_and_can_only_allow_hosts_that_fit(world: World, staff: Client) -> None:
    connection = put_down(world)
    address = reverse("admin:automation_connection_change", args=[connection.pk])
    assert "Down since" in staff.get(address).content.decode()
    chosen = {"action": "switch_on", "_selected_action": [connection.pk]}
    staff.post(reverse("admin:automation_connection_changelist"), chosen)
    with world.acting():
        assert Connection.objects.get(pk=connection.pk).breaker == "closed"
    form = {
        "tenant": world.tenant.pk,
        "endpoint": connection.endpoint,
        "settings": "{}",
        "revision": connection.revision,
        "allowed_hosts": "api.elsewhere.org, .elsewhere.net",
        "concurrency": "3",
    }
    answer = staff.post(address, form)
    assert "allowed hosts" in answer.content.decode()
    assert staff.post(address, form | {"allowed_hosts": ".com"}).status_code == 302
    with world.acting():
        found = Connection.objects.get(pk=connection.pk)
    assert (found.allowed_hosts, found.concurrency, found.revision) == (".com", 3, connection.revision + 1)


def test_staff_keep_own_addresses_each_once(world: World, staff: Client) -> None:
    address = reverse("admin:automation_ownaddress_add")
    form = {"tenant": world.tenant.pk, "address": "Help@Acme.example", "answers_automatic": "on"}
    assert staff.post(address, form).status_code == 302
    assert staff.post(address, form | {"address": "help@acme.example"}).status_code == 200
    with world.acting():
        own = OwnAddress.objects.get()
    assert (own.address, own.answers_automatic) == ("help@acme.example", True)
    change = reverse("admin:automation_ownaddress_change", args=[own.pk])
    assert staff.post(change, {"address": own.address, "revision": 7}).status_code == 200
    assert staff.post(change, {"address": own.address, "revision": 0}).status_code == 302
    with world.acting():
        assert OwnAddress.objects.get().revision == 1
    assert staff.post(reverse("admin:automation_ownaddress_delete", args=[own.pk]), {"post": "yes"}).status_code == 302
