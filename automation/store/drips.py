"""Writes drips and what they hold, and finds what is to be dropped of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from automation.store import statements

COUNTED = 10_000  # counts for screens stop here: beyond it only "more than" matters
# A step that waits for its time; wake-ups of matchers and mail aren't held.
STEP_KINDS = ["step", "retry", "delay", "wait_timeout"]


class Admitted(NamedTuple):
    """How many kept events may start their runs now, and when the next one may (None: whenever it is there)."""

    granted: int
    next_at: datetime | None


def open_drip(pause_id: int, *, tenant_id: int, rate: int | None, kept_until: int | None) -> int:
    """The open drip of a tenant, new or at its new rate (None: in portions); what it still holds it keeps."""
    return int(
        statements.value(
            "INSERT INTO automation_drip (pause_id, tenant_id, scope, subject_id, rate, kept_until, since, next_at)"
            " SELECT %s, %s, 'tenant', NULL, %s, %s, t, t FROM automation_now() t"
            " ON CONFLICT (tenant_id, scope, subject_id) WHERE ended_at IS NULL DO UPDATE SET rate = EXCLUDED.rate,"
            " next_at = COALESCE(LEAST(automation_drip.next_at, EXCLUDED.next_at + interval '1 minute'"
            " / EXCLUDED.rate), EXCLUDED.next_at), paced_at = NULL,"
            " pause_id = EXCLUDED.pause_id, kept_until = GREATEST(automation_drip.kept_until, EXCLUDED.kept_until)"
            " RETURNING id",
            [pause_id, tenant_id, rate, kept_until],
        )
    )


def change_rate(drip_id: int, rate: int | None) -> None:
    """What an open drip still holds goes on at another rate, or, without one, in portions from now on."""
    statements.count(
        "UPDATE automation_drip x SET rate = %(rate)s, paced_at = NULL,"
        " next_at = CASE WHEN %(rate)s::int IS NULL THEN t"
        " ELSE LEAST(x.next_at, t + interval '1 minute' / %(rate)s::int) END FROM automation_now() t"
        " WHERE x.id = %(drip)s AND x.ended_at IS NULL AND x.next_at IS NOT NULL",
        {"drip": drip_id, "rate": rate},
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


def take_over(drip_id: int, *, tenant_id: int, limit: int, above: int = 0) -> int:
    """Puts under a paused tenant's drip what others of it would let out, of rules and connections; 0 at the end.

    Those that let out no more than `above` a minute stay.
    """
    return _held(
        drip_id,
        "SELECT x.id FROM automation_timer x WHERE x.state = 'held' AND x.id = ANY(ARRAY("
        "SELECT y.id FROM automation_drip o JOIN automation_timer y ON y.drip_id = o.id AND y.state = 'held'"
        " WHERE o.tenant_id = %s AND o.id <> %s AND o.ended_at IS NULL AND o.next_at IS NOT NULL"
        " AND (o.rate IS NULL OR o.rate > %s) LIMIT %s))"
        " ORDER BY x.id FOR UPDATE",
        [tenant_id, drip_id, above, limit],
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


def let_out(*, late: float, drip_id: int | None = None) -> int:
    """Makes due what drips, or one of them, may let go by now, by looks that come `late` seconds late at most.

    Answers how many steps.
    """
    return int(statements.value("SELECT automation_let_out(%s, %s)", [timedelta(seconds=late), drip_id]))


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


def held_in(
    drip_id: int, *, before: datetime, after: tuple[datetime, int], limit: int
) -> list[tuple[datetime, int, int]]:
    """(due, timer, run) of the steps that a drip or shelf holds and that were due before `before`, beyond `after`."""
    found = statements.rows(
        "SELECT x.due_at, x.id, x.run_id FROM automation_timer x WHERE x.drip_id = %s AND x.state = 'held'"
        " AND x.due_at < %s AND (x.due_at, x.id) > (%s, %s) ORDER BY x.due_at, x.id LIMIT %s",
        [drip_id, before, *after, limit],
    )
    return [(row[0], row[1], row[2]) for row in found]
