"""A trial says what a rule would do, in full, and leaves nothing behind."""

import pytest
from acceptance.random_rules import draw
from django.db import connection

from automation.catalog.action import Outcome
from automation.core.breaker import FAILED_RUNS
from automation.core.errors import DefinitionError
from automation.engine import failing, ruleset, samples
from automation.engine.operate import Refused
from automation.engine.operate.pause import pause
from automation.engine.rules import create, publish, switch_on
from automation.engine.trial import Options, definition_of, rehearse
from automation.models import Event, Run
from tests.engine.world import World, leaf, make_world, set_field, step, when

pytestmark = pytest.mark.django_db

URGENT = {"id": "c", "all": [leaf("priority", "changed_to", "urgent")]}
HOOK = {"connection": "hook", "path": "/x", "body": '{"subject": "{{ ticket.subject }}"}'}


@pytest.fixture
def world() -> World:
    return make_world()


def definition(*steps, condition=URGENT, trigger=None, **more):
    return {
        "schema_version": 1,
        "trigger": trigger or when("updated"),
        "condition": condition,
        "steps": list(steps),
        **more,
    }


def tried(world: World, what, sample, *, rule_id=None, **options):
    with world.acting():
        return rehearse(what, sample, rule_id=rule_id, options=Options(**options))


def on_record(ticket, was=None, rule_id=None):
    return lambda spec: samples.of_record("helpdesk.ticket", ticket.pk, spec, rule_id=rule_id, was=was)


def test_it_shows_each_step_what_would_be_sent_and_what_would_change(world):
    world.connection()
    ticket = world.ticket(subject="Printer “on” fire", priority="urgent", tags=[])
    what = definition(step("tell", "call_webhook", **HOOK), step("mark", "add_tags", tags=["told"]))
    found = tried(world, what, on_record(ticket, {"priority": "normal"}))
    assert (found.result, found.gate) == ("would_run", ""), found.sentence
    assert [(one.id, one.state) for one in found.steps] == [("tell", "succeeded"), ("mark", "succeeded")]
    [request] = found.steps[0].requests
    assert request.to == "https://example.com/hook/x"
    assert request.body == '{"subject":"Printer “on” fire"}'
    assert "webhook-id" in request.headers
    assert "A" * 8 not in str(found.to_json())
    assert [(one.field, one.before, one.after) for one in found.changes if one.field == "tags"] == [
        ("tags", [], ["told"])
    ]
    assert world.fresh(ticket).tags == []


def test_nothing_stays_of_it_not_even_in_the_workers_memory(world):
    rule = world.rule("live", set_field("s", "status", "open"), condition=URGENT)
    ticket = world.ticket(priority="urgent", status="new")
    with world.acting():
        before = Event.objects.count(), Run.objects.count()
    what = definition(set_field("s", "status", "solved"), condition=None)
    assert tried(world, what, on_record(ticket), rule_id=rule.pk).result == "would_run"
    with world.acting():
        assert (Event.objects.count(), Run.objects.count()) == before
    world.change(ticket, priority="low")
    world.change(ticket, priority="urgent")
    assert world.fresh(ticket).status == "open"
    assert [one.name for one in ruleset.of_tenant(world.tenant.pk, version_of(world)).rules] == ["live"]


def version_of(world: World) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rules_version FROM automation_lane WHERE tenant_id = %s", [world.tenant.pk])
        return cursor.fetchone()[0]


def test_a_rule_that_would_not_run_says_at_which_gate(world):
    ticket = world.ticket(priority="low")
    found = tried(world, definition(set_field("s", "status", "open")), on_record(ticket, {"priority": "high"}))
    assert (found.result, found.gate) == ("would_not_run", "condition")
    assert [(one.result, one.read) for one in found.condition.leaves] == [("false", {"before": "high", "after": "low"})]
    deaf = definition(set_field("s", "status", "open"), trigger=when("updated", fields=["status"]), condition=None)
    found = tried(world, deaf, on_record(ticket, {"priority": "high"}))
    assert (found.result, found.gate) == ("would_not_run", "trigger")


def test_waits_pass_or_end_the_trial_as_asked(world):
    ticket = world.ticket(priority="urgent", status="new")
    what = definition({"id": "w", "kind": "delay", "for": "P1D"}, set_field("s", "status", "closed"))
    found = tried(world, what, on_record(ticket, {"priority": "low"}))
    assert (found.result, found.steps[1].state) == ("would_run", "succeeded")
    found = tried(world, what, on_record(ticket, {"priority": "low"}), waits="stay")
    assert (found.result, found.steps[0].state, found.steps[1].state) == ("would_wait", "waiting", "not_reached")
    assert found.steps[0].until


