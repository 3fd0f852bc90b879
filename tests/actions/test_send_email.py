"""Sends mails, to the right people, at most once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_doors import KEY, Prepared, action, prepare, problems, send
from loopback_servers import Server, running
from pytest_django import Settings

TEXTS = {"subject": "Hello", "text": "How are you?"}
ANA = {"customer.email": "ana@example.org", "customer.email_opt_out": False, "subject": "Printer"}
TICKET, COMPANY, LEAD = "helpdesk.ticket", "crm.company", "crm.lead"


@pytest.fixture
def smtp(tmp_path: Path, settings: Settings) -> Iterator[Server]:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.DEFAULT_FROM_EMAIL = "Northwind <desk@northwind.example>"
    with running("smtp", tmp_path) as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


def mail(**params: Any) -> Any:
    """Send a mail to Ana."""
    return send("send_email", kept={"recipient": "ana@example.org"}, **{**TEXTS, **params})


def test_a_mail_carries_a_message_id_of_its_key_and_says_that_it_is_automatic(smtp: Server) -> None:
    outcome = mail(html="<p>How are you?</p>")
    [entry] = smtp.entries(1)
    headers = dict(entry["body"]["headers"])
    assert outcome.state == "done"
    assert headers["Message-ID"] == outcome.output["message_id"] == f"<{KEY[:32]}@northwind.example>"
    assert headers["Auto-Submitted"] == "auto-generated"
    assert headers["From"] == "Northwind <desk@northwind.example>"
    assert entry["body"]["to"] == ["ana@example.org"]
    assert entry["body"]["text"].strip() == "How are you?"
    assert entry["body"]["html"].strip() == "<p>How are you?</p>"


@pytest.mark.case("M02")
def test_line_breaks_leave_the_subject_and_add_no_header(smtp: Server) -> None:
    assert mail(subject="Hi\r\nBcc: x@example.org\n\tthere").state == "done"
    [entry] = smtp.entries(1)
    assert entry["body"]["subject"] == "Hi Bcc: x@example.org there"
    assert entry["body"]["to"] == ["ana@example.org"]
    assert "Bcc" not in dict(entry["body"]["headers"])


@pytest.mark.case("D14")
def test_a_server_that_goes_silent_after_the_body_leaves_it_uncertain(smtp: Server) -> None:
    smtp.prescribe("drop", "hang")
    assert mail().state == "uncertain"
    assert mail(timeout=0.4).state == "timeout"
    first, second = smtp.entries(2)
    assert first["key"] == second["key"]


def test_a_refused_mail_is_rejected_and_a_busy_server_tried_again(smtp: Server) -> None:
    smtp.prescribe({"status": 550}, {"status": 451})
    assert [mail().state for _ in range(2)] == ["rejected", "retry"]


def test_the_customers_address_is_read_when_it_is_sent() -> None:
    prepared = Prepared(ANA)
    assert prepare("send_email", prepared, **TEXTS) is None
    assert prepared.kept == {"recipient": "ana@example.org"}


@pytest.mark.parametrize(
    ("params", "values", "recipient"),
    [
        ({"to": "customer"}, {"email": "lead@example.org"}, "lead@example.org"),
        ({"to": "field", "field": "customer.email"}, ANA, "ana@example.org"),
        ({"to": "assignee"}, ANA | {"assignee": 7}, "agent@example.org"),
        ({"to": "address", "address": "Boss <boss@example.org>"}, ANA, "boss@example.org"),
        ({"to": "address", "address": " boss@example.org\r\n"}, ANA, "boss@example.org"),
        ({"to": "address", "address": '"Last, Ana" <ana@example.org>'}, ANA, "ana@example.org"),
    ],
)
def test_a_mail_goes_to_whom_the_step_says(params: dict[str, Any], values: dict[str, Any], recipient: str) -> None:
    prepared = Prepared(values, members={7: "agent@example.org"})
    assert prepare("send_email", prepared, **TEXTS, **params) is None
    assert prepared.kept == {"recipient": recipient}


@pytest.mark.case("X07")
@pytest.mark.parametrize(
    "params",
    [
        {"to": "customer"},
        {"to": "field", "field": "customer.email"},
        {"to": "address", "address": "ANA@example.org"},
        {"to": "address", "address": "Ana <ana@example.org>"},
    ],
)
def test_a_customer_who_opted_out_gets_no_mail_on_any_path(params: dict[str, Any]) -> None:
    values = ANA | {"customer.email_opt_out": True}
    outcome = prepare("send_email", Prepared(values), **TEXTS, **params)
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("skipped", "opted_out")
    assert prepare("send_email", Prepared(values), **TEXTS, **params, transactional=True) is None


@pytest.mark.case("X07")
def test_a_lead_who_opted_out_gets_no_mail_either() -> None:
    outcome = prepare("send_email", Prepared({"email": "lead@example.org", "email_opt_out": True}), **TEXTS)
    assert outcome is not None
    assert outcome.reason == "opted_out"


@pytest.mark.case("L07")
@pytest.mark.parametrize(
    "address",
    ["desk@northwind.example", "DESK@northwind.example", "desk+t12@northwind.example", "root@northwind.example"],
)
def test_our_own_address_gets_no_mail(settings: Settings, address: str) -> None:
    settings.DEFAULT_FROM_EMAIL, settings.SERVER_EMAIL = "Northwind <desk@northwind.example>", "root@northwind.example"
    outcome = prepare("send_email", Prepared({"customer.email": address}), **TEXTS)
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("skipped", "self_address")


@pytest.mark.case("X04")
def test_a_record_that_is_gone_gets_no_mail() -> None:
    outcome = prepare("send_email", Prepared({}), **TEXTS)
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("skipped", "record_gone")


def test_nobody_to_write_to_is_no_failure_but_a_broken_address_is() -> None:
    nobody = prepare("send_email", Prepared({"subject": "x"}), **TEXTS)
    unassigned = prepare("send_email", Prepared({"subject": "x", "assignee": None}), **TEXTS, to="assignee")
    broken = prepare("send_email", Prepared({"customer.email": "not an address"}), **TEXTS)
    assert nobody is not None
    assert unassigned is not None
    assert broken is not None
    assert (nobody.state, unassigned.reason, broken.state) == ("skipped", "no_assignee", "rejected")


@pytest.mark.parametrize(
    "address",
    [
        *("a@x.example, b@x.example", "a@x.example b@x.example", "a@x.example; b@x.example"),
        *("a@x.example\nBcc: z@x.example", "Ana <a@x.example>\nBcc: z@x.example", "Ana\nBcc: z <a@x.example>"),
        *("Ana <a@x.example>, b@x.example", "Ana <a@x.example> <b@x.example>", "<a@x. example>", "<>", "a@x.example,"),
    ],
)
def test_what_is_no_single_address_is_refused_and_named(address: str) -> None:
    for params in ({"to": "address", "address": address}, {"to": "field", "field": "customer.email"}):
        outcome = prepare("send_email", Prepared(ANA | {"customer.email": address}), **TEXTS, **params)
        assert outcome is not None
        assert (outcome.state, outcome.error) == ("rejected", f"“{address}” is no single e-mail address.")
    assert problems("send_email", TICKET, **TEXTS, to="address", address=address) == ["/address"]


def test_one_recipient_gets_only_so_many_mails_of_a_rule() -> None:
    assert prepare("send_email", Prepared(ANA, sent=9), **TEXTS) is None
    outcome = prepare("send_email", Prepared(ANA, sent=10), **TEXTS)
    assert outcome is not None
    assert (outcome.state, outcome.reason) == ("skipped", "limit_per_recipient")


def test_a_mail_without_text_or_recipient_is_refused_when_the_rule_is_saved() -> None:
    assert problems("send_email", TICKET, **TEXTS) == []
    assert problems("send_email", LEAD, **TEXTS) == []
    assert problems("send_email", COMPANY, **TEXTS) == ["/to"]
    assert problems("send_email", COMPANY, **TEXTS, to="assignee") == ["/to"]
    assert problems("send_email", TICKET, subject=" ", text="") == ["/subject", "/text"]
    assert problems("send_email", TICKET, **TEXTS, to="address") == ["/address"]
    assert problems("send_email", TICKET, **TEXTS, to="address", address="nobody") == ["/address"]
    assert problems("send_email", TICKET, **TEXTS, to="address", address="{{ ticket.customer.email }}") == []
    assert problems("send_email", TICKET, **TEXTS, to="field") == ["/field"]


def test_it_reads_as_a_sentence() -> None:
    kind = action("send_email")
    said = [
        kind.sentence(kind.Params.model_validate({**TEXTS, "to": to, "address": "a@b.c"}))
        for to in ("customer", "address")
    ]
    assert said == ["send the mail “Hello” to the customer", "send the mail “Hello” to a@b.c"]
