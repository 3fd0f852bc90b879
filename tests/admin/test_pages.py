"""Staff look at the engine's rows of every tenant; nothing loads a whole table, and states can't be edited."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from operating import Place, lease, make_dead_run, make_event, make_live_run, make_rule, make_run, make_step, make_timer
from operating import place as new_place

from automation.admin.base import ReadOnlyAdmin
from automation.engine import backtest
from automation.engine.operate import bulk, pause
from automation.models import Connection, DeadLetter, Notice, OwnAddress, Rule, Run, StepExecution
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db
LISTS = [
    "attempt",
    "backtest",
    "bulkjob",
    "connection",
    "deadletter",
    "event",
    "lane",
    "limits",
    "notice",
    "ownaddress",
    "pause",
    "rule",
    "ruleversion",
    "run",
    "stepexecution",
    "timer",
    "worker",
]


@pytest.fixture
def acme() -> Place:
    acme = new_place(name="Acme Retail")
    with acting_for(acme.tenant.pk, acme.actor):
        rule = make_rule(acme.tenant)
        make_live_run(rule)
        make_dead_run(rule)
        bulk.start("discard")
        backtest.start(rule.pk)
        lease(make_timer(make_step(make_run(rule), state="running")))
        pause.pause(level="new", reason="because")
        Notice(tenant=acme.tenant, kind="dead_letter", subject="x", period="y", title="Failed").save()
        OwnAddress(tenant=acme.tenant, address="desk@acme.example").save()
        Connection(tenant=acme.tenant, name="pager", kind="pager", endpoint="https://pager.example.com").save()
    return acme


@pytest.mark.parametrize("name", LISTS)
def test_every_list_and_every_row_opens(staff: Client, acme: Place, name: str) -> None:
    page = staff.get(f"/admin/automation/{name}/")
    assert page.status_code == 200
    rows = list(page.context["cl"].result_list)
    assert rows
    assert staff.get(f"/admin/automation/{name}/?tenant__id__exact={acme.tenant.pk}").status_code in (200, 302)
    assert staff.get(f"/admin/automation/{name}/?q=1").status_code == 200
    assert staff.get(f"/admin/automation/{name}/?q=abc").status_code == 200
    for row in rows:
        assert staff.get(f"/admin/automation/{name}/{row.pk}/change/").status_code == 200


@pytest.mark.parametrize("name", LISTS)
def test_a_list_asks_for_its_page_and_for_no_more(staff: Client, acme: Place, name: str) -> None:
    staff.get(f"/admin/automation/{name}/")
    with CaptureQueriesContext(connection) as asked:
        staff.get(f"/admin/automation/{name}/")

    statements = [one["sql"] for one in asked if f'FROM "automation_{name}"' in one["sql"]]
    assert statements
    for sql in statements:
        assert "LIMIT" in sql or "COUNT(" not in sql, sql
        assert '"facts"' not in sql
        assert '"definition"' not in sql
        assert '"snapshot"' not in sql
    assert not [one["sql"] for one in asked if "DISTINCT" in one["sql"]]
    assert len(asked) < 12


def test_a_list_is_narrowed_by_tenant_state_and_number(staff: Client, acme: Place) -> None:
    other = new_place()
    with acting_for(other.tenant.pk):
        theirs = make_live_run(make_rule(other.tenant), state="waiting", step="waiting")

    def found(query: str) -> set[int]:
        return {run.pk for run in staff.get(f"/admin/automation/run/?{query}").context["cl"].result_list}

    assert theirs.pk in found("")
    assert found(f"tenant__id__exact={other.tenant.pk}") == {theirs.pk}
    assert found("state=waiting") == {theirs.pk}
    assert found(f"q={theirs.pk}") == {theirs.pk} | found(f"q={theirs.pk}&state=running")
    assert found("tenant__id__exact=abc") == set()
    assert found(f"rule__id__exact={theirs.rule_id}") == {theirs.pk}


def test_events_and_runs_are_found_by_the_batch_of_their_import(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        event = make_event(acme.tenant, batch="Leads & more")
        run = make_run(Rule.objects.get(), event=event)

    def found(name: str, batch: dict[str, str]) -> set[int]:
        return {row.pk for row in staff.get(f"/admin/automation/{name}/", batch).context["cl"].result_list}

    assert found("event", {"batch": "Leads & more"}) == {event.pk}
    assert found("run", {"event__batch": "Leads & more"}) == {run.pk}
    assert found("run", {"event__batch": "Leads"}) == set()
    assert found("event", {"batch": "\x00Leads"}) == set()


def test_counting_stops_at_a_thousand(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        event = make_event(acme.tenant)
        rule = Rule.objects.get()
        version = rule.published
        Run.objects.bulk_create(
            Run(tenant=acme.tenant, rule=rule, rule_version=version, event=event, origin="test", root_event_id=event.pk)
            for _ in range(1100)
        )

    page = staff.get("/admin/automation/run/")

    assert page.context["cl"].result_count == 1000
    assert len(page.context["cl"].result_list) == 50


def test_states_can_not_be_edited(staff: Client, acme: Place) -> None:
    with every_tenant():
        run = Run.objects.filter(state="running").first()
    assert run is not None

    answer = staff.post(f"/admin/automation/run/{run.pk}/change/", {"state": "succeeded"})

    assert answer.status_code == 403
    with every_tenant():
        assert Run.objects.get(pk=run.pk).state == "running"
    read_only = [model for model, page in admin.site._registry.items() if isinstance(page, ReadOnlyAdmin)]
    assert {Run, StepExecution, DeadLetter, Rule} <= set(read_only)


def test_the_page_of_a_run_explains_it(staff: Client, acme: Place) -> None:
    with every_tenant():
        run = Run.objects.get(state="failed")

    page = staff.get(f"/admin/automation/run/{run.pk}/change/").content.decode()

    assert "page: dead exhausted (3)" in page


def test_the_queues_own_tables_are_not_in_the_admin(staff: Client) -> None:
    assert "django_q" not in {model._meta.app_label for model in admin.site._registry}
    assert staff.get("/admin/django_q/schedule/").status_code == 404


class TestActions:
    def act(self, staff: Client, name: str, action: str, *ids: int, reason: str = "") -> Any:
        form = {"action": action, "_selected_action": [str(one) for one in ids]}
        told = {"apply": "yes", "reason": reason} if reason else {}
        return staff.post(f"/admin/automation/{name}/", form | told, follow=True)

    def test_runs_are_cancelled_by_the_verb(self, staff: Client, acme: Place) -> None:
        with every_tenant():
            ended = Run.objects.get(state="failed")
            [free, busy] = Run.objects.filter(state="running").order_by("id")

        page = self.act(staff, "run", "cancel", free.pk, busy.pk, ended.pk, reason="wrong text").content.decode()

        assert "Runs cancelled: 2." in page
        assert "ended already" in page
        with every_tenant():
            assert Run.objects.get(pk=free.pk).state == "cancelled"
            assert Run.objects.get(pk=busy.pk).cancel_requested_at is not None
            entry = AuditEntry.objects.get(verb="cancel", target=f"run:{free.pk}")
        again = self.act(staff, "run", "cancel", free.pk, reason="wrong text").content.decode()
        assert "Done already, so nothing was changed: 1." in again
        assert (entry.actor_name, entry.tenant_id, entry.reason) == ("Rosa Staff", acme.tenant.pk, "wrong text")

    @pytest.mark.parametrize(
        ("name", "action"), [("run", "cancel"), ("deadletter", "discard"), ("rule", "hold"), ("rule", "switch_off")]
    )
    def test_what_ends_or_stops_work_is_asked_why_first(
        self, staff: Client, acme: Place, name: str, action: str
    ) -> None:
        with every_tenant():
            models: dict[str, Any] = {"run": Run, "deadletter": DeadLetter, "rule": Rule}
            row = models[name].objects.order_by("id").last()
            entries = AuditEntry.objects.count()
        assert row is not None

        page = self.act(staff, name, action, row.pk).content.decode()
        assert 'name="reason"' in page
        again = self.act(staff, name, action, row.pk, reason=" ").content.decode()

        assert "This field is required." in again
        with every_tenant():
            assert AuditEntry.objects.exclude(verb="staff.viewed").count() == entries

    def test_a_dead_letter_is_retried_as_new_or_given_up(self, staff: Client, acme: Place) -> None:
        with every_tenant():
            letter = DeadLetter.objects.get()

        self.act(staff, "deadletter", "retry_as_new", letter.pk, reason="it never came")
        page = self.act(staff, "deadletter", "discard", letter.pk, reason="too late")

        with every_tenant():
            assert DeadLetter.objects.get().resolution == "retried_as_new"
            assert AuditEntry.objects.get(verb="retry").reason == "it never came"
        assert page.status_code == 200

    def test_a_rule_is_switched_and_paused(self, staff: Client, acme: Place) -> None:
        with every_tenant():
            rule = Rule.objects.get()

        said = self.act(staff, "rule", "switch_off", rule.pk, reason="it pages at night").content.decode()
        assert "Rules switched off: 1." in said
        with every_tenant():
            assert not Rule.objects.get().on
            assert AuditEntry.objects.get(verb="switch_off").reason == "it pages at night"
        self.act(staff, "rule", "switch_on", rule.pk)
        self.act(staff, "rule", "hold", rule.pk, reason="look first")
        with acting_for(acme.tenant.pk):
            assert Rule.objects.get().on
            held = pause.open_pause(rule.pk)
            assert held is not None
            assert held.reason == "look first"
        self.act(staff, "rule", "go_on", rule.pk)
        with acting_for(acme.tenant.pk):
            assert pause.open_pause(rule.pk) is None

    def test_staff_who_may_only_look_see_no_verbs(self, client: Client, acme: Place) -> None:
        user = User.objects.create_user("viewer", is_staff=True)
        user.user_permissions.add(Permission.objects.get(codename="view_run"))
        client.force_login(user)
        with every_tenant():
            run = Run.objects.filter(state="running").first()
        assert run is not None

        assert 'value="cancel"' not in client.get("/admin/automation/run/").content.decode()
        self.act(client, "run", "cancel", run.pk)

        with every_tenant():
            assert Run.objects.get(pk=run.pk).state == "running"
