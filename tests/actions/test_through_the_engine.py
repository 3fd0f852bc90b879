"""Outside actions as steps of real rules: run by the engine, sent through the real door to real servers."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from loopback_servers import Server, running
from operating import make_rule
from pytest_django import Settings

from automation.catalog.action import Outcome
from automation.engine.effects import EffectCall, guarded
from automation.engine.simulate import Runner
from automation.models import Connection, StepExecution
from automation.outbound import Outbound, Sockets
from northwind.helpdesk.models import Customer, Ticket
from tenants.context import acting_for
from tenants.models import Tenant

pytestmark = pytest.mark.django_db
URGENT: dict[str, Any] = {
    "schema_version": 1,
    "trigger": {"kind": "record_changed", "params": {"model": "helpdesk.ticket", "on": ["created", "updated"]}},
    "condition": {"id": "c_1", "field": "priority", "op": "changed_to", "value": "urgent"},
}


def through_the_door(call: EffectCall) -> Outcome:
    """Send an effect as a thread of the pump does."""
    door = call.door
    door.outbound = Outbound(
        door.connection, allow_loopback=True, key=door.key, timeout=call.timeout, sockets=Sockets()
    )
    return guarded(call)


def step(id_: str, action: str, **params: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "action", "action": action, "version": 1, "params": params}


def become_urgent(ticket: Ticket, tenant: Tenant) -> None:
    """Change the ticket as a person would."""
    with acting_for(tenant.pk):
        ticket.priority = "urgent"
        ticket.save()


def run(tenant: Tenant, runner: Runner) -> dict[str, StepExecution]:
    """Let the engine work until nothing is due; returns the steps by path."""
    with acting_for(tenant.pk):
        runner.run(tenant.pk)
        return {row.path: row for row in StepExecution.objects.filter(tenant_id=tenant.pk)}


@pytest.fixture
def runner() -> Runner:
    return Runner(through_the_door)


@pytest.fixture
def smtp(tmp_path: Path, settings: Settings) -> Iterator[Server]:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with running("smtp", tmp_path) as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


def connect(tenant: Tenant, name: str, kind: str, server: Server, **settings: Any) -> None:
    with acting_for(tenant.pk):
        connection = Connection(tenant=tenant, name=name, kind=kind, endpoint=server.url, settings=settings)
        connection.set_secret("secret-of-the-connection")
        connection.save()


def test_a_mail_of_a_rule_is_rendered_for_each_place_and_remembers_its_recipient(
    ticket: Ticket, tenant: Tenant, smtp: Server, runner: Runner
) -> None:
    with acting_for(tenant.pk):
        Ticket.objects.filter(pk=ticket.pk).update(subject="<b>Fire</b>")
        ticket.refresh_from_db()
    texts = {
        "subject": "Re: {{ ticket.subject }}",
        "text": "{{ ticket.subject }}",
        "html": "<p>{{ ticket.subject }}</p>",
    }
    make_rule(tenant, definition={**URGENT, "steps": [step("mail", "send_email", **texts)]})
    become_urgent(ticket, tenant)
    done = run(tenant, runner)["mail"]
    [entry] = smtp.entries(1)
    assert (done.state, done.effect_state, done.input["recipient"]) == ("succeeded", "confirmed", "ana@example.com")
    assert entry["body"]["subject"] == "Re: <b>Fire</b>"
    assert entry["body"]["text"].strip() == "<b>Fire</b>"
    assert entry["body"]["html"].strip() == "<p>&lt;b&gt;Fire&lt;/b&gt;</p>"


@pytest.mark.case("X07")
@pytest.mark.case("X04")
def test_a_customer_who_opts_out_while_the_run_waits_gets_no_mail(
    ticket: Ticket, tenant: Tenant, smtp: Server, runner: Runner
) -> None:
    steps = [{"id": "later", "kind": "delay", "for": "P2D"}, step("mail", "send_email", subject="Hi", text="Hello")]
    make_rule(tenant, definition={**URGENT, "again": "both", "steps": steps})
    become_urgent(ticket, tenant)
    with acting_for(tenant.pk):
        runner.pass_time(tenant.pk, timedelta(days=1))
        Customer.objects.filter(pk=ticket.customer_id).update(email_opt_out=True)
    done = run(tenant, runner)["mail"]
    assert (done.state, done.reason) == ("skipped", "opted_out")
    assert smtp.entries() == []


def test_the_eleventh_mail_of_a_rule_to_one_person_is_left_out(
    ticket: Ticket, tenant: Tenant, smtp: Server, runner: Runner
) -> None:
    mails = [step(f"mail_{number}", "send_email", subject="Hi", text="Hello") for number in range(11)]
    make_rule(tenant, definition={**URGENT, "steps": mails})
    become_urgent(ticket, tenant)
    states = [(row.state, row.reason) for _path, row in sorted(run(tenant, runner).items())]
    assert states.count(("succeeded", "")) == 10
    assert states.count(("skipped", "limit_per_recipient")) == 1
    assert len(smtp.entries()) == 10


def test_a_page_that_was_not_answered_is_sent_again_and_shown_once(
    ticket: Ticket, tenant: Tenant, tmp_path: Path, runner: Runner
) -> None:
    with running("pager", tmp_path) as pager:
        pager.prescribe("drop", 503)
        connect(tenant, "pager", "pager", pager)
        page = step("page", "page_on_call", connection="pager", summary="Urgent: {{ ticket.subject }}")
        make_rule(tenant, definition={**URGENT, "steps": [page]})
        become_urgent(ticket, tenant)
        done = run(tenant, runner)["page"]
        entries = pager.entries(3)
        assert (done.state, done.attempts) == ("succeeded", 3)
        assert [entry["shown"] for entry in entries] == [True, False, False]
        assert {entry["key"] for entry in entries} == {done.idempotency_key}
        assert "secret-of-the-connection" not in repr((done.input, done.output, done.error))


def test_a_webhook_and_a_text_message_follow_each_other(
    ticket: Ticket, tenant: Tenant, tmp_path: Path, runner: Runner
) -> None:
    with running("webhooks", tmp_path) as hooks, running("sms", tmp_path) as sms:
        connect(tenant, "warehouse", "webhook", hooks)
        connect(tenant, "phone", "sms", sms, account_sid="AC1", **{"from": "+491"})
        with acting_for(tenant.pk):
            Customer.objects.filter(pk=ticket.customer_id).update(phone="+49 170 1234567")
        steps = [
            step("call", "call_webhook", connection="warehouse", path="tickets/{{ ticket.id }}/a {{ ticket.subject }}"),
            step("text", "send_sms", connection="phone", text="{{ ticket.subject }} is urgent"),
        ]
        make_rule(tenant, definition={**URGENT, "steps": steps})
        become_urgent(ticket, tenant)
        done = run(tenant, runner)
        assert [done[path].state for path in ("call", "text")] == ["succeeded", "succeeded"]
        [hook], [text] = hooks.entries(1), sms.entries(1)
        assert hook["body"]["data"]["after"]["priority"] == "urgent"
        assert hook["path"].startswith(f"/tickets/{ticket.pk}/a%20Ticket%20")
        assert text["body"]["Body"] == f"{ticket.subject} is urgent"
