"""What operators do while real workers are at it: what people decided stands, and nothing is sent twice."""

import time
from collections import Counter

import pytest
from acceptance.harness.clusters import CONTROL_POLL, DEADLINE, SWEEP, Cluster
from acceptance.harness.scenario import Site, delay, note, webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World
from loopback_servers import Server

from automation.engine import rules
from automation.engine.operate import bulk, runs
from automation.engine.operate.dead_letters import retry
from automation.engine.operate.replay import replay
from automation.engine.operate.steps import complete

pytestmark = pytest.mark.acceptance
ONCE = {"max_attempts": 1, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}


def running(site: Site) -> int:
    """The step that a worker is on; 0 for none."""
    found = site.steps("state = 'running'")
    return found[0]["id"] if found else 0


def notes(site: Site, ticket_id: int) -> list[str]:
    with site.acting():
        return list(site.ticket(ticket_id).comments.order_by("id").values_list("body", flat=True))


@pytest.mark.fault(40)
def test_a_step_completed_by_hand_while_it_runs_keeps_the_operators_output(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "800")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook(), note("Told by {{ steps.call.by }}")], fields=["priority"])
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(lambda: running(site), within=20, about="the call", told=world.tails)

    with site.acting():
        complete(running(site), output={"by": "hand"}, reason="called them myself")
    until(lambda: site.ended(1), within=20, about="the run's end", told=world.tails)
    until(lambda: world.counters()["stale_settle"], within=20, about="the worker's own answer", told=world.tails)

    assert notes(site, ticket) == ["Told by hand"]
    call = site.steps("path = 'call'")[0]
    assert (call["state"], call["reason"], call["output"]) == ("succeeded", "by_hand", {"by": "hand"})
    assert site.outcomes(call["id"]) == ["cancelled"]
    assert len(hook.entries()) == 1
    world.check(stale_settle=1)


@pytest.mark.fault(40)
@pytest.mark.case("R05")
def test_retry_keeps_the_key_and_replay_sends_only_what_is_not_known_to_have_arrived(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    site.connect(f"{hook.url}/second", name="second")
    two = webhook(id="two", connection="second", retry=ONCE)
    site.rule([note("Once", id="first"), webhook(id="one"), two], fields=["priority"])
    (ticket,) = site.tickets(1)
    hook.prescribe(503, match="/second", last="repeat")
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(site.letters, within=20, about="the dead letter", told=world.tails)
    with site.acting():
        retry(site.letters()[0]["id"])
    until(lambda: len(hook.entries()) == 3, within=20, about="the retry", told=world.tails)
    until(site.letters, within=20, about="the dead letter again", told=world.tails)

    hook.prescribe(200)
    old = site.runs()[0]["id"]
    with site.acting():
        new = replay(old, step="one")
    until(lambda: site.ended(1), within=20, about="the replay", told=world.tails)
    with site.acting():
        replay(old, step="one", as_new=True)
    until(lambda: site.ended(2), within=20, about="the replay as new", told=world.tails)

    keys = [entry["key"] for entry in hook.entries()]
    first, second = keys[0], keys[1]
    assert keys[:4] == [first, second, second, second]
    assert len(set(keys[4:])) == 2
    assert not {first, second} & set(keys[4:])
    assert notes(site, ticket) == ["Once"]
    assert [run["state"] for run in site.runs()] == ["failed", "succeeded", "succeeded"]
    assert [step["path"] for step in site.steps(f"run_id = {new} AND attempts > 0")] == ["two"]
    world.check()


@pytest.mark.fault(40)
def test_a_version_published_amid_a_run_is_for_new_runs_only(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    rule = site.rule([delay("PT1H"), webhook(), note("By version 1")], fields=["priority"], again="both")
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(lambda: site.timers("kind = 'delay'"), within=20, about="the wait", told=world.tails)

    site.publish(rule, [webhook(), note("By version 2")], fields=["priority"], again="both")
    site.change(ticket, priority="low")
    until(lambda: site.ended(1), within=20, about="the new run", told=world.tails)
    site.hurry()
    until(lambda: site.ended(2), within=20, about="the old run", told=world.tails)

    assert notes(site, ticket) == ["By version 2", "By version 1"]
    assert len({run["rule_version_id"] for run in site.runs()}) == 2
    world.check()


@pytest.mark.fault(40)
def test_a_run_cancelled_during_a_step_ends_within_a_moment(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "900")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook(), note()], fields=["priority"])
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(lambda: running(site), within=20, about="the call", told=world.tails)

    cancelled_at = time.monotonic()
    with site.acting():
        assert runs.cancel(site.runs()[0]["id"], "not this one").asked == 1
    until(lambda: site.ended(1, "cancelled"), within=DEADLINE, about="the run's end", told=world.tails)

    assert time.monotonic() - cancelled_at < 3 * CONTROL_POLL + 1
    assert notes(site, ticket) == []
    world.check()


