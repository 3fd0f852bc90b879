"""Staff see every tenant in the admin, and the tenant's audit says so."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.models import User

from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry, Group, GroupMember, Membership, Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    return Tenant.objects.create(name="Acme Retail", slug="acme")


@pytest.fixture
def contoso() -> Tenant:
    return Tenant.objects.create(name="Contoso", slug="contoso")


def member(tenant: Tenant, name: str) -> Membership:
    with acting_for(tenant.pk):
        return Membership.objects.create(user=User.objects.create(username=name))


def audit(tenant: Tenant | None) -> list[tuple[str, str]]:
    with every_tenant():
        return list(AuditEntry.objects.filter(tenant=tenant).order_by("id").values_list("verb", "target"))


PAGES = ["tenants/tenant", "tenants/membership", "tenants/group", "tenants/auditentry"]


@pytest.mark.parametrize("page", PAGES)
def test_every_list_opens_and_can_be_searched(staff, acme, contoso, page):
    member(acme, "ana")
    assert staff.get(f"/admin/{page}/").status_code == 200
    assert staff.get(f"/admin/{page}/?q=a").status_code == 200


def test_a_list_shows_the_rows_of_every_tenant(staff, acme, contoso):
    member(acme, "ana")
    member(contoso, "cleo")
    page = staff.get("/admin/tenants/membership/").content.decode()
    assert "ana" in page
    assert "cleo" in page


def test_someone_who_is_not_staff_sees_nothing(client, acme):
    client.force_login(User.objects.create(username="ana"))
    assert client.get("/admin/tenants/membership/").status_code == 302
    assert not audit(acme)


def test_a_look_into_a_tenant_is_audited_once_an_hour(staff, acme, contoso):
    ours, theirs = member(acme, "ana"), member(contoso, "cleo")
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with time_machine.travel(now, tick=False) as clock:
        staff.force_login(User.objects.get(username="root"))
        staff.get(f"/admin/tenants/membership/{ours.pk}/change/")
        staff.get(f"/admin/tenants/membership/{ours.pk}/history/")
        staff.get(f"/admin/tenants/membership/?tenant__id__exact={acme.pk}")
        assert audit(acme) == [("staff.viewed", f"tenants.membership:{ours.pk}")]
        staff.get(f"/admin/tenants/membership/{theirs.pk}/change/")
        assert audit(contoso) == [("staff.viewed", f"tenants.membership:{theirs.pk}")]
        clock.shift(timedelta(minutes=61))
        staff.get(f"/admin/tenants/tenant/{acme.pk}/change/")
        assert audit(acme)[1:] == [("staff.viewed", f"tenants.tenant:{acme.pk}")]
    with every_tenant():
        assert {entry.actor_name for entry in AuditEntry.objects.all()} == {"Rosa Staff"}


def test_a_list_of_all_tenants_is_audited_for_the_installation(staff, acme):
    staff.get("/admin/tenants/membership/")
    assert audit(None) == [("staff.viewed", "tenants.membership")]


def test_the_list_of_tenants_alone_is_no_look_into_one(staff, acme):
    staff.get("/admin/")
    staff.get("/admin/tenants/tenant/")
    assert not audit(None)


def test_a_new_member_and_a_change_are_audited_with_the_values(staff, acme):
    user = User.objects.create(username="ana")
    form = {"tenant": acme.pk, "user": user.pk, "role": "agent", "is_active": "on", "language": ""}
    assert staff.post("/admin/tenants/membership/add/", form).status_code == 302
    with every_tenant():
        ana = Membership.objects.get()
    del form["tenant"]
    assert staff.post(f"/admin/tenants/membership/{ana.pk}/change/", form | {"role": "admin"}).status_code == 302
    with every_tenant():
        added, changed = AuditEntry.objects.filter(tenant=acme).order_by("id")
    assert (added.verb, added.target, added.after["user"]) == ("membership.added", f"membership:{ana.pk}", user.pk)
    assert (changed.verb, changed.before, changed.after) == ("membership.changed", {"role": "agent"}, {"role": "admin"})


def test_the_tenant_of_a_row_can_not_be_changed(staff, acme, contoso):
    ana = member(acme, "ana")
    form = {"tenant": contoso.pk, "user": ana.user_id, "role": "admin", "is_active": "on", "language": ""}
    staff.post(f"/admin/tenants/membership/{ana.pk}/change/", form)
    with every_tenant():
        assert Membership.objects.get().tenant == acme


def group_form(tenant: Tenant | str, *people: Membership) -> dict[str, object]:
    rows = {f"links-{n}-member": person.pk for n, person in enumerate(people)}
    return {
        "tenant": tenant.pk if isinstance(tenant, Tenant) else tenant,
        "name": "Support",
        "links-TOTAL_FORMS": len(people),
        "links-INITIAL_FORMS": 0,
        **rows,
    }


def test_a_group_with_its_people_is_made_in_one_go(staff, acme):
    ana, bo = member(acme, "ana"), member(acme, "bo")
    assert staff.post("/admin/tenants/group/add/", group_form(acme, ana, bo)).status_code == 302
    with acting_for(acme.pk):
        assert set(Group.objects.get().members.all()) == {ana, bo}
        assert {link.tenant for link in GroupMember.objects.all()} == {acme}
        (group,) = Group.objects.all()
    assert staff.get(f"/admin/tenants/group/{group.pk}/change/").status_code == 200


def test_a_person_of_another_tenant_in_a_group_is_refused_with_a_message(staff, acme, contoso):
    answer = staff.post("/admin/tenants/group/add/", group_form(acme, member(contoso, "cleo")))
    assert answer.status_code == 200
    assert "of this tenant" in answer.content.decode()
    with every_tenant():
        assert not Group.objects.exists()


def test_a_group_without_a_tenant_is_refused_with_a_message(staff, acme):
    answer = staff.post("/admin/tenants/group/add/", group_form("", member(acme, "ana")))
    assert answer.status_code == 200
    assert "This field is required" in answer.content.decode()


def test_a_name_that_the_tenant_has_already_is_refused_with_a_message(staff, acme, contoso):
    with acting_for(acme.pk):
        Group.objects.create(name="Support")
    assert "already exists" in staff.post("/admin/tenants/group/add/", group_form(acme)).content.decode()
    assert staff.post("/admin/tenants/group/add/", group_form(contoso)).status_code == 302


def test_a_deletion_is_audited(staff, acme):
    ana = member(acme, "ana")
    staff.post(f"/admin/tenants/membership/{ana.pk}/delete/", {"post": "yes"})
    bo = member(acme, "bo")
    chosen = {"action": "delete_selected", "_selected_action": [bo.pk], "post": "yes"}
    staff.post("/admin/tenants/membership/", chosen)
    deleted = [entry for entry in audit(acme) if entry[0] == "membership.deleted"]
    assert deleted == [("membership.deleted", f"membership:{ana.pk}"), ("membership.deleted", f"membership:{bo.pk}")]
    with every_tenant():
        assert not Membership.objects.exists()


def test_the_audit_can_be_read_and_not_changed(staff, acme):
    with acting_for(acme.pk):
        entry = AuditEntry.objects.create(tenant=acme, verb="rule.paused", target="rule:12")
    assert staff.get(f"/admin/tenants/auditentry/{entry.pk}/change/").status_code == 200
    assert staff.post(f"/admin/tenants/auditentry/{entry.pk}/change/", {"verb": "x"}).status_code == 403
    assert staff.get("/admin/tenants/auditentry/add/").status_code == 403
    assert staff.post(f"/admin/tenants/auditentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_tenant_is_never_deleted_here(staff, acme):
    assert staff.post(f"/admin/tenants/tenant/{acme.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_new_tenant_is_audited_in_its_own_audit(staff):
    form = {"name": "Fabrikam", "slug": "fabrikam", "time_zone": "Europe/Berlin", "language": "en"}
    staff.post("/admin/tenants/tenant/add/", form)
    fabrikam = Tenant.objects.get()
    assert audit(fabrikam) == [("tenant.added", f"tenant:{fabrikam.pk}")]
