"""The guarded writes behind what people do to single steps, timers and replays, under the locks of their runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from automation.core.states import LIVE_RUN, OPERATOR_STEP_MOVES, RUN_MOVES, STEP_MOVES, sources_of
from automation.store import statements
from automation.store.waves import dumps


@dataclass(frozen=True, slots=True)
class StepByHand:
    """A step of a locked run."""

    id: int
    run_id: int
    path: str
    kind: str
    state: str
    effect_state: str


class TimerByHand(NamedTuple):
    """A locked timer of a locked run."""

    id: int
    lane_id: int
    kind: str
    state: str
    due_at: datetime
    run_id: int | None
    step_id: int | None
    deadline_at: datetime | None  # of its run
    run_state: str


class Copied(NamedTuple):
    """A settled step of an earlier run, as a replay takes it over: no attempt and no effect of its own."""

    path: str
    kind: str
    action: str
    state: str
    reason: str
    input: Any
    output: Any
    started_at: datetime | None
    ended_at: datetime | None


class Earlier(NamedTuple):
    """The latest that earlier runs of a rule for an event know of a step's effect."""

    run_id: int
    effect_state: str
    output: Any


def step(run_id: int, step_id: int) -> StepByHand | None:
    """A step of a locked run; None where the run has no such step."""
    found = statements.rows(
        "SELECT s.id, s.run_id, s.path, s.kind, s.state, s.effect_state FROM automation_stepexecution s"
        " WHERE s.id = %s AND s.run_id = %s",
        [step_id, run_id],
    )
    return StepByHand(*found[0]) if found else None


def take_timer(step_id: int) -> int | None:
    """Deletes the timer of a step, out of a worker's hands where one is on it: its settle will be refused.

    Answers the lane in which a place is to be freed (`free_place`, the last lock of the transaction), or None.
    """
    found = statements.rows("SELECT x.state FROM automation_timer x WHERE x.step_id = %s FOR UPDATE", [step_id])
    gone = statements.rows("DELETE FROM automation_timer x WHERE x.step_id = %s RETURNING x.lane_id", [step_id])
    return int(gone[0][0]) if gone and found and found[0][0] == "leased" else None


def free_place(lane_id: int) -> None:
    """Gives the lane back the place of a leased timer that was deleted."""
    statements.value("SELECT automation_lane_release(%s, NULL, 0, 1)", [lane_id])


def settle_step(step_id: int, *, state: str, output: Any, effect_state: str) -> bool:
    """Ends a step as a person says, and closes an attempt that is still open; False when it has ended otherwise."""
    sources = sorted({*sources_of(STEP_MOVES, state), *sources_of(OPERATOR_STEP_MOVES, state)})
    settled = statements.count(
        "UPDATE automation_stepexecution SET state = %s, reason = 'by_hand', output = COALESCE(%s::jsonb, output),"
        " error = '', effect_state = %s, started_at = COALESCE(started_at, clock_timestamp()),"
        " ended_at = clock_timestamp() WHERE id = %s AND state = ANY(%s::varchar[])",
        [state, dumps(output), effect_state, step_id, sources],
    )
    statements.count(
        "UPDATE automation_attempt SET outcome = 'cancelled', finished_at = clock_timestamp()"
        " WHERE step_id = %s AND outcome = ''",
        [step_id],
    )
    return settled == 1


def set_paused(run_id: int) -> bool:
    """Marks a locked run as paused; False when it can't be."""
    return _move(run_id, "paused", sources_of(RUN_MOVES, "paused"))


def set_resumed(run_id: int) -> bool:
    """Lets a paused run be what its steps say: pending before the first, waiting in a delay, else running."""
    to = statements.value(
        "SELECT CASE WHEN bool_or(s.kind = 'delay' AND s.state = 'waiting') THEN 'waiting'"
        " WHEN count(*) FILTER (WHERE s.state <> 'pending') = 0 THEN 'pending' ELSE 'running' END"
        " FROM automation_stepexecution s WHERE s.run_id = %s",
        [run_id],
    )
    return _move(run_id, str(to), ("paused",))


def set_reached(run_id: int, state: str) -> bool:
    """The state of a locked run after a person has settled one of its steps; False when it was in another one."""
    sources = [state, *sources_of(RUN_MOVES, state)]
    return _move(run_id, state, sources)


def _move(run_id: int, to: str, sources: Sequence[str]) -> bool:
    return (
        statements.count(
            "UPDATE automation_run SET state = %s, reason = '', ended_at = CASE WHEN %s THEN clock_timestamp() END"
            " WHERE id = %s AND state = ANY(%s::varchar[])",
            [to, to == "succeeded", run_id, list(sources)],
        )
        == 1
    )


def run_of_timer(tenant_id: int, timer_id: int) -> tuple[int | None, str] | None:
    """(run id, kind) of a timer of the tenant; None where it has none of that id."""
    found = statements.rows(
        "SELECT x.run_id, x.kind FROM automation_timer x WHERE x.id = %s AND x.tenant_id = %s", [timer_id, tenant_id]
    )
    return (found[0][0], found[0][1]) if found else None


def lock_timer(tenant_id: int, timer_id: int) -> TimerByHand | None:
    """Locks a timer after its run; None when it is gone."""
    found = statements.rows(
        "SELECT x.id, x.lane_id, x.kind, x.state, x.due_at, x.run_id, x.step_id, r.deadline_at,"
        " COALESCE(r.state, '') FROM automation_timer x"
        " LEFT JOIN automation_run r ON r.id = x.run_id WHERE x.id = %s AND x.tenant_id = %s FOR UPDATE OF x",
        [timer_id, tenant_id],
    )
    return TimerByHand(*found[0]) if found else None


