"""Hostile and broken texts, in values, templates, answers and stored rules, are kept apart from all the rest."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from loopback_servers import running

from automation.catalog import registry
from automation.catalog.action import Outcome
from automation.core.conditions import explain
from automation.core.moments import Moment
from automation.definitions.compile import compile_definition
from automation.engine import ruleset
from automation.engine.effects import EffectCall, guarded
from automation.engine.posting import post_event
from automation.engine.references import References
from automation.models import Connection, Event, Rule, RuleVersion
from automation.outbound import Outbound, Sockets
from northwind.helpdesk.models import Comment, Ticket
from tests.engine.world import World, leaf, step, when

BROKEN_TEXT = "a\x00b\ud800c"
HOOK = step("c", "call_webhook", connection="hook")


def really(call: EffectCall) -> Outcome:
    """Sends an effect as a thread of the pump does."""
    door = call.door
    door.outbound = Outbound(
        door.connection, allow_loopback=True, key=door.key, timeout=call.timeout, sockets=Sockets()
    )
    return guarded(call)


def everything_stored() -> str:
    """All that the engine's tables hold, as one text; secrets are kept elsewhere and aren't in it."""
    tables = ("event", "run", "stepexecution", "attempt", "deadletter", "notice", "timer", "ruleversion", "ruledraft")
    with connection.cursor() as cursor:
        texts = []
        for table in tables:
            cursor.execute(f"SELECT x::text FROM automation_{table} x")
            texts += [row[0] for row in cursor.fetchall()]
    return "\n".join(texts)


def smuggle(world: World, rule: Rule, **definition: Any) -> None:
    """Writes a version past every check, as somebody with a database console would."""
    with world.acting():
        assert rule.published is not None
        version = RuleVersion.objects.create(
            tenant=world.tenant,
            rule=rule,
            number=rule.published.number + 1,
            definition={**rule.published.definition, **definition},
            sha256="0" * 64,
            schema_version=1,
        )
        Rule.objects.filter(pk=rule.pk).update(published=version)
    ruleset.forget()


@pytest.mark.case("S11")
def test_an_answer_with_characters_that_no_database_keeps_is_stored_and_hurts_no_neighbour(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", HOOK)
    other = world.rule("Other", step("t", "add_tags", tags=["fine"]))
    world.answer = lambda call: Outcome.rejected(f"The receiver said {BROKEN_TEXT}.")
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.states(rule) == ["failed rejected", "failed rejected"]  # the tag of the other rule is a change, too
    assert world.states(other)[0] == "succeeded"
    assert "The receiver said ab" in world.steps(world.runs(rule)[0])["c"].error
    assert "The receiver said ab" in world.dead_letters()[0].error


@pytest.mark.case("S11")
def test_an_output_with_such_characters_is_stored_too(world: World) -> None:
    world.connection()
    rule = world.rule("Hook", HOOK)
    world.answer = lambda call: Outcome.done({"body": BROKEN_TEXT, BROKEN_TEXT: [BROKEN_TEXT]}, note=BROKEN_TEXT)
    world.change(world.ticket(), subject="Go")
    assert world.states(rule) == ["succeeded"]
    assert "\x00" not in str(world.steps(world.runs(rule)[0])["c"].output)


@pytest.mark.case("S11")
def test_a_local_action_that_fails_with_such_a_text_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, params: Any, context: Any) -> Outcome:
        raise ValueError(BROKEN_TEXT)

    monkeypatch.setattr(type(registry.actions["add_note@1"]), "perform", fail)
    bad = world.rule("Bad", step("n", "add_note", text="x"))
    other = world.rule("Other", step("t", "add_tags", tags=["fine"]))
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.states(bad)[0] == "failed rejected"
    assert world.states(other)[0] == "succeeded"
    assert world.fresh(ticket).tags == ["fine"]
    assert world.steps(world.runs(bad)[0])["n"].error.startswith("ab")


@pytest.mark.case("S11")
def test_a_payload_with_such_characters_is_refused_with_its_place_and_its_neighbours_are_kept(world: World) -> None:
    rule = world.rule(
        "Paid",
        step("n", "add_note", text="{{ event.text }}"),
        trigger={"kind": "custom_event", "params": {"name": "paid", "model": "helpdesk.ticket"}},
    )
    ticket = world.ticket()
    with world.acting():
        post_event(world.tenant, "paid", record=ticket, data={"text": "before"})
        with pytest.raises(ValueError, match="at /text that can't be stored"):
            post_event(world.tenant, "paid", record=ticket, data={"text": BROKEN_TEXT})
        post_event(world.tenant, "paid", record=ticket, data={"text": "after"})
    world.run()
    assert world.states(rule) == ["succeeded"] * 2
    with world.acting():
        notes = list(Comment.objects.filter(ticket=ticket).order_by("id").values_list("body", flat=True))
    assert notes == ["before", "after"]


@pytest.mark.case("S10")
def test_a_rule_whose_template_asks_for_a_missing_value_fails_and_the_new_ticket_stays(world: World) -> None:
    bad = world.rule(
        "Bad",
        step("n", "add_note", text="Plan: {{ ticket.customer.plan | required }}"),
        trigger=when("created"),
    )
    good = world.rule("Good", step("t", "add_tags", tags=["new"]), trigger=when("created"))
    ticket = world.ticket(customer=None)
    assert world.states(bad) == ["failed template_error"]
    assert world.states(good) == ["succeeded"]
    assert world.steps(world.runs(bad)[0])["n"].error != ""
    assert world.fresh(ticket).tags == ["new"]


@pytest.mark.case("C13")
@pytest.mark.case("C17")
@pytest.mark.parametrize(
    "condition",
    [
        leaf("{{ old.status }}", "is_not", "active") | {"id": "c_1"},
        leaf("status", "resembles", "x") | {"id": "c_1"},
        {"id": "c_1", "field": "status", "op": "is_not", "value": "x", "fuzzy": True},
        {"id": "g_1", "all": []},
        {"id": "g_1", "none": []},
        {"id": "g_1", "all": [{"id": "g_2", "none": []}]},
    ],
)
def test_a_stored_condition_that_cannot_be_judged_starts_nothing_and_says_so(world: World, condition: Any) -> None:
    rule = world.rule("Odd", step("t", "add_tags", tags=["x"]))
    smuggle(world, rule, condition=condition)
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.states(rule) == ["suppressed broken_reference"]
    assert world.fresh(ticket).tags == []


@pytest.mark.case("M04")
@pytest.mark.parametrize(
    "source",
    [
        "{{ ticket.__class__ }}{{ ticket.customer.tenant.slug }}",
        "{{ ticket.tenant.webhook_secret }}",
        "{% include 'secrets' %}",
        "{{ ticket.delete }}",
    ],
)
def test_a_stored_template_that_reaches_for_more_gets_nothing(world: World, source: str) -> None:
    rule = world.rule("Odd", step("n", "add_note", text="x"))
    smuggle(world, rule, steps=[step("n", "add_note", text=source)])
    ticket = world.ticket()
    world.change(ticket, subject="Go")
    assert world.states(rule) == ["suppressed broken_reference"]
    with world.acting():
        assert not Comment.objects.filter(ticket=ticket).exists()
        assert Ticket.objects.filter(pk=ticket.pk).exists()


@pytest.mark.case("C16")
def test_a_long_text_is_judged_by_what_is_kept_of_it_and_the_explanation_says_so(world: World) -> None:
    condition = leaf("description", "contains", "aaab")
    rule = world.rule("Long", step("t", "add_tags", tags=["x"]), condition=condition)
    event = world.change(world.ticket(), description="a" * 100_000 + "b")
    assert world.runs(rule) == []
    assert len(event.facts["snapshot"]["description"]) <= 8 * 1024
    assert event.facts["cut"] == ["description"]
    with world.acting():
        assert rule.published is not None
        spec = compile_definition(rule.published.definition, registry, References(world.tenant.pk))
    (report,) = explain(spec.condition, event.facts, Moment(event.created_at, world.tenant.zone))
    assert (report.result, report.reason) == ("false", "cut")


@pytest.mark.case("M02")
def test_a_hostile_name_is_escaped_in_html_literal_in_text_and_breaks_no_subject(world: World) -> None:
    name = "<img src=x onerror=1>"
    rule = world.rule(
        "Mail",
        step("n", "add_note", text="From {{ ticket.customer.name }}"),
        step(
            "m",
            "send_email",
            to="customer",
            subject="{{ ticket.customer.name }}: {{ ticket.description }}",
            text="{{ ticket.customer.name }}",
            html="<p>{{ ticket.customer.name }}</p>",
        ),
        trigger=when("created"),
    )
    ticket = world.ticket(customer=world.customer(name=name), description="A\r\nBcc: x@y")
    mail = world.steps(world.runs(rule)[0])["m"].input
    assert mail["html"] == "<p>&lt;img src=x onerror=1&gt;</p>"
    assert mail["text"] == name
    assert mail["subject"] == f"{name}: A Bcc: x@y"
    with world.acting():
        assert Comment.objects.get(ticket=ticket).body == f"From {name}"


def test_a_later_step_reads_what_an_earlier_one_brought_back(world: World) -> None:
    world.connection()
    world.rule("Chain", HOOK, step("n", "add_note", text="Answer {{ steps.c.number }}"), trigger=when("created"))
    world.answer = lambda call: Outcome.done({"number": 17})
    ticket = world.ticket()
    with world.acting():
        assert Comment.objects.get(ticket=ticket).body == "Answer 17"


@pytest.mark.case("P05")
@pytest.mark.parametrize("status", [200, 404, 503])
def test_a_secret_that_the_receiver_sends_back_is_nowhere_in_what_is_kept(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    secret = "token-of-the-sms-service"
    with running("sms", tmp_path) as server:
        server.prescribe({"status": status, "body": f'{{"error": "{secret}"}}'}, last="repeat")
        with world.acting():
            found = Connection(
                tenant=world.tenant,
                name="sms",
                kind="sms",
                endpoint=server.url,
                settings={"account_sid": "AC1", "from": "+15550199"},
            )
            found.set_secret(secret)
            found.save()
        rule = world.rule(
            "Text",
            step("s", "send_sms", connection="sms", to="number", number="+15550100", text="Hello")
            | {"retry": {"max_attempts": 2, "base_delay": "PT0S"}},
        )
        world.answer = really
        world.change(world.ticket(), subject="Go")
    assert len(world.attempts(world.runs(rule)[0], "s")) >= 1
    written = capsys.readouterr()
    assert secret not in everything_stored() + written.out + written.err


@pytest.mark.case("P05")
def test_no_event_of_a_tenants_own_data_carries_a_secret(world: World) -> None:
    world.connection()
    world.rule("Hook", HOOK, trigger=when("created"))
    world.ticket()
    (call,) = world.calls()
    assert "whsec_" not in repr(call)
    with world.acting():
        assert "whsec_" not in str([event.facts for event in Event.objects.all()])
    assert "whsec_" not in everything_stored()


@pytest.mark.case("S10")
def test_a_fault_in_an_actions_code_is_a_failed_try_of_its_step_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, params: Any, context: Any) -> Outcome:
        context.add_note("half done")
        raise KeyError("a fault of ours")

    monkeypatch.setattr(type(registry.actions["add_note@1"]), "perform", fail)
    bad = world.rule("Bad", step("n", "add_note", text="x") | {"retry": {"max_attempts": 2}}, trigger=when("created"))
    good = world.rule("Good", step("t", "add_tags", tags=["fine"]), trigger=when("created"))
    ticket = world.ticket()
    assert world.states(bad) == ["failed exhausted"]
    assert world.attempts(world.runs(bad)[0], "n") == ["failed", "failed"]
    assert "KeyError" in world.dead_letters()[0].error
    assert world.states(good) == ["succeeded"]
    assert world.fresh(ticket).tags == ["fine"]
    with world.acting():
        assert not Comment.objects.filter(ticket=ticket).exists()
