"""Has steps wait for a place with a connection that has as many calls on their way as it may, and gives them theirs."""

from collections.abc import Sequence
from typing import NamedTuple

from automation.store import statements

WAIT = """
UPDATE automation_timer x SET waits_for = u.connection, waits_until = x.due_at, has_turn = false
  FROM unnest(%s::bigint[], %s::bigint[]) AS u (id, connection) WHERE x.id = u.id AND x.state = 'pending'
"""
# From connection to connection, whatever waits for each: one probe of the index a step.
WAITED_FOR = """
WITH RECURSIVE c AS (
  (SELECT x.waits_for AS id FROM automation_timer x WHERE x.waits_until = x.due_at ORDER BY x.waits_for LIMIT 1)
  UNION ALL
  SELECT (SELECT x.waits_for FROM automation_timer x WHERE x.waits_until = x.due_at AND x.waits_for > c.id
           ORDER BY x.waits_for LIMIT 1)
    FROM c WHERE c.id IS NOT NULL)
SELECT c.id FROM c WHERE c.id IS NOT NULL
"""
TAKEN = """
SELECT c.id,
       (SELECT count(*) FROM automation_timer x JOIN automation_stepexecution s ON s.id = x.step_id
         WHERE x.state = 'leased' AND x.id <> ALL(%s::bigint[]) AND s.tenant_id = c.tenant_id
           AND s.state = 'running' AND s.effect_state = 'intended'
           AND (s.connection = c.name
                OR s.connection LIKE '#%%' AND '#' || c.id = ANY (string_to_array(s.connection, ' ')))),
       ARRAY(SELECT x.id FROM automation_timer x JOIN automation_stepexecution s ON s.id = x.step_id
              WHERE x.waits_for = c.id AND x.has_turn AND x.waits_until = x.due_at
                AND (x.state = 'pending' OR (x.state = 'leased' AND s.effect_state <> 'intended')))
  FROM automation_connection c WHERE c.id = ANY(%s::bigint[])
"""


class Waiting(NamedTuple):
    """A timer that waits until its step has a place with a connection."""

    timer_id: int
    connection_id: int


class Taken(NamedTuple):
    """How many calls of a connection are on their way, and the timers of those whose turn has come before others."""

    connection_id: int
    busy: int
    turns: list[int]


def taken(connection_ids: Sequence[int], *, apart: Sequence[int]) -> list[Taken]:
    """The places of locked connections. Work in hand: leases whose steps have an intent for the connection.

    `apart` are timers that are being settled, or have been claimed and may be about to take a place.
    """
    return [Taken(*row) for row in statements.rows(TAKEN, [list(apart), sorted(connection_ids)])]


def wait(waiting: Sequence[Waiting]) -> None:
    """Notes for whose place timers wait that the transaction has just put back, under the connections' locks.

    That holds as long as nobody gives them another due time.
    """
    if waiting:
        statements.count(WAIT, statements.columns(waiting))


def give(connection_ids: Sequence[int]) -> int:
    """Lets as many waiting steps of each connection go on as it has places, oldest first; answers how many.

    In a transaction of its own, after the one that gave places back.
    """
    return int(statements.value("SELECT automation_give_places(%s::bigint[])", [sorted(connection_ids)]))


def waited_for() -> list[int]:
    """The connections that steps wait for a place with."""
    return [row[0] for row in statements.rows(WAITED_FOR)]
