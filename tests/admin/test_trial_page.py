"""Staff try a rule's draft out on its page in the admin, and compare it with the live version."""

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from automation.admin import trial as trial_page
from automation.engine.trial import rehearse
from automation.models import Backtest
from tests.engine.world import World, leaf, make_world, set_field

pytestmark = pytest.mark.django_db
ASKED = {"waits": "pass", "effects": "recorded", "number": "", "was": "", "facts": "", "at": ""}


@pytest.fixture
def world(monkeypatch) -> World:
    """A world on the test's own connection, where its rows are."""
    monkeypatch.setattr(trial_page, "trial", rehearse)
    return make_world()


def test_a_draft_is_tried_on_a_record(world, staff):
    rule = world.rule(
        "Open it",
        set_field("s", "status", "open"),
        condition={"id": "c", "all": [leaf("priority", "changed_to", "high")]},
    )
    ticket = world.ticket(priority="high", status="new")
    page = reverse("admin:automation_rule_try", args=[rule.pk])
    assert "Nothing is sent or changed" in staff.get(page).content.decode()
    said = staff.post(
        page, {**ASKED, "on": "record", "number": ticket.pk, "was": '{"priority": "low"}'}
    ).content.decode()
    assert "The rule would run to its end." in said
    assert world.fresh(ticket).status == "new"
    said = staff.post(page, {**ASKED, "on": "facts", "facts": '{"snapshot": {"priority": "low"}}'}).content.decode()
    assert "would not run" in said
    for wrong, word in (
        ({"on": "record", "number": "x"}, "This is no number."),
        ({"on": "event", "number": "999999"}, "There is no such thing"),
        ({"on": "facts", "facts": "{"}, "valid JSON"),
        ({"on": "facts", "facts": '{"x": 1}'}, "is not one of"),
    ):
        assert word in staff.post(page, {**ASKED, **wrong}).content.decode()


def test_a_backtest_is_started_looked_at_and_stopped(world, staff):
    rule = world.rule("Open it", set_field("s", "status", "open"))
    page = reverse("admin:automation_rule_try", args=[rule.pk])
    answer = staff.post(page, {"backtest": "yes"}, follow=True)
    assert answer.status_code == 200
    assert "counts" in answer.content.decode()
    with world.acting():
        [made] = Backtest.objects.all()
    found = staff.post(
        "/admin/automation/backtest/", {"action": "cancel", "_selected_action": [made.pk]}, follow=True
    ).content.decode()
    assert "Stopped: 1." in found


def test_who_may_only_look_tries_a_draft_out_but_starts_no_backtest(world, client):
    rule = world.rule("Open it", set_field("s", "status", "open"))
    looker = User.objects.create_user("looker", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_rule"))
    client.force_login(looker)
    page = reverse("admin:automation_rule_try", args=[rule.pk])

    assert "Compare with the live version" not in client.get(page).text
    assert "would" in client.post(page, {**ASKED, "on": "facts", "facts": '{"snapshot": {}}'}).text
    assert client.post(page, {"backtest": "yes"}).status_code == 403
    with world.acting():
        assert not Backtest.objects.exists()
