"""A receiver that fails is asked again under one key, later each time, and not by all at the same moment."""

import itertools
import json
from collections import Counter

import pytest
from acceptance.harness.scenario import sms, webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance
SECOND = {"max_attempts": 5, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": True}


@pytest.mark.fault(36)
def test_a_receiver_that_fails_four_times_gets_the_same_message_a_fifth_time(world: World) -> None:
    hook = world.server("webhooks")
    hook.prescribe(503, {"status": 503, "retry_after": "3"}, 503, 503)
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook(retry=SECOND)])
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(lambda: site.ended(1), within=40, about="the run's end", told=world.tails)

    entries = hook.entries()
    assert [entry["answer"] for entry in entries] == [503, 503, 503, 503, 200]
    assert len({entry["key"] for entry in entries}) == 1
    (step,) = site.steps()
    assert site.outcomes(step["id"]) == ["failed"] * 4 + ["ok"]
    gaps = [after["t_start"] - before["t_end"] for before, after in itertools.pairwise(entries)]
    assert gaps[1] >= 3
    assert all(0 <= gap <= 1 + 1 for gap in (gaps[0], *gaps[2:])), gaps  # the delay, and the way to the next claim
    world.check()


@pytest.mark.fault(36)
@pytest.mark.parametrize(("many", "most"), [(500, 85), pytest.param(1000, 150, marks=pytest.mark.long)])
def test_retries_of_many_are_spread_over_the_whole_interval(world: World, many: int, most: int) -> None:
    hook = world.server("webhooks")
    hook.prescribe(503)
    site = world.site(max_running=8)
    site.connect(hook.url)
    delay = 36_000.0
    retry = {"max_attempts": 2, "base_delay": "PT36000S", "factor": 1.0, "max_delay": "PT36000S", "jitter": True}
    rule, tickets = site.rule([webhook(retry=retry)]), site.tickets(many)
    world.cluster(2)
    site.backlog(rule, tickets)
    failed = "SELECT count(*) FROM automation_attempt WHERE outcome = 'failed'"
    until(lambda: world.db.value(failed) == many, within=120, about="all retries", told=world.tails)

    chosen = [
        row["wait"]
        for row in world.db.rows(
            "SELECT extract(epoch FROM x.due_at - a.finished_at)::float AS wait FROM automation_timer x"
            " JOIN automation_attempt a ON a.step_id = x.step_id WHERE x.kind = 'retry'"
        )
    ]
    tenths = Counter(min(max(int(wait * 10 / delay), 0), 9) for wait in chosen)
    assert len(chosen) >= many - 10  # a few may have fallen due by now
    assert min(chosen) >= -1
    assert max(chosen) <= delay
    assert max(tenths.values()) <= most, tenths
    site.hurry()
    until(lambda: site.ended(many), within=120, about="all runs' end", told=world.tails)
    assert {step["attempts"] for step in site.steps()} == {2}
    world.check()


@pytest.mark.case("D14")
def test_a_message_that_was_taken_without_an_answer_is_not_sent_again(world: World) -> None:
    phone = world.server("sms")
    phone.prescribe("drop", last="repeat")
    site = world.site()
    site.connect_sms(phone.url)
    site.rule([sms()])
    (ticket,) = site.tickets(1)
    world.cluster(2)
    site.change(ticket, priority="urgent")
    until(site.letters, within=20, about="the dead letter", told=world.tails)

    (letter,), (step,), (run,) = site.letters(), site.steps(), site.runs()
    assert letter["reason"] == "delivery_unknown"
    assert (step["effect_state"], step["attempts"], run["state"]) == ("uncertain", 1, "waiting")
    assert len(phone.entries()) == 1
    world.check(parked=1)


@pytest.mark.case("R04")
def test_a_receiver_that_trickles_its_answer_is_given_up_at_the_whole_deadline(world: World) -> None:
    hook = world.server("webhooks")
    trickle = {"kind": "trickle", "status": 200, "part": "headers", "every_ms": 200}
    hook.script.write_text(json.dumps([{"match": "", "answers": [trickle]}]))
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    (ticket,) = site.tickets(1)
    world.cluster(1)
    site.change(ticket, priority="urgent")
    until(lambda: site.ended(1), within=20, about="the run's end", told=world.tails)
    (step,) = site.steps()
    assert site.outcomes(step["id"]) == ["timeout", "ok"]
    world.check()
