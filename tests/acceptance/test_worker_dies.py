"""A worker is killed at every point of an outside step; what the receiver and the history show is right all the same."""

import pytest
from acceptance.harness.clusters import Cluster, T, alive
from acceptance.harness.scenario import Site, sms, webhook
from acceptance.harness.waiting import measured, until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance


def doomed(world: World, site: Site, *, fail: str) -> Cluster:
    """A worker with a failpoint in the tenant's pool, and two that stand by in another."""
    world.cluster(2, pool="spare")
    return world.cluster(1, fail=fail)


def die(cluster: Cluster, site: Site) -> None:
    """Waits for the worker's death; its machine is gone too, and the tenant's work goes to those that stood by."""
    (pump,) = cluster.pumps()
    until(lambda: not alive(pump), within=30, about="the worker's death", told=cluster.tail)
    site.move_to("spare")
    cluster.end()


@pytest.mark.fault(1)
def test_a_step_whose_worker_died_before_the_intent_is_done_once(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    (ticket,) = site.tickets(1)
    cluster = doomed(world, site, fail="claim.committed:kill@2")  # the first claim is the matcher's

    site.change(ticket, priority="urgent")
    die(cluster, site)
    assert measured(lambda: site.ended(1), within=30) <= T + 1

    (step,) = site.steps()
    assert (step["deliveries"], step["attempts"], step["effect_state"]) == (2, 1, "confirmed")
    assert len(hook.entries()) == 1
    world.check(reaped=1)


@pytest.mark.fault(2)
def test_a_step_whose_worker_died_after_the_intent_is_sent_once(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    (ticket,) = site.tickets(1)
    cluster = doomed(world, site, fail="intent.committed:kill")

    site.change(ticket, priority="urgent")
    die(cluster, site)
    until(lambda: site.ended(1), within=30, about="the run's end", told=world.tails)

    (step,) = site.steps()
    assert (step["deliveries"], step["effect_state"]) == (2, "confirmed")
    assert site.outcomes(step["id"]) == ["lost", "ok"]
    assert len(hook.entries()) == 1
    world.check(reaped=1)


@pytest.mark.fault(3)
def test_an_effect_whose_worker_died_before_the_settle_is_repeated_under_its_key(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    (ticket,) = site.tickets(1)
    cluster = doomed(world, site, fail="effect.replied:kill")

    site.change(ticket, priority="urgent")
    die(cluster, site)
    until(lambda: site.ended(1), within=30, about="the run's end", told=world.tails)

    first, second = hook.entries()
    assert first["key"] == second["key"]
    assert (first["shown"], second["shown"]) == (True, False)
    (step,) = site.steps()
    assert step["idempotency_key"] == first["key"]
    assert site.outcomes(step["id"]) == ["lost", "ok"]
    world.check(reaped=1)


@pytest.mark.fault(4)
def test_a_message_that_must_not_be_repeated_waits_for_a_person(world: World) -> None:
    phone = world.server("sms")
    site = world.site(max_running=1)
    site.connect_sms(phone.url)
    site.rule([sms()])
    (ticket,) = site.tickets(1)
    cluster = doomed(world, site, fail="effect.replied:kill")

    site.change(ticket, priority="urgent")
    die(cluster, site)
    until(site.letters, within=30, about="the dead letter", told=world.tails)

    assert len(phone.entries()) == 1
    (step,), (run,), (letter,) = site.steps(), site.runs(), site.letters()
    assert (step["state"], step["effect_state"]) == ("dead", "uncertain")
    assert (run["state"], run["reason"]) == ("waiting", "delivery_unknown")
    assert (letter["reason"], letter["step_id"]) == ("delivery_unknown", step["id"])
    until(lambda: site.lane["running"] == 0, within=5, about="the free place")
    assert site.outcomes(step["id"]) == ["lost"]
    world.check(reaped=1, parked=1)