def test_effects_are_answered_as_asked(world):
    world.connection()
    ticket = world.ticket(priority="urgent")
    what = definition(step("tell", "call_webhook", **HOOK), step("mark", "add_tags", tags=["told"]))
    sample = on_record(ticket, {"priority": "low"})
    found = tried(world, what, sample, answers={"tell": "fail"})
    assert (found.result, found.gate) == ("would_fail", "rejected")
    found = tried(world, what, sample, answers={"*": "timeout"})
    assert (found.result, found.gate, found.steps[0].attempts) == ("would_fail", "deadline", 10)


def test_a_past_run_is_tried_again_with_what_its_steps_put_out(world):
    world.connection()
    rule = world.rule(
        "ask",
        step("tell", "call_webhook", **HOOK),
        step("note", "add_note", text="{{ steps.tell.captured }}"),
        condition=URGENT,
    )
    ticket = world.ticket(priority="low")
    world.change(ticket, priority="urgent")
    [run] = world.runs(rule)
    with world.acting():
        what = definition_of(rule.pk)
    found = tried(world, what, lambda spec: samples.of_run(run.pk), rule_id=rule.pk)
    assert found.result == "would_run"
    assert found.steps[0].output == {"captured": True}
    assert found.steps[1].input == {"text": "true"}


def test_a_past_event_is_judged_as_of_its_own_moment(world):
    ticket = world.ticket(priority="low")
    event = world.change(ticket, priority="urgent")
    world.change(ticket, priority="low")
    found = tried(world, definition(set_field("s", "status", "open")), lambda spec: samples.of_event(event.pk))
    assert (found.result, found.at) == ("would_run", event.created_at)
    assert "may have moved on" in " ".join(found.remarks)


def test_names_that_the_rule_or_its_records_do_not_have_are_refused(world):
    world.connection()
    ticket = world.ticket(priority="urgent")
    what = definition(step("tell", "call_webhook", **HOOK), step("mark", "add_tags", tags=["told"]))
    for name in ("tel", "mark"):
        with pytest.raises(Refused, match=f"no outside step “{name}”. It has: tell"):
            tried(world, what, on_record(ticket), answers={name: "fail"})
    with pytest.raises(Refused, match=r"no field “prio”\. It has: priority"):
        tried(world, what, on_record(ticket, {"prio": "low"}))


def test_own_facts_may_speak_of_a_record_that_does_not_exist(world):
    what = definition(step("mark", "add_tags", tags=["x"]), trigger=when("created"), condition=None)
    given = {"snapshot": {"subject": "Imaginary", "priority": "high"}}
    found = tried(world, what, lambda spec: samples.of_json(given, spec, rule_id=None))
    assert (found.result, found.steps[0].state) == ("would_run", "succeeded")
    with world.acting():
        assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "JSON object"),
        ({"snapshots": {}}, "“snapshots” is not one of"),
        ({"before": 1}, "“before” is a JSON object"),
        ({"record": "12"}, "number of a record"),
        ({"model": "crm.lead"}, "for records of helpdesk.ticket"),
        ({"snapshot": {"customer": "soon"}}, "customer"),
        ({"snapshot": {"prioritty": "high"}}, "no field “prioritty”. It has: priority"),
        ({"after": {"colour": "red"}}, "no field “colour”"),
    ],
)
def test_own_facts_that_make_no_sense_are_refused_with_a_sentence(world, given, said):
    what = definition(set_field("s", "status", "open"))
    with pytest.raises(Refused, match=said):
        tried(world, what, lambda spec: samples.of_json(given, spec, rule_id=None))


def test_another_tenants_record_event_and_run_are_as_if_they_did_not_exist(world):
    other = make_world()
    ticket = other.ticket(priority="urgent")
    event = other.change(ticket, priority="low")
    what = definition(set_field("s", "status", "open"))
    with pytest.raises(LookupError):
        tried(world, what, on_record(ticket))
    with pytest.raises(Event.DoesNotExist):
        tried(world, what, lambda spec: samples.of_event(event.pk))
    with pytest.raises(LookupError):
        tried(world, what, lambda spec: samples.of_json({"record": ticket.pk}, spec, rule_id=None))


def test_a_rule_that_does_not_wait_for_an_earlier_run_of_it(world):
    rule = world.rule("wait", {"id": "w", "kind": "delay", "for": "P1D"}, condition=URGENT)
    ticket = world.ticket(priority="low")
    with world.acting():
        what = definition_of(rule.pk, 1)
    world.change(ticket, run=False, priority="urgent")
    world.run_until_held()
    found = tried(world, what, on_record(ticket, {"priority": "low"}), rule_id=rule.pk)
    assert found.result == "would_run"
    assert "waits for the record already" in " ".join(found.remarks)
    assert world.states(rule) == ["waiting"]


