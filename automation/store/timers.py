"""Writes timers, wakes lanes, and heals what a crash or a lost bell left behind."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from automation.store import statements


class NewTimer(NamedTuple):
    """A timer to be written: `due_at` None means now."""

    tenant_id: int
    kind: str
    due_at: datetime | None
    run_id: int | None = None
    step_id: int | None = None
    subject_id: int | None = None


def arm_match(tenant_id: int) -> bool:
    """Makes sure that the tenant's events get matched; in a transaction of its own. True: a new timer was made."""
    return bool(statements.value("SELECT automation_arm_match(%s)", [tenant_id]))


def set_timers(timers: Sequence[NewTimer]) -> None:
    """Inserts timers and tells their lanes, each lane once and in order: the last locks of the caller's transaction."""
    if timers:
        _tell(statements.rows(INSERT_TIMERS, statements.columns(timers)))


INSERT_TIMERS = """
WITH q AS (
  SELECT * FROM unnest(%s::bigint[], %s::varchar[], %s::timestamptz[], %s::bigint[], %s::bigint[], %s::bigint[])
         AS u (tenant_id, kind, due_at, run_id, step_id, subject_id)),
i AS (
  INSERT INTO automation_timer (lane_id, tenant_id, kind, due_at, run_id, step_id, subject_id)
  SELECT automation_lane_of(q.tenant_id), q.tenant_id, q.kind, COALESCE(q.due_at, automation_now()), q.run_id,
         q.step_id, q.subject_id
    FROM q RETURNING lane_id, due_at)
SELECT i.lane_id, min(i.due_at) FROM i GROUP BY i.lane_id ORDER BY i.lane_id
"""


def _tell(lanes: Iterable[tuple[int, datetime]]) -> None:
    for lane_id, due_at in lanes:
        statements.value("SELECT automation_lane_due(%s, %s)", [lane_id, due_at])


def wake(limit: int = 500) -> int:
    """Flips lanes whose earliest future timer has come; answers how many."""
    return int(statements.value("SELECT automation_wake(%s)", [limit]))


def reap(*, limit: int = 500, grace: float = 5.0) -> list[tuple[int, int, int]]:
    """Takes timers back from dead workers and past their deadline: (timer, lane, lost leases in a row) each."""
    found = statements.rows("SELECT * FROM automation_reap(%s, %s)", [limit, timedelta(seconds=grace)])
    return [(row[0], row[1], row[2]) for row in found]


def expired_workers() -> tuple[int, int]:
    """How many workers there are, and how many of them have let their lease run out."""
    row = statements.rows(
        "SELECT count(*), count(*) FILTER (WHERE expires_at < automation_now()) FROM automation_worker"
    )[0]
    return row[0], row[1]


def heal_lanes() -> int:
    """Wakes lanes that sleep although a timer is due; should always answer 0."""
    return int(statements.value("SELECT automation_heal_lanes()"))


def heal_match(age: float = 5.0) -> int:
    """Arms tenants whose events have waited for `age` seconds without a match timer; answers how many."""
    return int(statements.value("SELECT automation_heal_match(%s)", [timedelta(seconds=age)]))


def repair_running() -> list[tuple[int, int, int]]:
    """Corrects lanes whose counter differs from their leases: (lane, was, really) each. Every row is an alarm."""
    return [(row[0], row[1], row[2]) for row in statements.rows("SELECT * FROM automation_repair_running()")]


def take_sweep(name: str, *, holder: uuid.UUID, every: float, hold: float) -> float | None:
    """Takes a chore when it is due: seconds since it was last seen to (-1: never), or None when it isn't ours now."""
    since: float | None = statements.value(
        "SELECT automation_take_sweep(%s, %s, %s, %s)",
        [name, holder, timedelta(seconds=every), timedelta(seconds=hold)],
    )
    return since


def end_sweep(name: str, *, holder: uuid.UUID) -> None:
    """Gives a chore back after it was done."""
    statements.value("SELECT automation_end_sweep(%s, %s)", [name, holder])


def hurry(tenant_id: int, run_ids: Sequence[int]) -> int:
    """Makes the pending timers of these runs that were put off due now, in their order; answers how many."""
    lanes = statements.rows(
        "WITH c AS (SELECT x.id FROM automation_timer x WHERE x.step_id IN (SELECT s.id FROM automation_stepexecution s"
        " WHERE s.tenant_id = %s AND s.run_id = ANY(%s::bigint[])) AND x.state = 'pending'"
        " AND x.kind IN ('step', 'retry') ORDER BY x.id FOR UPDATE)"
        " UPDATE automation_timer x SET due_at = LEAST(x.due_at, automation_now()) FROM c WHERE x.id = c.id"
        " RETURNING x.lane_id, x.due_at",
        [tenant_id, list(run_ids)],
    )
    _tell(sorted({lane_id: (lane_id, due_at) for lane_id, due_at in lanes}.values()))
    return len(lanes)


def hold(timer_ids: Sequence[int]) -> None:
    """Holds pending timers that the transaction has locked already."""
    if timer_ids:
        statements.count(
            "UPDATE automation_timer SET state = 'held', drip_id = NULL"
            " WHERE id = ANY(%s::bigint[]) AND state = 'pending'",
            [list(timer_ids)],
        )


def hold_runs(run_ids: Sequence[int]) -> int:
    """Holds the pending timers of locked runs, their due times intact; answers how many."""
    return statements.count(MOVE_TIMERS, ["held", list(run_ids), "pending"])


def release_runs(run_ids: Sequence[int]) -> int:
    """Lets the held timers of locked runs wait again as before, and tells their lanes; answers how many."""
    lanes = statements.rows(f"{MOVE_TIMERS} RETURNING x.lane_id, x.due_at", ["pending", list(run_ids), "held"])
    _tell(_earliest(lanes))
    return len(lanes)


MOVE_TIMERS = """
UPDATE automation_timer x SET state = %s, drip_id = NULL
 WHERE x.id = ANY(ARRAY(SELECT y.id FROM automation_timer y JOIN automation_stepexecution s ON s.id = y.step_id
                         WHERE s.run_id = ANY(%s::bigint[]) AND y.state = %s ORDER BY y.id FOR UPDATE OF y))
"""


def _earliest(timers: Iterable[tuple[int, datetime]]) -> list[tuple[int, datetime]]:
    """Of each lane the earliest due time, the lanes in their order."""
    found: dict[int, datetime] = {}
    for lane_id, due_at in timers:
        found[lane_id] = min(due_at, found.get(lane_id, due_at))
    return sorted(found.items())


def take_over(tenant_id: int) -> list[NewTimer]:
    """Takes a tenant's pending timers out of the database, for the runner that has its own; due ones are due now."""
    found = statements.rows(
        "DELETE FROM automation_timer WHERE tenant_id = %s AND state = 'pending' RETURNING tenant_id, kind,"
        " CASE WHEN due_at > automation_now() THEN due_at END, run_id, step_id, subject_id",
        [tenant_id],
    )
    return [NewTimer(*row) for row in found]
