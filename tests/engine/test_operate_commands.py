"""The operators' commands: what they do, print and refuse."""

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import commands
import pytest
from django.core.management import CommandError, call_command
from operating import Place, make_dead_run, make_live_run, make_rule, make_run
from operating import place as new_place

from automation.engine.operate import bulk, pause
from automation.models import BulkJob, DeadLetter, Rule, Run, StepExecution, Timer
from automation.store import clock
from tenants.context import acting_for
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Iterator[Place]:
    acme = new_place(slug="acme")
    with acting_for(acme.tenant.pk, acme.actor):
        yield acme


@pytest.fixture
def rule(acme: Place) -> Rule:
    return make_rule(acme.tenant)


def told(command: str, *words: Any, tenant: str | None = "acme") -> str:
    return commands.told(f"automation_{command}", *words, *([] if tenant is None else ["--tenant", tenant]))


def answered(command: str, *words: Any) -> Any:
    return json.loads(told(command, *words, "--json"))


def test_a_run_is_paused_resumed_looked_at_and_cancelled(rule: Rule) -> None:
    run = make_live_run(rule)

    assert told("run", "pause", run.pk, "--reason", "look") == f"Run {run.pk}: paused\n"
    assert told("run", "resume", run.pk) == f"Run {run.pk}: pending\n"
    assert "never: tell" in told("run", "show", run.pk)
    assert answered("run", "cancel", run.pk) == {
        "run": run.pk, "state": "cancelled", "reason": "cancelled_by", "ended": 1, "asked": 0, "changed": True,
    }  # fmt: skip
    assert told("run", "cancel", run.pk).endswith("cancelled_by (already so: nothing was changed)\n")
    entry = AuditEntry.objects.get(verb="pause")
    assert (entry.reason, entry.actor_name.endswith("(command line)")) == ("look", True)


def test_a_run_is_replayed_and_a_forgotten_one_woken(rule: Rule) -> None:
    ended = make_run(rule, state="failed")
    new = answered("run", "replay", ended.pk, "--from", "tell")["new_run"]
    assert Run.objects.get(pk=new).forked_from_run_id == ended.pk

    Timer.objects.filter(run_id=new).delete()
    assert f"run {new}" in told("stuck")
    told("run", "wake", new)
    assert told("stuck", tenant=None) == "Nothing is stuck.\n"


def test_a_step_is_completed_and_one_is_skipped(rule: Rule) -> None:
    one, other = make_live_run(rule), make_live_run(rule)
    first, second = (StepExecution.objects.get(run=run) for run in (one, other))

    assert answered("step", "complete", first.pk, "--output", '{"by": "me"}')["run_state"] == "succeeded"
    assert told("step", "skip", second.pk) == f"Step tell: skipped; run {other.pk}: succeeded\n"
    first.refresh_from_db()
    assert first.output == {"by": "me"}


def test_what_waits_is_listed_put_off_and_cancelled(rule: Rule) -> None:
    run = make_live_run(rule, state="waiting", step="waiting", kind="delay")
    [listed] = answered("timer", "list", "--run", run.pk)
    assert (listed["run"], listed["kind"], listed["record"]) == (run.pk, "delay", "helpdesk.ticket:12")
    assert answered("timer", "list", "--record", "helpdesk.ticket:12") == answered("timer", "list")
    assert told("timer", "list", "--record", "helpdesk.ticket:13") == "Nothing waits.\n"
    until = clock.now() + timedelta(hours=2)

    told("timer", "postpone", listed["timer"], "--until", until.isoformat())
    assert Timer.objects.get().due_at == until
    told("timer", "run-now", listed["timer"], "--step", listed["step"])
    assert Timer.objects.get().due_at <= clock.now()
    told("timer", "cancel", listed["timer"])
    assert Run.objects.get().state == "cancelled"


def test_dead_letters_are_listed_by_error_and_retried_by_number(rule: Rule) -> None:
    letters = [make_dead_run(rule) for _ in range(3)]
    assert "3 x exhausted at page of 'Tell the lead'" in told("dead_letters", "--context")
    [group] = answered("dead_letters", "--rule", rule.pk, "--code", "exhausted")
    assert (group["count"], group["newest_id"]) == (3, letters[2].pk)

    retried = ("retry", letters[0].pk, "--reason", "mended")
    assert told(*retried) == f"Dead letter {letters[0].pk}: done\n"
    assert told(*retried) == f"Dead letter {letters[0].pk}: was done already\n"
    assert "done" in told("retry", letters[1].pk, "--discard", "--reason", "too late")
    reasons = AuditEntry.objects.filter(target__startswith="dead_letter:").order_by("id").values_list("verb", "reason")
    assert list(reasons) == [("retry", "mended"), ("discard", "too late")]


