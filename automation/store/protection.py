"""Reads what limits and breakers decide by: newest runs, calls of connections, and places that are taken."""

from collections.abc import Mapping
from datetime import datetime

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
