"""A limit of runs per record, claimed by real workers side by side."""

import pytest
from acceptance.harness.scenario import note
from acceptance.harness.waiting import until
from acceptance.harness.world import World

from automation.engine import rules

pytestmark = pytest.mark.acceptance


@pytest.mark.case("D11")
def test_of_many_matching_events_at_once_only_so_many_run(world: World) -> None:
    site = world.site()
    with site.acting():
        rule = rules.create(
            "At most two",
            definition={
                "schema_version": 1,
                "trigger": {
                    "kind": "record_changed",
                    "params": {"model": "helpdesk.ticket", "on": ["updated"], "fields": ["subject"]},
                },
                "condition": None,
                "limit": {"runs": 2, "per": "PT3H"},
                "steps": [note()],
            },
        )
        rules.publish(rule.pk, revision=rule.draft.revision)
        rules.switch_on(rule.pk)
    tickets = site.tickets(3)
    world.cluster(3)
    for number in range(8):
        for ticket in tickets:
            site.change(ticket, subject=f"Change {number}")
    until(lambda: len(site.runs()) == 24, within=60, about="every event's run", told=world.tails)
    until(lambda: site.ended(6), within=60, about="the runs that may", told=world.tails)
    counted = "SELECT record, count(*) AS runs FROM automation_run WHERE tenant_id = %s AND {} GROUP BY record"
    started = world.db.rows(counted.format("state = 'succeeded'"), site.id)
    assert [row["runs"] for row in started] == [2, 2, 2]
    held = world.db.rows(counted.format("reason = 'limit_per_record'"), site.id)
    assert [row["runs"] for row in held] == [6, 6, 6]
    world.check()
