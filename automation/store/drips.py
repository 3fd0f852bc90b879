"""Writes drips and what they hold, and drops what a pause has held."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from automation.store import statements

# A step that waits for its time; wake-ups of matchers and mail aren't held.
STEP_KINDS = ["step", "retry", "delay", "wait_timeout"]
PUT_OFF = ["step", "retry"]


class Admitted(NamedTuple):
    """How many kept events may start their runs now, and when the next one may (None: whenever it is there)."""

    granted: int
    next_at: datetime | None


def open_drip(
    pause_id: int, *, tenant_id: int, scope: str, subject_id: int | None, rate: int, kept_until: int | None
) -> int:
    """The open drip of that scope, new or at its new rate; what it still holds it keeps."""
    return int(
        statements.value(
            "INSERT INTO automation_drip (pause_id, tenant_id, scope, subject_id, rate, kept_until, since, next_at)"
            " SELECT %s, %s, %s, %s, %s, %s, t, t FROM automation_now() t"
            " ON CONFLICT (tenant_id, scope, subject_id) WHERE ended_at IS NULL DO UPDATE SET rate = EXCLUDED.rate,"
            " next_at = LEAST(automation_drip.next_at, EXCLUDED.next_at + interval '1 minute' / EXCLUDED.rate),"
            " pause_id = EXCLUDED.pause_id, kept_until = GREATEST(automation_drip.kept_until, EXCLUDED.kept_until)"
            " RETURNING id",
            [pause_id, tenant_id, scope, subject_id, rate, kept_until],
        )
    )


def hold_due(drip_id: int, *, tenant_id: int, until: datetime, limit: int) -> int:
    """Puts pending steps of a paused tenant that were due at `until` under a drip; answers how many, 0 at the end."""
    return _held(
        drip_id,
        "SELECT x.id FROM automation_timer x WHERE x.state = 'pending' AND x.id = ANY(ARRAY("
        "SELECT y.id FROM automation_timer y WHERE y.lane_id = automation_lane_of(%s) AND y.tenant_id = %s"
        " AND y.state = 'pending' AND y.due_at <= %s AND y.kind = ANY(%s) ORDER BY y.due_at, y.id LIMIT %s))"
        " ORDER BY x.id FOR UPDATE",
        [tenant_id, tenant_id, until, STEP_KINDS, limit],
    )


def hold_runs(drip_id: int, *, run_ids: Sequence[int]) -> int:
    """Puts what these runs were put off for under a drip, whatever its due time; answers how many steps."""
    return _held(
        drip_id,
        "SELECT x.id FROM automation_timer x WHERE x.step_id IN (SELECT s.id FROM automation_stepexecution s"
        " WHERE s.run_id = ANY(%s::bigint[])) AND x.state = 'pending' AND x.kind = ANY(%s) ORDER BY x.id FOR UPDATE",
        [list(run_ids), PUT_OFF],
    )


def _held(drip_id: int, chosen: str, params: Sequence[object]) -> int:
    return statements.count(
        f"WITH c AS ({chosen}), u AS (UPDATE automation_timer x SET state = 'held', drip_id = %s FROM c"  # noqa: S608 the two texts above
        " WHERE x.id = c.id RETURNING x.id),"
        " d AS (UPDATE automation_drip d SET held = d.held + n.n, ended_at = NULL"  # a look may have ended it meanwhile
        " FROM (SELECT count(*) AS n FROM u) n WHERE d.id = %s AND n.n > 0)"
        " SELECT id FROM u",
        [*params, drip_id, drip_id],
    )


def let_go(drip_id: int) -> int:
    """Ends a drip and makes all that it holds due now, in its order; answers how many steps. Lanes are locked last."""
    lanes = statements.rows(
        "WITH d AS (UPDATE automation_drip SET ended_at = automation_now() WHERE id = %s AND ended_at IS NULL),"
        " c AS (SELECT x.id FROM automation_timer x WHERE x.drip_id = %s AND x.state = 'held' ORDER BY x.id"
        " FOR UPDATE),"
        " u AS (UPDATE automation_timer x SET state = 'pending', drip_id = NULL FROM c WHERE x.id = c.id"
        " RETURNING x.lane_id, x.due_at)"
        " SELECT u.lane_id, count(*), min(u.due_at) FROM u GROUP BY u.lane_id ORDER BY u.lane_id",
        [drip_id, drip_id],
    )
    for lane_id, _count, due_at in lanes:
        statements.value("SELECT automation_lane_due(%s, %s)", [lane_id, due_at])
    return sum(row[1] for row in lanes)


def let_out(*, late: float) -> int:
    """Makes due what drips may let go by now, making up for `late` seconds at most; answers how many steps."""
    return int(statements.value("SELECT automation_let_out(%s)", [timedelta(seconds=late)]))


def paced_from(next_at: datetime, now: datetime, *, late: float) -> datetime:
    """From when a pace counts whose next one was due at `next_at`; up to `late` seconds are made up for."""
    found: datetime = statements.value(
        "SELECT automation_paced_from(%s, %s, %s)", [next_at, now, timedelta(seconds=late)]
    )
    return found


def admit(drip_id: int, *, wanted: int) -> Admitted:
    """How many of so many kept events may start their runs now; they count as started."""
    granted, next_at = statements.rows("SELECT * FROM automation_admit(%s, %s)", [drip_id, wanted])[0]
    return Admitted(granted, next_at)


def hurry_match(tenant_id: int) -> None:
    """Makes a matcher come now that was put off until the next event may start its runs; the lane is locked last."""
    lanes = statements.rows(
        "UPDATE automation_timer SET due_at = LEAST(due_at, automation_now()) WHERE tenant_id = %s AND kind = 'match'"
        " AND state = 'pending' RETURNING lane_id, due_at",
        [tenant_id],
    )
    for lane_id, due_at in lanes:
        statements.value("SELECT automation_lane_due(%s, %s)", [lane_id, due_at])


def last_kept(tenant_id: int) -> int | None:
    """The newest event of a tenant that no matcher has seen; None where there is none."""
    found: int | None = statements.value(
        "SELECT e.id FROM automation_event e WHERE e.tenant_id = %s AND e.matched_at IS NULL"
        " ORDER BY e.id DESC LIMIT 1",
        [tenant_id],
    )
    return found


def drop_events(tenant_id: int, *, before: datetime, at: datetime, limit: int) -> int:
    """Marks kept events older than `before` as matched at that moment `at`, without runs; answers how many."""
    return statements.count(
        "UPDATE automation_event SET matched_at = %s WHERE id IN (SELECT e.id FROM automation_event e"
        " WHERE e.tenant_id = %s AND e.matched_at IS NULL AND e.created_at < %s ORDER BY e.id LIMIT %s FOR UPDATE)",
        [at, tenant_id, before, limit],
    )


def held_since(
    tenant_id: int, *, until: datetime, before: datetime, after: tuple[datetime, int], limit: int
) -> list[tuple[datetime, int, int]]:
    """(due, timer, run) of steps that were due at `until` and before `before`, in their order, beyond `after`."""
    found = statements.rows(
        "SELECT x.due_at, x.id, x.run_id FROM automation_timer x WHERE x.lane_id = automation_lane_of(%s)"
        " AND x.tenant_id = %s AND x.state = 'pending' AND x.due_at <= %s AND x.due_at < %s AND x.kind = ANY(%s)"
        " AND (x.due_at, x.id) > (%s, %s) ORDER BY x.due_at, x.id LIMIT %s",
        [tenant_id, tenant_id, until, before, STEP_KINDS, *after, limit],
    )
    return [(row[0], row[1], row[2]) for row in found]


def dripping(drip_id: int, *, before: datetime | None = None) -> list[int]:
    """Runs of the steps that a drip still holds, oldest first; if a moment is given, of those due before it."""
    found = statements.rows(
        "SELECT x.run_id FROM automation_timer x WHERE x.drip_id = %s AND x.state = 'held'"
        " AND (%s::timestamptz IS NULL OR x.due_at < %s) ORDER BY x.due_at, x.id",
        [drip_id, before, before],
    )
    return [row[0] for row in found]


def older(run_ids: Sequence[int], *, before: datetime) -> list[int]:
    """Those of the runs that began before a moment and have a step that was put off or is held by a drip."""
    found = statements.rows(
        "SELECT r.id FROM automation_run r WHERE r.id = ANY(%s::bigint[]) AND r.created_at < %s"
        " AND EXISTS (SELECT 1 FROM automation_stepexecution s JOIN automation_timer x ON x.step_id = s.id"
        " WHERE s.run_id = r.id AND ((x.state = 'held' AND x.drip_id IS NOT NULL)"
        " OR (x.state = 'pending' AND x.kind = ANY(%s))))",
        [list(run_ids), before, PUT_OFF],
    )
    return [row[0] for row in found]


def put_off_runs(tenant_id: int, reasons: Sequence[str]) -> list[tuple[int, int, str]]:
    """(run, version, path of the step) of live runs of a tenant that were put off for one of these reasons."""
    found = statements.rows(
        "SELECT r.id, r.rule_version_id, s.path FROM automation_run r"
        " JOIN automation_stepexecution s ON s.run_id = r.id JOIN automation_timer x ON x.step_id = s.id"
        " WHERE r.tenant_id = %s AND r.state IN ('pending', 'running', 'waiting') AND r.reason = ANY(%s)"
        " AND x.state = 'pending' AND x.kind = ANY(%s) ORDER BY r.id",
        [tenant_id, list(reasons), PUT_OFF],
    )
    return [(row[0], row[1], row[2]) for row in found]
