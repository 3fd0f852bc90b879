"""Collects what a transaction is to write and writes it with one statement a table, guarded by states and leases."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from automation.core.states import RUN_MOVES, STEP_MOVES, may_move
from automation.store.claims import Settlement
from automation.store.timers import NewTimer


class Stale(Exception):
    """A row was no longer in the state, or a timer no longer under the lease, that the caller had read: roll back."""


class StepChange(NamedTuple):
    """The new values of a step that exists, read as `was` under its run's lock; None keeps a value."""

    step_id: int
    was: str
    state: str
    reason: str = ""
    attempts: int = 0
    deliveries: int = 0
    effect_state: str = "none"
    idempotency_key: str = ""
    request_sha256: str = ""
    connection: str = ""
    input: Any = None
    output: Any = None
    error: str = ""
    started: bool = False
    ended: bool = False


class NewStep(NamedTuple):
    """A step to be inserted; its id comes from `step_ids`."""

    id: int
    tenant_id: int
    run_id: int
    path: str
    kind: str
    action: str
    state: str
    reason: str = ""
    attempts: int = 0
    effect_state: str = "none"
    idempotency_key: str = ""
    input: Any = None
    output: Any = None
    error: str = ""
    started: bool = False
    ended: bool = False


class NewAttempt(NamedTuple):
    """An attempt to be inserted: open (`outcome` empty), or, for a local step, already closed."""

    tenant_id: int
    step_id: int
    number: int
    worker_id: uuid.UUID | None
    lease_seq: int
    outcome: str
    request: str = ""
    answer: str = ""


class ClosedAttempt(NamedTuple):
    """The outcome of an attempt that is still open."""

    step_id: int
    number: int
    outcome: str
    answer: str = ""


class RunChange(NamedTuple):
    """The new state of a run that was read as `was` under its lock."""

    run_id: int
    was: str
    state: str
    reason: str = ""


class NewDeadLetter(NamedTuple):
    """A step that failed for good, or an event set aside, with the context that a person needs."""

    tenant_id: int
    run_id: int | None
    step_id: int | None
    event_id: int | None
    reason: str
    error: str
    snapshot: Mapping[str, Any]


class NewNotice(NamedTuple):
    """What people are told, once per subject and period; a further case only counts."""

    tenant_id: int
    kind: str
    subject: str
    period: str
    title: str
    text: str
    recipients: Sequence[str]


ENDED = frozenset({"succeeded", "failed", "cancelled", "compensated", "suppressed"})


def dumps(value: Any) -> str | None:
    """JSON as the database takes it; None stays NULL."""
    return None if value is None else json.dumps(value, separators=(",", ":"), default=str)


@dataclass(slots=True)
class Wave:
    """Everything that one transaction writes, in the order in which locks may be taken."""

    steps: list[StepChange] = field(default_factory=list)
    new_steps: list[NewStep] = field(default_factory=list)
    attempts: list[NewAttempt] = field(default_factory=list)
    closed: list[ClosedAttempt] = field(default_factory=list)
    runs: list[RunChange] = field(default_factory=list)
    dead: list[NewDeadLetter] = field(default_factory=list)
    notices: list[NewNotice] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    timers: list[NewTimer] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)

    def write(self) -> None:
        """Writes all but the timers; raises `Stale` when a guarded row isn't as it was read.

        Notices that nobody has been told of yet add a timer to `timers`. The caller writes these and settles last.
        """
        self._write_steps()
        _insert_steps(self.new_steps)
        _close_attempts(self.closed)
        _insert_attempts(self.attempts)
        _change_runs(self.runs)
        _insert_dead_letters(self.dead)
        self.timers += _insert_notices(self.notices)
        _mark_sent(self.sent)

    def _write_steps(self) -> None:
        if not self.steps:
            return
        for change in self.steps:
            if change.was != change.state and not may_move(STEP_MOVES, change.was, change.state):
                raise ValueError(f"a step can't go from {change.was} to {change.state}")
        rows = [(*c[:10], dumps(c.input), dumps(c.output), c.error, c.started, c.ended) for c in self.steps]
        _expect(len(rows), _execute(UPDATE_STEPS, rows))


UPDATE_STEPS = """
UPDATE automation_stepexecution s
   SET state = u.state, reason = u.reason, attempts = GREATEST(s.attempts, u.attempts),
       deliveries = GREATEST(s.deliveries, u.deliveries), effect_state = u.effect_state,
       idempotency_key = CASE WHEN u.key = '' THEN s.idempotency_key ELSE u.key END,
       request_sha256 = CASE WHEN u.sha = '' THEN s.request_sha256 ELSE u.sha END,
       connection = CASE WHEN u.connection = '' THEN s.connection ELSE u.connection END,
       input = COALESCE(u.input::jsonb, s.input), output = COALESCE(u.output::jsonb, s.output), error = u.error,
       started_at = CASE WHEN u.started THEN COALESCE(s.started_at, clock_timestamp()) ELSE s.started_at END,
       ended_at = CASE WHEN u.ended THEN clock_timestamp() ELSE NULL END
  FROM unnest(%s::bigint[], %s::varchar[], %s::varchar[], %s::varchar[], %s::int[], %s::int[], %s::varchar[], %s::varchar[],
              %s::varchar[], %s::varchar[], %s::text[], %s::text[], %s::text[], %s::bool[], %s::bool[])
       AS u (id, was, state, reason, attempts, deliveries, effect_state, key, sha, connection, input, output, error, started, ended)
 WHERE s.id = u.id AND s.state = u.was
"""


