"""Reads and writes which rule has had its one run for which batch of an import."""

from collections.abc import Sequence

from automation.store import statements
from automation.store.waves import Stale

KNOWN = """
SELECT s.rule_id, s.batch FROM automation_servedbatch s
  JOIN unnest(%s::bigint[], %s::varchar[]) AS u (rule_id, batch) ON u.rule_id = s.rule_id AND u.batch = s.batch
 WHERE s.tenant_id = %s
"""
CLAIM = """
INSERT INTO automation_servedbatch (tenant_id, rule_id, batch, event_id)
SELECT %s, u.rule_id, u.batch, u.event_id FROM unnest(%s::bigint[], %s::varchar[], %s::bigint[])
       AS u (rule_id, batch, event_id) ORDER BY u.rule_id, u.batch
ON CONFLICT (tenant_id, rule_id, batch) DO NOTHING
"""


def known(tenant_id: int, pairs: Sequence[tuple[int, str]]) -> set[tuple[int, str]]:
    """Those of the pairs (rule id, batch) that are served."""
    return {(row[0], row[1]) for row in statements.rows(KNOWN, [*statements.columns(pairs), tenant_id])}


def claim(tenant_id: int, new: Sequence[tuple[int, str, int]]) -> None:
    """Keeps (rule id, batch, event id) as served; raises `Stale` where one of them was served already."""
    if statements.count(CLAIM, [tenant_id, *statements.columns(new)]) != len(new):
        raise Stale
