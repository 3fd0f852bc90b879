"""Keeps backtests: their queue, their progress, and the stored events that they judge."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from automation.store import statements
from automation.store.events import COLUMNS, EventRow, row

OPEN = "SELECT EXISTS (SELECT 1 FROM automation_backtest WHERE state IN ('queued', 'running'))"
TAKE = """
SELECT b.id, b.tenant_id, b.rule_id, b.definition, b.against_id, b.since, b.most, b.state, b.place, b.total, b.judged,
       b.result, b.cancel_requested_at IS NOT NULL
  FROM automation_backtest b
 WHERE b.state IN ('queued', 'running') AND (b.id = %s OR %s) ORDER BY b.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
"""
SAVE = """
UPDATE automation_backtest
   SET state = %s, place = %s, total = %s, judged = %s, result = %s, error = %s,
       started_at = COALESCE(started_at, clock_timestamp()),
       ended_at = CASE WHEN %s IN ('queued', 'running') THEN NULL ELSE clock_timestamp() END
 WHERE id = %s AND state IN ('queued', 'running')
"""
CANCEL = """
UPDATE automation_backtest SET cancel_requested_at = clock_timestamp()
 WHERE id = %s AND tenant_id = %s AND state IN ('queued', 'running') AND cancel_requested_at IS NULL
"""
# + 0: by the index of records, which knows the tenant, and not by that of all ids.
SPAN = """
SELECT count(*), min(x.id), max(x.id) FROM (
  SELECT e.id FROM automation_event e
   WHERE e.tenant_id = %s AND e.model = ANY(%s::varchar[]) AND e.kind = ANY(%s::varchar[]) AND e.created_at >= %s
     AND e.details_removed_at IS NULL
   ORDER BY e.id + 0 DESC LIMIT %s) x
"""
_BATCH = f"""
SELECT {COLUMNS} FROM automation_event e
 WHERE e.tenant_id = %s AND e.model = %s AND {{behind}}
   AND e.id BETWEEN %s AND %s AND e.kind = ANY(%s::varchar[]) AND e.created_at >= %s
   AND e.details_removed_at IS NULL
 ORDER BY e.record, e.id LIMIT %s
"""  # noqa: S608 the columns of store.events
WITH_RECORD = _BATCH.format(behind="(e.record, e.id) > (%s, %s)")
WITHOUT_RECORD = _BATCH.format(behind="e.record IS NULL AND %s = 0 AND e.id > %s")
BY_IDS = f"""
SELECT {COLUMNS} FROM automation_event e
 WHERE e.tenant_id = %s AND e.id = ANY(%s::bigint[]) AND e.details_removed_at IS NULL
"""  # noqa: S608 the columns of store.events
LAST_KEPT = """
DELETE FROM automation_backtest WHERE tenant_id = %s AND rule_id = %s AND state NOT IN ('queued', 'running') AND id < (
  SELECT COALESCE(min(x.id), 0) FROM (SELECT id FROM automation_backtest WHERE tenant_id = %s AND rule_id = %s
                                       ORDER BY id DESC LIMIT %s) x)
"""


class BacktestRow(NamedTuple):
    """A backtest under its lock."""

    id: int
    tenant_id: int
    rule_id: int
    definition: dict[str, Any]
    against_id: int | None
    since: datetime
    most: int
    state: str
    place: Any
    total: int
    judged: int
    result: dict[str, Any]
    cancelled: bool


class Span(NamedTuple):
    """Which events are judged: how many, the first and the last id."""

    events: int
    first: int
    last: int


class Behind(NamedTuple):
    """The place in a model's events, in the order of records and ids; `record` None for those without a record."""

    model: str
    record: int | None
    event: int


def any_open() -> bool:
    """Whether there is a backtest to work on."""
    return bool(statements.value(OPEN))


def take(backtest_id: int | None) -> BacktestRow | None:
    """Locks that backtest, or the oldest one, unless it has ended or somebody is on it: for one transaction."""
    found = statements.rows(TAKE, [backtest_id, backtest_id is None])
    if not found:
        return None
    values = list(found[0])
    for place in (3, 8, 11):
        values[place] = None if values[place] is None else json.loads(values[place])
    return BacktestRow(*values)


def save(
    backtest_id: int,
    *,
    state: str,
    place: Any,
    total: int,
    judged: int,
    result: dict[str, Any],
    error: str = "",
) -> bool:
    """Writes how far it is; False where it has ended meanwhile."""
    values = [state, json.dumps(place), total, judged, json.dumps(result), error, state, backtest_id]
    return statements.count(SAVE, values) == 1


def request_cancel(tenant_id: int, backtest_id: int) -> bool:
    """Asks to stop it; False where it has ended or was asked already."""
    return statements.count(CANCEL, [backtest_id, tenant_id]) == 1


def forget_old(tenant_id: int, rule_id: int, *, keep: int) -> int:
    """Deletes the rule's ended backtests but the newest; answers how many."""
    return statements.count(LAST_KEPT, [tenant_id, rule_id, tenant_id, rule_id, keep])


def span(tenant_id: int, *, models: Sequence[str], kinds: Sequence[str], since: datetime, most: int) -> Span:
    """The newest events of these models and kinds."""
    count, first, last = statements.rows(SPAN, [tenant_id, list(models), list(kinds), since, most])[0]
    return Span(count, first or 0, last or 0)


def by_ids(tenant_id: int, ids: Sequence[int]) -> list[EventRow]:
    """These events of the tenant, as far as they are there with their details."""
    return [row(found) for found in statements.rows(BY_IDS, [tenant_id, list(ids)])]


def batch(
    tenant_id: int, behind: Behind, within: Span, *, kinds: Sequence[str], since: datetime, limit: int
) -> list[EventRow]:
    """The next events of a model behind a place; within a constant memory, by the index of records."""
    sql = WITHOUT_RECORD if behind.record is None else WITH_RECORD
    values = [tenant_id, behind.model, behind.record or 0, behind.event, within.first, within.last]
    return [row(found) for found in statements.rows(sql, [*values, list(kinds), since, limit])]
