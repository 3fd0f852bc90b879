"""Claims due timers for a worker, keeps and renews its lease, and gives places back."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from automation.store import statements


class Begun(NamedTuple):
    """How a matcher's transaction begins: is the lease ours, the tenant's flags, the time, ids for new runs."""

    ours: bool
    paused: bool
    hold_new: bool
    now: datetime
    run_ids: list[int]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A timer under this worker's lease. `lease_seq` is the fence: a write with an older one is refused."""

    timer_id: int
    lane_id: int
    tenant_id: int
    kind: str
    run_id: int | None
    step_id: int | None
    subject_id: int | None
    lease_seq: int
    deliveries: int
    lost: int
    deadline_at: datetime
    lane_pass: int
    rules_version: int
    claimed_at: datetime
    step_kind: str = ""  # of the step that it is for; both never change once a step is written
    action: str = ""


UNTOUCHED = ""


class Settlement(NamedTuple):
    """What becomes of a leased timer: deleted (`kind` None), or put back as `kind`, maybe for another step.

    The kind `UNTOUCHED` hands it back as it is: no attempt, and the count of lost leases stays.
    """

    timer_id: int
    lease_seq: int
    kind: str | None
    due_at: datetime | None
    step_id: int | None


def enlist(worker: uuid.UUID, *, pool: str, release: str, host: str, pid: int, lease: float) -> None:
    """Writes the worker's row; its lease of `lease` seconds begins."""
    statements.value(
        "SELECT automation_enlist(%s, %s, %s, %s, %s, %s)", [worker, pool, release, host, pid, timedelta(seconds=lease)]
    )


def beat(worker: uuid.UUID, *, lease: float) -> bool:
    """Renews the lease for `lease` seconds from now; False: this worker has been declared dead."""
    return bool(statements.value("SELECT automation_beat(%s, %s)", [worker, timedelta(seconds=lease)]))


def limit_waits(*, idle: float) -> None:
    """No lock is waited for longer than 2 s, and a transaction that was left open ends after `idle` seconds."""
    statements.value(
        "SELECT set_config('lock_timeout', '2s', false), set_config('idle_in_transaction_session_timeout', %s, false),"
        " set_config('jit', 'off', false)",
        [f"{int(idle * 1000)}ms"],
    )


def dismiss(worker: uuid.UUID) -> None:
    """Deletes the row of a worker that holds nothing any more; with leases left the row stays for the reaper."""
    statements.count(
        "DELETE FROM automation_worker w WHERE w.id = %s AND NOT EXISTS"
        " (SELECT 1 FROM automation_timer x WHERE x.state = 'leased' AND x.worker_id = w.id)",
        [worker],
    )


def claim(
    worker: uuid.UUID, *, pool: str, most: int, take: int, deadline: float, floor: int, match_only: bool
) -> list[Claimed]:
    """Leases up to `most` due timers of the pool, at most `take` a lane, in fairness order; never waits for a lock."""
    found = statements.rows(
        "SELECT c.*, COALESCE(s.kind, ''), COALESCE(s.action, '') FROM automation_claim(%s, %s, %s, %s, %s, %s, %s) c"
        " LEFT JOIN automation_stepexecution s ON s.id = c.step_id",
        [worker, pool, most, take, timedelta(seconds=deadline), floor, match_only],
    )
    return [_with_step(Claimed(*row)) for row in found]


def _with_step(one: Claimed) -> Claimed:
    """The claim sees timers that were committed after its statement began, the join doesn't see their steps.

    They are looked at once more, for a step of no kind would be taken for a local one.
    """
    if one.step_id is None or one.step_kind:
        return one
    found = statements.rows("SELECT kind, action FROM automation_stepexecution WHERE id = %s", [one.step_id])
    return replace(one, step_kind=found[0][0], action=found[0][1]) if found else one


def adopt(worker: uuid.UUID) -> list[Claimed]:
    """The timers that are leased under this worker's id, for a claim whose answer got lost."""
    found = statements.rows(
        "SELECT t.id, t.lane_id, t.tenant_id, t.kind, t.run_id, t.step_id, t.subject_id, t.lease_seq, t.deliveries,"
        " t.lost, t.deadline_at, l.stride_pass, l.rules_version, automation_now(), COALESCE(s.kind, ''),"
        " COALESCE(s.action, '') FROM automation_timer t JOIN automation_lane l ON l.id = t.lane_id"
        " LEFT JOIN automation_stepexecution s ON s.id = t.step_id"
        " WHERE t.state = 'leased' AND t.worker_id = %s",
        [worker],
    )
    return [Claimed(*row) for row in found]


def begin(worker: uuid.UUID, timers: Sequence[tuple[int, int]]) -> tuple[datetime, set[int]]:
    """The database's time, and which of these (timer id, lease_seq) are still this worker's until the commit."""
    now, held = statements.rows(
        "SELECT automation_now(), ARRAY(SELECT automation_hold(%s, %s::bigint[], %s::bigint[]))",
        [worker, *statements.columns(timers, 2)],
    )[0]
    return now, set(held)


def begin_match(worker: uuid.UUID, claimed: Claimed, *, runs: int) -> Begun:
    """Begins a matcher's transaction, which may insert so many runs."""
    found = statements.rows(
        "SELECT * FROM automation_begin_match(%s, %s, %s, %s, %s)",
        [worker, claimed.timer_id, claimed.lease_seq, claimed.tenant_id, runs],
    )
    return Begun(*found[0])


def settle_wave(worker: uuid.UUID, settlements: Sequence[Settlement]) -> int:
    """Settles many timers, each lane touched once; answers how many: fewer than asked means a lost lease."""
    if not settlements:
        return 0
    return int(
        statements.value(
            "SELECT automation_settle_wave(%s, %s::bigint[], %s::bigint[], %s::varchar[], %s::timestamptz[],"
            " %s::bigint[])",
            [worker, *statements.columns(settlements)],
        )
    )


def settle_match(
    worker: uuid.UUID, claimed: Claimed, *, more: bool, charge: int = 0, not_before: datetime | None = None
) -> bool:
    """Ends a matcher's turn: its timer comes back when `more` is left or somebody armed it meanwhile."""
    return bool(
        statements.value(
            "SELECT automation_settle_match(%s, %s, %s, %s, %s, %s)",
            [claimed.timer_id, worker, claimed.lease_seq, more, charge, not_before],
        )
    )


def put_back(worker: uuid.UUID, claimed: Claimed, *, due_at: datetime) -> bool:
    """Hands a timer back untouched, due at `due_at`: no attempt, and the count of lost leases stays."""
    return bool(
        statements.value(
            "SELECT automation_put_back(%s, %s, %s, NULL, %s)", [claimed.timer_id, worker, claimed.lease_seq, due_at]
        )
    )
