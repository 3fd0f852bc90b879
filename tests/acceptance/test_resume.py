"""What a pause has held goes on at the rate asked for, with real workers: no faster, hardly slower, and all of it."""

import time
from collections import Counter
from collections.abc import Sequence

import pytest
from acceptance.harness.scenario import Site, note, webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World
from loopback_servers import Server

from automation.engine.operate import pause
from automation.engine.operate.pause import Choice
from automation.models import Drip

pytestmark = pytest.mark.acceptance
LATE = 25  # steps that a busy machine may begin later than they are due, and then together
MADE_UP = 0.5  # seconds that a matcher may come late and make up for


@pytest.mark.fault(47)
@pytest.mark.parametrize("due", [300, pytest.param(500, marks=pytest.mark.long)])
def test_due_steps_go_on_at_the_rate_asked_for_and_in_their_order_while_others_run_as_ever(
    world: World, due: int
) -> None:
    hook = world.server("webhooks")
    site, other = world.site(max_running=16), world.site()
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(100)
    other.rule([note("{{ ticket.subject }}")], fields=["subject"])
    neighbours = other.tickets(8)
    with site.acting():
        pause.pause(level="hold", reason="The receiver is down")
    for _ in range(due // 100):
        site.backlog(rule, tickets)
    world.cluster(2)

    with site.acting():
        pause.resume(Choice(rate=50 * 60))
    for number, ticket in enumerate(neighbours):
        other.change(ticket, subject=f"Meanwhile {number}")
    until(lambda: other.ended(8), within=3, about="the other tenant's runs", told=world.tails)
    until(lambda: site.ended(due), within=30, about="all that was held", told=world.tails)

    starts = sorted(entry["t_start"] for entry in hook.entries())
    assert len(starts) == due
    assert within_tenth((starts[-1] - starts[0]), (due - 1) / 50)
    assert never_faster(starts, site, rate=50)
    assert order(site) <= 16
    world.check()


@pytest.mark.fault(47)
@pytest.mark.parametrize("how", [pytest.param("asked to stop", marks=pytest.mark.long), "killed"])
def test_the_rate_outlives_the_workers_and_is_not_made_up_for(world: World, how: str) -> None:
    hook = world.server("webhooks")
    site = world.site(max_running=16)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(100)
    with site.acting():
        pause.pause(level="hold", reason="The receiver is down")
    site.backlog(rule, tickets)
    site.backlog(rule, tickets)
    first = world.cluster(2)
    with site.acting():
        pause.resume(Choice(rate=50 * 60))
    until(lambda: site.ended(50), within=20, about="the first of them", told=world.tails)
    if how == "killed":
        first.end()
    else:
        first.ask_to_stop()
        until(lambda: not first.pumps(), within=20, about="the end of the workers", told=world.tails)
    done = len(hook.entries())

    world.cluster(2)
    until(lambda: site.ended(200), within=30, about="the rest", told=world.tails)

    starts = first_starts(hook)
    assert len(starts) == 200
    assert 50 <= done < 150
    assert never_faster(starts, site, rate=50)
    # What the workers had in hand when they were killed comes again at once, what they were late by a tenth faster.
    assert most_within(1.0, starts) <= 1.1 * 50 + LATE + (16 if how == "killed" else 0)
    world.check(reaped=range(17), perhaps=("many workers lost",))


@pytest.mark.fault(47)
def test_kept_events_start_their_runs_at_the_rate_asked_for_and_in_their_order(world: World) -> None:
    site = world.site()
    site.rule([note("{{ ticket.subject }}")], fields=["subject"])
    tickets = site.tickets(60)
    world.cluster(2)
    with site.acting():
        pause.pause(level="new", reason="A quiet hour")
    for number, ticket in enumerate(tickets):
        site.change(ticket, subject=f"While paused {number}")
    assert site.runs() == []

    with site.acting():
        pause.resume(Choice(rate=600))
    until(lambda: site.ended(60), within=20, about="the kept events", told=world.tails)

    runs = site.runs()
    assert [run["event_id"] for run in runs] == sorted(run["event_id"] for run in runs)
    starts = [run["created_at"].timestamp() for run in runs]
    begun = starts[0]
    assert all(start - begun >= place / 10 - MADE_UP - 0.1 for place, start in enumerate(starts))
    assert starts[-1] - begun <= 1.1 * 5.9
    world.check()


@pytest.mark.fault(46)
def test_ten_pauses_and_resumes_under_load_lose_and_double_nothing(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "20")
    site = world.site(max_running=8)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()], fields=["description"]), site.tickets(20)
    world.cluster(4)
    writer = world.start_act("save_often", str(site.id), ",".join(map(str, tickets)), "800")
    choices = [Choice(), Choice(rate=6000), Choice("recent", recent_minutes=60), Choice(rate=3000), Choice(rate=60_000)]
    quiet: list[tuple[float, float]] = []
    for number in range(10):
        level, everywhere = "new" if number % 3 == 2 else "hold", number in (4, 7)
        with site.acting():
            (pause.pause_installation if everywhere else pause.pause)(level=level, reason=f"Number {number}")
        until(lambda: paused(site), within=10, about="paused", told=world.tails)
        reached, seen = time.time(), len(site.events())
        until(
            lambda seen=seen: len(site.events()) > seen + 5 or writer.poll() is not None,
            within=10, about="saves under the pause", told=world.tails,
        )  # fmt: skip
        if level == "hold":
            quiet.append((reached, time.time()))
        with site.acting():
            (pause.resume_installation if everywhere else pause.resume)(choices[number % len(choices)])
        ended = len(hook.entries())
        until(lambda ended=ended: len(hook.entries()) > ended, within=10, about="more calls", told=world.tails)
    answer, _errors = writer.communicate(timeout=120)
    assert answer.split()[0] == "0"
    with site.acting():
        pause.resume()

    events = len(site.events())
    until(lambda: site.ended(events), within=120, about="all runs' end", told=world.tails)
    sent = Counter(entry["key"] for entry in hook.entries())
    assert len(sent) == events
    assert set(sent.values()) == {1}
    begun = [entry["t_start"] for entry in hook.entries()]
    assert not [at for at in begun if any(reached <= at < resumed for reached, resumed in quiet)]
    world.check(fits={rule: "e.change = 'updated'"})


