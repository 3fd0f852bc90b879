"""Closes dead letters, and says which of their runs have gone on without them."""

from collections.abc import Sequence
from typing import Any

from automation.core.keys import idempotency_key
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
    """How many steps that a bulk job let be tried again are dead once more.

    It is asked at each letting-out, so it begins with the open letters that are newer than the job: those are few.
    """
    return int(
        statements.value(
            "SELECT count(*) FROM automation_bulkjob j JOIN automation_deadletter n ON n.tenant_id = j.tenant_id"
            " AND n.resolved_at IS NULL AND n.id > j.until_id WHERE j.id = %s AND EXISTS"
            " (SELECT 1 FROM automation_deadletter o WHERE o.step_id = n.step_id AND o.bulk_id = j.id)",
            [bulk_id],
        )
    )


def in_line(bulk_id: int) -> int:
    """How many steps a bulk job has put into the line that no worker has begun."""
    return int(statements.value(f"SELECT count(*) {IN_LINE}", [bulk_id]))


def any_in_line(bulk_id: int) -> bool:
    """Whether a step that a bulk job has put into the line still waits for a worker to begin it."""
    return bool(statements.value(f"SELECT EXISTS (SELECT 1 {IN_LINE})", [bulk_id]))


def due_jobs(limit: int) -> list[tuple[int, int, bool]]:
    """(job, tenant, False) of bulk jobs whose next one is due, longest first; a pause holds those that let runs go on.

    Before them (job, tenant, True) of those that have ended and haven't taken back all yet.
    """
    found = statements.rows(
        "SELECT j.id, j.tenant_id, j.taking_back FROM automation_bulkjob j"
        " JOIN automation_lane l ON l.tenant_id = j.tenant_id WHERE j.taking_back"
        " OR (j.state = 'running' AND j.next_at <= automation_now() AND (j.verb = 'discard' OR NOT l.paused))"
        " ORDER BY j.taking_back DESC, j.next_at, j.id LIMIT %s",
        [limit],
    )
    return [(row[0], row[1], row[2]) for row in found]


def move_job(job_id: int, *, to: str, **columns: Any) -> bool:
    """Writes how far a running job has come, and its state; False when it isn't running any more.

    Columns are last_id, next_at, done, refused, refusals (JSON text), failed_again and taking_back.
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


def put_in_line(bulk_id: int, limit: int) -> list[int]:
    """Runs whose dead steps a job has put into the line, and which no worker has begun, at most so many."""
    found = statements.rows(f"SELECT d.run_id {IN_LINE} ORDER BY d.id DESC LIMIT %s", [bulk_id, limit])
    return [row[0] for row in found]


def all_taken_back(bulk_id: int) -> bool:
    """Notes that a locked job has nothing to take back any more; False where that was noted before."""
    sql = "UPDATE automation_bulkjob SET taking_back = false WHERE id = %s AND taking_back"
    return statements.count(sql, [bulk_id]) == 1


def take_back(bulk_id: int, run_ids: Sequence[int]) -> int:
    """Makes the steps of locked runs dead again that a job has put into the line and no worker has begun.

    Their timers go, their letters are open again, their runs are what they were, and the job hasn't done them;
    answers how many.
    """
    step_ids = [
        row[0]
        for row in statements.rows(
            "DELETE FROM automation_timer x WHERE x.state = 'pending' AND x.step_id IN"  # noqa: S608 a constant
            f" (SELECT s.id {IN_LINE} AND s.run_id = ANY(%s::bigint[])) RETURNING x.step_id",
            [bulk_id, list(run_ids)],
        )
    ]
    for sql in (TAKE_BACK_STEPS, TAKE_BACK_RUNS, TAKE_BACK_LETTERS):
        statements.count(sql, [bulk_id, step_ids])
    _keys_again(step_ids)
    statements.count("UPDATE automation_bulkjob SET done = done - %s WHERE id = %s", [len(step_ids), bulk_id])
    return len(step_ids)


def _keys_again(step_ids: Sequence[int]) -> None:
    """Gives steps that were to be sent as new the keys back under which they were sent before."""
    keys = []
    for step_id, record_key, *parts in statements.rows(WITHOUT_KEYS, [step_ids]):
        tenant_id, rule_id, event_id, path, epoch = parts
        key = idempotency_key(
            tenant_id=tenant_id, record_key=record_key, rule_id=rule_id, event_id=event_id, path=path, epoch=epoch
        )
        keys.append((step_id, key))
    if keys:
        statements.count(
            "UPDATE automation_stepexecution s SET idempotency_key = u.key"
            " FROM unnest(%s::bigint[], %s::varchar[]) AS u (id, key) WHERE s.id = u.id",
            statements.columns(keys),
        )


# A letter of a job whose step waits for its first try since, and that nobody has retried once more.
IN_LINE = """
  FROM automation_deadletter d JOIN automation_stepexecution s ON s.id = d.step_id
 WHERE d.bulk_id = %s AND s.state = 'pending' AND s.attempts = s.retried_at_attempt
   AND EXISTS (SELECT 1 FROM automation_timer x WHERE x.step_id = s.id AND x.state = 'pending')
   AND NOT EXISTS (SELECT 1 FROM automation_deadletter n WHERE n.step_id = d.step_id AND n.id > d.id)
"""
TAKE_BACK_STEPS = """
UPDATE automation_stepexecution s
   SET state = 'dead', reason = d.reason, error = d.error,
       epoch = s.epoch - CASE WHEN d.resolution = 'retried_as_new' THEN 1 ELSE 0 END,
       -- Never before another step of its run: whether the run has gone on is asked by this.
       ended_at = GREATEST(d.opened_at, (SELECT max(o.ended_at) FROM automation_stepexecution o
                                          WHERE o.run_id = s.run_id AND o.id <> s.id))
  FROM automation_deadletter d
 WHERE d.bulk_id = %s AND d.step_id = s.id AND s.id = ANY(%s::bigint[]) AND s.state = 'pending'
"""
TAKE_BACK_RUNS = """
UPDATE automation_run r SET state = CASE WHEN d.reason = 'delivery_unknown' THEN 'waiting' ELSE 'failed' END,
       reason = d.reason, ended_at = CASE WHEN d.reason = 'delivery_unknown' THEN NULL ELSE d.opened_at END
  FROM automation_deadletter d
 WHERE d.bulk_id = %s AND d.run_id = r.id AND d.step_id = ANY(%s::bigint[]) AND r.state = 'running'
"""
TAKE_BACK_LETTERS = """
UPDATE automation_deadletter d SET resolved_at = NULL, resolution = '', actor = '', bulk_id = NULL
 WHERE d.bulk_id = %s AND d.step_id = ANY(%s::bigint[])
"""
# Something was sent for them, and their key is to be another one.
WITHOUT_KEYS = """
SELECT s.id, COALESCE(e.model || ':' || e.record, 'event:' || e.id), r.tenant_id, r.rule_id, e.id, s.path,
       r.epoch + s.epoch
  FROM automation_stepexecution s JOIN automation_run r ON r.id = s.run_id JOIN automation_event e ON e.id = r.event_id
 WHERE s.id = ANY(%s::bigint[]) AND s.idempotency_key = '' AND s.request_sha256 <> ''
"""
