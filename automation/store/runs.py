"""Inserts runs, and reads runs, steps and counts for the stages, without model instances."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from automation.store import statements, verbs
from automation.store.events import COLUMNS, EventRow, row


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run under its lock, with the event that it was started by."""

    id: int
    tenant_id: int
    rule_id: int
    version_id: int
    state: str
    reason: str
    cancel_requested_at: datetime | None
    expired: bool
    forked: bool
    epoch: int
    lane_paused: bool
    rules_version: int
    event: EventRow


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step as the stages need it."""

    id: int
    run_id: int
    path: str
    epoch: int
    kind: str
    state: str
    attempts: int
    retried_at_attempt: int
    effect_state: str
    idempotency_key: str
    open_attempt: bool


LOCK_RUNS = f"""
SELECT r.id, r.tenant_id, r.rule_id, r.rule_version_id, r.state, r.reason, r.cancel_requested_at,
       COALESCE(r.deadline_at < automation_now(), false), r.forked_from_run_id IS NOT NULL, r.epoch,
       l.paused, l.rules_version, {COLUMNS}
  FROM automation_run r JOIN automation_event e ON e.id = r.event_id
  JOIN automation_lane l ON l.tenant_id = r.tenant_id
 WHERE r.id = ANY(%s::bigint[]) ORDER BY r.id FOR NO KEY UPDATE OF r
"""  # noqa: S608 the columns of store.events
STEPS = """
SELECT s.id, s.run_id, s.path, s.epoch, s.kind, s.state, s.attempts, s.retried_at_attempt, s.effect_state,
       s.idempotency_key, EXISTS (SELECT 1 FROM automation_attempt a
                                   WHERE a.step_id = s.id AND a.number = s.attempts AND a.outcome = '')
  FROM automation_stepexecution s WHERE s.id = ANY(%s::bigint[])
"""
WAITING = """
SELECT r.rule_id, r.model, r.record, r.id FROM automation_run r
  JOIN unnest(%s::bigint[], %s::varchar[], %s::bigint[]) AS u (rule_id, model, record)
    ON u.rule_id = r.rule_id AND u.model = r.model AND u.record = r.record
 WHERE r.tenant_id = %s AND r.state IN ('pending', 'running', 'waiting', 'paused') ORDER BY r.id
"""
# Runs of a record get their ids in the order of time, but for the length of a transaction: behind one that is twice as
# old as is asked for, none is young enough, and the rest of a long history isn't read. (+ 0: not by the rule's index.)
LATELY = """
WITH q AS (SELECT u.*, %s::bigint AS tenant_id, make_interval(mins => %s) AS span, automation_now() AS t
             FROM unnest(%s::bigint[], %s::varchar[], %s::bigint[]) AS u (rule_id, model, record))
SELECT q.rule_id, q.model, q.record, (
  SELECT count(*) FROM automation_run r JOIN automation_event e ON e.id = r.event_id
   WHERE r.tenant_id = q.tenant_id AND r.model = q.model AND r.record = q.record
     AND r.rule_id + 0 = q.rule_id AND r.state <> 'suppressed' AND r.created_at > q.t - q.span
     AND e.source NOT IN ('person', 'import')
     AND r.id > COALESCE((SELECT o.id FROM automation_run o WHERE o.tenant_id = q.tenant_id AND o.model = q.model
                             AND o.record = q.record AND o.created_at < q.t - 2 * q.span
                           ORDER BY o.id DESC LIMIT 1), 0))
  FROM q
"""
SPENT = """
SELECT count(*) FROM (SELECT 1 FROM automation_run
                       WHERE root_event_id = %s AND depth >= 2 AND state <> 'suppressed' LIMIT %s) x
"""
SENT_TO = """
SELECT count(*) FROM automation_stepexecution s JOIN automation_run r ON r.id = s.run_id
 WHERE s.tenant_id = %s AND s.input ? 'recipient' AND s.input ->> 'recipient' = %s AND s.effect_state <> 'none'
   AND r.rule_id = %s AND s.started_at > (SELECT automation_now()) - make_interval(mins => %s)
