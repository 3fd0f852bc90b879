"""A worker that freezes or hangs loses its work to another, and what it says afterwards isn't listened to."""

import time
from pathlib import Path

import pytest
from acceptance.harness.clusters import BELL, LEASE, STEP_TIMEOUT, alive
from acceptance.harness.scenario import FAST, trap, webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance


@pytest.mark.case("O05")
@pytest.mark.fault(10)
def test_a_frozen_worker_comes_back_too_late_and_is_refused(world: World) -> None:
    hook = world.server("webhooks")
    hook.prescribe({"status": 200, "body": '"first"'}, {"status": 200, "body": '"second"'})
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    (ticket,) = site.tickets(1)
    world.cluster(1, pool="spare")
    frozen = world.cluster(1, fail="effect.replied:stop@1")
    (pump,) = frozen.pumps()
    before = frozen.worker_of(pump)

    site.change(ticket, priority="urgent")
    until(lambda: stopped(pump), within=30, about="the freeze", told=world.tails)
    frozen_at = time.monotonic()
    world.observer.frozen = True
    site.move_to("spare")
    until(lambda: site.ended(1), within=30, about="the second worker's end", told=world.tails)
    until(lambda: time.monotonic() - frozen_at >= 2 * LEASE, within=2 * LEASE + 1)
    frozen.thaw(pump)
    until(lambda: frozen.counters()["stale_settle"], within=10, about="the late settle", told=world.tails)
    until(frozen.pumps, within=2 * BELL + 10, about="a new identity")

    (step,) = site.steps()
    assert step["output"]["answer"] == '"second"'
    assert site.outcomes(step["id"]) == ["lost", "ok"]
    assert len(hook.entries()) == 2
    assert frozen.worker_of(frozen.pumps()[0]) != before
    assert site.lane["running"] == 0
    world.check(reaped=1, stale_settle=1)


@pytest.mark.case("R02")
@pytest.mark.fault(12)
def test_a_call_that_hangs_is_cut_at_its_deadline_and_tried_again(world: World) -> None:
    hook = world.server("webhooks")
    hook.prescribe("hang", last="repeat")
    site = world.site(max_running=1)
    site.connect(hook.url)
    site.rule([webhook(retry=FAST | {"max_attempts": 2})])
    (ticket,) = site.tickets(1)
    cluster = world.cluster(1)
    (pump,) = cluster.pumps()

    site.change(ticket, priority="urgent")
    until(site.letters, within=30, about="the dead letter", told=world.tails)

    (step,), (letter,), (run,) = site.steps(), site.letters(), site.runs()
    assert site.outcomes(step["id"]) == ["timeout", "timeout"]
    assert (letter["reason"], run["state"], run["reason"]) == ("deadline", "failed", "deadline")
    until(lambda: site.lane["running"] == 0, within=5, about="the free place")
    for attempt in site.attempts(step["id"]):
        assert STEP_TIMEOUT <= (attempt["finished_at"] - attempt["started_at"]).total_seconds() <= STEP_TIMEOUT + 1
    assert cluster.pumps() == [pump]
    world.check()


@pytest.mark.fault(12)
def test_a_thread_that_ignores_its_shut_socket_costs_its_process_once_the_others_are_done(
    world: World, tmp_path: Path
) -> None:
    armed = tmp_path / "armed"
    armed.touch()
    hook, slow = world.server("webhooks"), world.server("webhooks", "--delay-ms", "900")
    site, other = world.site(), world.site()
    site.connect(hook.url)
    other.connect(slow.url)
    site.rule([trap(armed, does="hang", seconds=60)])
    other.rule([webhook()])
    (ticket,), (neighbour,) = site.tickets(1), other.tickets(1)
    cluster = world.cluster(1)
    (pump,) = cluster.pumps()

    site.change(ticket, priority="urgent")
    until(lambda: cluster.lines("alarm"), within=20, about="the hung thread", told=world.tails)
    armed.unlink()
    other.change(neighbour, priority="urgent")
    until(lambda: not alive(pump), within=20, about="the process to leave", told=world.tails)
    until(lambda: site.ended(1) and other.ended(1), within=30, about="all runs' end", told=world.tails)

    (step,), (done,) = site.steps(), other.steps()
    assert site.outcomes(step["id"]) == ["timeout", "ok"]
    assert other.outcomes(done["id"]) == ["ok"]
    assert cluster.pumps() != [pump]
    world.check(alarms=("hung thread",))


def stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
