"""Reads what limits and breakers decide by: newest runs, calls of connections, and places that are taken."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from automation.store import statements

# (+ 0: by the record's history, not by the rule's.)
NEWEST = """
SELECT q.rule_id, r.created_at FROM unnest(%s::bigint[], %s::int[]) AS q (rule_id, most)
 CROSS JOIN LATERAL (SELECT o.created_at FROM automation_run o
                      WHERE o.tenant_id = %s AND o.model = %s AND o.record = %s AND o.rule_id + 0 = q.rule_id
                        AND o.state <> 'suppressed' ORDER BY o.id DESC LIMIT q.most) r
"""


def newest_runs(tenant_id: int, model: str, record: int, wanted: Mapping[int, int]) -> dict[int, list[datetime]]:
    """When the newest runs of these rules for a record began, suppressed ones apart: {rule id: how many} asked for."""
    found: dict[int, list[datetime]] = {}
    for rule_id, at in statements.rows(NEWEST, [list(wanted), list(wanted.values()), tenant_id, model, record]):
        found.setdefault(rule_id, []).append(at)
    return found


# Of the newest runs of a rule that have ended those that failed since the last one that succeeded, and since somebody
# switched the rule on or published it; tests, replays and runs that expired don't count, nor do runs that still wait,
# however many. One without a record stands for its event.
FAILED_IN_A_ROW = """
WITH looked_at AS (
  SELECT r.id, r.state, r.model, r.record, r.event_id, r.ended_at FROM automation_run r
   WHERE r.tenant_id = %(tenant)s AND r.rule_id = %(rule)s AND r.origin = 'event' AND r.forked_from_run_id IS NULL
     AND r.reason <> 'expired'
   ORDER BY r.id DESC LIMIT 10000),
newest AS (
  SELECT l.* FROM looked_at l WHERE l.state IN ('succeeded', 'failed') ORDER BY l.id DESC LIMIT 500),
good AS (SELECT max(n.id) AS id FROM newest n WHERE n.state = 'succeeded'),
since AS (SELECT max(a.at) AS at FROM tenants_auditentry a
           WHERE a.tenant_id = %(tenant)s AND a.target = %(target)s AND a.verb IN ('switch_on', 'publish'))
SELECT count(DISTINCT (n.model, COALESCE(n.record, -n.event_id))) FROM newest n, good, since
 WHERE n.state = 'failed' AND n.id > COALESCE(good.id, 0) AND (since.at IS NULL OR n.ended_at > since.at)
"""


def failed_in_a_row(tenant_id: int, rule_id: int) -> int:
    """For how many different records the newest runs of a rule failed, with no success between."""
    values: dict[str, int | str] = {"tenant": tenant_id, "rule": rule_id, "target": f"rule:{rule_id}"}
    with connection.cursor() as cursor:
        cursor.execute(FAILED_IN_A_ROW, values)
        return int(cursor.fetchone()[0])


# How full tenants are that weren't looked at for a while. Of events those that still have their facts are counted, no
# further than their limit.
USED = """
WITH due AS (
  SELECT l.tenant_id FROM automation_limits l JOIN tenants_tenant t ON t.id = l.tenant_id AND t.closed_at IS NULL
   WHERE l.tenant_id = ANY(%s::bigint[]) OR (%s::bigint[] IS NULL AND (l.used_at IS NULL OR l.used_at < %s))
   ORDER BY l.used_at NULLS FIRST LIMIT %s)
SELECT l.tenant_id,
       (SELECT count(*) FROM (SELECT e.created_at, e.details_removed_at FROM automation_event e
                               WHERE e.tenant_id = l.tenant_id ORDER BY e.id DESC LIMIT l.events_kept) x
         WHERE x.details_removed_at IS NULL
           AND x.created_at > (SELECT automation_now()) - make_interval(days => l.retention_days)), l.events_kept,
       (SELECT count(*) FROM automation_rule r WHERE r.tenant_id = l.tenant_id AND r.deleted_at IS NULL), l.rules,
       n.running, n.max_running,
       NOT n.paused AND n.running >= n.max_running AND EXISTS (
         SELECT 1 FROM automation_timer w WHERE w.lane_id = n.id AND w.state = 'pending'
            AND w.due_at < (SELECT automation_now()) - interval '60 seconds'),
       l.told_events, l.told_rules, l.told_running
  FROM due JOIN automation_limits l ON l.tenant_id = due.tenant_id
  JOIN automation_lane n ON n.tenant_id = l.tenant_id ORDER BY l.tenant_id
"""
# Tenants whose people don't know yet that work has waited for a minute while all places are taken.
CROWDED = """
SELECT n.tenant_id FROM automation_lane n JOIN automation_limits l ON l.tenant_id = n.tenant_id AND l.told_running < 100
 WHERE NOT n.paused AND n.running >= n.max_running AND EXISTS (
   SELECT 1 FROM automation_timer w WHERE w.lane_id = n.id AND w.state = 'pending'
      AND w.due_at < (SELECT automation_now()) - interval '60 seconds')
 ORDER BY n.tenant_id LIMIT %s
"""
SET_TOLD = """
UPDATE automation_limits SET told_events = %s, told_rules = %s, told_running = %s, used_at = %s WHERE tenant_id = %s
"""


class Used(NamedTuple):
    """A tenant's use of its limits; `kept_waiting`: at its cap, and work has waited for a minute. Told: in percent."""

    tenant_id: int
    events: int
    events_kept: int
    rules: int
    rules_limit: int
    running: int
    max_running: int
    kept_waiting: bool
    told_events: int
    told_rules: int
    told_running: int


def used(*, tenant_ids: Sequence[int] | None = None, before: datetime | None = None, most: int = 20) -> list[Used]:
    """The use of these tenants, or of those that were looked at before a moment, longest ago first."""
    ids = None if tenant_ids is None else list(tenant_ids)
    return [Used(*row) for row in statements.rows(USED, [ids, ids, before, most])]


def crowded(*, most: int) -> list[int]:
    """Tenants that keep work waiting at their cap, and weren't told of it."""
    return [row[0] for row in statements.rows(CROWDED, [most])]


def set_told(tenant_id: int, *, events: int, rules: int, running: int, used_at: datetime) -> None:
    """Remembers what a tenant was told of, so that it is told once, and when its use was looked at."""
    statements.count(SET_TOLD, [events, rules, running, used_at, tenant_id])


def look_soon(tenant_id: int) -> None:
    """Has the next round of the chores look at a tenant's limits, in the caller's transaction."""
    statements.count("UPDATE automation_limits SET used_at = NULL WHERE tenant_id = %s", [tenant_id])
