"""Staff see why a rule ran for a record's events, or didn't."""

import pytest
from django.test import Client
from django.urls import reverse

from tests.engine.world import World, leaf, make_world, set_field

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def test_the_page_of_a_rule_leads_to_the_answer_for_a_record(staff: Client, world: World) -> None:
    rule = world.rule("Urgent", set_field("s", "status", "open"), condition=leaf("priority", "is", "urgent"))
    ticket = world.ticket(priority="low", subject="<b>Printer</b>")
    event = world.change(ticket, subject="<b>On fire</b>")
    why = reverse("admin:automation_rule_explain", args=[rule.pk])
    assert why in staff.get(reverse("admin:automation_rule_change", args=[rule.pk])).text
    assert "Its number" in staff.get(why).text
    page = staff.get(why, {"model": "helpdesk.ticket", "record": ticket.pk}).text
    assert "priority is urgent" in page
    assert "&lt;b&gt;On fire" in page
    assert "<b>On fire" not in page
    event_page = staff.get(reverse("admin:automation_event_change", args=[event.pk])).text
    assert "Its condition did not hold" in event_page


def test_what_is_no_record_is_refused_with_a_word(staff: Client, world: World) -> None:
    rule = world.rule("Urgent", set_field("s", "status", "open"))
    why = reverse("admin:automation_rule_explain", args=[rule.pk])
    assert "This is no number of a record." in staff.get(why, {"model": "helpdesk.ticket", "record": "x"}).text
    assert staff.get(reverse("admin:automation_rule_explain", args=[999_999])).status_code == 404


def test_the_page_of_a_rule_says_what_to_look_at(staff: Client, world: World) -> None:
    rule = world.rule("<i>Rewrite</i>", set_field("s", "priority", "high"))
    page = staff.get(reverse("admin:automation_rule_change", args=[rule.pk])).text
    assert "&lt;i&gt;Rewrite&lt;/i&gt;” sets priority, which starts it again." in page
