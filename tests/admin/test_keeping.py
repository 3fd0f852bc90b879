"""Staff keep connections, shares and limits; secrets are written only, and nobody's change is lost."""

from typing import Any

import pytest
from django.test import Client
from factories import GroupFactory, MembershipFactory
from operating import DEFINITION, Place, make_rule
from operating import place as new_place

from automation.engine import rules
from automation.models import Connection, Lane, Limits, Notice, Rule
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry, Group, Membership

pytestmark = pytest.mark.django_db
SECRET = "R0uting-key-that-nobody-may-see"


@pytest.fixture
def acme() -> Place:
    return new_place(name="Acme Retail")


def typed(acme: Place, **more: Any) -> dict[str, Any]:
    return {
        "tenant": acme.tenant.pk,
        "name": "pager",
        "kind": "pager",
        "endpoint": "https://events.pager.example.com/v2/enqueue",
        "settings": "{}",
        "secret": SECRET,
        "revision": "",
        **more,
    }


def add(staff: Client, acme: Place, **more: Any) -> Connection:
    staff.post("/admin/automation/connection/add/", typed(acme, **more))
    with every_tenant():
        return Connection.objects.get(tenant=acme.tenant)


def page_of(staff: Client, row: Connection) -> str:
    return staff.get(f"/admin/automation/connection/{row.pk}/change/").content.decode()


def change(staff: Client, row: Connection, **more: Any) -> str:
    values = {"endpoint": row.endpoint, "settings": "{}", "secret": "", "revision": row.revision, **more}
    return staff.post(f"/admin/automation/connection/{row.pk}/change/", values).content.decode()


class TestConnections:
    def test_the_form_begins_its_words_alike_and_explains_what_is_not_plain(self, staff: Client) -> None:
        fields = staff.get("/admin/automation/connection/add/").context["adminform"].form.fields
        assert all(str(one.label)[0].isupper() for one in fields.values() if one.label)
        assert all(fields[name].help_text for name in ("settings", "allowed_hosts", "concurrency", "secret"))

    def test_a_secret_is_encrypted_and_never_shown_again(self, staff: Client, acme: Place) -> None:
        version = acme.lane.rules_version

        row = add(staff, acme)

        assert row.secret() == SECRET
        assert SECRET.encode() not in bytes(row.secret_encrypted)
        assert acme.lane.rules_version == version + 1
        assert SECRET not in page_of(staff, row)
        assert SECRET not in staff.get("/admin/automation/connection/").content.decode()
        with every_tenant():
            entries = list(AuditEntry.objects.filter(target__startswith="connection:"))
        assert entries
        assert SECRET not in str([(one.before, one.after) for one in entries])

    def test_a_form_that_comes_back_with_an_error_does_not_show_the_secret(self, staff: Client, acme: Place) -> None:
        page = staff.post(
            "/admin/automation/connection/add/", typed(acme, endpoint="https://10.0.0.1/")
        ).content.decode()

        assert "errorlist" in page
        assert SECRET not in page

    def test_an_empty_secret_keeps_the_present_one_and_a_tick_removes_it(self, staff: Client, acme: Place) -> None:
        row = add(staff, acme)
        change(staff, row, endpoint="https://other.example.com/")
        with every_tenant():
            row.refresh_from_db()
        assert (row.secret(), row.endpoint, row.revision) == (SECRET, "https://other.example.com/", 1)

        change(staff, row, remove_secret="on")

        with every_tenant():
            row.refresh_from_db()
        assert row.secret() == ""

    @pytest.mark.parametrize(
        "endpoint",
        [
            "http://events.example.com/",
            "https://127.0.0.1/",
            "https://10.1.2.3/",
            "https://169.254.169.254/",
            "ftp://x/",
            "nonsense",
        ],
    )
    def test_an_endpoint_that_may_not_be_called_is_refused(self, staff: Client, acme: Place, endpoint: str) -> None:
        page = staff.post("/admin/automation/connection/add/", typed(acme, endpoint=endpoint)).content.decode()

        assert "errorlist" in page
        with every_tenant():
            assert not Connection.objects.exists()

    def test_a_change_on_an_older_revision_is_refused_and_says_what_changed(self, staff: Client, acme: Place) -> None:
        row = add(staff, acme)
        change(staff, row, endpoint="https://first.example.com/")

        page = change(staff, row, endpoint="https://second.example.com/")

        assert "It is now: endpoint: https://first.example.com/" in page
        with every_tenant():
            row.refresh_from_db()
        assert row.endpoint == "https://first.example.com/"

    def test_name_and_kind_are_chosen_once(self, staff: Client, acme: Place) -> None:
        row = add(staff, acme)

        change(staff, row, name="other", kind="sms")

        with every_tenant():
            row.refresh_from_db()
        assert (row.name, row.kind) == ("pager", "pager")

    @pytest.mark.parametrize("settings", ["[]", "{", "3"])
    def test_settings_are_an_object(self, staff: Client, acme: Place, settings: str) -> None:
        page = staff.post("/admin/automation/connection/add/", typed(acme, settings=settings)).content.decode()

        assert "errorlist" in page

    @pytest.mark.case("X01")
    def test_deleting_one_lists_the_rules_that_use_it_and_switches_them_off(self, staff: Client, acme: Place) -> None:
        row = add(staff, acme)
        step = {
            "id": "page",
            "kind": "action",
            "action": "page_on_call",
            "version": 1,
            "params": {"connection": "pager", "summary": "Urgent"},
        }
        with acting_for(acme.tenant.pk):
            rule = make_rule(acme.tenant, name="Page the lead", definition={**DEFINITION, "steps": [step]})
            harmless = make_rule(acme.tenant, name="Harmless", position=2)

        asked = staff.get(f"/admin/automation/connection/{row.pk}/delete/").content.decode()
        assert "The rule “Page the lead” uses it and will be switched off." in asked
        assert "Harmless" not in asked

        staff.post(f"/admin/automation/connection/{row.pk}/delete/", {"post": "yes"})

        with acting_for(acme.tenant.pk):
            assert not Connection.objects.exists()
            assert (rules.find(rule.pk).on, rules.find(harmless.pk).on) == (False, True)