def test_a_run_paused_amid_its_step_stops_after_it_and_goes_on_where_it_was(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "500")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook(id="one"), webhook(id="two"), note()], fields=["priority"])
    (ticket,) = site.tickets(1)
    other = world.site()
    other.rule([note()])
    (neighbour,) = other.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(lambda: running(site), within=20, about="the call", told=world.tails)

    with site.acting():
        runs.pause(site.runs()[0]["id"], "look first")
    until(lambda: site.timers("state = 'held'"), within=10, about="the held timer", told=world.tails)
    until(lambda: site.lane["running"] == 0, within=10, about="the free place", told=world.tails)
    other.change(neighbour, priority="urgent")
    until(lambda: other.ended(1), within=20, about="what the workers do next", told=world.tails)
    assert [entry["answer"] for entry in hook.entries()] == [200]
    assert site.lane["running"] == 0

    with site.acting():
        runs.resume(site.runs()[0]["id"])
    until(lambda: site.ended(1), within=20, about="the run's end", told=world.tails)
    assert len(hook.entries()) == 2
    world.check()


def test_a_run_that_outlives_its_rules_limit_is_ended_by_the_workers(world: World) -> None:
    site = world.site()
    rule = site.rule([delay("PT1H"), note()], fields=["priority"])
    with site.acting():
        draft = rules.find(rule).draft
        saved = rules.save_draft(rule, {**draft.definition, "expires": "PT2S"}, base_revision=draft.revision)
        rules.publish(rule, revision=saved.revision)
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")

    until(lambda: site.ended(1, "failed"), within=20, about="the run's end", told=world.tails)

    (run,) = site.runs()
    assert run["reason"] == "expired"
    assert 2 <= (run["ended_at"] - run["created_at"]).total_seconds() < 2 + 4 * SWEEP
    world.check()


def with_dead_letters(world: World, number: int) -> tuple[Server, Site, Cluster]:
    """So many dead letters of calls that were refused: the receiver, the tenant's site and its workers."""
    hook = world.server("webhooks")
    hook.prescribe(400, last="repeat")
    site = world.site(max_running=8)
    site.connect(hook.url)
    cluster = world.cluster(2)
    for _ in range(number // 6):  # so few of a rule that it isn't switched off
        site.backlog(site.rule([webhook()]), site.tickets(6))
    until(lambda: len(site.letters()) == number, within=60, about="dead letters", told=world.tails)
    return hook, site, cluster


def test_a_bulk_retry_keeps_its_pace_through_the_death_of_its_workers(world: World) -> None:
    number, rate = 42, 10.0
    hook, site, cluster = with_dead_letters(world, number)
    dead = len(hook.entries())
    hook.prescribe(200)

    with site.acting():
        job = bulk.start("retry", rate=rate, reason="the receiver is back")
    until(lambda: len(hook.entries()) >= dead + 15, within=30, about="the first ones", told=world.tails)
    for pid in cluster.pumps():
        cluster.kill(pid)
    until(lambda: site.ended(number), within=60, about="all runs' end", told=world.tails)

    entries = hook.entries()[dead:]
    assert set(Counter(entry["key"] for entry in entries).values()) <= {1, 2}
    assert len({entry["key"] for entry in entries}) == number
    started = sorted(entry["t_start"] for entry in entries)
    assert started[-1] - started[0] >= (number - 1) / rate * 0.9
    first = started[14] - started[0]  # what one look is late by comes at once
    assert (14 - 2 * CONTROL_POLL * rate) / rate <= first <= 14 / rate * 1.3
    with site.acting():
        until(lambda: bulk.status(job.pk).job.state == "finished", within=10, about="the job", told=world.tails)
        assert bulk.status(job.pk).job.done == number
    world.check(perhaps=("many workers lost",), reaped=range(10), stale_settle=range(10))


def test_a_bulk_retry_that_fails_again_stops_with_what_is_under_way(world: World) -> None:
    number, rate, stop_after = 48, 10.0, 5
    hook, site, _cluster = with_dead_letters(world, number)
    dead = len(hook.entries())

    with site.acting():
        job = bulk.start("retry", rate=rate, stop_after=stop_after)
        until(lambda: bulk.status(job.pk).job.state == "stopped", within=20, about="its stop", told=world.tails)
    until(lambda: not site.steps("state IN ('pending', 'running')"), within=20, about="quiet", told=world.tails)

    # Beyond those that failed go only what was let out until the next look, late as it may be, and was begun.
    tried = len(hook.entries()) - dead
    assert stop_after <= tried <= stop_after + 1 + 2 * CONTROL_POLL * rate
    with site.acting():
        found = bulk.status(job.pk)
    assert (found.tried, found.in_line, found.failed_again) == (tried, 0, tried)
    world.check()


def test_a_bulk_retry_makes_no_burst_when_its_workers_come_back(world: World) -> None:
    number, rate = 42, 10.0
    hook, site, first = with_dead_letters(world, number)
    dead = len(hook.entries())
    hook.prescribe(200)
    with site.acting():
        bulk.start("retry", rate=rate)
    until(lambda: len(hook.entries()) >= dead + 10, within=30, about="the first ones", told=world.tails)
    first.ask_to_stop()
    until(lambda: not first.pumps(), within=20, about="the end of the workers", told=world.tails)
    done = len(hook.entries())
    # Three seconds without a worker, as the job sees them.
    world.db.run("UPDATE automation_bulkjob SET next_at = next_at - interval '3 seconds'")

    world.cluster(2)
    until(lambda: site.ended(number), within=60, about="all runs' end", told=world.tails)

    started = sorted(entry["t_start"] for entry in hook.entries()[done:])
    at_most = max(sum(start <= other < start + 1 for other in started) for start in started)
    assert at_most <= rate + 1 + 2 * CONTROL_POLL * rate
    world.check()
