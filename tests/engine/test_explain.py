"""Why a rule ran, or didn't, is answered for every event of a record, and the answer is what the engine did."""

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automation.core.gates import Gate
from automation.engine import rule_history, rules
from automation.engine.answers import Answer, Explanation
from automation.engine.explain import explain, explain_event
from automation.engine.operate import pause
from automation.engine.posting import post_event, run_by_hand
from automation.engine.references import problems_of
from automation.engine.ruleset import Anything
from automation.engine.sources import importing
from automation.models import Event, Rule, Run
from automation.store import pauses
from tests.engine.world import World, leaf, make_world, set_field, when
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db(transaction=True)  # each verb in its own transaction, as in life

TICKET = "helpdesk.ticket"


@pytest.fixture(autouse=True)
def _no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing happens at the same time: the state at a moment is exactly one."""
    monkeypatch.setattr(rule_history, "DOUBT", timedelta(0))


def asked(world: World, rule: Rule, record: Any, **more: Any) -> Explanation:
    with world.acting():
        return explain(rule.pk, model=TICKET, record=record.pk, **more)


def last(world: World, rule: Rule, record: Any) -> Answer:
    return asked(world, rule, record).answers[-1]


@pytest.mark.case("S08")
def test_a_condition_that_did_not_hold_is_told_with_the_value_that_was_read(world: World) -> None:
    condition = {"all": [leaf("status", "is_not", "closed"), leaf("priority", "is", "urgent")]}
    rule = world.rule("Urgent", set_field("s", "status", "open"), condition=condition)
    ticket = world.ticket(priority="low")
    world.change(ticket, subject="Another")
    answer = last(world, rule, ticket)
    assert (answer.gate, answer.reason, answer.version) == (Gate.CONDITION, "not_matched", 1)
    assert answer.sentence == "Its condition did not hold: “priority is urgent” (it was “low”)."
    assert [(one.result, one.decided) for one in answer.comparisons] == [("true", False), ("false", True)]
    assert not answer.ran
    assert answer.agrees


def test_a_change_that_there_was_not_is_told_apart_from_an_empty_value(world: World) -> None:
    either = {"any": [leaf("status", "changed_to", "open"), leaf("customer.plan", "is", "gold")]}
    rule = world.rule("Either", set_field("s", "priority", "high"), condition=either)
    ticket = world.ticket(status="pending")
    world.change(ticket, subject="Another")
    said = last(world, rule, ticket).sentence
    assert "“status becomes open” (it did not change)" in said
    assert "gold” (it was “empty”)" in said
    world.change(ticket, status="new")
    assert "“status becomes open” (it went from “pending” to “new”)" in last(world, rule, ticket).sentence


@pytest.mark.case("S08")
def test_a_rule_that_was_off_says_who_switched_it_off_and_when(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"))
    ticket = world.ticket()
    world.change(ticket, subject="While on")
    with world.acting():
        rules.switch_off(rule.pk)
    world.change(ticket, subject="While off")
    with world.acting():
        rules.switch_on(rule.pk)
    world.change(ticket, subject="On again")
    told = asked(world, rule, ticket)
    gates = [answer.gate for answer in told.answers if answer.event.source == "person"]
    assert gates == [Gate.CHANGE, Gate.RAN, Gate.OFF, Gate.RAN]
    off = next(answer for answer in told.answers if answer.gate is Gate.OFF)
    assert off.reason == "rule_off"
    assert off.sentence.startswith("The rule was off: Ana switched it off on ")


def test_a_switch_that_the_audit_knows_nothing_of_is_not_put_on_who_switched_last(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"))
    ticket = world.ticket()
    with world.acting():
        rules.switch_off(rule.pk)
        rules.switch_on(rule.pk)
    with world.acting():
        Rule.objects.filter(pk=rule.pk).update(on=False)
        pauses.bump_rules(world.tenant.pk)
    world.change(ticket, subject="While off")

    off = next(answer for answer in asked(world, rule, ticket).answers if answer.gate is Gate.OFF)

    assert "not by what the audit knows" in off.sentence
    assert "Ana" not in off.sentence


def test_each_event_is_judged_by_the_version_that_was_live_then(world: World) -> None:
    steps = [set_field("s", "status", "open")]
    rule = world.rule("Changing", *steps, condition=leaf("priority", "is", "high"), trigger=when(fields=["subject"]))
    ticket = world.ticket(priority="low")
    world.change(ticket, subject="One")
    world.republish(rule, *steps, condition=leaf("priority", "is", "low"))
    world.change(ticket, subject="Two")
    world.republish(rule, *steps, condition=leaf("priority", "is", "urgent"))
    told = asked(world, rule, ticket)
    people = [answer for answer in told.answers if answer.event.source == "person"]
    by_subject = {answer.event.facts["snapshot"]["subject"]: answer for answer in people}
    assert (by_subject["One"].gate, by_subject["One"].version) == (Gate.CONDITION, 1)
    assert (by_subject["Two"].gate, by_subject["Two"].version) == (Gate.RAN, 2)


def test_what_the_trigger_does_not_listen_to_is_told_as_such(world: World) -> None:
    fields = world.rule("Fields", set_field("s", "status", "open"), trigger=when(fields=["priority"]))
    people = world.rule("People", set_field("s", "status", "open"), trigger=when(sources=["person"]))
    made = world.rule("Made", set_field("s", "status", "open"), trigger=when("created"))
    lead = world.rule("Lead", set_field("s", "status", "won"), trigger=when(model="crm.lead"))
    ticket = world.ticket()
    with world.acting(), world.by_api():
        event = world.change(ticket, subject="Another", run=False)
    world.run()
    assert event.source == "api"
    gates = {rule.name: last(world, rule, ticket).gate for rule in (fields, people, made, lead)}
    assert gates["Fields"] is Gate.FIELDS
    assert gates["Made"] is Gate.CHANGE
    assert gates["Lead"] is Gate.MODEL
    assert "What changed was: subject." in last(world, fields, ticket).sentence
    assert gates["People"] is Gate.SOURCE


def test_a_rule_made_or_deleted_meanwhile_says_so(world: World) -> None:
    ticket = world.ticket()
    world.change(ticket, subject="Before")
    rule = world.rule("Late", set_field("s", "priority", "high"), condition=leaf("subject", "is", "never"))
    with world.acting():
        rules.delete(rule.pk)
    world.change(ticket, subject="After")
    gates = [answer.gate for answer in asked(world, rule, ticket).answers]
    assert gates[1:] == [Gate.NOT_MADE, Gate.DELETED]
    with world.acting():
        rules.undelete(rule.pk)
        rules.switch_on(rule.pk)
    world.change(ticket, subject="Later")
    gates = [answer.gate for answer in asked(world, rule, ticket).answers]
    assert gates[1:] == [Gate.NOT_MADE, Gate.DELETED, Gate.CONDITION]


@pytest.mark.case("L01")
def test_a_loop_is_told_with_its_chain(world: World) -> None:
    rule = world.rule("Rewrite", set_field("s", "priority", "high"))
    ticket = world.ticket(subject="Printer")
    world.change(ticket, subject="Another")
    answer = last(world, rule, ticket)
    assert (answer.gate, answer.reason) == (Gate.GUARD, "loop_same_rule")
    assert "Rewrite (Another" in answer.sentence


def test_what_another_run_or_rule_prevented_names_it(world: World) -> None:
    stopper = world.rule(
        "First", {"id": "end", "kind": "stop", "ends": "later_rules"}, trigger=when(fields=["subject"])
    )
    later = world.rule("Second", set_field("s", "status", "open"), trigger=when(fields=["subject"]))
    keeper = world.rule(
        "Keeper", {"id": "w", "kind": "delay", "for": "P1D"}, trigger=when(fields=["channel"]), again="keep"
    )
    ticket = world.ticket(channel="web")
    world.change(ticket, subject="Another")
    assert last(world, later, ticket).reason == "stopped_by_rule"
    assert "“First”" in last(world, later, ticket).sentence
    world.change(ticket, run=False, channel="email")
    world.run_until_held()
    world.change(ticket, run=False, channel="phone")
    world.run_until_held()
    answer = last(world, keeper, ticket)
    assert answer.reason == "already_waiting"
    assert f"Run {world.runs(keeper)[0].pk} " in answer.sentence
    assert last(world, stopper, ticket).gate is Gate.FIELDS


def test_an_event_that_waits_says_what_holds_it(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"))
    ticket = world.ticket()
    with world.acting():
        pause.pause(reason="Migration")
    world.change(ticket, subject="Another")
    answer = last(world, rule, ticket)
    assert answer.gate is Gate.WAITS
    assert "Ana paused the automations" in answer.sentence
    assert "Migration" in answer.sentence


def test_nothing_to_explain_is_explained(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"))
    with world.acting():
        told = explain(rule.pk, model=TICKET, record=999_999)
    assert told.answers == ()
    assert told.sentence.startswith("No event of this record is kept")


def test_a_verdict_that_the_records_do_not_bear_out_says_so(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"), trigger=when(fields=["subject"]))
    ticket = world.ticket()
    event = world.change(ticket, subject="Another")
    with connection.cursor() as cursor:  # somebody rewrites history by hand
        facts = {**event.facts, "after": {}}
        cursor.execute("UPDATE automation_event SET facts = %s::jsonb WHERE id = %s", [json.dumps(facts), event.pk])
    answer = next(one for one in asked(world, rule, ticket).answers if one.event.pk == event.pk)
    assert answer.run is not None
    assert not answer.agrees


def test_another_tenants_rules_and_events_do_not_exist(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"))
    ticket = world.ticket()
    event = world.change(ticket, subject="Another")
    other = make_world()
    with other.acting():
        with pytest.raises(Rule.DoesNotExist):
            explain(rule.pk, model=TICKET, record=ticket.pk)
        with pytest.raises(Event.DoesNotExist):
            explain_event(event.pk)


def test_one_event_is_explained_for_all_rules_that_listen_to_its_kind_of_record(world: World) -> None:
    one = world.rule("One", set_field("s", "priority", "high"), condition=leaf("status", "is", "closed"))
    two = world.rule("Two", set_field("s", "status", "open"), trigger=when(fields=["channel"]))
    world.rule("Lead", set_field("s", "status", "won"), trigger=when(model="crm.lead"))
    event = world.change(world.ticket(), subject="Another")
    with world.acting():
        answers = explain_event(event.pk)
    assert [(one.rule_name, one.gate) for one in answers] == [("One", Gate.CONDITION), ("Two", Gate.FIELDS)]
    assert [answer.rule_id for answer in answers] == [one.pk, two.pk]


def test_the_number_of_statements_does_not_grow_with_the_events(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"), condition=leaf("status", "is", "closed"))
    ticket = world.ticket()
    counts = []
    for number in range(8):
        world.change(ticket, subject=f"Change {number}")
        if number in (1, 7):
            with CaptureQueriesContext(connection) as queries:
                asked(world, rule, ticket)
            counts.append(len(queries))
    assert counts[0] == counts[1] <= 12


def test_the_events_go_on_where_one_answer_ended(world: World) -> None:
    rule = world.rule("Any", set_field("s", "priority", "high"), condition=leaf("status", "is", "closed"))
    ticket = world.ticket()
    for number in range(4):
        world.change(ticket, subject=f"Change {number}")
    with world.acting():
        oldest = Event.objects.filter(record=ticket.pk).order_by("id")[0]
    first = asked(world, rule, ticket, since=oldest.created_at, limit=3)
    rest = asked(world, rule, ticket, after=first.answers[-1].event.pk, limit=3)
    assert (first.more, rest.more) == (True, False)
    assert len(first.answers) + len(rest.answers) == 5
    assert first.answers[-1].event.pk < rest.answers[0].event.pk
    newest = asked(world, rule, ticket, limit=3)
    assert (newest.more, newest.earlier) == (False, True)
    assert newest.answers[-1].event.pk == rest.answers[-1].event.pk


FIELDS = {
    "subject": ["One", "Two"],
    "priority": ["low", "high"],
    "status": ["open", "pending"],
    "channel": ["web", "phone"],
}
LEAVES = st.one_of(
    *[
        st.builds(lambda op, value, name=name: leaf(name, op, value), st.sampled_from(ops), st.sampled_from(values))
        for name, values in FIELDS.items()
        for ops in (["is", "is_not", "changed_to", "changed_from", "was"],)
    ],
    st.sampled_from(sorted(FIELDS)).map(lambda name: leaf(name, "changed")),
    st.just(leaf("customer.plan", "is_empty")),
)
CONDITIONS = st.one_of(
    st.none(),
    LEAVES,
    st.builds(
        lambda mode, items: {mode: items},
        st.sampled_from(["all", "any", "none"]),
        st.lists(LEAVES, min_size=1, max_size=3),
    ),
)
TRIGGERS = st.one_of(
    st.builds(
        lambda on, fields, sources: when(*on, fields=fields if "updated" in on else None, sources=sources),
        st.sampled_from([["updated"], ["created"], ["created", "updated"], ["updated", "deleted"]]),
        st.one_of(st.none(), st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=2, unique=True)),
        st.sampled_from([["person"], ["person", "automation"], ["person", "api", "automation"], ["api"]]),
    ),
    st.just({"kind": "custom_event", "params": {"model": TICKET, "name": "sla.missed"}}),
    st.just({"kind": "manual", "params": {"model": TICKET}}),
)
STEPS = st.one_of(
    st.builds(lambda value: [set_field("s", "priority", value)], st.sampled_from(["low", "high"])),
    st.builds(lambda value: [set_field("s", "status", value)], st.sampled_from(["open", "pending"])),
    st.just([{"id": "end", "kind": "stop", "ends": "later_rules"}]),
    st.just([{"id": "w", "kind": "delay", "for": "P1D"}, set_field("s", "priority", "high")]),
)


def _apart(definition: dict[str, Any]) -> dict[str, Any]:
    """The same with no part in it twice: ids are given in place."""
    copied: dict[str, Any] = json.loads(json.dumps(definition))
    return copied


WHOLE = {"schema_version": st.just(1), "trigger": TRIGGERS, "condition": CONDITIONS, "steps": STEPS}
DEFINITIONS = st.fixed_dictionaries(WHOLE).map(_apart).filter(lambda one: not problems_of(one, Anything()))
CHANGES = st.dictionaries(st.sampled_from(["subject", "priority", "status", "channel"]), st.integers(0, 1), min_size=1)
DEEDS = st.one_of(
    st.tuples(st.sampled_from(["change", "change", "api", "import"]), CHANGES),
    st.tuples(st.sampled_from(["on", "off", "hold", "go on", "delete", "manual"]), st.integers(0, 2)),
    st.tuples(st.just("republish"), st.integers(0, 2), DEFINITIONS),
    st.tuples(st.sampled_from(["custom", "made", "gone"]), st.just(0)),
)


def _do(world: World, made: list[Rule], tickets: list[Any], deed: tuple[Any, ...]) -> None:
    kind, what = deed[:2]
    with world.acting():
        if kind in ("change", "api", "import"):
            ticket = tickets[0]
            ticket.refresh_from_db()
            for name, place in what.items():
                setattr(ticket, name, FIELDS[name][place])
            if kind == "change":
                ticket.save()
            else:
                with world.by_api() if kind == "api" else importing("batch"):
                    ticket.save()
        elif kind == "custom":
            post_event(world.tenant, "sla.missed", record=tickets[0])
        elif kind == "made":
            tickets.append(TicketFactory(tenant=world.tenant, subject="New"))
        elif kind == "gone":
            if len(tickets) > 1:
                tickets.pop().delete()
        else:
            _do_to_rule(world, made[what % len(made)], tickets[0], deed)


def _do_to_rule(world: World, rule: Rule, ticket: Any, deed: tuple[Any, ...]) -> None:
    rule = Rule.objects.get(pk=rule.pk)
    if rule.deleted_at is not None:
        rules.undelete(rule.pk)
        return
    verbs: dict[str, Any] = {
        "on": lambda: rules.switch_on(rule.pk),
        "off": lambda: rules.switch_off(rule.pk),
        "hold": lambda: pause.pause_rule(rule.pk, "a look"),
        "go on": lambda: pause.resume_rule(rule.pk),
        "delete": lambda: rules.delete(rule.pk),
        "manual": lambda: _start(rule, ticket),
        "republish": lambda: world.republish(rule, *deed[2]["steps"], **_without_steps(deed[2])),
    }
    with suppress(rules.NothingNew):
        verbs[deed[0]]()


def _without_steps(definition: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in definition.items() if name != "steps"}


def _start(rule: Rule, ticket: Any) -> None:
    if rule.on and rule.published and rule.published.definition["trigger"]["kind"] == "manual":
        run_by_hand(rule.pk, ticket)


LOOSE: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
SOME = given(
    definitions=st.lists(DEFINITIONS, min_size=1, max_size=3),
    deeds=st.lists(st.tuples(DEEDS, st.booleans()), min_size=1, max_size=10),
)


@settings(max_examples=8, **LOOSE)
@SOME
def test_the_explanation_agrees_with_what_the_engine_did(definitions: list[Any], deeds: list[Any]) -> None:
    assert disagreements(definitions, deeds) == []


@pytest.mark.long
@settings(max_examples=200, **LOOSE)
@SOME
def test_of_many_rules_and_events_the_explanation_agrees(definitions: list[Any], deeds: list[Any]) -> None:
    assert disagreements(definitions, deeds) == []


def disagreements(definitions: list[Any], deeds: list[Any]) -> list[tuple[str, Any]]:
    """Where what the engine did after the deeds isn't what the explanation says: (rule, what is said of an event)."""
    world = make_world()
    made = [world.rule(f"Rule {place}", *one["steps"], **_without_steps(one)) for place, one in enumerate(definitions)]
    tickets = [world.ticket(subject="One", priority="low")]
    known = {ticket.pk for ticket in tickets}
    for deed, then_run in deeds:
        _do(world, made, tickets, deed)
        known |= {ticket.pk for ticket in tickets}
        if then_run:
            world.run_until_held()
    world.run_until_held()
    found: list[tuple[str, Any]] = []
    with world.acting():
        for ticket_id in known:
            events = set(Event.objects.filter(record=ticket_id).values_list("id", flat=True))
            for rule in made:
                told = explain(rule.pk, model=TICKET, record=ticket_id, limit=1000)
                explained = {answer.event.pk for answer in told.answers}
                found += [(rule.name, ("events", explained ^ events))] if explained != events else []
                found += [(rule.name, (one.gate, one.sentence)) for one in told.answers if not _agrees(one)]
    return found


def _agrees(answer: Answer) -> bool:
    run = Run.objects.filter(event=answer.event, rule=answer.rule_id).first()
    if run is None:
        so = answer.gate not in (Gate.RAN, Gate.GUARD, Gate.UNDECIDED)
    elif run.state == "suppressed":
        so = answer.gate is Gate.GUARD and answer.reason == run.reason
    else:
        so = answer.ran
    return so and answer.agrees and bool(answer.sentence)