class TestReferences:
    def assigning(self, acme: Place, **params: Any) -> Rule:
        step = {"id": "give", "kind": "action", "action": "assign", "version": 1, "params": params}
        with acting_for(acme.tenant.pk):
            return make_rule(acme.tenant, name="Give it away", definition={**DEFINITION, "steps": [step]})

    @pytest.mark.case("X01")
    def test_deleting_a_group_lists_the_rules_that_use_it_and_switches_them_off(
        self, staff: Client, acme: Place
    ) -> None:
        with acting_for(acme.tenant.pk):
            group = GroupFactory(tenant=acme.tenant, name="Support")
        rule = self.assigning(acme, to="group", group="Support")
        address = f"/admin/tenants/group/{group.pk}/delete/"

        assert "“Give it away” uses it" in staff.get(address).content.decode()
        staff.post(address, {"post": "yes"})

        with acting_for(acme.tenant.pk):
            assert not Group.objects.exists()
            assert not rules.find(rule.pk).on

    @pytest.mark.case("P04")
    def test_a_rule_that_names_somebody_who_left_is_switched_off(self, staff: Client, acme: Place) -> None:
        with acting_for(acme.tenant.pk):
            member = MembershipFactory(tenant=acme.tenant, role="agent")
        rule = self.assigning(acme, to="person", person=member.pk)

        staff.post(
            f"/admin/tenants/membership/{member.pk}/change/",
            {"tenant": acme.tenant.pk, "user": member.user_id, "role": "agent", "language": ""},
        )

        with acting_for(acme.tenant.pk):
            assert not Membership.objects.get(pk=member.pk).is_active
            assert not rules.find(rule.pk).on

    @pytest.mark.case("P04")
    def test_when_a_rules_owner_leaves_the_admins_are_told_once_and_the_rule_goes_on(
        self, staff: Client, acme: Place
    ) -> None:
        with acting_for(acme.tenant.pk):
            owner = MembershipFactory(tenant=acme.tenant, role="editor")
        rule = make_rule(acme.tenant, owner=owner.user)
        form = {"tenant": acme.tenant.pk, "user": owner.user_id, "role": "editor", "language": ""}

        for _time in range(2):
            staff.post(f"/admin/tenants/membership/{owner.pk}/change/", form)

        with acting_for(acme.tenant.pk):
            assert rules.find(rule.pk).on
            (notice,) = Notice.objects.filter(kind="owner_gone")
            assert rule.name in notice.title
            assert notice.cases == 1
            assert notice.recipients == [acme.admin.user.email]


