"""A step or an event that takes its process with it every time is found out, and hurts nobody else for long."""

import time
from pathlib import Path

import pytest
from acceptance.harness.clusters import BELL, T, bury
from acceptance.harness.scenario import Site, note, sms, step, trap, webhook
from acceptance.harness.traps.actions import executions
from acceptance.harness.waiting import until
from acceptance.harness.world import World

from automation.engine.operate import dead_letters

pytestmark = pytest.mark.acceptance
DEATHS = 5


@pytest.mark.fault(35)
def test_a_step_that_always_ends_its_process_is_tried_five_times_and_retried_after_the_fix(
    world: World, tmp_path: Path
) -> None:
    armed = tmp_path / "armed"
    armed.touch()
    hook, slow, phone = world.server("webhooks"), world.server("webhooks", "--delay-ms", "600"), world.server("sms")
    site, other = world.site(max_running=8), world.site()
    for one in (site, other):
        one.connect(hook.url)
        one.connect(slow.url, name="slow")
        one.connect_sms(phone.url)
    site.rule([trap(armed, does="exit", seconds=0.2)], fields=["subject"])
    site.rule([webhook(connection="slow")], fields=["priority"])
    site.rule([sms()], fields=["status"])
    other.rule([webhook(connection="slow")])
    (ticket,), neighbours = site.tickets(1), other.tickets(40)
    world.cluster(2)

    site.change(ticket, subject="Poison")
    for number in range(DEATHS):
        until(lambda number=number: len(executions(armed)) > number, within=60, about="a death", told=world.tails)
        site.change(ticket, priority=("high", "low")[number % 2], status=("open", "pending")[number % 2])
        other.change(neighbours[number], priority="high")
        hurry_lost(site, number + 1)
    until(lambda: open_letters(site, "poison"), within=60, about="the dead letter", told=world.tails)
    until(lambda: other.ended(DEATHS), within=60, about="the others' runs", told=world.tails)

    assert len(executions(armed)) == DEATHS
    (letter,) = open_letters(site, "poison")
    (dead,) = site.steps("action = 'trap@1'")
    assert letter["step_id"] == dead["id"]
    assert dead["deliveries"] == DEATHS
    assert site.outcomes(dead["id"]) == ["lost"] * DEATHS
    parked = open_letters(site, "delivery_unknown")
    assert all(len(site.attempts(one["step_id"])) == 1 for one in parked)
    assert {one["reason"] for one in [*site.letters(), *other.letters()]} <= {"poison", "delivery_unknown"}

    armed.unlink()
    with site.acting():
        dead_letters.retry(letter["id"])
    until(lambda: site.runs(f"id = {letter['run_id']}")[0]["state"] == "succeeded", within=20, about="the retried run")
    assert open_letters(site, "poison") == []
    assert len({entry["key"] for entry in hook.entries()}) == len(hook.entries()) == 1
    world.check(
        parked=len(parked),
        reaped=range(DEATHS, 40),
        perhaps=("many workers lost",),
    )


@pytest.mark.parametrize("texts", [150, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.fault(35)
def test_from_the_third_time_on_a_suspect_runs_alone_in_its_process(world: World, tmp_path: Path, texts: int) -> None:
    armed = tmp_path / "armed"
    armed.touch()
    hook, phone = world.server("webhooks"), world.server("sms", "--delay-ms", "200")
    site, other = world.site(), world.site()
    site.connect(hook.url)
    other.connect_sms(phone.url)
    site.rule([trap(armed, does="exit", seconds=0.5)])
    rule, many = other.rule([sms(number="{{ ticket.id }}5550100")]), other.tickets(texts)
    (ticket,) = site.tickets(1)
    cluster = world.cluster(1)
    site.change(ticket, priority="urgent")
    for number in range(2):
        until(lambda number=number: len(executions(armed)) > number, within=60, about="a death", told=world.tails)
        hurry_lost(site, number + 1)
    parked = len(other.letters())
    other.backlog(rule, many, path="text", action="send_sms@1")
    for number in range(2, DEATHS):
        until(lambda number=number: len(executions(armed)) > number, within=60, about="a death", told=world.tails)
        hurry_lost(site, number + 1)
    until(lambda: other.ended(texts), within=180, about="the others' runs", told=world.tails)
    until(site.letters, within=60, about="the dead letter", told=world.tails)

    assert len(other.letters()) == parked == 0, "a message that was on its way when the process ended"
    assert {one["attempts"] for one in other.steps()} == {1}
    assert cluster.pumps()
    (dead,) = site.steps("action = 'trap@1'")
    assert site.outcomes(dead["id"]) == ["lost"] * DEATHS
    world.check(reaped=DEATHS, perhaps=("many workers lost",))


@pytest.mark.fault(50)
def test_an_event_that_kills_its_matcher_is_set_aside_and_those_behind_it_are_matched(
    world: World, tmp_path: Path
) -> None:
    armed = tmp_path / "armed"
    armed.touch()
    site = world.site()
    site.rule([step("local_trap", armed=str(armed), subject="Poison"), note()], fields=["subject"])
    first, bad, last = site.tickets(3)
    world.cluster(2)
    site.change(first, subject="Good")
    until(lambda: site.ended(1), within=20, about="the first run", told=world.tails)
    site.change(bad, subject="Poison")
    site.change(last, subject="Behind it")
    for number in range(DEATHS):
        until(lambda number=number: len(executions(armed)) > number, within=60, about="a death", told=world.tails)
        hurry_lost(site, number + 1)
    until(lambda: site.ended(2), within=60, about="the event behind it", told=world.tails)

    assert len(executions(armed)) == DEATHS
    (letter,) = site.letters()
    assert letter["reason"] == "poison"
    (event,) = [one for one in site.events() if one["id"] == letter["event_id"]]
    assert (event["record"], event["matched_at"] is not None) == (bad, True)
    assert sorted(run["record"] for run in site.runs("state = 'succeeded'")) == [first, last]
    world.check(reaped=DEATHS, alarms=("poison event",), perhaps=("many workers lost",))


def open_letters(site: Site, reason: str) -> list[dict[str, object]]:
    """The open dead letters of one reason."""
    return [one for one in site.letters() if one["reason"] == reason]


def hurry_lost(site: Site, lost: int) -> None:
    """Waits until the loss is noticed, then makes the wait before the next try pass at once."""
    noticed = f"lost >= {lost} AND state = 'pending'"
    gone = f"lost >= {lost} AND state = 'leased'"
    started = time.monotonic()

    def seen() -> bool:
        bury(site.db)
        return bool(site.timers(noticed) or site.timers(gone) or site.letters())

    until(seen, within=T + BELL + 30, about="the reaper")
    if site.timers(noticed):
        site.hurry()
    assert time.monotonic() - started < T + BELL + 30