def _execute(sql: str, rows: Sequence[tuple[Any, ...]]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        return cursor.rowcount


def _expect(asked: int, done: int) -> None:
    if asked != done:
        raise Stale


def _insert_steps(steps: Sequence[NewStep]) -> None:
    if not steps:
        return
    _execute(
        "INSERT INTO automation_stepexecution (id, tenant_id, run_id, path, kind, action, state, reason, attempts, effect_state,"
        " idempotency_key, input, output, error, started_at, ended_at)"
        " SELECT u.id, u.tenant_id, u.run_id, u.path, u.kind, u.action, u.state, u.reason, u.attempts, u.effect_state, u.key,"
        " u.input::jsonb, u.output::jsonb, u.error, CASE WHEN u.started THEN clock_timestamp() END,"
        " CASE WHEN u.ended THEN clock_timestamp() END"
        " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::varchar[], %s::varchar[], %s::varchar[], %s::varchar[],"
        " %s::varchar[], %s::int[], %s::varchar[], %s::varchar[], %s::text[], %s::text[], %s::text[], %s::bool[], %s::bool[])"
        " AS u (id, tenant_id, run_id, path, kind, action, state, reason, attempts, effect_state, key, input, output, error,"
        " started, ended)",
        [(*s[:11], dumps(s.input), dumps(s.output), s.error, s.started, s.ended) for s in steps],
    )


def _close_attempts(closed: Sequence[ClosedAttempt]) -> None:
    if not closed:
        return
    done = _execute(
        "UPDATE automation_attempt a SET outcome = u.outcome, answer = u.answer, finished_at = clock_timestamp()"
        " FROM unnest(%s::bigint[], %s::int[], %s::varchar[], %s::text[]) AS u (step_id, number, outcome, answer)"
        " WHERE a.step_id = u.step_id AND a.number = u.number AND a.outcome = ''",
        closed,
    )
    _expect(len(closed), done)


def _insert_attempts(attempts: Sequence[NewAttempt]) -> None:
    if not attempts:
        return
    _execute(
        "INSERT INTO automation_attempt (tenant_id, step_id, number, worker_id, lease_seq, started_at, finished_at, outcome,"
        " request, answer)"
        " SELECT u.tenant_id, u.step_id, u.number, u.worker_id, u.lease_seq, clock_timestamp(),"
        " CASE WHEN u.outcome <> '' THEN clock_timestamp() END, u.outcome, u.request, u.answer"
        " FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::uuid[], %s::bigint[], %s::varchar[], %s::text[], %s::text[])"
        " AS u (tenant_id, step_id, number, worker_id, lease_seq, outcome, request, answer)",
        attempts,
    )


def _change_runs(runs: Sequence[RunChange]) -> None:
    if not runs:
        return
    for change in runs:
        if change.was != change.state and not may_move(RUN_MOVES, change.was, change.state):
            raise ValueError(f"a run can't go from {change.was} to {change.state}")
    rows = [(*change, change.state in ENDED) for change in runs]
    done = _execute(
        "UPDATE automation_run r SET state = u.state, reason = u.reason,"
        " started_at = COALESCE(r.started_at, clock_timestamp()), ended_at = CASE WHEN u.ended THEN clock_timestamp() END"
        " FROM unnest(%s::bigint[], %s::varchar[], %s::varchar[], %s::varchar[], %s::bool[]) AS u (id, was, state, reason, ended)"
        " WHERE r.id = u.id AND r.state = u.was",
        rows,
    )
    _expect(len(runs), done)


def _insert_dead_letters(dead: Sequence[NewDeadLetter]) -> None:
    if not dead:
        return
    _execute(
        "INSERT INTO automation_deadletter (tenant_id, run_id, step_id, event_id, reason, error, snapshot)"
        " SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::varchar[], %s::text[], %s::jsonb[])",
        [(*letter[:6], dumps(letter.snapshot)) for letter in dead],
    )


def _insert_notices(notices: Iterable[NewNotice]) -> list[NewTimer]:
    """Inserts notices in one order everywhere; answers a timer for each that nobody has been told of yet."""
    made: list[NewTimer] = []
    for notice in sorted(notices, key=lambda one: one[:4]):
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO automation_notice AS n (tenant_id, kind, subject, period, title, text, recipients, cases)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, 1)"
                " ON CONFLICT (tenant_id, kind, subject, period) DO UPDATE SET cases = n.cases + 1 RETURNING n.id, (n.xmax = 0)",
                [*notice[:6], dumps(list(notice.recipients))],
            )
            notice_id, new = cursor.fetchone()
        if new:
            made.append(NewTimer(notice.tenant_id, "deliver", None, subject_id=notice_id))
    return made


def _mark_sent(sent: Sequence[int]) -> None:
    if sent:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE automation_notice SET sent_at = clock_timestamp() WHERE id = ANY(%s)", [list(sent)])


class StepIds:
    """Hands out ids of steps from blocks of the sequence, so that rows can name each other before they are written."""

    BLOCK = 100

    def __init__(self) -> None:
        self._free: list[int] = []

    def next(self) -> int:
        """An id that nobody else has."""
        if not self._free:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT nextval(pg_get_serial_sequence('automation_stepexecution', 'id')) FROM generate_series(1, %s)",
                    [self.BLOCK],
                )
                self._free = [row[0] for row in reversed(cursor.fetchall())]
        return self._free.pop()


def moment(value: datetime | None) -> str | None:
    """A time as traces show it: ISO 8601, or None."""
    return None if value is None else value.isoformat()
