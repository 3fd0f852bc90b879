"""Real workers while rules are published, and while they take up records that were there before them."""

from collections import Counter

import pytest
from acceptance.harness.scenario import delay, note, put, webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

from automation.engine import rules

pytestmark = pytest.mark.acceptance


@pytest.mark.case("V01")
def test_runs_under_way_are_cancelled_with_their_version_and_new_ones_follow_the_new_one(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    rule = site.rule([delay("PT1H"), webhook()], fields=["priority"])
    old, new = site.tickets(2)
    world.cluster(2)
    site.change(old, priority="urgent")
    until(lambda: site.steps("path = 'wait' AND state = 'waiting'"), within=20, about="the delay", told=world.tails)

    with site.acting():
        draft = rules.find(rule).draft
        steps = [webhook(id="second")]
        saved = rules.save_draft(rule, {**draft.definition, "steps": steps}, base_revision=draft.revision)
        rules.publish(rule, revision=saved.revision, waiting="cancel")
    site.change(new, priority="urgent")
    until(lambda: site.ended(1), within=20, about="the new run's end", told=world.tails)

    with site.acting():
        assert rules.in_use(rule) == []
    assert Counter(run["state"] for run in site.runs()) == {"cancelled": 1, "succeeded": 1}
    assert len(hook.entries()) == 1
    world.check()


def test_records_taken_up_are_done_once_each_though_their_workers_die(world: World) -> None:
    site = world.site()
    tickets = site.tickets(40, priority="urgent")
    site.tickets(10, priority="low")
    urgent = {"id": "c", "field": "priority", "op": "changed_to", "value": "urgent"}
    rule = site.rule([note(), put(priority="high")], condition=urgent)
    first = world.cluster(2)
    with site.acting():
        rules.take_up(rule, rate=600)
    until(lambda: len(site.runs()) >= 10, within=30, about="the first records", told=world.tails)
    for pid in first.pumps():
        first.kill(pid)
    until(lambda: site.ended(40), within=60, about="the last record", told=world.tails)
    kept = "SELECT taking_up FROM automation_rule WHERE id = %s"
    until(lambda: site.db.row(kept, rule)["taking_up"] is None, within=20, about="the end", told=world.tails)
    assert sorted(run["record"] for run in site.runs()) == sorted(tickets)
    assert {run["state"] for run in site.runs()} == {"succeeded"}
    world.check(perhaps=("many workers lost",), reaped=range(10), stale_settle=range(10))
