"""A worker is killed at every point of a step; what the receiver and the history show is right all the same."""

import pytest
from acceptance.harness.clusters import Cluster, T, alive, bury
from acceptance.harness.scenario import Site, sms, webhook
from acceptance.harness.waiting import measured, until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance


def doomed(world: World, site: Site, *, fail: str) -> Cluster:
    """A worker with a failpoint in the tenant's pool, and two that stand by in another."""
    spare = world.cluster(2, pool="spare", wait=False)
    cluster = world.cluster(1, fail=fail)
    spare.wait_for_pumps()
    return cluster


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
    bury(world.db)
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
    bury(world.db)
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
    bury(world.db)
    until(site.letters, within=30, about="the dead letter", told=world.tails)

    assert len(phone.entries()) == 1
    (step,), (run,), (letter,) = site.steps(), site.runs(), site.letters()
    assert (step["state"], step["effect_state"]) == ("dead", "uncertain")
    assert (run["state"], run["reason"]) == ("waiting", "delivery_unknown")
    assert (letter["reason"], letter["step_id"]) == ("delivery_unknown", step["id"])
    until(lambda: site.lane["running"] == 0, within=5, about="the free place")
    assert site.outcomes(step["id"]) == ["lost"]
    world.check(reaped=1, parked=1)


@pytest.mark.case("K01")
@pytest.mark.fault(6)
@pytest.mark.parametrize("together", [1, 3])
def test_nothing_of_a_settle_is_visible_whose_worker_died_before_its_commit(world: World, together: int) -> None:
    hook = world.server("webhooks", "--delay-ms", "300")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    tickets = site.tickets(together)
    cluster = doomed(world, site, fail="settle.before_commit:kill")

    site.change_all(tickets, priority="urgent")
    die(cluster, site)
    assert [step["state"] for step in site.steps()] == ["running"] * together
    assert [step["effect_state"] for step in site.steps()] == ["intended"] * together
    assert site.lane["running"] == together
    until(lambda: site.ended(together), within=30, about="the runs' end", told=world.tails)

    for step in site.steps():
        assert site.outcomes(step["id"]) == ["lost", "ok"]
        assert [one["shown"] for one in hook.entries() if one["key"] == step["idempotency_key"]] == [True, False]
    world.check(reaped=together)


@pytest.mark.case("K04")
@pytest.mark.fault(13)
def test_five_hundred_due_steps_survive_the_death_of_all_workers(world: World) -> None:
    hook = world.server("webhooks")
    hook.prescribe("hang", last="repeat")
    sites = [world.site() for _ in range(10)]
    for site in sites:
        site.connect(hook.url)
        site.backlog(site.rule([webhook()]), site.tickets(50))
    first = world.cluster(4, wait=False)
    busy = "SELECT count(*) = 32 FROM automation_timer WHERE state = 'leased'"
    until(lambda: world.db.value(busy), within=60, about="a lease for every thread", told=world.tails)
    first.end()
    leased = {one["step_id"] for one in world.db.rows("SELECT step_id FROM automation_timer WHERE state = 'leased'")}
    assert len(leased) == 32

    hook.prescribe()
    world.cluster(4)
    until(lambda: all(site.ended(50) for site in sites), within=120, about="the end of all", told=world.tails)

    timed_out = "SELECT step_id FROM automation_attempt WHERE outcome = 'timeout'"  # while nobody answered, or slowly
    retried = {one["step_id"] for one in world.db.rows(timed_out)}
    for site in sites:
        for step in site.steps():
            if step["id"] not in retried:
                assert step["deliveries"] == (2 if step["id"] in leased else 1)
        assert site.lane["running"] == 0
    workers = world.db.rows("SELECT DISTINCT worker_id FROM automation_attempt")
    assert len(workers) >= 4
    world.check(reaped=32, alarms=("many workers lost",))
