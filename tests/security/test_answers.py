"""What other systems answer is no way to read them: a short masked text, for the tenant's admins alone."""

import pytest
from django.test import Client

from automation.catalog.action import Outcome
from tenants.roles import ROLES
from tests.engine.world import World, make_world, step, when
from tests.factories import MembershipFactory, UserFactory


@pytest.fixture
def world(db: None) -> World:
    """A tenant whose webhook answers with something that is nobody's business."""
    return make_world()


@pytest.mark.case("W02")
@pytest.mark.parametrize("role", ROLES)
def test_only_admins_read_what_a_webhook_answered(world: World, role: str) -> None:
    world.connection()
    rule = world.rule("Call", step("c", "call_webhook", connection="hook"), trigger=when("created"))
    world.answer = lambda call: Outcome.done({"status": 200, "answer": "internal: 42"})
    world.ticket()
    (run,) = world.runs(rule)
    user = UserFactory()
    MembershipFactory(tenant=world.tenant, user=user, role=role)
    client = Client()
    client.force_login(user)
    text = client.get(f"/t/{world.tenant.slug}/runs/{run.pk}/").content.decode()
    assert ("internal: 42" in text) is (role == "admin")
    assert "200" in text
