"""Removes what a tenant needn't keep any longer: guarded, by pages of keys, each removal one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from automation.core.states import TERMINAL_RUN
from automation.store import statements

TERMINAL = sorted(TERMINAL_RUN)
NO_LETTER_OF_RUN = """
NOT EXISTS (SELECT 1 FROM automation_deadletter d WHERE d.run_id = r.id AND d.resolved_at IS NULL)
"""
NO_LETTER_OF_EVENT = """
NOT EXISTS (SELECT 1 FROM automation_deadletter d WHERE d.event_id = e.id AND d.resolved_at IS NULL)
"""
# A run that was forked off another one has that one's event, and is gone before it: this finds every event with runs.
NO_RUN = """
NOT EXISTS (SELECT 1 FROM automation_run r
             WHERE r.event_id = e.id AND r.origin = 'event' AND r.forked_from_run_id IS NULL)
"""
RUN_PAGE = """
SELECT r.id, r.ended_at < %s OR r.event_id < %s, r.created_at < %s OR r.event_id < %s, r.details_removed_at IS NOT NULL
  FROM automation_run r WHERE r.tenant_id = %s AND r.state = %s AND r.id > %s ORDER BY r.id LIMIT %s
"""
# A row that somebody holds is left for the next round; nobody waits for retention longer than for one batch.
LOCK_ENDED = f"""
SELECT r.id, r.event_id FROM automation_run r
 WHERE r.id = ANY(%s) AND r.state = ANY(%s) AND r.details_removed_at IS NULL AND {NO_LETTER_OF_RUN}
 ORDER BY r.id FOR NO KEY UPDATE SKIP LOCKED
"""  # noqa: S608 the parts are the constants above
LOCK_GOING = f"""
SELECT r.id, r.event_id FROM automation_run r
 WHERE r.id = ANY(%s) AND r.state = ANY(%s) AND {NO_LETTER_OF_RUN}
   AND NOT EXISTS (SELECT 1 FROM automation_run f WHERE f.forked_from_run_id = r.id)
 ORDER BY r.id FOR UPDATE SKIP LOCKED
"""  # noqa: S608 the parts are the constants above
# What a branch has decided is part of the run's course, as its states are.
STRIP_STEPS = """
UPDATE automation_stepexecution s SET input = NULL, output = CASE WHEN s.kind = 'action' THEN NULL ELSE s.output END,
       error = ''
 WHERE s.run_id = ANY(%s) AND (s.input IS NOT NULL OR s.output IS NOT NULL OR s.error <> '')
"""
STRIP_ATTEMPTS = """
UPDATE automation_attempt a SET request = '', answer = '' FROM automation_stepexecution s
 WHERE s.run_id = ANY(%s) AND a.step_id = s.id AND (a.request <> '' OR a.answer <> '')
"""
STRIP_EVENTS = f"""
UPDATE automation_event e SET facts = '{{}}', details_removed_at = automation_now()
 WHERE e.id = ANY(%s) AND e.matched_at IS NOT NULL AND e.details_removed_at IS NULL AND {NO_LETTER_OF_EVENT}
   AND NOT EXISTS (SELECT 1 FROM automation_run r WHERE r.event_id = e.id AND r.origin = 'event'
                      AND r.forked_from_run_id IS NULL AND r.details_removed_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM automation_run f WHERE f.event_id = e.id
                      AND f.forked_from_run_id IS NOT NULL AND f.details_removed_at IS NULL)
"""  # noqa: S608 the parts are the constants above
EVENTS_WITHOUT_RUN = f"""
SELECT e.id, e.matched_at IS NOT NULL AND (e.created_at < %s OR e.id < %s) AND {NO_LETTER_OF_EVENT}
  FROM automation_event e WHERE e.id = ANY(%s) AND {NO_RUN} ORDER BY e.id
"""  # noqa: S608 the parts are the constants above
DROP_EVENTS = f"""
DELETE FROM automation_event WHERE id IN (
  SELECT e.id FROM automation_event e
   WHERE e.id = ANY(%s) AND e.matched_at IS NOT NULL AND {NO_LETTER_OF_EVENT} AND {NO_RUN}
   ORDER BY e.id FOR UPDATE SKIP LOCKED)
