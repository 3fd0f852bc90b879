"""Opens and ends pauses, and sets the flags by which lanes and compiled rules learn of them."""

from collections.abc import Collection
from datetime import datetime

from django.db import connection

from automation.store import shelves
from automation.store.drips import COUNTED


def open_pause(
    scope: str,
    *,
    tenant_id: int | None,
    subject_id: int | None = None,
    level: str = "hold",
    reason: str = "",
    actor: str = "",
    until: datetime | None = None,
    rate: int | None = None,
) -> int | None:
    """Writes an open pause and answers its id; None when one of that scope is open already.

    An empty `actor` means the engine itself; at `until` it goes on by itself, at `rate` a minute if one is given.
    Flags aren't touched: the caller sets them in the same transaction. A rule or connection gets its shelf.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO automation_pause"
            " (scope, tenant_id, subject_id, level, reason, actor, since, until, ended_by, rate)"
            " VALUES (%s, %s, %s, %s, %s, %s, automation_now(), %s, '', %s) ON CONFLICT DO NOTHING RETURNING id",
            [scope, tenant_id, subject_id, level, reason, actor, until, rate],
        )
        row = cursor.fetchone()
    if row is not None:
        shelves.follow(scope, tenant_id=tenant_id, subject_id=subject_id)
    return row[0] if row else None


def decide(
    pause_id: int, *, keep: str, recent_minutes: int | None, rate: int | None, actor: str, actor_id: int | None
) -> datetime | None:
    """Writes into an open pause how it goes on and who says so; answers since when, None when it has ended."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_pause SET keep = %s, recent_minutes = %s, rate = %s, resumed_at = automation_now(),"
            " resumed_by = %s, resumed_by_id = %s, place = NULL"
            " WHERE id = %s AND ended_at IS NULL RETURNING resumed_at",
            [keep, recent_minutes, rate, actor, actor_id, pause_id],
        )
        row = cursor.fetchone()
    return row[0] if row else None


def any_due() -> bool:
    """Whether a pause is being ended, or the moment has come at which one is to end by itself."""
    with connection.cursor() as cursor:
        cursor.execute(ANY_DUE)
        return bool(cursor.fetchone()[0])


# With one OR, or a comparison that the planner can't estimate, it would read the whole table.
ANY_DUE = """
SELECT COALESCE((SELECT min(until) FROM automation_pause WHERE ended_at IS NULL) <= automation_now(), false)
       OR EXISTS (SELECT 1 FROM automation_pause WHERE ended_at IS NULL AND resumed_at IS NOT NULL)
"""


def count_dropped(pause_id: int, *, events: int, runs: int) -> None:
    """Adds to what the end of a pause has dropped, in the transaction that drops it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_pause SET dropped_events = dropped_events + %s, dropped_runs = dropped_runs + %s"
            " WHERE id = %s",
            [events, runs, pause_id],
        )


def set_place(pause_id: int, place: int, *, since: datetime) -> bool:
    """Notes up to which tenant the end of the installation's pause has come; False where it is ended otherwise now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_pause SET place = %s WHERE id = %s AND ended_at IS NULL AND resumed_at = %s",
            [place, pause_id, since],
        )
        return bool(cursor.rowcount == 1)


def lock(pause_id: int, *, since: datetime | None = None) -> bool:
    """Locks a pause, before anything that it holds; False where it has ended, or is ended otherwise than since then."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM automation_pause WHERE id = %(id)s AND ended_at IS NULL"
            " AND (%(since)s::timestamptz IS NULL OR resumed_at = %(since)s) FOR NO KEY UPDATE",
            {"id": pause_id, "since": since},
        )
        return cursor.fetchone() is not None


def lock_over(pause_id: int) -> None:
    """Locks a pause, over or not, before what is still let out of it: whoever drops something counts it there.

    That of the installation may still be ended for other tenants, or for the same one once more.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM automation_pause WHERE id = %s FOR NO KEY UPDATE", [pause_id])


def end_pause(pause_id: int, *, actor: str = "", rate: int | None = None) -> bool:
    """Ends this very pause; False when it has ended. Its shelf goes on at `rate`, unless it is stopped otherwise."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_pause SET ended_at = automation_now(), ended_by = %s WHERE id = %s AND ended_at IS NULL"
            " RETURNING scope, tenant_id, subject_id",
            [actor, pause_id],
        )
        row = cursor.fetchone()
    if row is not None:
        shelves.follow(row[0], tenant_id=row[1], subject_id=row[2], rate=rate)
    return row is not None


def drop_match(tenant_id: int | None) -> None:
    """Deletes pending match timers, a tenant's or all: wake-ups only, the events stay. A leased one ends by itself."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM automation_timer WHERE id IN (SELECT x.id FROM automation_timer x WHERE x.kind = 'match'"
            " AND x.state = 'pending' AND (%(tenant)s::bigint IS NULL OR x.tenant_id = %(tenant)s)"
            " ORDER BY x.id FOR UPDATE)",
            {"tenant": tenant_id},
        )


