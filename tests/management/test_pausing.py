"""The commands that pause and resume say what they did, and in one line what they can't do."""

import json
from collections.abc import Iterator

import pytest
from commands import told
from django.core.management import CommandError
from operating import Place, lease, make_event, make_live_run, make_rule, make_step, make_timer
from operating import place as new_place

from automation.engine.operate import pause
from automation.models import Connection, Drip, Pause, Run
from tenants.context import acting_for


@pytest.fixture
def acme(db: None) -> Iterator[Place]:
    acme = new_place(slug="acme")
    with acting_for(acme.tenant.pk, acme.actor):
        yield acme


def test_a_tenant_is_paused_shown_and_resumed_at_a_rate(acme: Place) -> None:
    make_live_run(make_rule(acme.tenant, name="Page the lead"))
    make_event(acme.tenant, matched_at=None)

    said = told("automation_pause", "--tenant", "acme", "--reason", "The pager is broken", "--until", "2h")
    assert "tenant: paused" in said
    assert "(command line)" in said
    shown = json.loads(told("automation_pause", "--tenant", "acme", "--show", "--json"))
    assert (shown["state"], shown["kept_events"], shown["timers_due"]) == ("paused", 1, 1)
    assert shown["held"]["by_rule"][0]["name"] == "Page the lead"
    assert "Page the lead" in told("automation_pause", "--tenant", "acme", "--show")

    said = told("automation_resume", "--tenant", "acme", "--rate", "50/s")
    assert "let out at 3000 a minute: 1 steps and 1 events are left" in said
    assert Drip.objects.get().rate == 3000


def test_waiting_for_workers_that_do_not_confirm_fails_and_names_them(acme: Place) -> None:
    lease(make_timer(make_step(make_live_run(make_rule(acme.tenant)), path="again")), host="beta", pid=9)
    with pytest.raises(CommandError, match="Not every worker"):
        told("automation_pause", "--tenant", "acme", "--reason", "x", "--wait", "0s")
    assert "beta:9" in told("automation_pause", "--tenant", "acme", "--show")