class TestShares:
    def test_a_share_is_changed_and_nothing_else_of_the_lane(self, staff: Client, acme: Place) -> None:
        Lane.objects.filter(tenant=acme.tenant).update(running=2, due_hint=True)

        staff.post(
            f"/admin/automation/lane/{acme.lane.pk}/change/",
            {"pool": "whale", "max_running": "8", "weight": "200", "running": "0", "paused": "on"},
        )

        lane = acme.lane
        assert (lane.pool, lane.max_running, lane.weight, lane.running, lane.paused) == ("whale", 8, 200, 2, False)
        with every_tenant():
            entry = AuditEntry.objects.get(verb="lane.changed")
        assert (entry.tenant_id, entry.after) == (acme.tenant.pk, {"pool": "whale", "max_running": 8, "weight": 200})

    def test_a_lane_that_may_claim_again_joins_the_line(self, staff: Client, acme: Place) -> None:
        other = new_place()
        Lane.objects.filter(tenant=other.tenant).update(stride_pass=900_000, due_hint=True)
        Lane.objects.filter(tenant=acme.tenant).update(max_running=0)

        staff.post(
            f"/admin/automation/lane/{acme.lane.pk}/change/", {"pool": "northwind", "max_running": "4", "weight": "100"}
        )

        assert acme.lane.stride_pass == 900_000

    @pytest.mark.parametrize(("cap", "weight"), [("-1", "100"), ("4", "0"), ("4", "100001"), ("x", "100")])
    def test_a_share_that_makes_no_sense_is_refused(self, staff: Client, acme: Place, cap: str, weight: str) -> None:
        page = staff.post(
            f"/admin/automation/lane/{acme.lane.pk}/change/",
            {"pool": "northwind", "max_running": cap, "weight": weight},
        )

        assert "errorlist" in page.content.decode()

    def test_limits_reach_the_workers_and_an_older_form_is_refused(self, staff: Client, acme: Place) -> None:
        row = Limits.objects.get(tenant=acme.tenant)
        version = acme.lane.rules_version
        values = {"events_kept": 1000, "rules": 50, "retention_days": 30, "header_days": 400, "revision": row.revision}

        staff.post(f"/admin/automation/limits/{row.pk}/change/", {**values, "max_depth": 3})
        page = staff.post(f"/admin/automation/limits/{row.pk}/change/", {**values, "max_depth": 9}).content.decode()

        row.refresh_from_db()
        assert (row.max_depth, row.revision, acme.lane.rules_version) == (3, 1, version + 1)
        assert "meanwhile" in page

    def test_runs_can_not_go_before_their_details(self, staff: Client, acme: Place) -> None:
        row = Limits.objects.get(tenant=acme.tenant)
        values = {"events_kept": 1000, "rules": 50, "retention_days": 30, "header_days": 29, "revision": row.revision}
        page = staff.post(f"/admin/automation/limits/{row.pk}/change/", {**values, "max_depth": 5}).content.decode()
        assert "at least as long as their details" in page

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("max_depth", 11, "less than or equal to 10"),
            ("max_depth", -1, "greater than or equal to 1"),
            ("events_kept", -1, "greater than or equal to 0"),
            ("rules", -1, "greater than or equal to 0"),
            ("retention_days", 0, "greater than or equal to 1"),
            ("header_days", 10**9, "less than or equal to 36500"),
        ],
    )
    def test_limits_that_make_no_sense_are_refused_beside_their_field(
        self, staff: Client, acme: Place, name: str, value: int, said: str
    ) -> None:
        row = Limits.objects.get(tenant=acme.tenant)
        values = {
            "events_kept": 1000,
            "rules": 50,
            "retention_days": 30,
            "header_days": 400,
            "revision": row.revision,
            "max_depth": 5,
            name: value,
        }

        page = staff.post(f"/admin/automation/limits/{row.pk}/change/", values)
        assert said in str(page.context["adminform"].form.errors[name])
