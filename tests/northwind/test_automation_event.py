"""The command that posts a named event."""

import json

import pytest
from commands import told
from django.core.management import CommandError

from automation.models import Event
from tenants.context import acting_for
from tests.engine.world import make_world, step
from tests.factories import TenantFactory, TicketFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant():
    return TenantFactory(slug="acme")


def post(tenant: str, *words: str) -> int:
    return int(told("automation_event", *words, "--tenant", tenant))


def test_an_event_about_a_record_carries_its_data_and_the_records_fields(tenant):
    ticket = TicketFactory(tenant=tenant, subject="Late")
    event_id = post("acme", "sla.missed", "--record", f"helpdesk.ticket:{ticket.pk}", "--data", json.dumps({"by": 5}))
    with acting_for(tenant.pk):
        event = Event.objects.get(pk=event_id)
    assert (event.kind, event.name, event.source) == ("custom_event", "sla.missed", "api")
    assert (event.model, event.record) == ("helpdesk.ticket", ticket.pk)
    assert event.facts["data"] == {"by": 5}
    assert event.facts["snapshot"]["subject"] == "Late"


def test_a_rehearsal_names_the_rules_that_would_judge_it_and_posts_nothing():
    def answer(name):
        return told("automation_event", name, "--tenant", world.tenant.slug, "--record", record, "--dry-run")

    world = make_world()
    record = f"helpdesk.ticket:{world.ticket().pk}"
    listens = {"kind": "custom_event", "params": {"model": "helpdesk.ticket", "name": "sla.missed"}}
    rule = world.rule("Call back", step("a", "add_note", text="A"), trigger=listens)
    with world.acting():
        before = Event.objects.count()
        assert answer("sla.missed") == f"Call back (rule {rule.pk}) would judge it.\n"
        assert answer("sla.kept") == "No rule listens to such an event.\n"
        assert Event.objects.count() == before


def test_the_same_key_twice_is_one_event(tenant):
    assert post("acme", "x", "--key", "k") == post("acme", "x", "--key", "k")
    with pytest.raises(CommandError, match="has another body"):
        post("acme", "x", "--key", "k", "--data", '{"a": 1}')


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody", "x"], "no tenant"),
        (["acme", "x", "--data", "["], "isn't JSON"),
        (["acme", "x", "--data", "[" * 100_000], "nested more than 32 levels deep"),
        (["acme", "x", "--data", f'{{"a": {"[" * 3_000}{"]" * 3_000}}}'], "nested more than 32 levels deep"),
        (["acme", "x", "--data", f'{{"a": {"[" * 40}{"]" * 40}}}'], "nested more than 32 levels deep"),
        (["acme", "x", "--data", '{"a": {"b/c": ["x", "\\u0000"]}}'], "at /a/b~1c/1 that can't be stored"),
        (["acme", "x", "--data", '{"a": "\\ud800"}'], "at /a that can't be stored"),
        (["acme", "x", "--data", '{"n\\u0000": 1}'], r"at /n\\u0000 that can't be stored"),
        (["acme", "x\ny"], r"can't hold U\+000A"),
        (["acme", "x", "--key", "k\x00"], r"can't hold U\+0000"),
        (["acme", "x", "--data", "[1]"], "is a JSON object"),
        (["acme", "x" * 200], "has 1 to 120 characters"),
        (["acme", "x", "--record", "helpdesk.tickt:1"], "no automatable model"),
        (["acme", "x", "--record", "helpdesk.ticket:x"], "a model and a number"),
        (["acme", "x", "--record", "automation.run:1"], "no automatable model"),
    ],
)
def test_what_can_not_be_posted_is_said_and_nothing_is_written(tenant, words, message):
    with pytest.raises(CommandError, match=message):
        post(*words)
    with acting_for(tenant.pk):
        assert not Event.objects.exists()


def test_another_tenants_record_is_as_if_it_did_not_exist(tenant):
    ticket = TicketFactory(tenant=TenantFactory())
    with pytest.raises(CommandError, match="no record"):
        post("acme", "x", "--record", f"helpdesk.ticket:{ticket.pk}")