def first_starts(hook: Server) -> list[float]:
    """When each call began, the first time where a killed worker had made it already."""
    found: dict[str, float] = {}
    for entry in sorted(hook.entries(), key=lambda entry: entry["t_start"]):
        found.setdefault(entry["key"], entry["t_start"])
    return sorted(found.values())


def paused(site: Site) -> bool:
    """Whether the pause has come to all workers."""
    with site.acting():
        return pause.status().state == "paused"


def within_tenth(seconds: float, wanted: float) -> bool:
    """Whether it took as long as it should, to a tenth."""
    return 0.9 * wanted <= seconds <= 1.1 * wanted


def never_faster(starts: Sequence[float], site: Site, *, rate: int) -> bool:
    """Whether at no moment since the resume more had started than the rate allows."""
    with site.acting():
        since = Drip.objects.get(tenant=site.tenant, scope="tenant").since.timestamp()
    return all(start >= since + place / rate for place, start in enumerate(starts))


def most_within(seconds: float, starts: Sequence[float]) -> int:
    """The most starts in any span of so many seconds."""
    return max(sum(1 for other in starts if start <= other < start + seconds) for start in starts)


def order(site: Site) -> int:
    """By how many places a step was begun before or after its turn, at most."""
    begun = sorted(site.steps(), key=lambda step: step["started_at"])
    turns = {step["id"]: place for place, step in enumerate(site.steps())}
    return max(abs(turns[step["id"]] - place) for place, step in enumerate(begun))
