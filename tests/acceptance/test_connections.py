"""A connection's own places and breaker, with real workers and a real receiver."""

import pytest
from acceptance.harness.scenario import webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance


@pytest.mark.fault(45)
@pytest.mark.parametrize("calls", [12, pytest.param(40, marks=pytest.mark.long)])
def test_no_more_calls_at_a_time_than_a_connection_allows_whoever_makes_them(world: World, calls: int) -> None:
    hook = world.server("webhooks", "--delay-ms", "150")
    site = world.site(max_running=16)
    site.connect(hook.url)
    world.db.run("UPDATE automation_connection SET concurrency = 3 WHERE tenant_id = %s", site.id)
    rule, tickets = site.rule([webhook()]), site.tickets(calls)
    world.cluster(3)
    site.backlog(rule, tickets)
    until(lambda: site.ended(calls), within=90, about="all runs' end", told=world.tails)
    entries = hook.entries(calls)
    assert len(entries) == calls
    assert max(one["running"] for one in entries) == 3
    took = max(one["t_end"] for one in entries) - min(one["t_start"] for one in entries)
    assert took < 10, "a place that is free is taken at once: two seconds where nothing else is done"
    assert {step["attempts"] for step in site.steps()} == {1}
    world.check()


@pytest.mark.case("R04")
def test_a_dead_endpoint_burns_no_attempts_and_its_work_goes_on_when_it_answers(world: World) -> None:
    hook = world.server("webhooks")
    hook.prescribe(503, last="repeat")
    site = world.site(max_running=8)
    site.connect(hook.url)
    retry = {"max_attempts": 3, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}
    rule, tickets = site.rule([webhook(retry=retry)]), site.tickets(60)
    world.cluster(2, breakers=1)
    site.backlog(rule, tickets)
    state = "SELECT breaker FROM automation_connection WHERE tenant_id = %s"
    until(lambda: world.db.value(state, site.id) == "open", within=30, about="an open breaker", told=world.tails)
    held = "SELECT count(*) FROM automation_run WHERE tenant_id = %s AND reason = 'endpoint_down'"
    until(lambda: world.db.value(held, site.id) >= 40, within=30, about="steps that wait", told=world.tails)
    calls = len(hook.entries())
    assert calls < 60, "most were held before their first attempt"
    hook.prescribe()
    # What a minute would bring: the next try is due now.
    world.db.run("UPDATE automation_connection SET breaker_until = automation_now() WHERE tenant_id = %s", site.id)
    world.db.run("UPDATE automation_lane SET rules_version = rules_version + 1 WHERE tenant_id = %s", site.id)
    site.hurry()
    until(lambda: world.db.value(state, site.id) == "closed", within=30, about="a try", told=world.tails)
    site.hurry()
    until(lambda: site.ended(60), within=60, about="all runs' end", told=world.tails)
    assert site.letters() == []
    world.check(alarms=("connection down",))
