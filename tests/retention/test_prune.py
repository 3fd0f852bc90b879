"""What is too old goes, in batches; what lives, waits for a person or was not judged yet stays."""

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from operating import Place, make_event, make_rule, make_run, make_step, make_timer
from operating import place as new_place

from automation.core.gates import Gate
from automation.engine.explain import explain
from automation.engine.retention import rounds
from automation.engine.trace import trace
from automation.models import (
    Attempt,
    DeadLetter,
    Event,
    Limits,
    Notice,
    Retention,
    Rule,
    RuleVersion,
    Run,
    StepExecution,
    Timer,
)
from automation.store import clock
from tenants.context import acting_for
from tests.retention.aged import age, letter_of, old_event, old_run, prune

pytestmark = pytest.mark.django_db


def limit(acme: Place, **values: int) -> None:
    Limits.objects.filter(tenant=acme.tenant).update(**values)


def test_after_thirty_days_states_and_times_are_left_of_a_run(acme: Place):
    rule = make_rule(acme.tenant)
    run = old_run(rule, 31)
    young = old_run(rule, 29)
    assert prune(acme.tenant) == {"details": 1, "facts": 1}

    run.refresh_from_db()
    step, attempt = run.steps.get(), Attempt.objects.get(step__run=run)
    assert (run.state, step.state, step.attempts, attempt.outcome) == ("succeeded", "succeeded", 1, "ok")
    assert None not in (run.ended_at, step.ended_at, attempt.finished_at)
    assert run.details_removed_at
    assert (step.input, step.output, step.error, attempt.request, attempt.answer) == (None, None, "", "", "")
    event = Event.objects.get(pk=run.event_id)
    assert event.facts == {}
    assert event.details_removed_at
    assert young.steps.get().input
    assert Event.objects.get(pk=young.event_id).facts
    assert prune(acme.tenant) == {}


def test_what_a_branch_has_decided_is_kept(acme: Place):
    run = old_run(make_rule(acme.tenant), 31)
    make_step(run, path="which", kind="branch", action="", state="succeeded", output={"taken": "gold"})
    prune(acme.tenant)
    assert run.steps.get(path="which").output == {"taken": "gold"}


def test_after_four_hundred_days_nothing_of_a_run_is_left(acme: Place):
    rule = make_rule(acme.tenant)
    run = old_run(rule, 401)
    letter_of(run, resolved=True)
    kept = old_run(rule, 399)
    assert prune(acme.tenant) == {"details": 2, "facts": 2, "runs": 1, "events": 1}
    assert list(Run.objects.all()) == [kept]
    assert Event.objects.get().pk == kept.event_id
    assert StepExecution.objects.count() == Attempt.objects.count() == 1
    assert not DeadLetter.objects.exists()


@pytest.mark.case("H02")
@pytest.mark.parametrize("state", ["pending", "running", "waiting", "paused"])
def test_a_run_that_lives_keeps_everything_however_old_it_is(acme: Place, state: str):
    rule = make_rule(acme.tenant)
    run = make_run(rule, state=state, event=old_event(rule, 800))
    step = age(make_step(run, input={"text": "Hello"}, state="waiting"), 800)
    make_timer(step)
    age(run, 800)
    limit(acme, events_kept=0)
    assert prune(acme.tenant) == {}
    step.refresh_from_db()
    assert step.input == {"text": "Hello"}
    assert Event.objects.get(pk=run.event_id).facts
    assert Timer.objects.filter(run_id=run.pk).exists()


def test_a_run_with_an_open_dead_letter_keeps_everything(acme: Place):
    run = old_run(make_rule(acme.tenant), 800, state="failed")
    letter = letter_of(run, resolved=False)
    assert prune(acme.tenant) == {}
    assert run.steps.get().input
    letter.refresh_from_db()
    assert letter.snapshot

    DeadLetter.objects.update(resolved_at=clock.now())
    assert prune(acme.tenant)["runs"] == 1


def test_an_event_keeps_its_facts_as_long_as_one_of_its_runs_keeps_its_details(acme: Place):
    event = make_event(acme.tenant)
    early = old_run(make_rule(acme.tenant, name="Early"), 40, event=event)
    late = old_run(make_rule(acme.tenant, name="Late"), 5, event=event)
    assert prune(acme.tenant) == {"details": 1}
    event.refresh_from_db()
    assert event.facts
    age(late, 31)
    assert prune(acme.tenant) == {"details": 1, "facts": 1}
    age(early, 401)
    assert prune(acme.tenant) == {"runs": 1}
    age(late, 401)
    assert prune(acme.tenant) == {"runs": 1, "events": 1}


