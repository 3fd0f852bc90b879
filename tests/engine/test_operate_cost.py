"""What the operators' chores and lists ask for is found by an index, however long the history is."""

import json
from typing import Any

import pytest
from django.db import connection
from operating import make_event, make_rule
from operating import place as new_place

from automation.engine.stuck import BEGINNING
from automation.store import by_hand, verbs, watch
from automation.store.watch import Place
from tenants.context import acting_for

pytestmark = pytest.mark.django_db
FEW = 50  # blocks of a few descents of an index; the table has more than 400
FILL = """
INSERT INTO automation_run (tenant_id, rule_id, rule_version_id, event_id, origin, state, model, record, root_event_id,
                            depth, deadline_at)
SELECT r.tenant_id, r.id, r.published_id, %s, 'test', CASE WHEN i %% 20 = 0 THEN 'waiting' ELSE 'succeeded' END,
       'helpdesk.ticket', i, %s, 0, automation_now() + make_interval(secs => i)
  FROM automation_rule r, generate_series(1, 20000) i WHERE r.id = %s
"""


@pytest.fixture
def tenant_id() -> int:
    """A tenant with 20,000 runs, of which 1,000 are live, and none has outlived its time.

    The table is made anew, and as it was when this is taken back: no other test's dead rows are in its indexes.
    """
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE automation_run CASCADE")
    acme = new_place()
    with acting_for(acme.tenant.pk, acme.actor):
        rule = make_rule(acme.tenant)
        event = make_event(acme.tenant)
    with connection.cursor() as cursor:
        cursor.execute(FILL, [event.pk, event.pk, rule.pk])
        cursor.execute("ANALYZE automation_run")
        cursor.execute("ANALYZE automation_stepexecution")
    return acme.tenant.pk


def cost(sql: str, *params: Any) -> tuple[int, set[str]]:
    """(blocks touched, tables read from end to end) of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
        found = cursor.fetchone()[0]
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    scans: set[str] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        waiting += node.get("Plans", [])
        if node["Node Type"] == "Seq Scan":
            scans.add(node["Relation Name"])
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], scans


def test_the_look_for_runs_whose_time_is_over_touches_the_head_of_an_index(tenant_id: int) -> None:
    blocks, scans = cost(verbs.EXPIRED_RUNS, 500)
    assert blocks < FEW
    assert "automation_run" not in scans


def test_a_bit_of_the_watchs_round_reads_live_runs_only(tenant_id: int) -> None:
    blocks, scans = cost(watch.ROUND, *BEGINNING, 100)
    assert "automation_run" not in scans
    assert blocks < 1500
    assert len(watch.look_round(BEGINNING, 100)[0]) == 100
    half = watch.look_round(BEGINNING, 500)[1]
    assert isinstance(half, Place)
    assert watch.look_round(half, 600)[1] is None


def test_the_family_of_a_replay_is_found_by_its_event(tenant_id: int) -> None:
    blocks, scans = cost(by_hand.EARLIER, "page", 1, 0, 1, 1, 1, 1)
    assert "automation_run" not in scans
    assert blocks < FEW
