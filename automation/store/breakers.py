"""Counts how calls of connections end, and moves their breakers, each by a guarded UPDATE."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from automation.core import breaker
from automation.store import statements

KEPT = timedelta(hours=1)
PROBE = timedelta(seconds=45)  # longer than any step lasts: then a try whose worker died is made again
DELETED_AT_ONCE = 5000


class Call(NamedTuple):
    """How calls of a connection ended: one failure of a record, or so many successes."""

    connection_id: int
    ok: bool
    calls: int
    record: str
    error: str


class Known(NamedTuple):
    """A connection's breaker as it stands under its lock."""

    id: int
    breaker: str
    until: datetime | None


class Lately(NamedTuple):
    """Records that failed and calls that succeeded in the window, and when either was last seen."""

    failing: int
    succeeded: int
    last_ok_at: datetime | None
    last_failed_at: datetime | None


INSERT = """
INSERT INTO automation_connectioncall (connection_id, at, ok, calls, record, error)
SELECT u.connection_id, %s, u.ok, u.calls, u.record, u.error
  FROM unnest(%s::bigint[], %s::bool[], %s::int[], %s::varchar[], %s::varchar[])
       AS u (connection_id, ok, calls, record, error) JOIN automation_connection c ON c.id = u.connection_id
"""
# Of the successes only so many are read as can matter.
WINDOW = """
WITH failed AS (
  SELECT count(DISTINCT f.record) AS n FROM automation_connectioncall f
   WHERE f.connection_id = %s AND NOT f.ok AND f.at > %s)
SELECT failed.n, (SELECT COALESCE(sum(s.calls), 0) FROM (
    SELECT o.calls FROM automation_connectioncall o WHERE o.connection_id = %s AND o.ok AND o.at > %s
     LIMIT failed.n + 1) s)
  FROM failed
"""


def note(calls: Sequence[Call], *, now: datetime) -> None:
    """Writes how calls ended."""
    if calls:
        statements.count(INSERT, [now, *statements.columns(calls)])


def window(connection_id: int, *, now: datetime) -> tuple[int, int]:
    """(records that failed, calls that succeeded) of late; the second counted no further than matters."""
    since = now - timedelta(seconds=breaker.WINDOW)
    failed, succeeded = statements.rows(WINDOW, [connection_id, since, connection_id, since])[0]
    return int(failed), int(succeeded)


def of_late(connection_id: int, *, now: datetime) -> Lately:
    """How the calls of a connection ended of late, for people to read."""
    since = now - timedelta(seconds=breaker.WINDOW)
    found = statements.rows(
        "SELECT count(DISTINCT c.record) FILTER (WHERE NOT c.ok AND c.at > %s),"
        " COALESCE(sum(c.calls) FILTER (WHERE c.ok AND c.at > %s), 0),"
        " max(c.at) FILTER (WHERE c.ok), max(c.at) FILTER (WHERE NOT c.ok)"
        " FROM automation_connectioncall c WHERE c.connection_id = %s",
        [since, since, connection_id],
    )
    return Lately(*found[0])


def open_(connection_id: int, *, error: str, now: datetime) -> bool:
    """Opens a breaker for the first time; False where it isn't closed any more."""
    return _changed(
        "UPDATE automation_connection SET breaker = 'open', breaker_trips = 1, breaker_since = %s, breaker_until = %s,"
        " last_error = %s WHERE id = %s AND breaker = 'closed'",
        [now, now + timedelta(seconds=breaker.wait_after(1)), error[:500], connection_id],
    )


def still_down(connection_id: int, *, error: str, now: datetime) -> str:
    """What became of a breaker whose try failed: "open" for longer, "off" for good, "" where it moved on meanwhile."""
    found = statements.rows(
        "SELECT breaker_trips, breaker_since FROM automation_connection WHERE id = %s AND breaker = 'half_open'"
        " FOR NO KEY UPDATE",
        [connection_id],
    )
    if not found:
        return ""
    trips, since = found[0][0] + 1, found[0][1]
    state = breaker.OFF if since and breaker.is_off(down_for=(now - since).total_seconds()) else breaker.OPEN
    until = None if state == breaker.OFF else now + timedelta(seconds=breaker.wait_after(trips))
    statements.count(
        "UPDATE automation_connection SET breaker = %s, breaker_trips = %s, breaker_until = %s, last_error = %s"
        " WHERE id = %s",
        [state, trips, until, error[:500], connection_id],
    )
    return state


def close(connection_id: int) -> bool:
    """Closes a breaker and forgets the failures that opened it; False where it is closed."""
    closed = _changed(
        "UPDATE automation_connection SET breaker = 'closed', breaker_trips = 0, breaker_since = NULL,"
        " breaker_until = NULL WHERE id = %s AND breaker <> 'closed'",
        [connection_id],
    )
    if closed:
        statements.count("DELETE FROM automation_connectioncall WHERE connection_id = %s AND NOT ok", [connection_id])
    return closed


def try_now(connection_id: int, *, now: datetime) -> bool:
    """Lets the next step try an outside system that was down; False where its breaker is closed."""
    return _changed(
        "UPDATE automation_connection SET breaker = 'open', breaker_until = %s, breaker_trips = 1, breaker_since = %s"
        " WHERE id = %s AND breaker <> 'closed'",
        [now, now, connection_id],
    )


def lock(connection_ids: Sequence[int]) -> dict[int, Known]:
    """Locks connections, ascending, between the timers and the steps of a transaction; answers their breakers."""
    found = statements.rows(
        "SELECT id, breaker, breaker_until FROM automation_connection WHERE id = ANY(%s::bigint[])"
        " ORDER BY id FOR NO KEY UPDATE",
        [sorted(connection_ids)],
    )
    return {row[0]: Known(*row) for row in found}


def try_again(connection_ids: Sequence[int], *, now: datetime) -> None:
    """Marks locked connections as being tried by one step."""
    statements.count(
        "UPDATE automation_connection SET breaker = 'half_open', breaker_until = %s WHERE id = ANY(%s::bigint[])",
        [now + PROBE, sorted(connection_ids)],
    )


def waiting(tenant_id: int, *, most: int | None = None) -> list[int]:
    """The tenant's live runs that wait for an outside system, oldest first, so many at most."""
    found = statements.rows(
        "SELECT id FROM automation_run WHERE tenant_id = %s AND state IN ('pending', 'running', 'waiting')"
        " AND reason = 'endpoint_down' ORDER BY id LIMIT %s",
        [tenant_id, most],
    )
    return [row[0] for row in found]


def forget_old(*, now: datetime) -> int:
    """Deletes what is no longer looked back on, a bounded number at once; answers how many."""
    return statements.count(
        "DELETE FROM automation_connectioncall WHERE id IN"
        " (SELECT id FROM automation_connectioncall WHERE at < %s ORDER BY at LIMIT %s)",
        [now - KEPT, DELETED_AT_ONCE],
    )


def _changed(sql: str, params: Sequence[object]) -> bool:
    return statements.count(sql, params) == 1
