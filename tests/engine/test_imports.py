"""A rule says what imported records are to it: each its own run, none at all, or one run for each import."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from automation.catalog import registry
from automation.engine.explain import explain
from automation.engine.lists import runs as listed
from automation.engine.samples import of_event
from automation.engine.sources import importing
from automation.engine.trial import definition_of, rehearse
from automation.models import Event, Rule, Run, ServedBatch
from northwind.crm.models import Lead
from northwind.helpdesk.models import Ticket
from tests.engine.world import World, leaf, set_field, step, when

TELL = step("c", "call_webhook", connection="hook")
TAG = step("t", "add_tags", tags=["seen"])


def bring(world: World, batch: str, *subjects: str, rules: bool = True) -> list[Ticket]:
    """Tickets that come with an import, judged."""
    with world.acting(), importing(batch, rules=rules):
        tickets: list[Ticket] = Ticket.objects.bulk_create(
            [Ticket(tenant=world.tenant, subject=subject) for subject in subjects]
        )
        world.commit()
    world.run()
    return tickets


def listening(world: World, name: str, *steps: dict[str, Any], imports: str, **more: Any) -> Rule:
    """A rule on new tickets."""
    return world.rule(name, *steps, trigger=when("created"), imports=imports, **more)


def test_a_rule_runs_for_each_imported_record_unless_it_says_otherwise(world: World) -> None:
    rule = world.rule("Tag", TAG, trigger=when("created"))
    tickets = bring(world, "old-system", "A", "B", "C")
    assert world.states(rule) == ["succeeded"] * 3
    assert {tuple(world.fresh(ticket).tags) for ticket in tickets} == {("seen",)}


def test_a_rule_that_skips_imports_says_so_at_each_record_and_still_runs_for_people(world: World) -> None:
    rule = listening(world, "Tag", TAG, imports="skip", condition=leaf("subject", "is_not", "Never mind"))
    tickets = bring(world, "old-system", "A", "Never mind", "B")
    assert world.states(rule) == ["suppressed import_skipped"] * 2
    assert {tuple(world.fresh(ticket).tags) for ticket in tickets} == {()}
    made = world.ticket(subject="By hand")
    assert world.states(rule)[2:] == ["succeeded"]
    assert world.fresh(made).tags == ["seen"]


def test_a_rule_that_skips_imports_still_runs_for_what_another_rule_makes_of_them(world: World) -> None:
    listening(world, "Raise", set_field("s", "priority", "high"), imports="run")
    rule = world.rule("Watch", TAG, trigger=when(fields=["priority"]), imports="skip")
    bring(world, "old-system", "A")
    assert world.states(rule) == ["succeeded"]


def test_once_is_one_run_for_the_first_record_of_the_import_that_the_rule_is_about(world: World) -> None:
    world.connection()
    rule = listening(world, "Tell", TELL, imports="once", condition=leaf("subject", "contains", "please"))
    tickets = bring(world, "old-system", "A", "B please", "C please", "D please")
    assert world.states(rule) == ["succeeded", *["suppressed import_skipped"] * 2]
    [call] = world.calls()
    assert call.door.event["snapshot"]["subject"] == "B please"
    assert world.runs(rule)[0].record == tickets[1].pk


def test_once_holds_over_the_transactions_of_an_import_and_begins_anew_with_the_next(world: World) -> None:
    rule = listening(world, "Tag", TAG, imports="once")
    for part in ("A", "B"):
        bring(world, "first", part, f"{part} too")
    assert world.states(rule) == ["succeeded", *["suppressed import_skipped"] * 3]
    bring(world, "second", "E", "F")
    assert world.states(rule)[4:] == ["succeeded", "suppressed import_skipped"]
    with world.acting():
        assert set(ServedBatch.objects.values_list("rule", "batch")) == {(rule.pk, "first"), (rule.pk, "second")}


def test_a_run_that_an_earlier_rule_stops_leaves_the_import_to_the_next_record(world: World) -> None:
    first = listening(world, "Stop", {"id": "e", "kind": "stop", "ends": "later_rules"}, imports="once")
    second = listening(world, "Tag", TAG, imports="once")
    tickets = bring(world, "old-system", "A", "B", "C")
    assert world.states(first)[0] == "succeeded"
    assert world.states(second) == ["suppressed stopped_by_rule", "succeeded", "suppressed import_skipped"]
    assert world.fresh(tickets[1]).tags == ["seen"]


def test_each_tenant_and_each_rule_has_its_own_run_for_a_batch(world: World) -> None:
    rules = [listening(world, name, TAG, imports="once") for name in ("One", "Two")]
    bring(world, "old-system", "A", "B")
    assert [world.states(rule)[0] for rule in rules] == ["succeeded"] * 2


def test_a_new_version_has_had_its_run_too(world: World) -> None:
    rule = listening(world, "Tag", TAG, imports="once")
    bring(world, "old-system", "A")
    world.republish(rule, step("t", "add_tags", tags=["other"]))
    bring(world, "old-system", "B")
    assert world.states(rule) == ["succeeded", "suppressed import_skipped"]


def test_an_import_that_nothing_runs_for_leaves_its_events_and_no_run(world: World) -> None:
    rule = listening(world, "Tag", TAG, imports="run")
    tickets = bring(world, "old-system", "A", "B", rules=False)
    assert world.states(rule) == []
    with world.acting():
        events = Event.objects.filter(batch="old-system", record__in=[ticket.pk for ticket in tickets])
        assert [(event.facts["quiet"], event.matched_at is not None) for event in events] == [(True, True)] * 2
    world.change(tickets[0], status="open")
    assert world.states(rule) == []


def test_changes_of_an_import_that_are_merged_stay_what_they_are(world: World) -> None:
    rule = world.rule("Tag", TAG, trigger=when("created", "updated"))
    with world.acting(), importing("old-system", rules=False):
        ticket = Ticket.objects.create(tenant=world.tenant, subject="A")
        Ticket.objects.filter(pk=ticket.pk).update(priority="high")
        [event] = Event.objects.filter(record=ticket.pk)
        world.commit()
    world.run()
    assert (event.facts["quiet"], event.facts["snapshot"]["priority"]) == (True, "high")
    assert world.states(rule) == []


def test_runs_and_events_are_found_by_their_batch(world: World) -> None:
    listening(world, "Tag", TAG, imports="run")
    bring(world, "first", "A", "B")
    bring(world, "second", "C")
    world.ticket()
    with world.acting():
        assert {run.event.batch for run in listed(batch="first")} == {"first"}
        assert (listed(batch="first").count(), listed(batch="second").count(), Run.objects.count()) == (2, 1, 4)


def test_a_transaction_that_is_done_again_serves_its_batch_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def failing(action: Any, params: Any, context: Any) -> Any:
        tries.append(context.record_id)
        raise ValueError("It is broken.")

    monkeypatch.setattr(registry.actions["add_tags@1"].__class__, "perform", failing)
    rule = listening(world, "Tag", TAG, imports="once")
    tickets = bring(world, "old-system", "A", "B")
    assert set(tries) == {tickets[0].pk}
    assert [run.record for run in world.runs(rule) if run.state != "suppressed"] == [tickets[0].pk]
    assert world.states(rule)[1:] == ["suppressed import_skipped"]
    with world.acting():
        assert ServedBatch.objects.count() == 1


def test_a_test_of_a_rule_says_what_it_would_do_for_a_record_that_came_without_rules(world: World) -> None:
    rule = listening(world, "Tag", TAG, imports="once")
    bring(world, "no-rules", "A", rules=False)
    with world.acting():
        event = Event.objects.get(batch="no-rules")
        report = rehearse(definition_of(rule.pk), lambda spec: of_event(event.pk), rule_id=rule.pk)
    assert report.result == "would_run"
    assert "It came by an import that no rule runs for, which the test leaves out of account." in report.remarks


def test_who_imports_nothing_pays_nothing_for_it(world: World) -> None:
    listening(world, "Tag", TAG, imports="once")

    def asked(make: Callable[[], object]) -> int:
        with CaptureQueriesContext(connection) as seen:
            make()
        return sum("servedbatch" in one["sql"] for one in seen)

    assert asked(lambda: [world.ticket() for _ in range(5)]) == 0
    assert asked(lambda: bring(world, "old-system", *map(str, range(50)))) == 2  # one question, one claim


def test_why_it_did_not_run_is_told_of_imported_records_too(world: World) -> None:
    skipping = listening(world, "Skip", TAG, imports="skip")
    once = listening(world, "Once", TAG, imports="once")
    [_first, ticket] = bring(world, "old-system", "A", "B")
    [quiet] = bring(world, "no-rules", "C", rules=False)

    def why(rule: Rule, record: Ticket) -> tuple[str, str, str, bool]:
        with world.acting():
            [answer] = explain(rule.pk, model="helpdesk.ticket", record=record.pk).answers[:1]
        return answer.gate, answer.reason, answer.sentence, answer.agrees

    number = world.runs(once)[0].pk
    assert why(skipping, ticket) == (
        "guard", "import_skipped", "The change came by an import, and the rule skips imports.", True,
    )  # fmt: skip
    assert why(once, ticket) == (
        "guard", "import_skipped",
        f"The rule runs once for each import: for “old-system” that was run {number}.", True,
    )  # fmt: skip
    assert why(once, quiet) == (
        "quiet", "import_skipped",
        "The change came by the import “no-rules”, which said that no rule runs for it.", True,
    )  # fmt: skip


@pytest.mark.case("F05")
def test_an_import_that_really_changes_few_records_starts_few_runs(world: World) -> None:
    world.connection()
    rule = world.rule("Tell", TELL, trigger=when(model="crm.lead"), condition=leaf("status", "changed"))
    with world.acting():
        Lead.objects.bulk_create([Lead(tenant=world.tenant, name=f"Lead {number}") for number in range(1000)])
        world.commit()
    world.run()
    with world.acting(), importing("old-system"):
        # The file says what most of them are already.
        ids = list(Lead.objects.order_by("id").values_list("pk", flat=True))
        Lead.objects.filter(pk__in=ids[100:]).update(status="new")
        Lead.objects.filter(pk__in=ids[:100]).update(status="contacted")
        world.commit()
    world.run()
    assert world.states(rule) == ["succeeded"] * 100
    assert len(world.calls()) == 100
