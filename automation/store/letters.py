"""Closes dead letters, and says which of their runs have gone on without them."""

from collections.abc import Sequence
from typing import Any

from automation.core.states import TERMINAL_STEP
from automation.store import statements


def gone_on(dead_letter_ids: Sequence[int]) -> set[int]:
    """Those whose runs have another step that is live, or that ended after the dead one."""
    found = statements.rows(
        "SELECT d.id FROM automation_deadletter d JOIN automation_stepexecution s ON s.id = d.step_id"
        " WHERE d.id = ANY(%s::bigint[]) AND EXISTS (SELECT 1 FROM automation_stepexecution o WHERE o.run_id = s.run_id"
        " AND o.id <> s.id AND (o.state <> ALL(%s::varchar[]) OR o.ended_at > s.ended_at))",
        [list(dead_letter_ids), sorted(TERMINAL_STEP)],
    )
    return {row[0] for row in found}


def resolve(dead_letter_ids: Sequence[int], *, resolution: str, actor: str, bulk_id: int | None = None) -> int:
    """Closes locked dead letters that are open; answers how many."""
    return statements.count(
        "UPDATE automation_deadletter SET resolved_at = clock_timestamp(), resolution = %s, actor = %s, bulk_id = %s"
        " WHERE id = ANY(%s::bigint[]) AND resolved_at IS NULL",
        [resolution, actor, bulk_id, list(dead_letter_ids)],
    )


def failed_again(bulk_id: int) -> int:
    """How many steps that a bulk job let be tried again are dead once more."""
    return int(
        statements.value(
            "SELECT count(DISTINCT n.step_id) FROM automation_deadletter o JOIN automation_deadletter n"
            " ON n.step_id = o.step_id AND n.resolved_at IS NULL AND n.id > o.id WHERE o.bulk_id = %s",
            [bulk_id],
        )
    )


def running_jobs(limit: int) -> list[tuple[int, int]]:
    """(job, tenant) of the bulk jobs that are at work, the one that was served longest ago first."""
    found = statements.rows(
        "SELECT id, tenant_id FROM automation_bulkjob WHERE state = 'running' ORDER BY next_at, id LIMIT %s", [limit]
    )
    return [(row[0], row[1]) for row in found]


def move_job(job_id: int, *, to: str, **columns: Any) -> bool:
    """Writes how far a running job has come, and its state; False when it isn't running any more.

    Columns are last_id, next_at, done, refused, refusals (JSON text) and failed_again.
    """
    names = sorted(columns)
    sets = "".join(f"{name} = %s, " for name in names)
    return (
        statements.count(
            f"UPDATE automation_bulkjob SET {sets}state = %s, ended_at = CASE WHEN %s THEN clock_timestamp() END"  # noqa: S608 names of columns
            " WHERE id = %s AND state = 'running'",
            [*(columns[name] for name in names), to, to != "running", job_id],
        )
        == 1
    )


def put_in_line(bulk_id: int) -> list[int]:
    """Runs whose dead steps a job has put into the line, and whose time is still to come."""
    found = statements.rows(
        "SELECT d.run_id FROM automation_deadletter d JOIN automation_timer x ON x.step_id = d.step_id"
        " WHERE d.bulk_id = %s AND x.state = 'pending' AND x.due_at > automation_now() ORDER BY d.run_id",
        [bulk_id],
    )
    return [row[0] for row in found]


def take_back(bulk_id: int, run_ids: Sequence[int]) -> int:
    """Makes the steps of locked runs dead again that a job has put into the line and no worker has begun.

    Their timers go, their letters are open again, their runs are what they were; answers how many.
    """
    step_ids = [
        row[0]
        for row in statements.rows(
            "DELETE FROM automation_timer x WHERE x.state = 'pending' AND x.due_at > automation_now() AND x.step_id IN"
            " (SELECT s.id FROM automation_stepexecution s JOIN automation_deadletter d ON d.step_id = s.id"
            " WHERE d.bulk_id = %s AND s.run_id = ANY(%s::bigint[]) AND s.state = 'pending'"
            " AND s.attempts = s.retried_at_attempt) RETURNING x.step_id",
            [bulk_id, list(run_ids)],
        )
    ]
    for sql in (TAKE_BACK_STEPS, TAKE_BACK_RUNS, TAKE_BACK_LETTERS):
        statements.count(sql, [bulk_id, step_ids])
    return len(step_ids)


TAKE_BACK_STEPS = """
UPDATE automation_stepexecution s SET state = 'dead', reason = d.reason, error = d.error, ended_at = clock_timestamp()
  FROM automation_deadletter d
 WHERE d.bulk_id = %s AND d.step_id = s.id AND s.id = ANY(%s::bigint[]) AND s.state = 'pending'
"""
TAKE_BACK_RUNS = """
UPDATE automation_run r SET state = CASE WHEN d.reason = 'delivery_unknown' THEN 'waiting' ELSE 'failed' END,
       reason = d.reason, ended_at = CASE WHEN d.reason = 'delivery_unknown' THEN NULL ELSE clock_timestamp() END
  FROM automation_deadletter d
 WHERE d.bulk_id = %s AND d.run_id = r.id AND d.step_id = ANY(%s::bigint[]) AND r.state = 'running'
"""
TAKE_BACK_LETTERS = """
UPDATE automation_deadletter d SET resolved_at = NULL, resolution = '', actor = '', bulk_id = NULL
 WHERE d.bulk_id = %s AND d.step_id = ANY(%s::bigint[])
"""
