"""Workers do backtests in their pauses; who is killed in one leaves it to the next, and live work goes on."""

import pytest
from acceptance.harness.scenario import definition, note, put
from acceptance.harness.waiting import until
from acceptance.harness.world import World
from django.db import connection

from automation.engine import backtest
from automation.models import Backtest

pytestmark = [pytest.mark.acceptance, pytest.mark.long]
COPIES = 6000
HISTORY = """
INSERT INTO automation_event (tenant_id, kind, change, name, model, record, facts, actor, source, batch, body_sha256,
                              depth, path, matched_at)
SELECT e.tenant_id, e.kind, e.change, '', e.model, e.record, e.facts, '', 'person', '', '', 0, '[]', now()
  FROM automation_event e, generate_series(1, %s) WHERE e.id = %s
"""


def test_a_worker_that_is_killed_in_a_backtest_leaves_it_to_the_next(world: World) -> None:
    site = world.site()
    rule = site.rule([note()], fields=["priority"])
    first, second = site.tickets(2)
    world.cluster(1)
    site.change(first, priority="urgent")
    until(lambda: site.ended(1), within=30, about="the first run's end", told=world.tails)
    world.end_clusters()
    event = next(one for one in site.events() if one["change"] == "updated" and one["source"] == "person")
    with connection.cursor() as cursor:
        cursor.execute(HISTORY, [COPIES, event["id"]])
    with site.acting():
        made = backtest.start(rule, definition=definition([put(status="open")], fields=["priority"]), most=100_000)

    world.cluster(1, fail="backtest.judged:kill@2")
    until(lambda: _row(made)["state"] == "running", within=30, about="the first slice", told=world.tails)
    site.change(second, priority="high")
    until(lambda: site.ended(2), within=60, about="the second run's end", told=world.tails)
    world.end_clusters()
    world.cluster(1)
    until(lambda: _row(made)["state"] == "done", within=60, about="the backtest's end", told=world.tails)

    row = _row(made)
    assert row["judged"] == row["total"]
    assert row["result"]["counts"]["both"] == COPIES + 1
    assert len(site.runs()) == 2
    world.check()


def _row(made: Backtest) -> dict[str, object]:
    return Backtest._base_manager.filter(pk=made.pk).values("state", "judged", "total", "result").get()
