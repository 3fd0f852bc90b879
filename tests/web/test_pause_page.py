"""A tenant is paused in two presses, every page says so, and resuming does what was kept."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from operating import lease, make_event, make_live_run, make_rule, make_step, make_timer

from automation.engine.operate import pause
from automation.models import Drip, Pause


@pytest.fixture
def rule(acme):
    return make_rule(acme.tenant)


def test_the_form_says_beforehand_how_many_runs_are_concerned(people, rule, text_of):
    for _n in range(2):
        make_live_run(rule, state="waiting")
    text = text_of(people["publisher"], people.page("pause/"))
    assert "2 runs that run or wait go on" in text
    assert "2 runs are held" in text


def test_a_pause_without_level_or_reason_is_refused_and_keeps_what_was_typed(people):
    answer = people["publisher"].post(people.page("pause/"), {"reason": "", "until": "2001-01-01T10:00"})
    text = answer.content.decode()
    assert answer.status_code == 422
    assert {"level", "reason", "until"} <= set(answer.context["errors"])
    assert 'value="2001-01-01T10:00"' in text
    assert not Pause.objects.exists()


def test_the_pause_ends_by_itself_at_a_time_in_the_tenants_zone(people):
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "deploy", "until": "2077-07-01T12:00"})
    assert Pause.objects.get().until.isoformat() == "2077-07-01T10:00:00+00:00"


def test_every_page_says_that_it_is_paused_why_and_by_whom(people, rule, text_of):
    run = make_live_run(rule, state="waiting")
    make_event(rule.tenant, matched_at=None)
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "duplicate mails"})
    for path in ("rules/", f"rules/{rule.pk}/", "runs/", f"runs/{run.pk}/", "dead-letters/", "notices/", "pause/"):
        text = " ".join(text_of(people["viewer"], people.page(path)).split())
        assert "Automations are paused" in text, path
        assert "by Publisher Person" in text, path
        assert "duplicate mails" in text, path
        assert "New events are kept: 1." in text, path


def test_it_says_paused_only_when_no_step_runs(people, rule, text_of):
    run = make_live_run(rule)
    timer = make_timer(make_step(run, path="again"))
    lease(timer)
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "look"})
    text = text_of(people["publisher"], people.page("pause/"))
    assert "Pausing" in text
    assert "1 step is still being finished" in text
    assert "Paused. No step is running" not in text
    assert "Check again" in text


def test_workers_that_do_not_confirm_within_a_minute_are_named(people, rule, text_of):
    lease(make_timer(make_step(make_live_run(rule), path="again")), host="beta", pid=9)
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "look"})
    Pause.objects.update(since=timezone.now() - timedelta(minutes=2))
    text = text_of(people["publisher"], people.page("pause/"))
    assert "Not confirmed" in text
    assert "beta:9" in text


def test_pausing_twice_keeps_one_pause_and_resuming_twice_says_so(people, text_of):
    asked = {"level": "hold", "reason": "once"}
    for _press in range(2):
        people["publisher"].post(people.page("pause/"), asked)
    assert Pause.objects.filter(ended_at=None).count() == 1
    assert "Paused. No step is running" in text_of(people["publisher"], people.page("pause/"))
    first = people["publisher"].post(people.page("pause/resume/"), follow=True)
    again = people["publisher"].post(people.page("pause/resume/"), follow=True)
    assert "run again" in first.content.decode()
    assert "Nothing is paused" in again.content.decode()
    assert pause.open_pause() is None


def test_a_viewer_sees_that_automations_run_and_no_form(people, text_of):
    text = text_of(people["viewer"], people.page("pause/"))
    assert "The automations run" in text
    assert "<textarea" not in text
    assert 'name="level"' not in text


def test_resuming_at_a_rate_shows_what_is_left_and_lets_the_rate_be_changed(people, rule, text_of):
    for _n in range(3):
        make_live_run(rule, state="waiting")
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "pager"})
    text = " ".join(text_of(people["publisher"], people.page("pause/")).split())
    assert "3 steps are due" in text

    people["publisher"].post(people.page("pause/resume/"), {"keep": "all", "rate": "60"})

    text = " ".join(text_of(people["publisher"], people.page("pause/")).split())
    assert "What was held is going on" in text
    left = people["publisher"].get(people.page("pause/")).context["status"].dripping
    assert (left.steps, left.events, left.drip.rate) == (3, 0, 60)
    people["publisher"].post(people.page("pause/resume/"), {"keep": "all", "rate": "600"})
    assert Drip.objects.get(ended_at=None).rate == 600
    people["publisher"].post(people.page("pause/resume/"), {"keep": "all"})
    assert not Drip.objects.filter(ended_at=None).exists()


def test_only_an_admin_may_drop_what_was_held(people, rule, text_of):
    run = make_live_run(rule, state="waiting")
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "pager"})
    assert "Nothing of it goes on" not in text_of(people["publisher"], people.page("pause/"))
    assert people["publisher"].post(people.page("pause/resume/"), {"keep": "drop"}).status_code == 403

    answer = people["admin"].post(people.page("pause/resume/"), {"keep": "drop"}, follow=True)

    run.refresh_from_db()
    assert run.state == "cancelled"
    assert "What was held was dropped" in answer.content.decode()


def test_a_rate_that_is_no_rate_is_said_and_the_pause_stays(people, rule):
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "pager"})
    answer = people["publisher"].post(people.page("pause/resume/"), {"keep": "all", "rate": "0"})
    assert answer.status_code == 422
    assert "rate" in answer.context["errors"]
    assert pause.open_pause() is not None


def test_a_pause_of_the_installation_shows_on_each_page_and_can_not_be_ended_by_a_tenant(people, rule, text_of):
    pause.pause_installation(reason="restored from a backup")
    for path in ("rules/", "pause/"):
        assert "restored from a backup" in text_of(people["admin"], people.page(path)), path
    text = text_of(people["admin"], people.page("pause/"))
    assert "Those who run the installation resume it" in text
    assert 'name="keep"' not in people["admin"].get(people.page("pause/")).content.decode()


def test_what_is_held_in_detail_is_shown_in_the_tenants_zone(people, rule, text_of):
    at = datetime(2026, 7, 1, 22, 30, 5, tzinfo=UTC)
    make_event(rule.tenant, matched_at=None, created_at=at)
    make_timer(make_step(make_live_run(rule), path="again"), due_at=at)
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "look"})
    detail = text_of(people["viewer"], people.page("pause/")).partition("In detail")[2]
    assert detail.count("00:30:05</time>") == 2
    assert "22:30:05</time>" not in detail


def test_one_event_and_one_step_are_named_as_one(people, rule, text_of):
    make_event(rule.tenant, matched_at=None)
    make_live_run(rule)
    people["publisher"].post(people.page("pause/"), {"level": "hold", "reason": "look"})
    assert "the last hour: 1 event, 1 step" in " ".join(text_of(people["admin"], people.page("pause/")).split())