"""


def started(event_ids: Sequence[int]) -> set[tuple[int, int]]:
    """(event id, rule id) of the runs that these events have."""
    found = statements.rows(
        "SELECT event_id, rule_id FROM automation_run WHERE event_id = ANY(%s::bigint[])"
        " AND origin = 'event' AND forked_from_run_id IS NULL",
        [list(event_ids)],
    )
    return {(row[0], row[1]) for row in found}


def supersede(tenant_id: int, run_ids: Sequence[int]) -> None:
    """Ends waiting runs that a newer one replaces; one that a worker is on ends at its next check."""
    rows = [one for one in verbs.lock_runs(tenant_id, run_ids) if one.state in verbs.CANCELLABLE]
    states = verbs.lock_timers([one.id for one in rows])
    busy = [one.id for one in rows if "leased" in states.get(one.id, ())]
    verbs.request_cancel(busy)
    verbs.cancel_runs([one.id for one in rows if one.id not in busy], actor="", reason="superseded")
    statements.count("UPDATE automation_run SET reason = 'superseded' WHERE id = ANY(%s::bigint[])", [busy])


def lock(run_ids: Sequence[int]) -> dict[int, RunRow]:
    """Locks runs in ascending order, the first locks of a transaction, and reads them with their events."""
    found: dict[int, RunRow] = {}
    for values in statements.rows(LOCK_RUNS, [sorted(set(run_ids))]):
        id_, tenant_id, rule_id, version_id, state, reason, cancel_requested_at = values[:7]
        expired, forked, epoch, lane_paused, rules_version = values[7:12]
        found[id_] = RunRow(
            id=id_,
            tenant_id=tenant_id,
            rule_id=rule_id,
            version_id=version_id,
            state=state,
            reason=reason,
            cancel_requested_at=cancel_requested_at,
            expired=expired,
            forked=forked,
            epoch=epoch,
            lane_paused=lane_paused,
            rules_version=rules_version,
            event=row(values[12:]),
        )
    return found


def steps(step_ids: Sequence[int]) -> dict[int, StepRow]:
    """The steps, and whether their newest attempt is still open."""
    return {values[0]: StepRow(*values) for values in statements.rows(STEPS, [list(step_ids)])}


def kind_of(step_id: int) -> tuple[str, str]:
    """(kind, action) of a step; both never change once it is written."""
    found = statements.rows("SELECT kind, action FROM automation_stepexecution WHERE id = %s", [step_id])
    return (found[0][0], found[0][1]) if found else ("", "")


def outputs(run_id: int) -> dict[str, Any]:
    """What the settled steps of a run put out, by path, and whether it has slept: {"outputs": …, "slept": bool}."""
    rows = statements.rows(
        "SELECT path, kind, output FROM automation_stepexecution"
        " WHERE run_id = %s AND state = 'succeeded' ORDER BY created_at, id",
        [run_id],
    )
    return {
        "outputs": {path: json.loads(output) for path, kind, output in rows if kind == "action" and output},
        "slept": any(kind == "delay" for _, kind, _ in rows),
    }


def waiting(tenant_id: int, pairs: Sequence[tuple[int, str, int]]) -> dict[tuple[int, str, int], list[int]]:
    """Live runs of a rule for a record: {(rule id, model, record): run ids}, for the rules that ask."""
    if not pairs:
        return {}
    found: dict[tuple[int, str, int], list[int]] = {}
    for rule_id, model, record, run_id in statements.rows(WAITING, [*statements.columns(pairs), tenant_id]):
        found.setdefault((rule_id, model, record), []).append(run_id)
    return found


def lately(tenant_id: int, asked: Sequence[tuple[int, str, int]], *, minutes: int) -> dict[tuple[int, str, int], int]:
    """How often each (rule id, model, record) ran of late, for events that neither a person nor an import made."""
    found = statements.rows(LATELY, [tenant_id, minutes, *statements.columns(asked)]) if asked else []
    return {(row[0], row[1], row[2]): row[3] for row in found}


def spent(root_event_id: int, limit: int) -> int:
    """How many runs a root event has caused below its first two levels, counted up to the limit."""
    return int(statements.value(SPENT, [root_event_id, limit]))


def cancel_requested(run_ids: Sequence[int]) -> list[int]:
    """Those of the runs that somebody asked to stop."""
    found = statements.rows(
        "SELECT id FROM automation_run WHERE id = ANY(%s::bigint[]) AND cancel_requested_at IS NOT NULL",
        [list(run_ids)],
    )
    return [values[0] for values in found]


def sent_to(tenant_id: int, *, rule_id: int, recipient: str, minutes: int) -> int:
    """How many messages a rule has sent, or is sending, to a recipient in the last so many minutes."""
    return int(statements.value(SENT_TO, [tenant_id, recipient, rule_id, minutes]))