def follow_pauses(tenant_id: int | None) -> int:
    """Gives lanes, one tenant's or all, the flags that the claim reads, as the open pauses say; answers how many moved.

    The last lock of its transaction. Lanes are locked before the pauses are read, so of two who pause or resume at
    one moment the later one sees what the other has written. The lane of a closed tenant stays paused. A lane that
    isn't paused any more joins the line where it stands now, so nobody saves up credit by being paused.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT x.id FROM automation_lane x WHERE %(tenant)s::bigint IS NULL OR x.tenant_id = %(tenant)s"
            " ORDER BY x.id FOR NO KEY UPDATE",
            {"tenant": tenant_id},
        )
        cursor.execute(FLAGS, {"tenant": tenant_id})
        moved: int = cursor.rowcount
    return moved


FLAGS = """
UPDATE automation_lane x
   SET hold_new = u.hold_new, paused = u.paused, due_hint = x.due_hint OR (x.paused AND NOT u.paused),
       stride_pass = CASE WHEN x.paused AND NOT u.paused THEN automation_join_pass(x.pool, x.stride_pass)
                          ELSE x.stride_pass END
  FROM (SELECT t.id, t.closed_at IS NOT NULL OR count(p.id) > 0 AS hold_new,
               t.closed_at IS NOT NULL OR count(p.id) FILTER (WHERE p.level <> 'new') > 0 AS paused
          FROM tenants_tenant t
          LEFT JOIN automation_pause p ON p.ended_at IS NULL
                AND (p.scope = 'installation' OR (p.scope = 'tenant' AND p.tenant_id = t.id))
         WHERE %(tenant)s::bigint IS NULL OR t.id = %(tenant)s
         GROUP BY t.id) u
 WHERE x.tenant_id = u.id AND (x.hold_new, x.paused) IS DISTINCT FROM (u.hold_new, u.paused)
"""


def follow_tenant(tenant_id: int) -> None:
    """Makes workers read a tenant anew that was changed: its name, its zone, and whether it is closed.

    Closing stops it at once, as a pause that nobody but opening it again ends. In the caller's transaction.
    """
    follow_pauses(tenant_id)
    bump_rules(tenant_id)


def bump_rules(tenant_id: int) -> None:
    """Makes every worker read the tenant's rules and pauses anew at its next claim; its transaction's last lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE automation_lane SET rules_version = rules_version + 1 WHERE tenant_id = %(tenant)s"
            " OR id = automation_lane_of(%(tenant)s)",
            {"tenant": tenant_id},
        )


def bump_rules_of(tenant_ids: Collection[int], *, told: Collection[int] = ()) -> None:
    """The same for several tenants: their lanes, and those of `told`, are locked in the order of their ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT x.id FROM automation_lane x WHERE x.tenant_id = ANY(%s) ORDER BY x.id FOR NO KEY UPDATE",
            [list({*tenant_ids, *told})],
        )
        cursor.execute(
            "UPDATE automation_lane SET rules_version = rules_version + 1 WHERE tenant_id = ANY(%s)",
            [list(tenant_ids)],
        )


def in_flight(tenant_id: int | None, *, kind: str | None = None) -> list[tuple[int, str]]:
    """Leased timers as (timer id, "host:pid" of the worker), oldest first: a tenant's or all; of a kind if given."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT x.id, COALESCE(w.host || ':' || w.pid, x.worker_id::text) FROM automation_timer x"
            " LEFT JOIN automation_worker w ON w.id = x.worker_id WHERE x.state = 'leased'"
            " AND (%(tenant)s::bigint IS NULL OR (x.lane_id = automation_lane_of(%(tenant)s)"
            " AND x.tenant_id = %(tenant)s))"
            " AND (%(kind)s::text IS NULL OR x.kind = %(kind)s) ORDER BY x.deadline_at, x.id",
            {"tenant": tenant_id, "kind": kind},
        )
        return [(row[0], row[1]) for row in cursor.fetchall()]


def counts(tenant_id: int) -> dict[str, int]:
    """What a pause concerns: `events` unmatched, `runs` live, `timers_due`; each counted to `COUNTED` at most."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM automation_event e WHERE e.tenant_id = %(tenant)s"
            " AND e.matched_at IS NULL LIMIT %(most)s) a),"
            " (SELECT count(*) FROM (SELECT 1 FROM automation_run r WHERE r.tenant_id = %(tenant)s"
            " AND r.state IN ('pending', 'running', 'waiting') LIMIT %(most)s) b),"
            " (SELECT count(*) FROM (SELECT 1 FROM automation_timer x WHERE x.lane_id = automation_lane_of(%(tenant)s)"
            " AND x.state = 'pending' AND x.tenant_id = %(tenant)s AND x.kind <> 'match'"
            " AND x.due_at <= (SELECT automation_now()) LIMIT %(most)s) c)",
            {"tenant": tenant_id, "most": COUNTED},
        )
        events, runs, due = cursor.fetchone()
    return {"events": events, "runs": runs, "timers_due": due}
