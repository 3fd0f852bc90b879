"""Runs are found by filters and paged, a trace explains one, and what failed for good is retried or given up."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from factories import TicketFactory, UserFactory
from operating import (
    DEFINITION,
    make_dead_run,
    make_event,
    make_live_run,
    make_rule,
    make_run,
    make_step,
)

from automation.engine import rules as engine_rules
from automation.engine.retention.rounds import round_of
from automation.models import DeadLetter, Notice, Run
from automation.store import clock
from automation.web.cursor import PAGE
from tenants.context import acting_for
from tenants.models import AuditEntry

BIG = 99999999999999999999999


@pytest.fixture
def rule(acme):
    return make_rule(acme.tenant)


def shown(answer) -> list[int]:
    return [line.run.pk for line in answer.context["lines"]]


def test_runs_are_found_by_rule_state_reason_record_and_time(people, acme, rule):
    other = make_rule(acme.tenant, name="Other", position=2)
    done = make_run(rule, state="succeeded")
    failed = make_run(other, state="failed", reason="exhausted", event=make_event(acme.tenant, record=77))
    old = make_run(rule, state="succeeded")
    Run.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=3))
    for query, expected in {
        "": [failed.pk, done.pk],
        f"rule={rule.pk}": [done.pk],
        "state=failed": [failed.pk],
        "reason=exhausted": [failed.pk],
        "record=77": [failed.pk],
        "record=ticket+77": [failed.pk],
        "record=helpdesk.ticket:77": [failed.pk],
        "record=lead+77": [],
        "time=7d": [old.pk, failed.pk, done.pk],
        "time=all": [old.pk, failed.pk, done.pk],
        "state=nonsense": [],
        "reason=nonsense": [],
        f"rule={BIG}": [],
        "rule=abc": [],
        "time=nonsense": [failed.pk, done.pk],
    }.items():
        answer = people["viewer"].get(people.page(f"runs/?{query}"))
        assert answer.status_code == 200, query
        assert sorted(shown(answer)) == sorted(expected), query


def test_a_record_that_cannot_be_read_is_said_beside_the_field(people, rule):
    make_run(rule)
    answer = people["viewer"].get(people.page("runs/?record=the+printer"))
    text = answer.content.decode()
    assert answer.status_code == 422
    assert shown(answer) == []
    assert 'value="the printer"' in text
    assert text.count("Write a record by its number") == 2


def test_the_counts_above_the_list_leave_the_filter_by_state_out(people, rule):
    for state in ("succeeded", "succeeded", "failed", "waiting"):
        make_run(rule, state=state)
    tally = people["viewer"].get(people.page("runs/?state=failed")).context["tally"]
    assert {name: number for name, _word, number in tally["words"]} == {"done": 2, "failed": 1, "waiting": 1}


def test_pages_go_back_and_forth_and_nothing_is_skipped_when_runs_come_in(people, rule, acme):
    event = make_event(acme.tenant)
    ids = [make_run(rule, state="succeeded", event=event, origin="manual").pk for _n in range(PAGE + 5)]
    first = people["viewer"].get(people.page("runs/"))
    assert shown(first) == ids[:4:-1]
    make_run(rule, state="succeeded")
    second = people["viewer"].get(people.page(f"runs/?before={first.context['page'].older}"))
    assert shown(second) == ids[4::-1]
    assert second.context["page"].older is None
    back = people["viewer"].get(people.page(f"runs/?after={second.context['page'].newer}"))
    assert shown(back) == ids[:4:-1]


def test_the_list_asks_the_database_equally_often_however_many_runs_there_are(people, rule, acme):
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            people["viewer"].get(people.page("runs/"))
        return len(asked)

    make_run(rule, event=make_event(acme.tenant, record=TicketFactory(tenant=acme.tenant).pk))
    queries()
    few = queries()
    for _n in range(20):
        make_run(rule, event=make_event(acme.tenant, record=TicketFactory(tenant=acme.tenant).pk))
    assert queries() == few
    assert few <= 16


def test_the_trace_begins_with_the_answer_and_explains_every_part(people, rule, text_of):
    letter = make_dead_run(rule)
    text = text_of(people["viewer"], people.page(f"runs/{letter.run_id}/"))
    assert "failed after 3 attempts: 503 from the pager" in text
    assert "priority becomes urgent" in text
    assert "normal → urgent" in text
    assert "a" * 64 in text  # the key under which the receiver knows it
    assert text.count("POST /page") == 3
    assert "Ana Admin (person)" in text
    assert "Retry" not in text  # a viewer looks, and does nothing


@pytest.mark.parametrize(
    ("state", "reason", "says"),
    [
        ("succeeded", "", "There was nothing to do"),
        ("suppressed", "loop_same_rule", "Stopped by loop protection"),
        ("suppressed", "already_waiting", "A run of this rule waits already"),
        ("cancelled", "superseded", "Replaced by a newer run"),
        ("pending", "paused", "Held"),
    ],
)
def test_every_end_is_told_in_words(people, rule, text_of, state, reason, says):
    run = make_run(rule, state=state, reason=reason)
    assert says in text_of(people["viewer"], people.page(f"runs/{run.pk}/"))


def test_steps_in_a_branch_are_numbered_inside_it(people, acme):
    note = {"kind": "action", "action": "add_note", "version": 1, "params": {"text": "x"}}
    arm = {"id": "b_1", "if": DEFINITION["condition"] | {"id": "c_2"}, "steps": [{"id": "in", **note}]}
    steps = [
        {"id": "split", "kind": "branch", "arms": [arm], "otherwise": [{"id": "out", **note}]},
        {"id": "last", **note},
    ]
    run = make_run(make_rule(acme.tenant, definition={**DEFINITION, "steps": steps}), state="succeeded")
    make_step(run, path="split", kind="branch", action="", state="succeeded", output={"taken": "b_1"})
    make_step(run, path="in", state="succeeded")
    answer = people["viewer"].get(people.page(f"runs/{run.pk}/"))
    found = [(one.number, one.step.id, one.arm) for one in answer.context["steps"]]
    assert found == [("1", "split", ""), ("1.1", "in", "b_1"), ("1.2", "out", "otherwise"), ("2", "last", "")]


def test_a_waiting_run_is_cancelled_with_a_reason_which_its_page_then_tells(people, rule, text_of):
    run = make_live_run(rule, state="waiting", step="waiting", kind="delay")
    page = people.page(f"runs/{run.pk}/")
    people["publisher"].post(f"{page}cancel/", {"reason": "customer called"})
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert "Publisher Person cancelled it: customer called" in text_of(people["viewer"], page)
    again = people["publisher"].post(f"{page}cancel/", follow=True)
    assert again.status_code == 200


def test_the_trace_of_a_deleted_rule_stays(people, rule, text_of):
    run = make_run(rule, state="succeeded")
    engine_rules.delete(rule.pk)
    assert "(deleted)" in " ".join(text_of(people["viewer"], people.page(f"runs/{run.pk}/")).split())


def test_a_character_that_no_database_keeps_is_left_out_of_a_reason(people, rule):
    run = make_live_run(rule, state="waiting")
    people["publisher"].post(people.page(f"runs/{run.pk}/cancel/"), {"reason": "a\x00b"})
    assert AuditEntry.objects.get(verb="cancel").reason == "ab"


def test_a_run_that_is_over_refuses_to_be_cancelled_and_says_so(people, rule):
    run = make_run(rule, state="succeeded")
    answer = people["publisher"].post(people.page(f"runs/{run.pk}/cancel/"), follow=True)
    assert "has ended already" in answer.content.decode()


def test_a_dead_letter_is_listed_with_its_cause_and_counted_in_the_bar(people, rule, text_of):
    make_dead_run(rule)
    text = text_of(people["viewer"], people.page("dead-letters/"))
    assert "Every attempt failed" in text
    assert rule.name in text
    assert '<span class="count">1</span>' in text
    assert "No dead letters" not in text


def test_a_text_that_could_not_be_filled_in_is_said_to_need_the_live_version(people, rule, text_of):
    letter = make_dead_run(rule)
    advice = f"have run {letter.run_id} replayed with the live version"
    assert advice not in text_of(people["publisher"], people.page("dead-letters/"))
    DeadLetter.objects.update(reason="template_error")
    assert advice in text_of(people["publisher"], people.page("dead-letters/"))
    assert advice in text_of(people["publisher"], people.page(f"runs/{letter.run_id}/"))


@pytest.mark.parametrize("verb", ["retry", "discard"])
def test_a_dead_letter_is_resolved_once_whatever_is_pressed_twice(people, rule, verb):
    letter = make_dead_run(rule)
    for _press in range(2):
        answer = people["publisher"].post(
            people.page(f"dead-letters/{letter.pk}/{verb}/"), {"run": letter.run_id}, follow=True
        )
        assert answer.redirect_chain[-1][0] == people.page(f"runs/{letter.run_id}/")
    letter.refresh_from_db()
    assert letter.resolved_at is not None
    assert letter.resolution.startswith({"retry": "retried", "discard": "discarded"}[verb])


def test_giving_up_what_was_retried_is_refused_in_words(people, rule):
    letter = make_dead_run(rule)
    people["publisher"].post(people.page(f"dead-letters/{letter.pk}/retry/"))
    answer = people["publisher"].post(people.page(f"dead-letters/{letter.pk}/discard/"), follow=True)
    assert "This was retried already" in answer.content.decode()


def test_notices_tell_what_was_told_to_whom(people, acme, text_of):
    assert "Nothing to tell" in text_of(people["viewer"], people.page("notices/"))
    about = {"kind": "dead_letter", "subject": "rule:1", "period": "2026-01-01T10"}
    Notice(**about, recipients=["ana@example.com"], title="3 steps wait").save()
    text = text_of(people["viewer"], people.page("notices/"))
    assert "3 steps wait" in text
    assert "ana@example.com" in text
    assert "not sent yet" in text


def test_a_notice_that_was_given_up_says_for_whom_when_and_why(people, acme, text_of):
    notice = Notice(kind="x", subject="x", period="x", recipients=["ana@example.com", "bo@example.com"], title="Stuck")
    notice.mailed, notice.error = {"0": "sent", "1": "refused"}, "550 no such box"
    notice.given_up_at = clock.now() - timedelta(hours=3, minutes=5)
    notice.save()
    staff = Client()
    staff.force_login(UserFactory(is_superuser=True, is_staff=True))
    pages = [text_of(people["viewer"], people.page("notices/")), text_of(staff, "/admin/automation/notice/")]
    for text in pages:
        assert re.search(r"(?i)given up\s+for bo@example.com", text)
        assert "550 no such box" in text
        assert "not sent yet" not in text
    assert re.search(r"3\s+hours ago", pages[0])


@pytest.mark.parametrize(
    "path",
    [
        *("rules/{rule}/", "rules/{rule}/draft/", "rules/{rule}/versions/1/", "runs/{run}/"),
        *(f"rules/{BIG}/", f"runs/{BIG}/"),
    ],
)
def test_another_tenants_rows_answer_like_rows_that_never_were(people, contoso, path):
    with acting_for(contoso.tenant.pk):
        rule = make_rule(contoso.tenant, name="Secret plan")
        run = make_run(rule)
    theirs = people["admin"].get(people.page(path.format(rule=rule.pk, run=run.pk)))
    never = people["admin"].get(people.page(path.format(rule=987654, run=987654)))
    assert (theirs.status_code, never.status_code) == (404, 404)
    token = re.compile(rb'name="csrfmiddlewaretoken" value="\w+"')
    assert token.sub(b"", theirs.content) == token.sub(b"", never.content)


@pytest.mark.case("P01")
def test_a_filter_by_another_tenants_rule_finds_nothing(people, contoso):
    with acting_for(contoso.tenant.pk):
        rule = make_rule(contoso.tenant, name="Secret plan")
        make_run(rule)
    answer = people["admin"].get(people.page(f"runs/?rule={rule.pk}&time=all"))
    assert shown(answer) == []
    assert "Secret plan" not in answer.content.decode()


@pytest.mark.case("P01")
def test_another_tenants_dead_letter_is_neither_shown_nor_retried(people, contoso):
    with acting_for(contoso.tenant.pk):
        letter = make_dead_run(make_rule(contoso.tenant))
    assert people["admin"].post(people.page(f"dead-letters/{letter.pk}/retry/")).status_code == 404
    with acting_for(contoso.tenant.pk):
        assert DeadLetter.objects.get().resolved_at is None


def test_a_run_whose_details_were_removed_says_so(people, acme, rule):
    run = make_run(rule, state="succeeded")
    make_step(run, state="succeeded", input={"text": "Hello"})
    with acting_for(acme.tenant.pk):
        Run.objects.update(ended_at=timezone.now() - timedelta(days=31))
    assert "has been removed" not in people["viewer"].get(people.page(f"runs/{run.pk}/")).content.decode()
    list(round_of(acme.tenant.pk))
    page = people["viewer"].get(people.page(f"runs/{run.pk}/")).content.decode()
    assert "Kept: states and times." in page
    assert "What they were judged on was removed." in page
