"""A pause is obeyed at once and says who is still busy; resuming loses and doubles nothing."""

import time
from collections import Counter

import pytest
from acceptance.harness.clusters import CONTROL_POLL, LEASE
from acceptance.harness.scenario import Site, note, webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

from automation.engine.operate import pause
from automation.engine.operate.pause import PauseStatus

pytestmark = pytest.mark.acceptance


@pytest.mark.fault(46)
@pytest.mark.parametrize("due", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_pause_amid_many_due_steps_is_obeyed_at_once_and_loses_nothing(world: World, due: int) -> None:
    hook = world.server("webhooks", "--delay-ms", "100")
    site = world.site(max_running=12)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(100)
    for _ in range(due // len(tickets)):
        site.backlog(rule, tickets)
    cluster = world.cluster(4)
    until(lambda: site.ended(100), within=60, about="the first runs", told=world.tails)

    with site.acting():
        pause.pause(level="hold", reason="A look at it")
    paused_at = time.time()
    reached(site, "paused", within=10)
    assert site.lane["running"] == 0
    done = len(hook.entries())
    assert max(entry["t_start"] for entry in hook.entries()) <= paused_at + 2 * CONTROL_POLL
    assert status(site).timers_due == due - done

    with site.acting():
        pause.resume()
    pumps = cluster.pumps()
    frozen = until(lambda: busiest(world, pumps), within=30, about="a worker with work", told=world.tails)
    world.observer.frozen = True
    cluster.freeze(frozen)
    frozen_at = time.monotonic()
    with site.acting():
        pause.pause(level="hold", reason="Once more")
    held = busy(world, frozen)
    found = status(site)
    while held and time.monotonic() - frozen_at < LEASE - 0.5:
        assert found.state == "pausing"
        assert any(name.endswith(f":{frozen}") for name in found.workers)
        found = status(site)
    reached(site, "paused", within=3 * LEASE + 2)
    assert site.lane["running"] == 0
    assert all(not name.endswith(f":{frozen}") for name in status(site).workers)
    cluster.thaw(frozen)
    site.set_lane(max_running=32)
    with site.acting():
        pause.resume()

    until(lambda: site.ended(due), within=300, about="all runs' end", told=world.tails)
    sent = Counter(entry["key"] for entry in hook.entries())
    assert len(sent) == due
    assert sum(sent.values()) - due <= held
    assert {(step["deliveries"], step["attempts"]) for step in site.steps()} <= {(1, 1), (2, 1), (2, 2)}
    world.check(reaped=held, stale_settle=range(held + 1))


@pytest.mark.fault(46)
def test_a_pause_keeps_events_and_the_end_of_it_matches_them_in_their_order(world: World) -> None:
    site, other = world.site(), world.site()
    for one in (site, other):
        one.rule([note("{{ ticket.subject }}")], fields=["subject"])
    tickets, (neighbour,) = site.tickets(20), other.tickets(1)
    world.cluster(2)
    with site.acting():
        pause.pause(level="new", reason="A quiet hour")
    for number, ticket in enumerate(tickets):
        site.change(ticket, subject=f"While paused {number}")
    other.change(neighbour, subject="Not paused")
    until(lambda: other.ended(1), within=20, about="another tenant's run", told=world.tails)
    assert site.runs() == []
    assert status(site).kept_events == 20

    with site.acting():
        pause.resume()
    until(lambda: site.ended(20), within=30, about="the kept events", told=world.tails)
    assert [run["event_id"] for run in site.runs()] == sorted(run["event_id"] for run in site.runs())
    assert {run["record"] for run in site.runs()} == set(tickets)
    world.check()


def status(site: Site) -> PauseStatus:
    """What the pause's page shows."""
    with site.acting():
        return pause.status()


def reached(site: Site, state: str, *, within: float) -> None:
    """Waits for a state of the pause."""
    until(lambda: status(site).state == state, within=within, about=state, told=lambda: status(site))


def busiest(world: World, pumps: list[int]) -> int | None:
    """The process that has leased at least two timers, if there is one: who gets work is nobody's promise."""
    return next((pid for pid in pumps if busy(world, pid) >= 2), None)


def busy(world: World, pid: int) -> int:
    """How many timers a process has leased."""
    return int(
        world.db.value(
            "SELECT count(*) FROM automation_timer x JOIN automation_worker w ON w.id = x.worker_id"
            " WHERE x.state = 'leased' AND w.pid = %s",
            pid,
        )
    )


@pytest.mark.long
@pytest.mark.fault(46)
def test_what_a_paused_rule_holds_is_claimed_once_and_goes_on_though_its_workers_are_killed(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site(max_running=16)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(100)
    with site.acting():
        pause.pause_rule(rule, "The receiver is down")
    for _ in range(3):
        site.backlog(rule, tickets)
    first = world.cluster(2)
    held = "SELECT count(*) FROM automation_timer WHERE state = 'held' AND deliveries = 1"
    until(lambda: world.db.value(held) == 300, within=30, about="all of it on the shelf", told=world.tails)
    assert hook.entries() == []

    with site.acting():
        pause.resume_rule(rule)
    until(lambda: site.ended(50), within=20, about="the first of them", told=world.tails)
    first.end()
    world.cluster(2)
    until(lambda: site.ended(300), within=40, about="the rest", told=world.tails)

    assert len({entry["key"] for entry in hook.entries()}) == 300
    with site.acting():
        assert pause.dripping("rule", rule) is None
    world.check(reaped=range(17), perhaps=("many workers lost",))
