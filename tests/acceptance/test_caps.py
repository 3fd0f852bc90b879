"""A tenant's cap is what really runs at once, by the receivers' own count, whoever claims, dies or miscounts."""

from collections import Counter

import pytest
from acceptance.harness.scenario import note, webhook
from acceptance.harness.waiting import measured, until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance


@pytest.mark.fault(29)
@pytest.mark.parametrize("steps", [600, pytest.param(5_000, marks=pytest.mark.long)])
def test_sixteen_workers_keep_the_cap_of_one_tenant_with_many_steps(world: World, steps: int) -> None:
    hook = world.server("webhooks", "--delay-ms", "10")
    site = world.site(max_running=3)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(100)
    for _ in range(steps // len(tickets)):
        site.backlog(rule, tickets)
    world.cluster(16, threads=1, wait=False)
    until(lambda: site.ended(steps), within=400, about="all steps", told=world.tails)

    entries = hook.entries()
    assert len(entries) == steps
    assert max(entry["running"] for entry in entries) == 3
    assert world.observer.most_running[site.id] == 3
    started = min(entry["t_start"] for entry in entries)
    each_second = Counter(int(entry["t_end"] - started) for entry in entries)
    assert all(each_second[second] for second in range(max(each_second))), each_second
    assert {(step["deliveries"], step["attempts"]) for step in site.steps()} == {(1, 1)}
    world.check()


@pytest.mark.fault(30)
def test_a_lowered_cap_cancels_nothing_and_lets_nothing_in_until_there_is_room(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "400")
    site = world.site(max_running=10)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(70)
    world.cluster(2)
    site.backlog(rule, tickets)
    until(lambda: site.lane["running"] == 10, within=30, about="ten at once", told=world.tails)
    world.observer.allow_over_cap([site.lane["id"]])
    site.set_lane(max_running=2)
    lowered_at = world.db.value("SELECT extract(epoch FROM automation_now())::float")
    until(lambda: site.lane["running"] <= 2, within=10, about="room")
    until(lambda: site.ended(24), within=60, about="some more", told=world.tails)
    raised_at = world.db.value("SELECT extract(epoch FROM automation_now())::float")
    site.set_lane(max_running=10)
    until(lambda: site.ended(70), within=60, about="all runs' end", told=world.tails)

    entries = hook.entries()
    meanwhile = [one for one in entries if lowered_at + 1.5 < one["t_start"] < raised_at]
    assert meanwhile
    assert max(one["running"] for one in meanwhile) <= 2
    assert max(one["running"] for one in entries) <= 10
    assert max(one["running"] for one in entries if one["t_start"] > raised_at) > 2
    assert {step["attempts"] for step in site.steps()} == {1}
    world.check()


@pytest.mark.fault(34)
@pytest.mark.parametrize("wrong", [3, -3])
def test_a_counter_that_somebody_broke_is_repaired_with_an_alarm(world: World, wrong: int) -> None:
    hook = world.server("webhooks", "--delay-ms", "300")
    site = world.site(max_running=5)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(60)
    cluster = world.cluster(2)
    lane = site.lane["id"]
    world.observer.corrupt.add(lane)
    world.observer.allow_over_cap([lane])
    site.backlog(rule, tickets)
    broken = "UPDATE automation_lane SET running = running + %s WHERE id = %s AND running >= 4"
    until(lambda: world.db.run(broken, wrong, lane), within=30, about="a lane that works", told=world.tails)
    assert measured(lambda: cluster.counters()["repaired"], within=40, about="the repair") <= 30
    repaired_at = world.db.value("SELECT extract(epoch FROM automation_now())::float")
    until(lambda: site.ended(60), within=60, about="all runs' end", told=world.tails)

    (line,) = cluster.lines("repaired")
    assert line["lane_id"] == lane
    assert max(one["running"] for one in hook.entries() if one["t_start"] > repaired_at + 1) <= 5
    assert {step["attempts"] for step in site.steps()} == {1}
    assert len(hook.entries()) == 60
    world.observer.corrupt.clear()
    world.check(repaired=1, alarms=("lane counter",))


@pytest.mark.fault(45)
def test_a_tenant_at_its_cap_leaves_the_other_threads_to_others(world: World) -> None:
    sites, servers = [], []
    for cap in (3, 4, 4):
        server = world.server("webhooks", "--delay-ms", "200")
        site = world.site(max_running=cap)
        site.connect(server.url)
        sites.append(site)
        servers.append(server)
    rules = [(site, site.rule([webhook()]), site.tickets(30)) for site in sites]
    world.cluster(1)
    for site, rule, tickets in rules:
        site.backlog(rule, tickets)
    until(lambda: all(site.ended(30) for site in sites), within=60, about="all runs' end", told=world.tails)

    entries = [server.entries() for server in servers]
    assert max(one["running"] for one in entries[0]) == 3
    assert max(one["running"] for one in entries[1]) <= 4
    changes = sorted(
        (moment, step) for each in entries for one in each for moment, step in ((one["t_start"], 1), (one["t_end"], -1))
    )
    together, most = 0, 0
    for _moment, step in changes:
        together += step
        most = max(most, together)
    assert 6 <= most <= 8, "eight threads, and nobody waited behind the tenant at its cap"
    world.check()


@pytest.mark.case("R04")
@pytest.mark.fault(45)
def test_with_every_thread_in_a_hanging_endpoint_local_rules_start_as_before(world: World) -> None:
    hook = world.server("webhooks")
    hook.prescribe("hang", last="repeat")
    stuck = [world.site(max_running=4) for _ in range(2)]
    backlogs = []
    for site in stuck:
        site.connect(hook.url)
        backlogs.append((site, site.rule([webhook()]), site.tickets(20)))
    other = world.site()
    other.rule([note()])
    tickets = other.tickets(10)
    world.cluster(1)
    for site, rule, its in backlogs:
        site.backlog(rule, its)
    full = "SELECT count(*) = 8 FROM automation_timer WHERE state = 'leased' AND kind IN ('step', 'retry')"
    waits = []
    for ticket in tickets:
        until(lambda: world.db.value(full), within=30, about="eight threads that wait", told=world.tails)
        before = len(other.runs())
        other.change(ticket, priority="urgent")
        waits.append(measured(lambda before=before: len(other.runs()) > before, within=10))
    assert sorted(waits)[len(waits) // 2] <= 0.5, waits
    assert max(waits) <= 1, waits
    hook.prescribe()
    until(lambda: all(site.ended(20) for site in stuck), within=60, about="all runs' end", told=world.tails)
    world.check()
