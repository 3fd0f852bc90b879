"""Collects what a transaction is to write and writes it with one statement a table, guarded by states and leases."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from automation.core.states import RUN_MOVES, STEP_MOVES, TERMINAL_RUN, may_move
from automation.store import events, statements, wave_sql
from automation.store.claims import Settlement
from automation.store.events import NewEvent
from automation.store.places import Waiting
from automation.store.shelves import Shelved
from automation.store.timers import NewTimer

LONGEST_LIFE = timedelta(days=400)


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


class NewRun(NamedTuple):
    """A run to be inserted, started or suppressed with its reason; its id comes from `automation_begin_match`."""

    id: int
    tenant_id: int
    rule_id: int
    version_id: int
    event_id: int
    state: str
    reason: str
    model: str
    record: int | None
    root_event_id: int
    depth: int
    life: timedelta = LONGEST_LIFE


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
    said: Mapping[str, tuple[str, str]] = {}


class Mailed(NamedTuple):
    """What became of one mail of a notice, by the places of those whom it was for; `sent` once all were mailed.

    `given_up` says why nobody tries it any more.
    """

    notice_id: int
    states: Mapping[str, str | int]
    sent: bool
    given_up: str = ""


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
    new_runs: list[NewRun] = field(default_factory=list)
    matched: list[int] = field(default_factory=list)
    uncounted: list[int] = field(default_factory=list)  # steps whose last attempt uses up none
    events: list[NewEvent] = field(default_factory=list)
    failed: list[tuple[int, int]] = field(default_factory=list)  # (tenant, rule) of runs that failed: not written
    dead: list[NewDeadLetter] = field(default_factory=list)
    notices: list[NewNotice] = field(default_factory=list)
    mailed: list[Mailed] = field(default_factory=list)
    timers: list[NewTimer] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    held: list[int] = field(default_factory=list)  # timers of paused runs, put back and then held
    waiting: list[Waiting] = field(default_factory=list)  # timers, put back, that wait for a place
    shelved: list[Shelved] = field(default_factory=list)  # steps that are to be held for their rule or a connection

    def shelve(self, tenant_id: int, shelf: tuple[str, int] | None, step_id: int | None) -> None:
        """Has a step held until its rule or connection may go on: it costs no claim meanwhile."""
        if shelf is not None and step_id is not None:
            self.shelved.append(Shelved(tenant_id, *shelf, step_id))

    def write(self) -> None:
        """Writes all but the timers; raises `Stale` when a guarded row isn't as it was read, or a run is there already.

        Notices that nobody has been told of yet add a timer to `timers`. The caller writes these and settles last.
        """
        if any((self.steps, self.new_steps, self.attempts, self.closed, self.runs, self.new_runs, self.matched)):
            self._write_rows()
        if self.uncounted:
            statements.count(wave_sql.UNCOUNTED, [self.uncounted])
        events.insert(self.events)
        if self.dead:
            rows = [(*letter[:6], dumps(letter.snapshot)) for letter in self.dead]
            statements.count(wave_sql.INSERT_DEAD_LETTERS, statements.columns(rows))
        self.timers += _insert_notices(self.notices)
        _write_mailed(self.mailed)

    def _write_rows(self) -> None:
        _check_moves(self.steps, STEP_MOVES)
        _check_moves(self.runs, RUN_MOVES)
        steps = [(*c[:10], dumps(c.input), dumps(c.output), c.error, c.started, c.ended) for c in self.steps]
        runs = [(*change, change.state in TERMINAL_RUN) for change in self.runs]
        new_runs = [(*run, run.state in TERMINAL_RUN) for run in self.new_runs]
        new_steps = [(*s[:11], dumps(s.input), dumps(s.output), s.error, s.started, s.ended) for s in self.new_steps]
        inserted = [
            *statements.columns(new_runs, 13),
            *statements.columns(new_steps, 16),
            *statements.columns(self.attempts, 8),
            list(self.matched),
        ]
        if not (steps or self.closed or runs):
            done = statements.rows(wave_sql.START, inserted)[0]
            asked: tuple[int, ...] = (len(self.new_runs),)
        else:
            changed = [
                *statements.columns(steps, 15),
                *statements.columns(self.closed, 4),
                *statements.columns(runs, 5),
            ]
            done = statements.rows(wave_sql.WRITE, [*changed, *inserted])[0]
            asked = (len(self.steps), len(self.closed), len(self.runs), len(self.new_runs))
        if done != asked:
            raise Stale


def _check_moves(changes: Iterable[StepChange | RunChange], moves: Mapping[str, frozenset[str]]) -> None:
    for change in changes:
        if change.was != change.state and not may_move(moves, change.was, change.state):
            raise ValueError(f"there is no way from {change.was} to {change.state}")


def _insert_notices(notices: Iterable[NewNotice]) -> list[NewTimer]:
    """Inserts notices in one order everywhere; answers a timer for each that nobody has been told of yet."""
    made: list[NewTimer] = []
    for notice in sorted(notices, key=lambda one: one[:4]):
        values = [*notice[:6], dumps(list(notice.recipients)), dumps(dict(notice.said))]
        row = statements.rows(wave_sql.INSERT_NOTICE, values)[0]
        if row[1]:
            made.append(NewTimer(notice.tenant_id, "deliver", None, subject_id=row[0]))
    return made


def _write_mailed(mailed: Sequence[Mailed]) -> None:
    if mailed:
        rows = [(one.notice_id, dumps(one.states), one.sent, one.given_up) for one in mailed]
        statements.count(wave_sql.MAILED, statements.columns(rows))


class StepIds:
    """Hands out ids of steps from blocks of the sequence, so that rows can name each other before they are written."""

    BLOCK = 100

    def __init__(self) -> None:
        self._free: list[int] = []

    def next(self) -> int:
        """An id that nobody else has."""
        if not self._free:
            found = statements.rows(wave_sql.STEP_IDS, [self.BLOCK])
            self._free = [row[0] for row in reversed(found)]
        return self._free.pop()
