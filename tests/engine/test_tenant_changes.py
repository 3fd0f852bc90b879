"""A tenant that is renamed, moved to another zone, closed or opened again: the workers learn of it at once."""

import pytest

from automation.engine import ruleset
from automation.engine.operate import pause
from automation.models import Lane
from automation.store import clock
from tests.engine.crew import Crew
from tests.engine.world import World, step
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db


def test_workers_know_a_tenants_new_zone_and_name_at_their_next_claim(world: World) -> None:
    lane = Lane.objects.get(tenant=world.tenant)
    with world.acting():
        assert ruleset.of_tenant(world.tenant.pk, lane.rules_version).zone.key == world.tenant.time_zone
        world.tenant.time_zone, world.tenant.name = "Asia/Tokyo", "Acme Japan"
        world.tenant.save()
        lane.refresh_from_db()
        found = ruleset.of_tenant(world.tenant.pk, lane.rules_version)
    assert (found.zone.key, found.name) == ("Asia/Tokyo", "Acme Japan")


def test_a_closed_tenant_stops_at_once_and_goes_on_when_it_is_opened_again(world: World, crew: Crew) -> None:
    rule = world.rule("Tell", step("hook", "call_webhook", connection="hook"))
    ticket = TicketFactory(tenant=world.tenant)
    crew.work()
    world.change(ticket, run=False, priority="urgent")

    world.tenant.closed_at = clock.now()
    world.tenant.save()
    crew.work()
    pause.resume()
    crew.work()
    assert world.runs(rule) == []

    world.tenant.closed_at = None
    world.tenant.save()
    crew.work()
    assert world.states(rule) == ["succeeded"]


@pytest.mark.parametrize(("level", "paused"), [("new", False), ("hold", True)])
def test_a_pause_outlives_the_closing_and_opening_of_its_tenant(world: World, level: str, paused: bool) -> None:
    with world.acting():
        pause.pause(level=level, reason="migration")
        for closed_at in (clock.now(), None):
            world.tenant.closed_at = closed_at
            world.tenant.save()
        lane = Lane.objects.get(tenant=world.tenant)
        assert (lane.hold_new, lane.paused) == (True, paused)
        pause.resume()
        lane.refresh_from_db()
        assert (lane.hold_new, lane.paused) == (False, False)
