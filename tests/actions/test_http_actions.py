"""Pages, webhooks and text messages, sent to real servers on loopback."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_doors import KEY, Prepared, action, prepare, problems, send
from loopback_servers import Server, running
from standardwebhooks.webhooks import Webhook

SECRET = "r0uting-key-4711"
EVENT = {
    "id": 99,
    "change": "updated",
    "before": {"priority": "normal"},
    "after": {"priority": "urgent"},
    "snapshot": {"subject": "Printer", "priority": "urgent"},
    "data": {},
    "cut": [],
    "source": "person",
}
TICKET, COMPANY = "helpdesk.ticket", "crm.company"


@pytest.fixture
def pager(tmp_path: Path) -> Iterator[Server]:
    with running("pager", tmp_path) as server:
        yield server


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[Server]:
    with running("webhooks", tmp_path) as server:
        yield server


@pytest.fixture
def sms(tmp_path: Path) -> Iterator[Server]:
    with running("sms", tmp_path) as server:
        yield server


def page(server: Server, **params: Any) -> Any:
    return send(
        "page_on_call", endpoint=server.url, secret=SECRET, **{"connection": "there", "summary": "Urgent", **params}
    )


def call(server: Server, **params: Any) -> Any:
    return send(
        "call_webhook", endpoint=server.url, secret="whsec_c2VjcmV0c2VjcmV0", event=EVENT, connection="there", **params
    )


def text(server: Server, **params: Any) -> Any:
    return send(
        "send_sms",
        endpoint=server.url,
        secret="auth-token-1",
        settings={"account_sid": "AC123", "from": "+4930123"},
        kept={"recipient": "+491701234567"},
        **{"connection": "there", "text": "We are on it", **params},
    )


def test_a_page_speaks_events_v2_and_is_shown_once(pager: Server) -> None:
    first, second = page(pager, service="support"), page(pager, service="support")
    entries = pager.entries(2)
    assert (first.state, first.output) == ("done", {"status": 202, "dedup_key": KEY})
    assert second.state == "done"
    assert [entry["shown"] for entry in entries] == [True, False]
    assert entries[0]["body_sha256"] == entries[1]["body_sha256"]
    assert entries[0]["body"] == {
        "routing_key": SECRET,
        "event_action": "trigger",
        "dedup_key": KEY,
        "payload": {
            "summary": "Urgent",
            "source": "support",
            "severity": "critical",
            "component": "helpdesk.ticket:12",
        },
    }


def test_a_page_that_the_pager_took_without_answering_is_sent_again_and_shown_once(pager: Server) -> None:
    pager.prescribe("drop")
    assert [page(pager).state for _ in range(2)] == ["uncertain", "done"]
    assert [(entry["dropped"], entry["shown"]) for entry in pager.entries(2)] == [(True, True), (False, False)]


def test_a_page_is_cut_to_what_the_pager_takes_and_never_empty(pager: Server) -> None:
    page(pager, summary="x" * 3000)
    page(pager, summary="  ")
    assert [len(entry["body"]["payload"]["summary"]) for entry in pager.entries(2)] == [1024, len("helpdesk.ticket:12")]


@pytest.mark.parametrize("secret", ["", None])
def test_a_page_without_a_routing_key_is_rejected(pager: Server, secret: str | None) -> None:
    outcome = send("page_on_call", endpoint=pager.url, secret=secret, connection="there", summary="x")
    assert outcome.state == "rejected"
    assert pager.entries() == []


def test_a_page_is_tried_for_two_minutes() -> None:
    retry = action("page_on_call").default_retry
    assert (retry.max_attempts, retry.base_delay, retry.factor, retry.max_delay) == (8, 1.0, 2.0, 60.0)


@pytest.mark.case("P05")
def test_no_secret_is_in_an_outcome_or_a_preview(pager: Server) -> None:
    pager.prescribe({"status": 400, "body": json.dumps({"error": f"bad key {SECRET}"})})
    outcome = page(pager)
    kind = action("page_on_call")
    shown = kind.preview(kind.Params.model_validate({"connection": "there", "summary": "x"}), Prepared())
    assert outcome.state == "rejected"
    assert SECRET not in repr((outcome, shown))


def test_a_webhook_gets_the_event_with_signature_and_keys(webhooks: Server) -> None:
    outcome = call(webhooks, path="tickets/12")
    [entry] = webhooks.entries(1)
    assert (outcome.state, outcome.output["status"]) == ("done", 200)
    assert entry["path"] == "/tickets/12"
    assert entry["headers"]["webhook-id"] == entry["headers"]["idempotency-key"] == KEY
    assert entry["body"] == {
        "type": "helpdesk.ticket.updated",
        "event": 99,
        "record": "helpdesk.ticket:12",
        "source": "person",
        "data": {
            "before": {"priority": "normal"},
            "after": {"priority": "urgent"},
            "snapshot": {"subject": "Printer", "priority": "urgent"},
        },
    }
    Webhook("whsec_c2VjcmV0c2VjcmV0").verify(json.dumps(entry["body"], separators=(",", ":")), entry["headers"])


def test_every_try_of_a_webhook_sends_the_same_body_under_the_same_id(webhooks: Server) -> None:
    webhooks.prescribe(503, "drop")
    assert [call(webhooks).state for _ in range(3)] == ["retry", "uncertain", "done"]
    assert len({(entry["key"], entry["body_sha256"]) for entry in webhooks.entries(3)}) == 1


def test_a_webhook_without_a_secret_goes_unsigned_but_with_its_id(webhooks: Server) -> None:
    outcome = send("call_webhook", endpoint=webhooks.url, secret="", event=EVENT, connection="there")
    [entry] = webhooks.entries(1)
    assert outcome.state == "done"
    assert entry["headers"]["webhook-id"] == KEY
    assert "webhook-signature" not in entry["headers"]


def test_a_webhook_sends_a_body_of_ones_own(webhooks: Server) -> None:
    assert call(webhooks, body='{"subject": "Printer \\"on fire\\"", "n": 3}').state == "done"
    assert webhooks.entries(1)[0]["body"] == {"subject": 'Printer "on fire"', "n": 3}
    broken = call(webhooks, body='{"subject": }')
    assert (broken.state, broken.reason) == ("rejected", "template_error")


@pytest.mark.fault(36)
def test_a_webhook_passes_on_how_long_the_receiver_asks_to_wait(webhooks: Server) -> None:
    webhooks.prescribe({"status": 429, "retry_after": 7})
    outcome = call(webhooks)
    assert (outcome.state, outcome.retry_after) == ("retry", 7.0)


@pytest.mark.case("W01")
def test_a_webhook_to_a_private_address_is_rejected_even_if_it_was_saved_once() -> None:
    for endpoint in ("https://10.0.0.1/", "https://169.254.169.254/", "https://[fec0::1]/"):
        outcome = send("call_webhook", endpoint=endpoint, event=EVENT, connection="there")
        assert outcome.state == "rejected"


def test_a_text_message_is_posted_as_twilio_wants_it(sms: Server) -> None:
    outcome = text(sms)
    [entry] = sms.entries(1)
    assert outcome.state == "done"
    assert outcome.output["sid"].startswith("SM")
    assert entry["path"] == "/2010-04-01/Accounts/AC123/Messages.json"
    assert entry["body"] == {"To": "+491701234567", "From": "+4930123", "Body": "We are on it"}
    assert entry["headers"]["idempotency-key"] == KEY


def test_a_text_message_that_was_taken_without_an_answer_is_uncertain(sms: Server) -> None:
    sms.prescribe("drop")
    assert text(sms).state == "uncertain"


@pytest.mark.case("P05")
def test_the_login_of_a_text_message_is_masked_in_what_comes_back(sms: Server) -> None:
    login = base64.b64encode(b"AC123:auth-token-1").decode()
    sms.prescribe({"status": 401, "body": json.dumps({"seen": f"Basic {login}"})})
    assert "auth-token" not in repr(text(sms))


@pytest.mark.parametrize("missing", ["account_sid", "from"])
def test_a_text_message_needs_a_complete_connection(sms: Server, missing: str) -> None:
    settings = {"account_sid": "AC123", "from": "+4930123"}
    del settings[missing]
    outcome = send("send_sms", endpoint=sms.url, secret="t", settings=settings, connection="there", text="x")
    assert outcome.state == "rejected"
    assert sms.entries() == []


@pytest.mark.parametrize(
    ("params", "values", "number"),
    [
        ({}, {"customer.phone": "+49 (170) 123-4567"}, "+491701234567"),
        ({}, {"phone": "0049 30 / 1234"}, "+49301234"),
        ({"to": "field", "field": "phone"}, {"phone": "+15551234567"}, "+15551234567"),
        ({"to": "number", "number": "+44 20 7946 0000"}, {"subject": "x"}, "+442079460000"),
    ],
)
def test_a_text_message_goes_to_the_number_as_it_is_now(
    params: dict[str, Any], values: dict[str, Any], number: str
) -> None:
    prepared = Prepared(values)
    assert prepare("send_sms", prepared, connection="there", text="x", **params) is None
    assert prepared.kept == {"recipient": number}


@pytest.mark.parametrize(
    ("values", "sent", "state", "reason"),
    [
        ({}, 0, "skipped", "record_gone"),
        ({"customer.phone": ""}, 0, "skipped", ""),
        ({"customer.phone": "call me"}, 0, "rejected", "rejected"),
        ({"customer.phone": "+491701234567"}, 10, "skipped", "limit_per_recipient"),
    ],
)
def test_a_text_message_is_not_sent_where_it_can_not_or_must_not(
    values: dict[str, Any], sent: int, state: str, reason: str
) -> None:
    outcome = prepare("send_sms", Prepared(values, sent=sent), connection="there", text="x")
    assert outcome is not None
    assert (outcome.state, outcome.reason) == (state, reason)


def test_what_has_no_text_or_number_is_refused_when_the_rule_is_saved() -> None:
    sms = {"connection": "there", "text": "x"}
    assert problems("send_sms", TICKET, **sms) == []
    assert problems("send_sms", COMPANY, **sms) == ["/to"]
    assert problems("send_sms", TICKET, **sms, to="number") == ["/number"]
    assert problems("send_sms", TICKET, **sms, to="field") == ["/field"]
    assert problems("send_sms", TICKET, connection="there", text=" ") == ["/text"]
    assert problems("page_on_call", TICKET, connection="there", summary=" ") == ["/summary"]


def test_the_promises_are_the_documented_ones() -> None:
    promised = {
        name: [str(effect) for effect in action(name).effects] for name in ("page_on_call", "call_webhook", "send_sms")
    }
    assert promised == {
        "page_on_call": ["idempotent"],
        "call_webhook": ["idempotent"],
        "send_sms": ["at_most_once", "at_least_once"],
    }