def test_an_event_without_a_run_goes_whole_unless_nobody_judged_it(acme: Place):
    rule = make_rule(acme.tenant)
    old_event(rule, 31, record=1)
    young = old_event(rule, 29, record=2)
    waiting = age(make_event(acme.tenant, record=3, matched_at=None), 900)
    assert prune(acme.tenant) == {"events": 1}
    assert set(Event.objects.all()) == {young, waiting}


def test_an_event_that_was_set_aside_stays_until_somebody_has_decided(acme: Place):
    event = old_event(make_rule(acme.tenant), 31)
    letter = DeadLetter(tenant=acme.tenant, event=event, reason="poison")
    letter.save()
    assert prune(acme.tenant) == {}
    DeadLetter.objects.update(resolved_at=clock.now())
    assert prune(acme.tenant) == {"events": 1}
    assert not DeadLetter.objects.exists()


@pytest.mark.case("H02")
def test_the_number_of_events_alone_removes_too(acme: Place):
    rule = make_rule(acme.tenant)
    runs = [old_run(rule, 0, event=make_event(acme.tenant, record=n)) for n in range(4)]
    loose = [make_event(acme.tenant, record=10 + n) for n in range(2)]
    limit(acme, events_kept=3)
    assert prune(acme.tenant) == {"details": 3, "facts": 3}
    assert [bool(Event.objects.get(pk=run.event_id).facts) for run in runs] == [False, False, False, True]
    limit(acme, events_kept=1)
    assert prune(acme.tenant) == {"details": 1, "facts": 1, "events": 1}
    assert Event.objects.filter(pk__in=[one.pk for one in loose]).get() == loose[1]


def test_a_run_goes_after_those_that_were_forked_off_it(acme: Place):
    rule = make_rule(acme.tenant)
    first = old_run(rule, 500)
    fork = old_run(rule, 10, event=first.event, forked_from_run=first)
    assert prune(acme.tenant) == {"details": 1}
    assert Event.objects.get().facts  # the fork still needs them
    age(Run.objects.get(pk=fork.pk), 401)
    assert prune(acme.tenant) == {"details": 1, "facts": 1, "runs": 1}
    assert prune(acme.tenant) == {"runs": 1, "events": 1}
    assert not Run.objects.exists()


def test_a_deleted_rule_goes_when_its_last_run_is_gone(acme: Place):
    rule, kept = make_rule(acme.tenant), make_rule(acme.tenant, name="Another")
    run = old_run(rule, 100)
    Rule.objects.filter(pk=rule.pk).update(deleted_at=clock.now() - timedelta(days=29), on=False)
    age(run, 401)
    assert "rules" not in prune(acme.tenant)
    assert Rule.objects.filter(pk=rule.pk).exists()  # it can be had back for thirty days
    Rule.objects.filter(pk=rule.pk).update(deleted_at=clock.now() - timedelta(days=31))
    assert prune(acme.tenant) == {"rules": 1}
    assert list(Rule.objects.all()) == [kept]
    assert RuleVersion.objects.get().rule == kept
    connection.check_constraints()


def test_notices_go_with_the_headers(acme: Place):
    for days in (401, 399):
        age(Notice.objects.create(tenant=acme.tenant, kind="dead_letter", subject=f"rule:{days}", period="x"), days)
    assert prune(acme.tenant) == {"notices": 1}
    assert Notice.objects.get().subject == "rule:399"


def test_another_tenant_keeps_its_own_terms(acme: Place):
    old_run(make_rule(acme.tenant), 50)
    other = new_place(slug="other")
    with acting_for(other.tenant.pk):
        theirs = old_run(make_rule(other.tenant), 50)
    limit(acme, retention_days=60)
    assert prune(acme.tenant) == {}
    assert prune(other.tenant) == {"details": 1, "facts": 1}
    assert Run.objects.get().details_removed_at is None
    with acting_for(other.tenant.pk):
        assert Run.objects.get(pk=theirs.pk).details_removed_at


