"""Mail from rules never answers machines and never goes to the tenant's own addresses."""

import pytest

from automation.core.automatic_mail import marked
from automation.engine import addresses
from automation.engine.sources import receiving_mail
from automation.models import OwnAddress
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, leaf, step, when
from tests.factories import TicketFactory

AUTOMATIC = {"Auto-Submitted": "auto-replied"}


def acknowledging(world: World, **more: object):
    return world.rule(
        "Acknowledge", step("mail", "send_email", subject="Thanks", text="We have it."), trigger=when("created"), **more
    )


def own(world: World, address: str, *, answers_automatic: bool = False) -> None:
    with world.acting():
        addresses.save(
            OwnAddress(tenant=world.tenant, address=address, answers_automatic=answers_automatic), base_revision=None
        )


def receive(world: World, *, sender: str = "ana@example.org", to: str = "help@acme.example", **headers: str) -> Ticket:
    """A mail becomes a ticket of its sender."""
    with world.acting():
        customer = world.customer(email=sender)
        with receiving_mail(sender=sender, mailbox=to, headers={k.replace("_", "-"): v for k, v in headers.items()}):
            ticket: Ticket = TicketFactory(tenant=world.tenant, customer=customer)
    world.run()
    return ticket


def outcome(world: World, rule) -> str:
    step = world.steps(world.runs(rule)[-1])["mail"]
    return f"{step.state} {step.reason}".strip()


@pytest.mark.parametrize(
    ("headers", "header"),
    [
        ({"Auto-Submitted": "auto-replied; x=y"}, "Auto-Submitted"),
        ({"auto-submitted": "auto-generated"}, "auto-submitted"),
        ({"Precedence": "bulk"}, "Precedence"),
        ({"Return-Path": "<>"}, "Return-Path"),
        ({"Content-Type": "multipart/report; report-type=delivery-status"}, "Content-Type"),
        ({"X-Autoreply": "yes"}, "X-Autoreply"),
        ({"Auto-Submitted": "no"}, ""),
        ({"Precedence": "first-class", "Subject": "Out of office?"}, ""),
        ({}, ""),
    ],
)
def test_a_machine_is_known_by_its_headers_alone(headers: dict[str, str], header: str) -> None:
    assert marked(headers).partition(":")[0] == header


@pytest.mark.case("L08")
def test_only_the_mail_to_the_machine_is_left_out_and_says_why_everything_else_runs(world: World) -> None:
    rule = acknowledging(world)
    tag = world.rule("Tag", step("tag", "add_tags", tags=["new"]), trigger=when("created"))
    ticket = receive(world, Auto_Submitted="auto-replied")
    assert outcome(world, rule) == "skipped auto_submitted"
    assert "Auto-Submitted" in str(world.steps(world.runs(rule)[-1])["mail"].output)
    assert world.states(rule) == ["succeeded"]
    assert world.states(tag) == ["succeeded"]
    assert world.fresh(ticket).tags == ["new"]


@pytest.mark.case("L08")
def test_a_mailbox_may_answer_machines(world: World) -> None:
    own(world, "Help@acme.example", answers_automatic=True)
    rule = acknowledging(world)
    receive(world, Auto_Submitted="auto-replied")
    assert outcome(world, rule) == "succeeded"


def test_people_are_answered(world: World) -> None:
    rule = acknowledging(world)
    receive(world)
    assert outcome(world, rule) == "succeeded"


def test_a_rule_that_follows_another_does_not_answer_the_machine_either(world: World) -> None:
    world.rule("Tag", step("tag", "add_tags", tags=["new"]), trigger=when("created"))
    rule = world.rule(
        "Later", step("mail", "send_email", subject="Hi", text="We have it."), condition=leaf("tags", "changed")
    )
    receive(world, Auto_Submitted="auto-replied")
    assert outcome(world, rule) == "skipped auto_submitted"


@pytest.mark.case("L07")
def test_the_tenants_own_addresses_get_no_mail_and_the_run_is_done(world: World) -> None:
    own(world, "help@acme.example")
    rule = acknowledging(world)
    receive(world, sender="Help+42@acme.example")
    assert outcome(world, rule) == "skipped self_address"
    assert world.states(rule) == ["succeeded"]
    assert world.calls() == []


def test_another_tenants_address_is_a_customer_like_any(world: World) -> None:
    rule = acknowledging(world)
    own(world, "help@acme.example")
    receive(world, sender="help@other.example")
    assert outcome(world, rule) == "succeeded"
