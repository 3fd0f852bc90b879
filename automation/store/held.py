"""Reads what a pause holds: how much of which rule, how old it is, and what a drip has left."""

from datetime import datetime

from automation.store import statements
from automation.store.drips import COUNTED, STEP_KINDS

BY_RULE = """
SELECT v.id, v.name, count(*), min(h.due_at)
  FROM (SELECT x.run_id, x.due_at FROM automation_timer x WHERE x.lane_id = automation_lane_of(%(tenant)s)
           AND x.tenant_id = %(tenant)s AND x.state = 'pending' AND x.due_at <= (SELECT automation_now())
           AND x.kind = ANY(%(kinds)s)
        UNION ALL
        SELECT x.run_id, x.due_at FROM automation_drip d JOIN automation_timer x ON x.drip_id = d.id
         WHERE d.tenant_id = %(tenant)s AND d.ended_at IS NULL AND d.next_at IS NOT NULL AND x.state = 'held'
         LIMIT %(most)s) h
  JOIN automation_run r ON r.id = h.run_id JOIN automation_rule v ON v.id = r.rule_id
 GROUP BY v.id, v.name ORDER BY count(*) DESC, v.id
"""
BY_KIND = """
SELECT e.model, e.change, e.name, e.source, count(*), min(e.created_at)
  FROM (SELECT * FROM automation_event e WHERE e.tenant_id = %(tenant)s AND e.matched_at IS NULL LIMIT %(most)s) e
 GROUP BY e.model, e.change, e.name, e.source ORDER BY count(*) DESC, 1, 2, 3, 4
"""
YOUNGER = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM automation_event e WHERE e.tenant_id = %(tenant)s AND e.matched_at IS NULL
           AND e.created_at >= u.since LIMIT %(most)s) a),
       (SELECT count(*) FROM (SELECT 1 FROM automation_timer x WHERE x.lane_id = automation_lane_of(%(tenant)s)
           AND x.tenant_id = %(tenant)s AND x.state = 'pending' AND x.kind = ANY(%(kinds)s)
           AND x.due_at >= u.since AND x.due_at <= u.t LIMIT %(most)s) b)
  FROM (SELECT t, t - make_interval(mins => m) AS since, n
          FROM (SELECT automation_now() AS t) now, unnest(%(minutes)s::int[]) WITH ORDINALITY AS o (m, n)) u
 ORDER BY u.n
"""
LEFT = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM automation_timer x WHERE x.drip_id = d.id AND x.state = 'held'
           LIMIT %(most)s) s),
       (SELECT count(*) FROM (SELECT 1 FROM automation_event e WHERE e.tenant_id = d.tenant_id AND e.matched_at IS NULL
           AND e.id <= d.kept_until LIMIT %(most)s) a)
  FROM automation_drip d WHERE d.id = %(drip)s
"""


def by_rule(tenant_id: int) -> list[tuple[int, str, int, datetime]]:
    """(rule, its name, steps due or held, the oldest due time), the most first; `COUNTED` steps are looked at."""
    found = statements.rows(BY_RULE, {"tenant": tenant_id, "kinds": STEP_KINDS, "most": COUNTED})
    return [(row[0], row[1], row[2], row[3]) for row in found]


def by_kind(tenant_id: int) -> list[tuple[str, str, str, str, int, datetime]]:
    """(model, change, name, source, events, the oldest) of kept events, the most first; `COUNTED` are looked at."""
    found = statements.rows(BY_KIND, {"tenant": tenant_id, "most": COUNTED})
    return [(row[0], row[1], row[2], row[3], row[4], row[5]) for row in found]


def younger_than(tenant_id: int, minutes: list[int]) -> list[tuple[int, int]]:
    """For each age: (kept events, due steps) that are younger; each counted to `COUNTED` at most."""
    found = statements.rows(YOUNGER, {"tenant": tenant_id, "minutes": minutes, "kinds": STEP_KINDS, "most": COUNTED})
    return [(row[0], row[1]) for row in found]


def left(drip_id: int) -> tuple[int, int]:
    """How many steps and kept events a drip has still to let out; one more than `COUNTED` where there are more."""
    steps, events = statements.rows(LEFT, {"most": COUNTED + 1, "drip": drip_id})[0]
    return steps, events