@pytest.mark.case("H02")
def test_it_goes_by_pages_whose_statements_do_not_grow(acme: Place, monkeypatch: pytest.MonkeyPatch):
    rule = make_rule(acme.tenant)
    for n in range(12):
        old_run(rule, 60, event=make_event(acme.tenant, record=n))
    monkeypatch.setattr(rounds, "PAGE", 5)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        batches = [batch for batch in rounds.round_of(acme.tenant.pk) if batch.removed]
    assert [batch.removed["details"] for batch in batches] == [5, 5, 2]
    assert max(len(batch.removed) for batch in batches) == 2
    stripped = [one for one in queries if "details_removed_at = automation_now() WHERE id" in one["sql"]]
    assert len(stripped) == 3


def test_a_round_that_was_stopped_is_gone_on_with(acme: Place, monkeypatch: pytest.MonkeyPatch):
    rule = make_rule(acme.tenant)
    for n in range(12):
        old_run(rule, 60, event=make_event(acme.tenant, record=n))
    monkeypatch.setattr(rounds, "PAGE", 5)
    begun = rounds.round_of(acme.tenant.pk)
    next(begun)
    begun.close()
    assert Run.objects.filter(details_removed_at=None).count() == 7
    assert Retention.objects.get().removed == {"details": 5, "facts": 5}
    assert prune(acme.tenant) == {"details": 7, "facts": 7}
    row = Retention.objects.get()
    assert row.finished_at
    assert row.removed == {"details": 7, "facts": 7}


def test_the_next_round_begins_at_the_first_run_that_still_has_its_details(acme: Place):
    rule = make_rule(acme.tenant)
    runs = [old_run(rule, 60), old_run(rule, 60), old_run(rule, 3)]
    letter_of(runs[1], resolved=False)
    prune(acme.tenant)
    assert Retention.objects.get().runs_from == runs[1].pk
    DeadLetter.objects.update(resolved_at=clock.now())
    assert prune(acme.tenant) == {"details": 1, "facts": 1}
    assert Retention.objects.get().runs_from == runs[2].pk


def test_the_command_says_what_it_removed(acme: Place, capsys: pytest.CaptureFixture[str]):
    old_run(make_rule(acme.tenant), 31)
    call_command("automation_prune", "--tenant", "acme", "--json")
    assert json.loads(capsys.readouterr().out) == {"finished": True, "removed": {"acme": {"details": 1, "facts": 1}}}
    call_command("automation_prune")
    assert "acme: nothing to remove" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no tenant 'nobody'"):
        call_command("automation_prune", "--tenant", "nobody")


def test_a_rehearsal_says_what_the_command_would_remove_and_removes_nothing(
    acme: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rounds, "PAGE", 2)
    rule = make_rule(acme.tenant)
    for n in range(5):
        old_run(rule, 31, event=make_event(acme.tenant, record=n))
    old_run(rule, 500, event=make_event(acme.tenant, record=9))
    age(Notice.objects.create(tenant=acme.tenant, kind="dead_letter", subject="rule:1", period="x"), 500)
    before = [Run.objects.filter(details_removed_at=None).count(), Notice.objects.count(), Retention.objects.count()]
    removed = []
    for dry in (["--dry-run"], []):
        call_command("automation_prune", "--tenant", "acme", "--json", *dry)
        removed.append(json.loads(capsys.readouterr().out)["removed"]["acme"])
        if dry:
            assert before == [
                Run.objects.filter(details_removed_at=None).count(),
                Notice.objects.count(),
                Retention.objects.count(),
            ]
    assert removed[0] == removed[1]
    assert removed[0]["notices"] == 1


def test_pages_and_answers_say_that_details_were_removed(acme: Place):
    rule = make_rule(acme.tenant)
    run = old_run(rule, 31)
    shown = trace(run.pk)
    assert shown.condition
    assert not shown.forgotten
    unmatched = old_event(rule, 20, record=99, facts={})
    Event.objects.filter(pk=unmatched.pk).update(details_removed_at=clock.now())
    prune(acme.tenant)
    shown = trace(run.pk)
    assert shown.forgotten
    assert shown.condition is None
    assert shown.steps[0].state == "succeeded"
    (answer,) = explain(rule.pk, model="helpdesk.ticket", record=12).answers
    assert (answer.gate, answer.agrees) == (Gate.RAN, True)
    (answer,) = explain(rule.pk, model="helpdesk.ticket", record=99).answers
    assert (answer.gate, answer.reason, answer.agrees) == (Gate.FORGOTTEN, "", True)
    assert "removed" in answer.sentence
