"""Workers stop cleanly when asked, leave no orphans, and leave as a whole when their supervisor's child is gone."""

import os
import signal
from pathlib import Path

import pytest
from acceptance.harness.clusters import BELL, Cluster, group_of
from acceptance.harness.scenario import webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance
WEDGED_EXIT = 70


@pytest.mark.case("K01")
def test_workers_that_are_asked_to_stop_finish_what_they_have_begun(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "700")
    site = world.site(max_running=16)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(60)
    cluster = world.cluster(2)
    site.backlog(rule, tickets)
    until(lambda: site.lane["running"] >= 8, within=30, about="work", told=world.tails)
    cluster.ask_to_stop()
    assert cluster.process.wait(30) == 0
    assert group_of(cluster.process.pid) == []
    assert world.db.value("SELECT count(*) FROM automation_worker") == 0
    assert site.lane["running"] == 0
    done = len(site.runs("state = 'succeeded'"))
    assert 8 <= done < 60
    assert len(hook.entries()) == done

    world.cluster(2)
    until(lambda: site.ended(60), within=60, about="the rest", told=world.tails)
    assert {(step["deliveries"], step["attempts"]) for step in site.steps()} == {(1, 1)}
    world.check()


@pytest.mark.case("K02")
def test_a_cluster_that_lost_its_sentinel_takes_all_its_processes_along(world: World) -> None:
    cluster = world.cluster(2)
    (sentinel,) = children(cluster.process.pid)
    os.kill(sentinel, signal.SIGKILL)
    assert cluster.process.wait(30) == WEDGED_EXIT
    until(lambda: group_of(cluster.process.pid) == [], within=10, about="the end of all")
    assert "the sentinel died" in cluster.alarms()
    world.check(alarms=("the sentinel died",))


def test_two_clusters_share_one_pool_and_one_may_go(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "50")
    site = world.site(max_running=8)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(200)
    staying, going = world.cluster(1), world.cluster(1)
    site.backlog(rule, tickets)
    until(lambda: site.ended(20), within=30, about="the first runs", told=world.tails)
    going.ask_to_stop()
    assert going.process.wait(30) == 0
    until(lambda: site.ended(200), within=60, about="all runs' end", told=world.tails)
    assert len(staying.pumps()) == 1
    assert {(step["deliveries"], step["attempts"]) for step in site.steps()} == {(1, 1)}
    world.check()


def test_a_pump_whose_time_is_over_rings_for_the_next(world: World) -> None:
    cluster: Cluster = world.cluster(1, pump_budget=2)
    before = cluster.worker_of(cluster.pumps()[0])
    until(lambda: len(cluster.lines("pump ended")) >= 2, within=10 + BELL, about="two ends", told=world.tails)
    cluster.wait_for_pumps(1)
    assert cluster.worker_of(cluster.pumps()[0]) != before
    assert {line["why"] for line in cluster.lines("pump ended")} == {"budget"}
    world.check()


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
