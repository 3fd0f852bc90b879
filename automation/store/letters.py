"""Closes dead letters, and says which of their runs have gone on without them."""

from collections.abc import Sequence
from datetime import datetime
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


def retried_timers(bulk_id: int, after: datetime) -> list[int]:
    """Steps that a job has let be tried again and whose time is still to come."""
    found = statements.rows(
        "SELECT x.step_id FROM automation_deadletter d JOIN automation_timer x ON x.step_id = d.step_id"
        " WHERE d.bulk_id = %s AND x.state = 'pending' AND x.due_at > %s ORDER BY x.step_id",
        [bulk_id, after],
    )
    return [row[0] for row in found]
