"""A database that was restored from a backup begins paused, and its people decide what becomes of what is held."""

import pytest

from automation.engine.operate import pause
from automation.engine.restored import pause_if_restored
from automation.models import Installation, Pause
from tests.factories import TenantFactory

pytestmark = pytest.mark.django_db


def test_workers_that_find_the_database_where_it_was_stop_nothing() -> None:
    assert not pause_if_restored()
    assert not pause_if_restored()
    assert not Pause.objects.exists()


def test_workers_that_find_it_elsewhere_pause_the_whole_installation_once() -> None:
    tenant = TenantFactory()
    pause_if_restored()
    Installation.objects.update(place="another server/1")

    assert pause_if_restored()
    assert not pause_if_restored()

    tenant.lane.refresh_from_db()
    assert tenant.lane.paused
    found = Pause.objects.get()
    assert (found.scope, found.level, found.actor) == ("installation", "hold", "")
    assert "restored" in found.reason
    pause.resume_installation()
    tenant.lane.refresh_from_db()
    assert not tenant.lane.paused
    assert not pause_if_restored()


def test_a_pause_that_staff_made_before_the_workers_start_stands() -> None:
    pause_if_restored()
    pause.pause_installation(reason="restoring now")
    Installation.objects.update(place="another server/1")

    assert pause_if_restored()

    assert Pause.objects.get().reason == "restoring now"