def test_a_group_is_named_by_any_of_its_letters_and_worked_off_whole(acme: Place, rule: Rule) -> None:
    letters = [make_dead_run(rule) for _ in range(5)]
    other, elsewhere = make_dead_run(rule), make_dead_run(make_rule(acme.tenant, name="Other"))
    DeadLetter.objects.filter(pk=other.pk).update(error="timed out")

    first = told("dead_letters", "--rule", rule.pk, "--letters", "2")
    assert f"letters {letters[4].pk} {letters[3].pk} and 3 more" in first
    assert f"all of them: automation_retry --group {letters[4].pk}" in first
    assert answered("dead_letters", "--rule", rule.pk)[0]["letter_ids"] == [one.pk for one in reversed(letters)]

    group = ("retry", "--group", letters[0].pk, "--discard", "--rate", "100/s", "--reason", "the fair is over")
    assert told(*group, "--dry-run").endswith(": 5 at 100 a second. See automation_bulk.\n")
    assert not BulkJob.objects.exists()
    job = answered(*group)["job"]
    BulkJob.objects.update(next_at=clock.now() - timedelta(seconds=1))
    bulk.work(late=2)

    left = DeadLetter.objects.filter(resolved_at=None).values_list("pk", flat=True)
    assert set(left) == {other.pk, elsewhere.pk}
    entries = AuditEntry.objects.filter(verb="discard")
    assert {(one.reason, one.after["bulk"]) for one in entries} == {("the fair is over", job)}


def test_an_error_that_no_open_letter_has_is_said_and_starts_no_job(rule: Rule) -> None:
    make_dead_run(rule)
    with pytest.raises(CommandError, match="No open dead letter fits"):
        told("retry", "--all", "--error", "certificate expired")
    assert not BulkJob.objects.exists()


def test_a_rehearsal_says_what_would_be_and_changes_nothing(rule: Rule) -> None:
    letter, run = make_dead_run(rule), make_live_run(rule)
    step = StepExecution.objects.get(run=run)
    entries = AuditEntry.objects.count()

    assert told("retry", letter.pk, "--dry-run") == f"Dead letter {letter.pk}: done\n"
    assert told("step", "skip", step.pk, "--dry-run") == f"Step tell: skipped; run {run.pk}: succeeded\n"
    assert told("run", "cancel", run.pk, "--dry-run") == f"Run {run.pk}: cancelled cancelled_by\n"
    assert told("timer", "cancel", Timer.objects.get().pk, "--dry-run").endswith("cancel\n")

    assert AuditEntry.objects.count() == entries
    assert DeadLetter.objects.get().resolved_at is None
    assert Run.objects.get(pk=run.pk).state == "running"


def test_what_was_done_already_is_said_the_second_time(rule: Rule) -> None:
    run = make_live_run(rule, state="waiting", step="waiting", kind="delay")
    step, timer = StepExecution.objects.get(), Timer.objects.get()

    told("timer", "postpone", timer.pk, "--until", "2h")
    assert told("timer", "run-now", timer.pk) == f"Timer {timer.pk}: run-now\n"
    assert told("timer", "run-now", timer.pk) == f"Timer {timer.pk}: run-now (already so: nothing was changed)\n"
    told("run", "pause", run.pk)
    assert told("run", "pause", run.pk) == f"Run {run.pk}: paused (already so: nothing was changed)\n"
    told("step", "complete", step.pk)
    assert "which somebody has done by hand already" in told("step", "complete", step.pk)
    with pytest.raises(CommandError, match="what it stood for was done or cancelled"):
        told("timer", "run-now", timer.pk)


def test_dead_letters_that_are_refused_are_named_and_stop_no_other(rule: Rule) -> None:
    given_up, letter, out = make_dead_run(rule), make_dead_run(rule), StringIO()
    told("retry", given_up.pk, "--discard")
    with pytest.raises(CommandError, match=r"2 of 3 were refused\."):
        call_command("automation_retry", given_up.pk, 10**9, letter.pk, "--tenant", "acme", stdout=out)
    said = out.getvalue().splitlines()
    assert "given up already" in said[0]
    assert said[1:] == [
        f"Dead letter {10**9}: There is no such dead letter of this tenant.",
        f"Dead letter {letter.pk}: done",
    ]