def test_it_works_while_the_tenant_is_paused_and_sees_none_of_what_is_kept(world):
    ticket = world.ticket(priority="urgent", status="new")
    with world.acting():
        pause(level="hold", reason="test")
    world.change(ticket, run=False, priority="high")
    world.change(ticket, run=False, priority="urgent")
    what = definition({"id": "w", "kind": "delay", "for": "PT1H"}, set_field("s", "status", "open"))
    assert tried(world, what, on_record(ticket, {"priority": "low"})).result == "would_run"
    with world.acting():
        assert Event.objects.filter(matched_at=None).count() == 2


def test_it_names_the_live_rules_that_would_follow(world):
    world.rule(
        "after it", step("n", "add_note", text="x"), condition={"id": "c", "all": [leaf("status", "is", "open")]}
    )
    ticket = world.ticket(priority="urgent", status="new")
    found = tried(world, definition(set_field("s", "status", "open")), on_record(ticket, {"priority": "low"}))
    assert [(one.fields, one.rules) for one in found.follows] == [(["status"], ["after it"])]


def test_a_definition_that_can_not_be_published_is_not_tried(world):
    with pytest.raises(DefinitionError):
        tried(world, definition(step("x", "no_such_action")), lambda spec: None)


def test_a_step_that_fails_says_why(world):
    ticket = world.ticket(priority="urgent")
    what = definition(step("n", "add_note", text="{{ ticket.subject | date: 'nonsense' }}"))
    found = tried(world, what, on_record(ticket, {"priority": "low"}))
    assert (found.result, found.gate) == ("would_fail", "template_error")
    assert found.steps[0].error


def test_rules_that_listen_to_ends_of_runs_and_to_limits_are_tried_too(world):
    world.connection()
    ticket = world.ticket()
    ended = {"kind": "run_ended", "params": {"model": "helpdesk.ticket", "on": ["failed"]}}
    what = definition(step("n", "add_note", text="{{ event.rule }}"), trigger=ended, condition=None)
    with world.acting():
        found = rehearse(
            what,
            lambda spec: samples.of_record("helpdesk.ticket", ticket.pk, spec, rule_id=None, data={"rule": "Bills"}),
        )
    assert (found.result, found.steps[0].input) == ("would_run", {"text": "Bills"})
    limit = {"kind": "limit_reached", "params": {"limits": ["rules"]}}
    what = definition(step("t", "call_webhook", connection="hook"), trigger=limit, condition=None)
    found = tried(world, what, lambda spec: samples.of_json({"data": {"limit": "rules"}}, spec, rule_id=None))
    assert found.result == "would_run", found.sentence


@pytest.mark.parametrize("seed", range(12))
def test_it_says_what_the_engine_then_does(world, seed):
    """Rules drawn by chance: a trial of the change, then the change itself, for real."""
    drawn = draw(12)[seed]
    what = dict(drawn.rules)["Long"]
    world.connection()
    world.answer = lambda call: Outcome.done({"status": 200, "answer": ""})
    with world.acting():
        rule = create("Drawn", definition=what)
        publish(rule.pk, revision=0)
        switch_on(rule.pk)
    ticket = world.ticket(subject="New", **({"customer": world.customer(plan=drawn.plan)} if drawn.plan else {}))
    for fields in (change for changes in drawn.rounds for change in changes):
        before = len(world.runs())
        event = world.change(ticket, run=False, **fields)
        found = tried(world, what, lambda spec, event=event: samples.of_event(event.pk), rule_id=rule.pk)
        world.run()
        run = next((one for one in world.runs()[before:] if one.event_id == event.pk), None)
        if run is None:
            assert found.result == "would_not_run"
            continue
        really = {path: (one.state, one.reason, _told(one)) for path, one in world.steps(run).items()}
        assert run.state == {"would_run": "succeeded", "would_fail": "failed"}[found.result]
        assert really == {
            one.path: (one.state, one.reason, one.input if one.kind == "action" else None)
            for one in found.steps
            if one.state != "not_reached"
        }


def _told(row):
    return row.input if row.kind == "action" else None


def test_a_trial_that_fails_is_not_the_failure_that_switches_the_rule_off(world, monkeypatch):
    broken = step("n", "add_note", text="{{ ticket.subject | date: 'nonsense' }}")
    rule = world.rule("Failing", broken, condition=URGENT)
    tickets = [world.ticket(priority="low") for _ in range(FAILED_RUNS)]
    for ticket in tickets[:-1]:
        world.change(ticket, priority="urgent")
    assert world.states(rule) == ["failed template_error"] * (FAILED_RUNS - 1)
    switched: list[object] = []
    monkeypatch.setattr(failing, "_switch_off", lambda *about: switched.append(about))
    world.change(tickets[-1], run=False, priority="urgent")
    found = tried(world, definition(broken), on_record(tickets[-1], {"priority": "low"}), rule_id=rule.pk)
    assert found.result == "would_fail"
    assert not switched
    world.run()
    assert switched, "the tenth real failure does"