def move_timer(timer: TimerByHand, due_at: datetime) -> None:
    """Gives a locked timer that nobody is on another due time, and tells its lane unless the timer is held."""
    statements.count("UPDATE automation_timer SET due_at = %s WHERE id = %s AND state <> 'leased'", [due_at, timer.id])
    if timer.state == "pending":
        statements.value("SELECT automation_lane_due(%s, %s)", [timer.lane_id, due_at])


def release_timer(timer: TimerByHand, due_at: datetime) -> None:
    """Lets a locked timer that is held wait as others do, due at that moment, and tells its lane."""
    statements.count(
        "UPDATE automation_timer SET state = 'pending', drip_id = NULL, due_at = %s WHERE id = %s AND state = 'held'",
        [due_at, timer.id],
    )
    statements.value("SELECT automation_lane_due(%s, %s)", [timer.lane_id, due_at])


def first_run(event_id: int, rule_id: int) -> int | None:
    """The run that the event itself started of the rule."""
    found: int | None = statements.value(
        "SELECT id FROM automation_run WHERE event_id = %s AND rule_id = %s AND origin = 'event'"
        " AND forked_from_run_id IS NULL",
        [event_id, rule_id],
    )
    return found


def live_replay(event_id: int, rule_id: int) -> tuple[int, int, str, int, int] | None:
    """The replay of the rule for the event that hasn't ended: (id, replayed run, its step, version, epoch)."""
    found = statements.rows(
        "SELECT id, forked_from_run_id, forked_from_step, rule_version_id, epoch FROM automation_run"
        " WHERE event_id = %s AND rule_id = %s AND forked_from_run_id IS NOT NULL AND state = ANY(%s::varchar[])"
        " ORDER BY id LIMIT 1",
        [event_id, rule_id, list(LIVE_RUN)],
    )
    return (found[0][0], found[0][1], found[0][2], found[0][3], found[0][4]) if found else None


def newest_epoch(event_id: int, rule_id: int) -> int:
    """The highest epoch under which any run of the rule for the event has sent something."""
    return int(statements.value(NEWEST_EPOCH, [event_id, rule_id, event_id, rule_id]))


def insert_replay(run_id: int, *, version_id: int, step_path: str, epoch: int, life: timedelta) -> int:
    """A new run for the event of another one, from that step on; answers its id."""
    return int(
        statements.value(
            "INSERT INTO automation_run (tenant_id, rule_id, rule_version_id, event_id, origin, state, reason, model,"
            " record, root_event_id, depth, forked_from_run_id, forked_from_step, epoch, deadline_at)"
            " SELECT r.tenant_id, r.rule_id, %s, r.event_id, r.origin, 'pending', '', r.model, r.record,"
            " r.root_event_id, r.depth, r.id, %s, %s, automation_now() + %s FROM automation_run r WHERE r.id = %s"
            " RETURNING id",
            [version_id, step_path, epoch, life, run_id],
        )
    )


def copy_steps(tenant_id: int, run_id: int, steps: Sequence[Copied]) -> None:
    """Writes the outcomes of earlier steps into a replay, in their order."""
    rows = [(*one[:5], dumps(one.input), dumps(one.output), one.started_at, one.ended_at) for one in steps]
    statements.count(
        "INSERT INTO automation_stepexecution (tenant_id, run_id, path, kind, action, state, reason, input, output,"
        " started_at, ended_at) SELECT %s, %s, u.path, u.kind, u.action, u.state, u.reason, u.input::jsonb,"
        " u.output::jsonb, u.started_at, u.ended_at FROM unnest(%s::varchar[], %s::varchar[], %s::varchar[],"
        " %s::varchar[], %s::varchar[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[])"
        " WITH ORDINALITY AS u (path, kind, action, state, reason, input, output, started_at, ended_at, place)"
        " ORDER BY u.place",
        [tenant_id, run_id, *statements.columns(rows, 9)],
    )


def earlier(*, event_id: int, rule_id: int, run_id: int, path: str, since_epoch: int) -> Earlier | None:
    """What the rule's other runs for the event know of this step's effect: a confirmed one first, else the latest."""
    found = statements.rows(EARLIER, [path, run_id, since_epoch, event_id, rule_id, event_id, rule_id])
    return Earlier(found[0][0], found[0][1], json.loads(found[0][2] or "{}")) if found else None


# The run that an event started of a rule, and its replays: each half by an index of its own.
FAMILY = """
SELECT f.id FROM automation_run f WHERE f.event_id = %s AND f.rule_id = %s AND f.origin = 'event'
                                    AND f.forked_from_run_id IS NULL
UNION ALL
SELECT f.id FROM automation_run f WHERE f.event_id = %s AND f.rule_id = %s AND f.forked_from_run_id IS NOT NULL
"""
NEWEST_EPOCH = f"""
SELECT COALESCE(max(r.epoch + s.epoch), 0) FROM automation_run r JOIN automation_stepexecution s ON s.run_id = r.id
 WHERE r.id IN ({FAMILY})
"""  # noqa: S608 a constant
EARLIER = f"""
SELECT r.id, s.effect_state, s.output
  FROM automation_stepexecution s JOIN automation_run r ON r.id = s.run_id
 WHERE s.path = %s AND r.id <> %s AND r.epoch + s.epoch >= %s AND s.effect_state <> 'none' AND r.id IN ({FAMILY})
 ORDER BY (s.effect_state = 'confirmed') DESC, r.epoch + s.epoch DESC, r.id DESC LIMIT 1
"""  # noqa: S608 a constant
