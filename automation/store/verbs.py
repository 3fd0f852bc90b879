"""The guarded writes behind what people do to runs: under the runs' locks, by state, in the one order of locks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from automation.core.states import LIVE_RUN, OPERATOR_RUN_MOVES, RUN_MOVES, STEP_MOVES, sources_of

CANCELLABLE = sources_of(RUN_MOVES, "cancelled")


@dataclass(frozen=True, slots=True)
class LockedRun:
    """A run under its lock: nobody else changes it, its steps or its timers until the transaction ends."""

    id: int
    rule_id: int
    state: str
    reason: str
    cancel_requested_at: datetime | None
    expired: bool


def lock_runs(tenant_id: int, run_ids: Sequence[int]) -> list[LockedRun]:
    """Locks runs of the tenant in ascending order, the first lock of any verb; those it doesn't have are left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id, r.rule_id, r.state, r.reason, r.cancel_requested_at,"
            " COALESCE(r.deadline_at < clock_timestamp(), false)"
            " FROM automation_run r WHERE r.tenant_id = %s AND r.id = ANY(%s) ORDER BY r.id FOR NO KEY UPDATE",
            [tenant_id, list(run_ids)],
        )
        return [LockedRun(*row) for row in cursor.fetchall()]


def lock_timers(run_ids: Sequence[int]) -> dict[int, set[str]]:
    """Locks the timers of runs, found through their steps: the states of each run's timers, for those that have any."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT x.run_id, x.state FROM automation_timer x WHERE x.step_id IN"
            " (SELECT s.id FROM automation_stepexecution s WHERE s.run_id = ANY(%s)) ORDER BY x.id FOR UPDATE",
            [list(run_ids)],
        )
        states: dict[int, set[str]] = {}
        for run_id, state in cursor.fetchall():
            states.setdefault(run_id, set()).add(state)
    return states


def live_runs(
    tenant_id: int, *, rule_id: int | None = None, before_version: int | None = None, batch: int = 200
) -> Iterator[list[int]]:
    """Ids of the runs that haven't ended, in batches: the tenant's, or one rule's, or those on its older versions."""
    for state in LIVE_RUN:
        last = 0
        while True:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT r.id FROM automation_run r WHERE r.tenant_id = %s AND r.state = %s AND r.id > %s"
                    " AND (%s::bigint IS NULL OR r.rule_id = %s)"
                    " AND (%s::bigint IS NULL OR r.rule_version_id < %s) ORDER BY r.id LIMIT %s",
                    [tenant_id, state, last, rule_id, rule_id, before_version, before_version, batch],
                )
                found = [row[0] for row in cursor.fetchall()]
            if not found:
                break
            last = found[-1]
            yield found


def request_cancel(run_ids: Sequence[int]) -> None:
    """Asks the workers that are on these runs to end them at their next look."""
    _execute(
        "UPDATE automation_run SET cancel_requested_at = COALESCE(cancel_requested_at, automation_now())"
        " WHERE id = ANY(%s)",
        [list(run_ids)],
    )


def cancel_runs(run_ids: Sequence[int], *, actor: str) -> int:
    """Ends locked runs that no worker is on: timers deleted, steps and runs cancelled, open dead letters resolved.

    A step that was being done when its worker was lost has its attempt closed as lost, its effect uncertain.
    Answers how many runs were ended.
    """
    ids = list(run_ids)
    _execute(
        "DELETE FROM automation_timer x WHERE x.state <> 'leased' AND x.step_id IN"
        " (SELECT s.id FROM automation_stepexecution s WHERE s.run_id = ANY(%s))",
        [ids],
    )
    _execute(
        "UPDATE automation_attempt a SET outcome = 'lost', finished_at = clock_timestamp()"
        " FROM automation_stepexecution s WHERE s.run_id = ANY(%s) AND a.step_id = s.id AND a.outcome = ''",
        [ids],
    )
    _execute(
        "UPDATE automation_stepexecution SET state = 'cancelled', reason = 'cancelled_by',"
        " ended_at = clock_timestamp(), effect_state ="
        " CASE WHEN effect_state = 'intended' THEN 'uncertain' ELSE effect_state END"
        " WHERE run_id = ANY(%s) AND state = ANY(%s)",
        [ids, list(sources_of(STEP_MOVES, "cancelled"))],
    )
    ended = _execute(
        "UPDATE automation_run SET state = 'cancelled', reason = 'cancelled_by', ended_at = clock_timestamp(),"
        " cancel_requested_at = COALESCE(cancel_requested_at, automation_now()) WHERE id = ANY(%s) AND state = ANY(%s)",
        [ids, list(CANCELLABLE)],
    )
    _execute(
        "UPDATE automation_deadletter SET resolved_at = clock_timestamp(), resolution = 'cancelled', actor = %s"
        " WHERE run_id = ANY(%s) AND resolved_at IS NULL",
        [actor, ids],
    )
    return ended


def revive_step(step_id: int, *, as_new: bool) -> bool:
    """Makes a dead step pending again, with its full number of attempts; False when it isn't dead any more.

    With `as_new` the epoch is raised and the key computed anew, so a receiver takes it for another effect.
    """
    return (
        _execute(
            "UPDATE automation_stepexecution SET state = 'pending', reason = '', error = '', ended_at = NULL,"
            " effect_state = 'none', retried_at_attempt = attempts, epoch = epoch + %(raise)s,"
            " idempotency_key = CASE WHEN %(as_new)s THEN '' ELSE idempotency_key END,"
            " request_sha256 = CASE WHEN %(as_new)s THEN '' ELSE request_sha256 END"
            " WHERE id = %(step)s AND state = 'dead'",
            {"raise": int(as_new), "as_new": as_new, "step": step_id},
        )
        == 1
    )


def revive_run(run_id: int) -> bool:
    """Makes a failed or parked run go on; False when it is in another state."""
    return _move_run(run_id, "running", reason="", ended=False)


def fail_run(run_id: int, *, reason: str) -> bool:
    """Ends a parked run whose step is given up; False when it is in another state."""
    return _move_run(run_id, "failed", reason=reason, ended=True)


def resolve(dead_letter_id: int, *, resolution: str, actor: str) -> bool:
    """Closes a dead letter; False when somebody has closed it before."""
    return (
        _execute(
            "UPDATE automation_deadletter SET resolved_at = clock_timestamp(), resolution = %s, actor = %s"
            " WHERE id = %s AND resolved_at IS NULL",
            [resolution, actor, dead_letter_id],
        )
        == 1
    )


def unmatch(event_id: int) -> bool:
    """Puts an event that was set aside back into the outbox; False when it is there already."""
    return (
        _execute(
            "UPDATE automation_event SET matched_at = NULL WHERE id = %s AND matched_at IS NOT NULL",
            [event_id],
        )
        == 1
    )


def _move_run(run_id: int, to: str, *, reason: str, ended: bool) -> bool:
    sources: Collection[str] = {*sources_of(RUN_MOVES, to), *sources_of(OPERATOR_RUN_MOVES, to)}
    return (
        _execute(
            "UPDATE automation_run SET state = %s, reason = %s, cancel_requested_at = NULL,"
            " ended_at = CASE WHEN %s THEN clock_timestamp() END WHERE id = %s AND state = ANY(%s)",
            [to, reason, ended, run_id, sorted(sources)],
        )
        == 1
    )


def _execute(sql: str, params: Sequence[Any] | Mapping[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)
