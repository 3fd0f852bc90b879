"""Staff pause and resume a tenant from its page."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from operating import Place, lease, make_live_run, make_rule, make_run, make_step, make_timer
from operating import place as new_place

from automation.engine.operate import pause
from automation.models import Pause, Run
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Place:
    acme = new_place(name="Acme Retail")
    with acting_for(acme.tenant.pk):
        make_live_run(make_rule(acme.tenant))
    return acme


def url(acme: Place, page: str) -> str:
    return f"/admin/tenants/tenant/{acme.tenant.pk}/{page}/"


def test_the_page_of_a_tenant_shows_how_its_automation_stands(staff: Client, acme: Place) -> None:
    page = staff.get(url(acme, "change")).content.decode()

    assert "live runs: 1 · steps due: 1" in page
    assert url(acme, "pause") in page
    assert f"/admin/automation/run/?tenant__id__exact={acme.tenant.pk}" in page


def test_pausing_says_what_it_concerns_and_then_does_it(staff: Client, acme: Place) -> None:
    page = staff.get(url(acme, "pause")).content.decode()
    assert "This concerns: live runs 1" in page
    with every_tenant():
        assert not Pause.objects.exists()

    staff.post(url(acme, "pause"), {"level": "hold", "reason": "The pager is broken", "until": ""})

    found = Pause.objects.get()
    assert (found.level, found.reason, found.actor, found.tenant_id) == (
        "hold",
        "The pager is broken",
        "Rosa Staff",
        acme.tenant.pk,
    )
    assert "Paused: no step runs." in staff.get(url(acme, "change")).content.decode()
    with every_tenant():
        entry = AuditEntry.objects.get(verb="pause")
    assert (entry.tenant_id, entry.actor_name, entry.reason) == (acme.tenant.pk, "Rosa Staff", "The pager is broken")


def test_a_step_that_still_runs_is_shown_with_its_worker(staff: Client, acme: Place) -> None:
    with acting_for(acme.tenant.pk):
        run = make_run(Run.objects.get().rule)
        run.refresh_from_db()
        lease(make_timer(make_step(run, state="running")), host="alpha", pid=7)
        pause.pause(reason="")

    page = staff.get(url(acme, "change")).content.decode()

    assert "Pausing: one step still runs." in page
    assert "alpha:7" in page


def test_everything_can_be_cancelled(staff: Client, acme: Place) -> None:
    staff.post(url(acme, "pause"), {"level": "cancel", "reason": "Wrong text"})

    with every_tenant():
        assert Run.objects.get().state == "cancelled"


@pytest.mark.parametrize(
    "typed",
    [
        {"level": "hold", "reason": ""},
        {"level": "everything", "reason": "x"},
        {"level": "hold", "reason": "x", "until": "2001-01-01 00:00"},
        {"level": "hold", "reason": "x", "until": "soon"},
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_is_paused(staff: Client, acme: Place, typed: dict[str, str]) -> None:
    page = staff.post(url(acme, "pause"), typed)

    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    assert not Pause.objects.exists()


def test_resuming_asks_first(staff: Client, acme: Place) -> None:
    staff.post(url(acme, "pause"), {"level": "hold", "reason": "x"})
    page = staff.get(url(acme, "resume")).content.decode()
    assert "runs held: 1 · steps due: 1" in page
    assert Pause.objects.filter(ended_at=None).exists()

    staff.post(url(acme, "resume"))

    assert Pause.objects.get().ended_by == "Rosa Staff"


def test_who_may_not_change_tenants_can_not_pause_them(client: Client, acme: Place) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_tenant"))
    client.force_login(viewer)

    for page in ("pause", "resume"):
        assert client.get(url(acme, page)).status_code == 403
        assert client.post(url(acme, page), {"level": "hold", "reason": "x"}).status_code == 403
    client.force_login(User.objects.create_user("nobody"))
    assert client.post(url(acme, "pause"), {"level": "hold", "reason": "x"}).status_code == 302
    assert not Pause.objects.exists()


def test_a_tenant_that_does_not_exist_is_not_found(staff: Client) -> None:
    assert staff.get("/admin/tenants/tenant/999999/pause/").status_code == 404
    assert staff.get("/admin/tenants/tenant/999999/resume/").status_code == 404


def test_resuming_a_tenant_that_is_not_paused_says_so(staff, acme):
    for send in (staff.get, staff.post):
        page = send(f"/admin/tenants/tenant/{acme.tenant.pk}/resume/", follow=True).content.decode()
        assert "t paused." in page
        assert "run again" not in page


def test_the_page_of_a_tenant_shows_what_a_slug_is(staff, acme):
    assert "“acme” for /t/acme/" in staff.get(f"/admin/tenants/tenant/{acme.tenant.pk}/change/").content.decode()
