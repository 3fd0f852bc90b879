"""Staff see what every pause holds, end it with a choice, and superusers stop the whole installation."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from operating import Place, make_live_run, make_rule
from operating import place as new_place

from automation.engine.operate import pause
from automation.models import Drip, Pause, Run
from tenants.context import acting_for

INSTALLATION = "admin:automation_pause_installation"


@pytest.fixture
def acme(db: None) -> Iterator[Place]:
    acme = new_place()
    with acting_for(acme.tenant.pk, acme.actor):
        yield acme


@pytest.fixture
def root(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", first_name="Rosa", last_name="Root"))
    return client


def test_a_superuser_stops_the_whole_installation_and_lets_it_go_on_at_a_rate(root: Client, acme: Place) -> None:
    make_live_run(make_rule(acme.tenant))
    page = root.get(reverse(INSTALLATION)).content.decode()
    assert "steps due: 1" in page
    assert f"{acme.tenant.name}: 0 events, 1 step" in page
    assert "1 steps" not in page

    root.post(reverse(INSTALLATION), {"level": "hold", "reason": "restored", "rate": ""})

    assert acme.lane.paused
    found = Pause.objects.get()
    assert (found.scope, found.actor) == ("installation", "Rosa Root")
    assert "restored" in root.get(reverse("admin:automation_pause_changelist")).content.decode()
    root.post(reverse("admin:automation_pause_resume", args=[found.pk]), {"keep": "all", "rate": "30"})
    assert not acme.lane.paused
    assert Drip.objects.get().rate == 30


def test_staff_who_are_no_superusers_can_not_stop_the_installation(client: Client, acme: Place) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(*Permission.objects.filter(codename__in=["view_pause", "change_pause"]))
    client.force_login(staff)
    assert client.post(reverse(INSTALLATION), {"level": "hold", "reason": "x"}).status_code == 403
    pause.pause_installation(reason="x")
    found = Pause.objects.get()
    assert client.post(reverse("admin:automation_pause_resume", args=[found.pk]), {}).status_code == 403
    assert acme.lane.paused


def test_the_page_of_a_rules_pause_shows_what_it_holds_and_drops_it_if_asked(root: Client, acme: Place) -> None:
    rule = make_rule(acme.tenant, name="Page the lead")
    run = make_live_run(rule)
    pause.pause_rule(rule.pk, "too many pages")
    found = Pause.objects.get()
    page = root.get(reverse("admin:automation_pause_change", args=[found.pk])).content.decode()
    assert "1 · Page the lead" in page

    asking = root.get(reverse("admin:automation_pause_resume", args=[found.pk])).content.decode()
    assert "Page the lead: 1 step" in asking

    root.post(reverse("admin:automation_pause_resume", args=[found.pk]), {"keep": "drop"})

    assert Run.objects.get(pk=run.pk).state == "cancelled"
    assert root.get(reverse("admin:automation_pause_resume", args=[found.pk])).status_code == 404


def test_a_choice_that_makes_no_sense_is_said_on_the_page(root: Client, acme: Place) -> None:
    pause.pause(reason="x")
    found = Pause.objects.get()
    answer = root.post(reverse("admin:automation_pause_resume", args=[found.pk]), {"keep": "recent"})
    assert "Say how recent" in answer.content.decode()
    assert Pause.objects.filter(ended_at=None).exists()
