"""Reads and tells all tenants at once, for pauses of the whole installation."""

from automation.store import statements
from automation.store.drips import COUNTED, STEP_KINDS

# A probe of two indexes for each tenant.
HOLDING = """
SELECT h.* FROM (
  SELECT l.tenant_id,
         (SELECT count(*) FROM (SELECT 1 FROM automation_event e WHERE e.tenant_id = l.tenant_id
             AND e.matched_at IS NULL LIMIT %(most)s) a) AS events,
         (SELECT count(*) FROM (SELECT 1 FROM automation_timer x WHERE x.lane_id = l.id AND x.state = 'pending'
             AND x.due_at <= (SELECT automation_now()) AND x.kind = ANY(%(kinds)s) LIMIT %(most)s) b) AS steps
    FROM automation_lane l JOIN tenants_tenant t ON t.id = l.tenant_id AND t.closed_at IS NULL) h
 WHERE h.events + h.steps > 0 ORDER BY h.tenant_id
"""
CONCERNED = """
SELECT l.tenant_id FROM automation_lane l JOIN tenants_tenant t ON t.id = l.tenant_id AND t.closed_at IS NULL
 WHERE l.tenant_id > %(after)s
   AND (EXISTS (SELECT 1 FROM automation_event e WHERE e.tenant_id = l.tenant_id AND e.matched_at IS NULL)
        OR EXISTS (SELECT 1 FROM automation_timer x WHERE x.lane_id = l.id AND x.state = 'pending'
                      AND x.due_at <= (SELECT automation_now()) AND x.kind = ANY(%(kinds)s))
        OR EXISTS (SELECT 1 FROM automation_drip d WHERE d.tenant_id = l.tenant_id AND d.ended_at IS NULL
                      AND d.next_at IS NOT NULL))
 ORDER BY l.tenant_id
"""
ASTRAY = """
SELECT EXISTS (SELECT 1 FROM automation_pause p
                 JOIN automation_lane l ON NOT l.hold_new OR (p.level <> 'new' AND NOT l.paused)
                WHERE p.scope = 'installation' AND p.ended_at IS NULL)
    OR EXISTS (SELECT 1 FROM automation_lane l JOIN tenants_tenant t ON t.id = l.tenant_id AND t.closed_at IS NULL
                WHERE l.hold_new AND NOT EXISTS (SELECT 1 FROM automation_pause p
                        WHERE p.ended_at IS NULL AND (p.level <> 'new' OR NOT l.paused)
                          AND (p.scope = 'installation' OR (p.scope = 'tenant' AND p.tenant_id = t.id))))
"""


def holding() -> list[tuple[int, int, int]]:
    """(tenant, kept events, due steps) of the open tenants that have some; each counted to `COUNTED` at most."""
    found = statements.rows(HOLDING, {"most": COUNTED, "kinds": STEP_KINDS})
    return [(row[0], row[1], row[2]) for row in found]


def concerned(*, after: int) -> list[int]:
    """Open tenants beyond `after` to whom it matters how a pause of all ends: something waits, or is let out."""
    return [row[0] for row in statements.rows(CONCERNED, {"after": after, "kinds": STEP_KINDS})]


def astray() -> bool:
    """Whether a lane runs although the installation is paused, or stands though nothing open asks for it.

    Both come from a tenant that was made at the same moment as the pause, or as its end.
    """
    return bool(statements.value(ASTRAY))


def bump_all() -> None:
    """Makes every worker read all rules and pauses anew; the locks of lanes, in order, come last in a transaction."""
    statements.count(
        "UPDATE automation_lane x SET rules_version = x.rules_version + 1 FROM (SELECT y.id FROM automation_lane y"
        " ORDER BY y.id FOR NO KEY UPDATE) l WHERE x.id = l.id"
    )
