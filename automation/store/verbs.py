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


def cancel_runs(run_ids: Sequence[int], *, actor: str, state: str = "cancelled", reason: str = "cancelled_by") -> int:
    """Ends locked runs that no worker is on: timers deleted, steps cancelled, open dead letters resolved.

    The runs become cancelled, or what `state` and `reason` say.

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
        "UPDATE automation_stepexecution SET state = 'cancelled', reason = %s,"
        " ended_at = clock_timestamp(), effect_state ="
        " CASE WHEN effect_state = 'intended' THEN 'uncertain' ELSE effect_state END"
        " WHERE run_id = ANY(%s) AND state = ANY(%s)",
        [reason, ids, list(sources_of(STEP_MOVES, "cancelled"))],
    )
    ended = _execute(
        "UPDATE automation_run SET state = %s, reason = %s, ended_at = clock_timestamp(), cancel_requested_at ="
        " CASE WHEN %s THEN COALESCE(cancel_requested_at, automation_now()) ELSE cancel_requested_at END"
        " WHERE id = ANY(%s) AND state = ANY(%s)",
        [state, reason, state == "cancelled", ids, list(CANCELLABLE)],
    )
    _execute(
        "UPDATE automation_deadletter SET resolved_at = clock_timestamp(), resolution = %s, actor = %s"
        " WHERE run_id = ANY(%s) AND resolved_at IS NULL",
        [reason if state != "cancelled" else state, actor, ids],
    )
    return ended


def revive_steps(step_ids: Sequence[int], *, as_new: bool) -> int:
    """Makes dead steps pending again, with their full number of attempts; answers how many were dead.

    With `as_new` the epoch is raised and the key computed anew, so a receiver takes it for another effect. What is
    known of the effect stays until the next intent says otherwise, also for `letters.take_back`.
    """
    return _execute(
        "UPDATE automation_stepexecution SET state = 'pending', reason = '', error = '', ended_at = NULL,"
        " retried_at_attempt = attempts, epoch = epoch + %(raise)s,"
        " idempotency_key = CASE WHEN %(as_new)s THEN '' ELSE idempotency_key END"
        " WHERE id = ANY(%(steps)s) AND state = 'dead'",
        {"raise": int(as_new), "as_new": as_new, "steps": list(step_ids)},
    )


def revive_runs(run_ids: Sequence[int]) -> int:
    """Makes failed or parked runs go on; answers how many were."""
    return _move_runs(run_ids, "running", reason="", ended=False)


def fail_runs(run_ids: Sequence[int], *, reason: str) -> int:
    """Ends parked runs whose steps are given up; answers how many were parked."""
    return _move_runs(run_ids, "failed", reason=reason, ended=True)


def unmatch(event_ids: Sequence[int]) -> int:
    """Puts events that were set aside back into the outbox; answers how many weren't there already."""
    return _execute(
        "UPDATE automation_event SET matched_at = NULL WHERE id = ANY(%s) AND matched_at IS NOT NULL",
        [list(event_ids)],
    )


def expired_runs(limit: int) -> list[tuple[int, int]]:
    """(tenant, run) of live runs that have outlived their longest life, in the order in which their time was over."""
    with connection.cursor() as cursor:
        cursor.execute(EXPIRED_RUNS, [limit])
        return list(cursor.fetchall())


EXPIRED_RUNS = f"""
SELECT r.tenant_id, r.id FROM automation_run r
 WHERE r.state IN ({", ".join(f"'{state}'" for state in LIVE_RUN)}) AND r.deadline_at < (SELECT automation_now())
 ORDER BY r.deadline_at, r.id LIMIT %s
"""  # noqa: S608 states of the table


def _move_runs(run_ids: Sequence[int], to: str, *, reason: str, ended: bool) -> int:
    sources: Collection[str] = {*sources_of(RUN_MOVES, to), *sources_of(OPERATOR_RUN_MOVES, to)}
    return _execute(
        "UPDATE automation_run SET state = %s, reason = %s, cancel_requested_at = NULL,"
        " ended_at = CASE WHEN %s THEN clock_timestamp() END WHERE id = ANY(%s) AND state = ANY(%s)",
        [to, reason, ended, list(run_ids), sorted(sources)],
    )


def _execute(sql: str, params: Sequence[Any] | Mapping[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)