"""  # noqa: S608 the parts are the constants above


@dataclass(frozen=True, slots=True)
class RunKey:
    """A run of a page: is its term over, is it old enough for the page after it to matter, are its details gone."""

    id: int
    due: bool
    old: bool
    stripped: bool


def run_page(
    tenant_id: int, state: str, *, after: int, before: datetime, events_below: int, limit: int
) -> list[RunKey]:
    """The tenant's next runs in one state, in the order of their ids.

    Due are those that ended before that moment, or whose event is below that id.
    """
    by_term = [before, events_below, before, events_below]
    return [RunKey(*row) for row in statements.rows(RUN_PAGE, [*by_term, tenant_id, state, after, limit])]


def first_live_run(tenant_id: int, states: Sequence[str]) -> int | None:
    """The lowest id of the tenant's runs in these states."""
    found: int | None = statements.value(
        "SELECT min(x.id) FROM unnest(%s::varchar[]) u (state) CROSS JOIN LATERAL (SELECT r.id FROM automation_run r"
        " WHERE r.tenant_id = %s AND r.state = u.state ORDER BY r.id LIMIT 1) x",
        [list(states), tenant_id],
    )
    return found


def strip_runs(run_ids: Sequence[int]) -> tuple[list[int], int]:
    """Removes inputs, outputs, errors, excerpts and snapshots of ended runs; answers (the runs, events emptied).

    An event loses its facts with the last of its runs. Runs with an open dead letter, and those that somebody works
    on, are left out.
    """
    with transaction.atomic():
        locked = statements.rows(LOCK_ENDED, [list(run_ids), TERMINAL])
        if not locked:
            return [], 0
        ids = [row[0] for row in locked]
        statements.count(STRIP_ATTEMPTS, [ids])
        statements.count(STRIP_STEPS, [ids])
        statements.count(
            "UPDATE automation_deadletter SET snapshot = '{}', error = '' WHERE run_id = ANY(%s)"
            " AND resolved_at IS NOT NULL",
            [ids],
        )
        statements.count("UPDATE automation_run SET details_removed_at = automation_now() WHERE id = ANY(%s)", [ids])
        events = statements.count(STRIP_EVENTS, [sorted({row[1] for row in locked})])
    return ids, events


def drop_runs(run_ids: Sequence[int]) -> tuple[list[int], int]:
    """Deletes ended runs with all that belongs to them, and the events that have no run any more.

    Answers (the runs, events deleted). Left out are runs with an open dead letter, those that another one was forked
    off, and those that somebody works on.
    """
    with transaction.atomic():
        locked = statements.rows(LOCK_GOING, [list(run_ids), TERMINAL])
        if not locked:
            return [], 0
        ids = [row[0] for row in locked]
        statements.count("DELETE FROM automation_deadletter WHERE run_id = ANY(%s)", [ids])
        statements.count(
            "DELETE FROM automation_attempt a USING automation_stepexecution s"
            " WHERE s.run_id = ANY(%s) AND a.step_id = s.id",
            [ids],
        )
        statements.count("DELETE FROM automation_stepexecution WHERE run_id = ANY(%s)", [ids])
        statements.count("DELETE FROM automation_run WHERE id = ANY(%s)", [ids])
        events = _drop_events(sorted({row[1] for row in locked}))
    return ids, events


def first_event_since(moment: datetime) -> int:
    """The id of the first event of any tenant that was written at that moment or later, by halving; no index is needed.

    Ids follow the clock but for transactions that took long, so whoever deletes looks at each row's own time as well.
    """
    low, high = statements.rows("SELECT COALESCE(min(id), 1), COALESCE(max(id), 0) + 1 FROM automation_event")[0]
    while low < high:
        middle = (low + high) // 2
        found = statements.rows(
            "SELECT id, created_at < %s FROM automation_event WHERE id >= %s ORDER BY id LIMIT 1", [moment, middle]
        )
        if found and found[0][1]:
            low = found[0][0] + 1
        else:
            high = middle
    return int(low)


def first_event_kept(tenant_id: int, *, most: int) -> int:
    """The id from which on the tenant has its newest `most` events; 0 when it has no more than that."""
    # First whether it has more at all, which an index tells at once: most tenants have fewer.
    has_more = statements.rows(
        "SELECT 1 FROM automation_event WHERE tenant_id = %s OFFSET %s LIMIT 1", [tenant_id, most]
    )
    if not has_more:
        return 0
    found = statements.rows(
        "SELECT id FROM automation_event WHERE tenant_id = %s ORDER BY id DESC OFFSET %s LIMIT 1", [tenant_id, most]
    )
    return found[0][0] + 1 if found else 0


