"""Looks for runs that nothing will wake any more, and for work that has been due for long."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from automation.core.states import LIVE_RUN, TERMINAL_STEP
from automation.store import statements

LIVE = ", ".join(f"'{state}'" for state in LIVE_RUN)
ENDED = ", ".join(f"'{state}'" for state in sorted(TERMINAL_STEP))
# Neither a timer nor an open dead letter: in one statement, so that no run is caught between two commits.
FORGOTTEN = """
NOT EXISTS (SELECT 1 FROM automation_stepexecution s JOIN automation_timer x ON x.step_id = s.id WHERE s.run_id = q.id)
AND NOT EXISTS (SELECT 1 FROM automation_deadletter d WHERE d.run_id = q.id AND d.resolved_at IS NULL)
"""
ROUND = f"""
WITH q AS MATERIALIZED (
  SELECT r.id, r.tenant_id, r.deadline_at FROM automation_run r
   WHERE r.state IN ({LIVE}) AND (r.deadline_at, r.id) > (%s, %s) ORDER BY r.deadline_at, r.id LIMIT %s)
SELECT q.id, q.tenant_id, q.deadline_at, {FORGOTTEN} FROM q ORDER BY q.deadline_at, q.id
"""  # noqa: S608 states of the table
OF_TENANT = f"""
WITH q AS MATERIALIZED (
  SELECT r.id FROM automation_run r WHERE r.tenant_id = %s AND r.state = %s AND r.id > %s ORDER BY r.id LIMIT %s)
SELECT q.id, {FORGOTTEN} FROM q ORDER BY q.id
"""  # noqa: S608 states of the table
OVERDUE = """
SELECT x.id, x.kind, x.state, x.due_at, x.run_id, x.step_id, x.lost, x.deadline_at, COALESCE(s.action, '')
  FROM automation_lane l CROSS JOIN LATERAL (
    SELECT * FROM automation_timer y WHERE y.lane_id = l.id AND y.tenant_id = %s AND y.state = 'pending'
       AND y.due_at < %s ORDER BY y.due_at, y.id LIMIT %s) x
  LEFT JOIN automation_stepexecution s ON s.id = x.step_id
 WHERE l.id = automation_lane_of(%s) AND x.run_id IS NOT NULL ORDER BY x.due_at, x.id
"""
STUCK = f"""
WITH forgotten AS (
  SELECT q.id FROM automation_run q
   WHERE q.state IN ({LIVE}) AND (%(tenant)s::bigint IS NULL OR q.tenant_id = %(tenant)s) AND {FORGOTTEN}),
late AS (
  SELECT x.run_id FROM automation_lane l CROSS JOIN LATERAL (
    SELECT y.run_id FROM automation_timer y WHERE y.lane_id = l.id AND y.state = 'pending' AND y.due_at < %(before)s
       AND y.run_id IS NOT NULL ORDER BY y.due_at, y.id LIMIT %(limit)s) x
   WHERE %(tenant)s::bigint IS NULL OR l.id = automation_lane_of(%(tenant)s))
SELECT id FROM forgotten UNION SELECT run_id FROM late ORDER BY 1 DESC LIMIT %(limit)s
"""  # noqa: S608 states of the table
STEPS = f"""
SELECT s.run_id, s.id, s.path, s.state, s.kind, x.id IS NOT NULL FROM automation_stepexecution s
  LEFT JOIN automation_timer x ON x.step_id = s.id
 WHERE s.run_id = ANY(%s::bigint[]) AND (s.state NOT IN ({ENDED}) OR s.state = 'dead') ORDER BY s.id
"""  # noqa: S608 states of the table


class Place(NamedTuple):
    """Where the round over all live runs has come to."""

    deadline_at: datetime
    run_id: int


class Overdue(NamedTuple):
    """A timer whose time has been over for long."""

    id: int
    kind: str
    state: str
    due_at: datetime
    run_id: int
    step_id: int
    lost: int
    deadline_at: datetime | None
    action: str


class OpenStep(NamedTuple):
    """A step of a run that hasn't ended, or is dead, and whether it has a timer."""

    run_id: int
    id: int
    path: str
    state: str
    kind: str
    has_timer: bool


def look_round(place: Place, limit: int) -> tuple[list[tuple[int, int]], Place | None]:
    """(tenant, run) of the forgotten among the next live runs of all tenants, and where to go on; None at the end."""
    found = statements.rows(ROUND, [place.deadline_at, place.run_id, limit])
    forgotten = [(row[1], row[0]) for row in found if row[3]]
    return forgotten, Place(found[-1][2], found[-1][0]) if len(found) == limit else None


def forgotten(tenant_id: int, *, limit: int, batch: int = 2000) -> list[int]:
    """Runs of a tenant that haven't ended and that nothing will wake; `limit` at most."""
    found: list[int] = []
    for state in LIVE_RUN:
        last = 0
        while len(found) < limit:
            rows = statements.rows(OF_TENANT, [tenant_id, state, last, batch])
            found += [row[0] for row in rows if row[1]]
            if len(rows) < batch:
                break
            last = rows[-1][0]
    return found[:limit]


def is_forgotten(run_id: int) -> bool:
    """Whether nothing will wake this live run."""
    sql = f"SELECT {FORGOTTEN} FROM (SELECT %s::bigint AS id) q"  # noqa: S608 a constant
    return bool(statements.value(sql, [run_id]))


def overdue(tenant_id: int, *, since: timedelta, now: datetime, limit: int) -> list[Overdue]:
    """The tenant's timers that have been due for longer than `since`, the oldest first."""
    return [Overdue(*row) for row in statements.rows(OVERDUE, [tenant_id, now - since, limit, tenant_id])]


def stuck(*, tenant_id: int | None, before: datetime, limit: int) -> list[int]:
    """The newest stuck runs of a tenant, or of all in one statement: forgotten, or due since before that moment."""
    about = {"tenant": tenant_id, "before": before, "limit": limit}
    return [row[0] for row in statements.rows(STUCK, about)]


def open_steps(run_ids: Sequence[int]) -> dict[int, list[OpenStep]]:
    """The steps of runs that haven't ended, or are dead, by run."""
    found: dict[int, list[OpenStep]] = {}
    for row in statements.rows(STEPS, [list(run_ids)]):
        found.setdefault(row[0], []).append(OpenStep(*row))
    return found


def live_workers(pool: str) -> int:
    """How many workers of a pool have a lease that stands."""
    return int(
        statements.value(
            "SELECT count(*) FROM automation_worker WHERE pool = %s AND expires_at > automation_now()", [pool]
        )
    )