def test_all_that_fit_are_retried_by_a_job_that_can_be_followed_and_ended(rule: Rule) -> None:
    for _ in range(3):
        make_dead_run(rule)
    job = answered("retry", "--all", "--rule", rule.pk, "--rate", "1/s", "--stop-after", "2")["job"]
    BulkJob.objects.update(next_at=clock.now() - timedelta(seconds=1.5))
    bulk.work(late=2)

    assert told("bulk", "list") == f"Job {job} retry: running, 0 tried, 2 in line, 1 left, 0 refused, 0 failed again\n"
    [would] = answered("bulk", "cancel", job, "--dry-run")
    assert (would["state"], would["taken_back"], answered("bulk", "status", job)[0]["state"]) == (
        "cancelled",
        2,
        "running",
    )
    [ended] = answered("bulk", "cancel", job)
    assert (ended["state"], ended["taken_back"]) == ("cancelled", 2)
    assert answered("bulk", "wait", job)[0]["state"] == "cancelled"
    assert DeadLetter.objects.filter(resolved_at=None).count() == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "cancel", 10**9], "There is no run 1000000000 of this tenant"),
        (["step", "skip", 10**9], "There is no step 1000000000 of this tenant"),
        (["retry", "--group", 10**9], "There is no dead letter 1000000000 of this tenant"),
        (["retry", "--group", 1, "--rule", 1], "leave out --rule"),
        (["retry", 1, "--all"], "Name dead letters, or a --group"),
        (["dead_letters", "--letters", "0"], "0 is less than 1"),
        (["stuck", "--limit", "-1"], "-1 is less than 1"),
        (["stuck", "--minutes", "-5"], "-5 is less than 0"),
        (["stuck", "--minutes", "nan"], "nan is less than 0"),
        (["stuck", "--limit", "many"], "invalid whole number value: 'many'"),
        (["replay", "--last", "-1"], "-1 is less than 1"),
        (["prune", "--pause", "-1"], "-1 is less than 0"),
        (["retry", "--all", "--most", "0"], "0 is less than 1"),
        (["bulk", "status", 10**9], "There is no job 1000000000 of this tenant"),
        (["step", "complete", 1, "--output", "[1]"], "JSON object"),
        (["step", "complete", 1, "--output", "{"], "isn't JSON"),
        (["timer", "postpone", 1, "--until", "tomorrow"], "A moment is written like 2h"),
        (["timer", "postpone", 1], "Say --until when"),
        (["timer", "cancel"], "Name a timer"),
        (["timer", "list", "--record", "ticket"], "helpdesk.ticket:12"),
        (["retry"], "Name dead letters"),
        (["retry", "--all"], "No open dead letter fits"),
        (["bulk", "status"], "Name a job"),
    ],
)
def test_what_is_refused_is_said_in_one_line(acme: Place, words: list[Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        told(*words)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "show", 10**9], 1),
        (["retry", "--all"], 1),
        (["connections", "--switch-on", "pagr"], 1),
        (["bulk", "status"], 2),
        (["bulk", "list", "--dry-run"], 2),
        (["run", "cancel", 1, "--live"], 2),
        (["retry", 1, "--most", 1], 2),
        (["retry", "--all", "--rate", "fast"], 2),
        (["step", "skip", 1, "--output", "{}"], 2),
        (["timer", "list", "--record", "ticket"], 2),
        (["explain", "--rule", "1"], 2),
        (["pause", "--reason", "x", "--wait", "long"], 2),
    ],
)
def test_words_that_make_no_sense_end_with_2_and_what_is_refused_with_1(
    acme: Place, words: list[Any], code: int
) -> None:
    with pytest.raises(CommandError) as error:
        told(*words)
    assert error.value.returncode == code
    assert pause.over_tenant() is None


@pytest.mark.parametrize("number", ["99999999999999999999", "-1", "x"])
@pytest.mark.parametrize(
    "words", [["run", "show"], ["step", "skip"], ["timer", "cancel"], ["bulk", "status"], ["retry"]]
)
def test_what_no_row_can_have_as_its_number_is_refused(acme: Place, words: list[str], number: str) -> None:
    with pytest.raises(CommandError, match="isn't the number of anything"):
        told(*words, number)


def test_a_tenant_that_does_not_exist_is_named(acme: Place) -> None:
    with pytest.raises(CommandError, match="no tenant 'umbrella'"):
        told("stuck", tenant="umbrella")