def event_page(tenant_id: int, *, after: int, below: int, limit: int) -> list[int]:
    """The ids of the tenant's next events, in order.

    By the table's key where the tenant has a large part of it, else from an index that begins with the tenant.
    """
    found = statements.rows(
        "SELECT id FROM automation_event WHERE tenant_id = %s AND id > %s AND id < %s ORDER BY id LIMIT %s",
        [tenant_id, after, below, limit],
    )
    return [row[0] for row in found]


def drop_events(event_ids: Sequence[int], *, before: datetime, below: int) -> tuple[int, int | None]:
    """Deletes those of the events that have no run, are matched, and are older than that moment or below that id.

    Answers how many, and the first one without a run that stays.
    """
    with transaction.atomic():
        found = statements.rows(EVENTS_WITHOUT_RUN, [before, below, list(event_ids)])
        going = [row[0] for row in found if row[1]]
        gone = _drop_events(going) if going else 0
    stays = next((row[0] for row in found if not row[1]), None)
    return gone, stays if gone == len(going) else min(going[0], stays or going[0])


def drop_older(table: str, tenant_id: int, *, before: datetime, limit: int) -> int:
    """Deletes the tenant's rows of a table without anything that hangs on them, if they are older than that moment."""
    return statements.count(
        f"DELETE FROM {table} WHERE id IN (SELECT x.id FROM {table} x WHERE x.tenant_id = %s"  # noqa: S608 our own names
        " AND x.created_at < %s ORDER BY x.id LIMIT %s)",
        [tenant_id, before, limit],
    )


def drop_rules(tenant_id: int, *, before: datetime, limit: int) -> int:
    """Deletes rules that were deleted before that moment and have no run left, with their versions and drafts."""
    with transaction.atomic():
        locked = statements.rows(
            "SELECT u.id FROM automation_rule u WHERE u.tenant_id = %s AND u.deleted_at < %s AND NOT EXISTS"
            " (SELECT 1 FROM automation_run r WHERE r.tenant_id = u.tenant_id AND r.rule_id = u.id)"
            " ORDER BY u.id LIMIT %s FOR UPDATE SKIP LOCKED",
            [tenant_id, before, limit],
        )
        ids = [row[0] for row in locked]
        if ids:
            statements.count("DELETE FROM automation_ruledraft WHERE rule_id = ANY(%s)", [ids])
            # By the tenant, too: their indexes begin with it.
            for table in ("automation_servedbatch", "automation_backtest"):
                statements.count(
                    f"DELETE FROM {table} WHERE tenant_id = %s AND rule_id = ANY(%s)",  # noqa: S608 our own names
                    [tenant_id, ids],
                )
            statements.count("UPDATE automation_rule SET published_id = NULL WHERE id = ANY(%s)", [ids])
            statements.count("DELETE FROM automation_ruleversion WHERE rule_id = ANY(%s)", [ids])
            statements.count("DELETE FROM automation_rule WHERE id = ANY(%s)", [ids])
    return len(ids)


def drop_pauses(*, before: datetime, limit: int) -> int:
    """Deletes pauses of all tenants, and of the installation, that ended before that moment, with their drips.

    And the shelves of rules that were off until then, for which there is no pause.
    """
    statements.count(
        "DELETE FROM automation_drip WHERE id IN (SELECT d.id FROM automation_drip d WHERE d.pause_id IS NULL"
        " AND d.ended_at < %s LIMIT %s)",
        [before, limit],
    )
    return statements.count(
        "WITH q AS (SELECT p.id FROM automation_pause p WHERE p.ended_at < %s AND NOT EXISTS"
        " (SELECT 1 FROM automation_drip d WHERE d.pause_id = p.id AND d.ended_at IS NULL) ORDER BY p.id LIMIT %s),"
        " d AS (DELETE FROM automation_drip d USING q WHERE d.pause_id = q.id)"
        " DELETE FROM automation_pause p USING q WHERE p.id = q.id",
        [before, limit],
    )


def _drop_events(event_ids: Sequence[int]) -> int:
    statements.count(
        "DELETE FROM automation_deadletter WHERE event_id = ANY(%s) AND run_id IS NULL AND resolved_at IS NOT NULL",
        [list(event_ids)],
    )
    return statements.count(DROP_EVENTS, [list(event_ids)])
