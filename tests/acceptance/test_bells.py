"""Bells may be lost, doubled or late: they only start pumps, and a pump finds the work by itself."""

import pytest
from acceptance.harness.clusters import BELL, LEASE
from acceptance.harness.scenario import delay, note, webhook
from acceptance.harness.waiting import measured, until
from acceptance.harness.world import World
from django_q.models import OrmQ

from automation import queue

pytestmark = pytest.mark.acceptance


@pytest.mark.fault(21)
def test_a_bell_that_comes_fifty_times_starts_nothing_more(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(100)
    cluster = world.cluster(2)
    for _ in range(50):
        queue.ring("northwind")
    site.backlog(rule, tickets)

    most = 0

    def all_done() -> bool:
        nonlocal most
        most = max(most, world.db.value("SELECT count(*) FROM automation_worker"))
        return site.ended(100)

    until(all_done, within=60, about="all runs' end", told=world.tails)
    assert most == 2
    assert {(step["deliveries"], step["attempts"]) for step in site.steps()} == {(1, 1)}
    assert len(hook.entries()) == 100
    world.quiet()
    cluster.ask_to_stop()
    assert cluster.process.wait(30) == 0, "the bells that were left return at once"
    assert world.db.value("SELECT count(*) FROM automation_worker") == 0
    world.check()


@pytest.mark.fault(22)
def test_without_any_bell_nothing_is_late_while_a_pump_runs_and_pumps_come_back(world: World) -> None:
    site = world.site()
    site.rule([note()])
    (ticket,) = site.tickets(1)
    cluster = world.cluster(2)
    world.db.run("DELETE FROM django_q_ormq")

    site.change(ticket, priority="urgent")
    assert measured(lambda: site.ended(1), within=10) <= 2

    pumps = cluster.pumps()
    for pump in pumps:
        cluster.kill(pump)
    world.db.run("DELETE FROM django_q_ormq")
    assert measured(lambda: len(set(cluster.pumps()) - set(pumps)) == 2, within=30) <= BELL + 3
    site.change(ticket, priority="low")
    until(lambda: site.ended(2), within=20, about="the second run", told=world.tails)
    world.check(perhaps=("many workers lost",), reaped=range(3))


@pytest.mark.case("D01")
@pytest.mark.case("D07")
@pytest.mark.fault(23)
def test_a_running_pump_that_is_delivered_again_does_nothing_twice(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "20")
    site = world.site(max_running=3)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(200)
    cluster = world.cluster(2)
    site.backlog(rule, tickets)
    until(lambda: site.ended(10), within=30, about="the first runs", told=world.tails)

    # Every bell that a pump was started by counts as never acknowledged, and one worker is free to take it.
    cluster.kill(cluster.pumps()[0])
    world.db.run("UPDATE django_q_ormq SET lock = now() - interval '1 hour'")
    until(lambda: site.ended(200), within=60, about="all runs' end", told=world.tails)

    taken = world.counters()["reaped"]
    assert taken <= 3
    deliveries = [step["deliveries"] for step in site.steps()]
    assert sorted(deliveries) == [1] * (200 - taken) + [2] * taken
    assert max(entry["running"] for entry in hook.entries()) <= 3
    assert world.observer.most_running[site.id] <= 3
    world.check(reaped=range(4))


@pytest.mark.case("R01")
def test_bells_that_name_nothing_or_are_broken_hold_nobody_up(world: World) -> None:
    world.db.run(
        "INSERT INTO django_q_ormq (key, payload, lock) VALUES ('northwind', 'broken', now() - interval '1 minute')"
    )
    queue.async_task("automation.workers.no_such_pump", cluster="northwind", save=False)
    site = world.site()
    site.rule([note()])
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(lambda: site.ended(1), within=20, about="the run's end", told=world.tails)
    world.check()


@pytest.mark.case("K02")
def test_a_cluster_whose_workers_are_killed_again_and_again_goes_on(world: World) -> None:
    site = world.site()
    site.rule([note()])
    (ticket,) = site.tickets(1)
    cluster = world.cluster(2)
    for number in range(1, 6):
        for pump in cluster.pumps():
            cluster.kill(pump)
        site.change(ticket, subject=f"Change {number}")
        until(lambda number=number: site.ended(number), within=30, about="the run's end", told=world.tails)
    world.check(perhaps=("many workers lost",), reaped=range(11))


@pytest.mark.case("D04")
def test_a_delay_is_a_row_that_no_bell_carries(world: World) -> None:
    site = world.site()
    site.rule([delay("P3D"), note()])
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(lambda: site.timers("kind = 'delay'"), within=20, about="the delay", told=world.tails)
    bells = [one.task for one in OrmQ.objects.all()]
    assert bells
    assert {(bell["func"], bell["args"], str(bell["kwargs"])) for bell in bells} == {(queue.PUMP, (), "{}")}
    world.db.run("DELETE FROM django_q_ormq")

    site.hurry()
    until(lambda: site.ended(1), within=20, about="the run's end", told=world.tails)
    assert world.db.value("SELECT count(*) FROM helpdesk_comment") == 1
    assert [step["state"] for step in site.steps()] == ["succeeded", "succeeded"]
    world.check()


@pytest.mark.fault(22)
def test_a_change_in_a_pool_without_pumps_rings_for_one(world: World) -> None:
    site = world.site()
    site.rule([note()])
    (ticket,) = site.tickets(1)
    cluster = world.cluster(1, bell=600)
    (pump,) = cluster.pumps()
    cluster.kill(pump)
    until(lambda: not queue.live("northwind"), within=LEASE + 5)
    queue._alive_at.clear()
    site.change(ticket, priority="urgent")
    until(lambda: site.ended(1), within=20, about="the run's end", told=world.tails)
    world.check(reaped=range(2))