def test_rules_connections_and_the_installation_have_the_same_switch(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    run = make_live_run(rule)
    Connection(tenant=acme.tenant, name="pager", kind="webhook", endpoint="https://example.com").save()

    told("automation_pause", "--tenant", "acme", "--rule", str(rule.pk), "--reason", "x")
    told("automation_pause", "--tenant", "acme", "--connection", "pager", "--reason", "x")
    told("automation_pause", "--installation", "--reason", "x")
    assert set(Pause.objects.filter(ended_at=None).values_list("scope", flat=True)) == {
        *("rule", "connection", "installation")
    }
    part = ["--tenant", "acme", "--rule", str(rule.pk), "--show"]
    assert "held steps: 1" in told("automation_pause", *part)
    assert json.loads(told("automation_pause", *part, "--json"))["held"]["by_rule"][0]["rule"] == rule.pk
    assert "held steps: 0" in told("automation_pause", "--tenant", "acme", "--connection", "pager", "--show")
    assert "acme: 0 events, 1 steps" in told("automation_pause", "--installation", "--show")
    told("automation_resume", "--installation", "--recent", "2h")
    told("automation_resume", "--tenant", "acme", "--connection", "pager")
    told("automation_resume", "--tenant", "acme", "--rule", str(rule.pk), "--drop")
    assert not Pause.objects.filter(ended_at=None).exists()
    assert Run.objects.get(pk=run.pk).state == "cancelled"


@pytest.mark.parametrize(
    ("command", "arguments", "problem"),
    [
        ("automation_pause", ["--tenant", "nobody", "--show"], "no tenant"),
        ("automation_pause", ["--tenant", "acme"], "--reason"),
        ("automation_pause", ["--tenant", "acme", "--reason", "x", "--until", "soon"], "written like"),
        ("automation_pause", ["--tenant", "acme", "--reason", "x", "--until", "2026-13-45T00:00:00Z"], "written like"),
        ("automation_pause", ["--tenant", "acme", "--reason", "x", "--until", "2001-01-01T00:00:00Z"], "past already"),
        ("automation_pause", ["--tenant", "acme", "--rule", "77", "--reason", "x"], "no rule '77'"),
        ("automation_pause", ["--tenant", "acme", "--connection", "c", "--reason", "x"], "no connection"),
        ("automation_pause", ["--installation", "--level", "cancel", "--reason", "x"], "can't be paused"),
        ("automation_resume", ["--tenant", "acme", "--rate", "fast"], "50/s"),
        ("automation_resume", ["--tenant", "acme", "--rate", "0/s"], "between 1 and"),
        ("automation_resume", ["--installation", "--rule", "1"], "--tenant"),
        ("automation_resume", ["--tenant", "acme", "--recent", "0h"], "a minute at least, not '0h'"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(acme: Place, command: str, arguments: list[str], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        told(command, *arguments)
    assert pause.over_tenant() is None


def test_a_resume_is_rehearsed_with_what_would_go_on(acme: Place) -> None:
    rule = make_rule(acme.tenant, name="Page the lead")
    make_live_run(rule)
    make_event(acme.tenant, matched_at=None)
    would = json.loads(told("automation_pause", "--tenant", "acme", "--dry-run", "--json"))
    assert (would["state"], would["would"]) == (
        "running",
        {"live_runs": 1, "in_flight": 0, "unmatched_events": 1, "timers_due": 1},
    )
    for target in (["--installation"], ["--tenant", "acme", "--rule", str(rule.pk)]):
        assert "Would concern: " in told("automation_pause", *target, "--dry-run")
    assert not Pause.objects.exists()
    told("automation_pause", "--tenant", "acme", "--reason", "x")

    for choice, would in (
        ([], {"events": 1, "steps": 1}),
        (["--drop"], {"events": 0, "steps": 0}),
        (["--recent", "2h"], {"events": 1, "steps": 1}),
    ):
        said = json.loads(told("automation_resume", "--tenant", "acme", *choice, "--dry-run", "--json"))
        assert (said["state"], said["would"]) == ("paused", would)
    assert "Would go on: 1 events, 1 steps. Dry run" in told("automation_resume", "--tenant", "acme", "--dry-run")
    assert pause.over_tenant() is not None


def test_a_tenant_is_closed_in_a_rehearsal_only(acme: Place) -> None:
    said = json.loads(told("automation_close", "--tenant", "acme", "--reason", "x", "--dry-run", "--json"))
    assert said["state"] == "closed"
    assert told("automation_close", "--tenant", "acme", "--reason", "x", "--dry-run").startswith("acme is closed. Its")
    acme.tenant.refresh_from_db()
    assert acme.tenant.is_open


def test_programs_read_what_deleting_and_restoring_a_rule_did(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    make_live_run(rule)

    would = json.loads(told("automation_delete", str(rule.pk), "--tenant", "acme", "--dry-run", "--json"))
    assert (would["runs"], "cancelled" in would) == (1, False)
    done = json.loads(told("automation_delete", str(rule.pk), "--tenant", "acme", "--json"))
    assert done["cancelled"] == {"ended": 1, "asked": 0}
    [listed] = json.loads(told("automation_undelete", "--tenant", "acme", "--json"))
    assert listed["rule"] == rule.pk
    back = json.loads(told("automation_undelete", str(rule.pk), "--tenant", "acme", "--json"))
    assert back == {"rule": rule.pk, "restored": True}


def test_whoever_resumes_a_rule_that_is_off_is_told_that_it_goes_on_later(acme: Place) -> None:
    rule = make_rule(acme.tenant, on=False)
    pause.pause_rule(rule.pk, "x")
    assert "when it is switched on" in told("automation_resume", "--tenant", "acme", "--rule", str(rule.pk))
