"""Puts on its shelf what a rule or connection holds while it is stopped, and counts it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from automation.store import statements
from automation.store.drips import COUNTED, STEP_KINDS

PUT_OFF = ["step", "retry"]
PUT_OFF_FOR = ["paused", "rule_off", "rate", "endpoint_down"]
# Due work that no worker has looked at yet, and what was put off because its shelf was being opened: due again by then.
WAITING = """
  FROM automation_timer x JOIN automation_run r ON r.id = x.run_id JOIN automation_stepexecution s ON s.id = x.step_id
 WHERE x.lane_id = automation_lane_of(%(tenant)s) AND x.tenant_id = %(tenant)s AND x.state = 'pending'
   AND r.state IN ('pending', 'running', 'waiting') AND x.due_at <= %(until)s::timestamptz + interval '30 seconds'
   AND ((%(due)s AND x.due_at <= %(until)s AND x.kind = ANY(%(kinds)s))
        OR (x.due_at > %(until)s AND x.kind = ANY(%(put_off)s) AND r.reason = ANY(%(put_off_for)s)))
   AND (%(rule)s::bigint IS NULL OR r.rule_id = %(rule)s)
"""
OF_STEPS = """
   AND (%(rule)s::bigint IS NOT NULL OR (r.rule_version_id, s.path) IN (
        SELECT u.version, u.path FROM unnest(%(versions)s::bigint[], %(paths)s::varchar[]) AS u (version, path)))
"""
PLACES = f"SELECT DISTINCT r.rule_version_id, s.path {WAITING}"
GATHER = f"""
WITH c AS (SELECT y.id FROM automation_timer y WHERE y.state = 'pending' AND y.id = ANY(ARRAY(
           SELECT x.id {WAITING}{OF_STEPS} ORDER BY x.due_at, x.id LIMIT %(limit)s)) ORDER BY y.id FOR UPDATE),
     d AS (SELECT x.id FROM automation_drip x WHERE x.tenant_id = %(tenant)s AND x.scope = %(scope)s
           AND x.subject_id = %(subject)s AND x.ended_at IS NULL AND x.next_at IS NULL FOR SHARE)
UPDATE automation_timer x SET state = 'held', drip_id = d.id, due_at = LEAST(x.due_at, automation_now())
  FROM c, d WHERE x.id = c.id
"""  # noqa: S608 the texts above
BY_RULE = f"""
SELECT v.id, v.name, count(*), min(h.since) FROM (
  (SELECT x.run_id, x.due_at AS since FROM automation_drip d JOIN automation_timer x ON x.drip_id = d.id
    WHERE d.tenant_id = %(tenant)s AND d.scope = %(scope)s AND d.subject_id = %(subject)s AND d.ended_at IS NULL
      AND x.state = 'held' LIMIT %(limit)s)
  UNION ALL
  (SELECT r.id, CASE WHEN x.due_at <= %(until)s THEN x.due_at ELSE r.created_at END {WAITING}{OF_STEPS} LIMIT %(limit)s)
  LIMIT %(limit)s) h
  JOIN automation_run r ON r.id = h.run_id JOIN automation_rule v ON v.id = r.rule_id
 GROUP BY v.id, v.name ORDER BY count(*) DESC, v.id
"""  # noqa: S608 the texts above


STALE = """
SELECT automation_follow_shelf(d.scope, d.tenant_id, d.subject_id) FROM automation_drip d
 WHERE d.ended_at IS NULL AND d.next_at IS NULL AND NOT EXISTS (
       SELECT 1 FROM automation_pause p WHERE p.ended_at IS NULL AND p.scope = d.scope AND p.tenant_id = d.tenant_id
          AND p.subject_id = d.subject_id)
   AND NOT EXISTS (SELECT 1 FROM automation_rule u WHERE d.scope = 'rule' AND u.id = d.subject_id
          AND NOT u."on" AND u.off_mode = 'hold' AND u.published_id IS NOT NULL AND u.deleted_at IS NULL)
"""
MISSING = """
SELECT automation_follow_shelf(p.scope, p.tenant_id, p.subject_id) FROM automation_pause p
 WHERE p.ended_at IS NULL AND p.scope IN ('rule', 'connection') AND NOT EXISTS (
       SELECT 1 FROM automation_drip d WHERE d.ended_at IS NULL AND d.next_at IS NULL AND d.scope = p.scope
          AND d.tenant_id = p.tenant_id AND d.subject_id = p.subject_id)
   AND (p.scope = 'connection'
        OR EXISTS (SELECT 1 FROM automation_rule u WHERE u.id = p.subject_id AND u.deleted_at IS NULL))
UNION ALL
SELECT automation_follow_shelf('rule', u.tenant_id, u.id) FROM automation_rule u
 WHERE NOT u."on" AND u.off_mode = 'hold' AND u.published_id IS NOT NULL AND u.deleted_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM automation_pause p WHERE p.ended_at IS NULL AND p.scope = 'rule'
          AND p.tenant_id = u.tenant_id AND p.subject_id = u.id)
   AND NOT EXISTS (SELECT 1 FROM automation_drip d WHERE d.ended_at IS NULL AND d.next_at IS NULL AND d.scope = 'rule'
          AND d.tenant_id = u.tenant_id AND d.subject_id = u.id)
"""
# A worker of a release without shelves can't read one: its name begins with "1-".
BEFORE = "SELECT EXISTS (SELECT 1 FROM automation_worker WHERE expires_at > automation_now() AND release LIKE '1-%%')"


class Shelved(NamedTuple):
    """A step that goes on the shelf of its rule or of a connection."""

    tenant_id: int
    scope: str
    subject_id: int
    step_id: int


@dataclass(frozen=True, slots=True)
class Of:
    """Whose shelf: a rule, or a connection with the steps that use it, as (version, path)."""

    tenant_id: int
    scope: str
    subject_id: int
    steps: Sequence[tuple[int, str]] = ()

    def params(self, *, until: datetime, due: bool, limit: int) -> dict[str, Any]:
        """For the statements above."""
        return {
            "tenant": self.tenant_id,
            "scope": self.scope,
            "subject": self.subject_id,
            "rule": self.subject_id if self.scope == "rule" else None,
            "versions": [version for version, _path in self.steps],
            "paths": [path for _version, path in self.steps],
            "until": until,
            "due": due,
            "kinds": STEP_KINDS,
            "put_off": PUT_OFF,
            "put_off_for": PUT_OFF_FOR,
            "limit": limit,
        }


def follow(scope: str, *, tenant_id: int | None, subject_id: int | None, rate: int | None = None) -> None:
    """Closes or opens the shelf of a rule or connection as its pause and switch say now; other scopes have none.

    In the transaction that has changed one of them, before its lanes. Opened, what it holds goes on at `rate` a minute.
    """
    if scope in ("rule", "connection"):
        statements.value("SELECT automation_follow_shelf(%s, %s, %s, %s)", [scope, tenant_id, subject_id, rate])


def heal() -> int:
    """Opens shelves of what isn't stopped, and gives one to what is; answers how many.

    That is much after an upgrade from a release without shelves, once its last worker is gone; else it should be 0.
    """
    opened = len(statements.rows(STALE))
    return opened if statements.value(BEFORE) else opened + len(statements.rows(MISSING))


def put(shelved: Sequence[Shelved]) -> int:
    """Holds these steps' pending timers, the transaction's last act; one whose shelf is being opened stays as it is."""
    if not shelved:
        return 0
    sql = "SELECT automation_shelve(%s::bigint[], %s::varchar[], %s::bigint[], %s::bigint[])"
    return int(statements.value(sql, statements.columns(shelved)))


def gather(of: Of, *, until: datetime, due: bool, limit: int) -> int:
    """Puts on a shelf what waits for its subject and isn't there yet; answers how many, 0 at the end.

    That is what was put off for a moment and, if `due`, what was due at `until` and no worker has looked at.
    """
    return statements.count(GATHER, of.params(until=until, due=due, limit=limit))


def places(tenant_id: int, *, until: datetime, due: bool) -> list[tuple[int, str]]:
    """(version, path) of all steps of a tenant that `gather` would look at."""
    of = Of(tenant_id, "", 0)
    found = statements.rows(PLACES, of.params(until=until, due=due, limit=0))
    return [(row[0], row[1]) for row in found]


def by_rule(of: Of, *, until: datetime) -> list[tuple[int, str, int, datetime]]:
    """(rule, its name, steps held, since when the oldest is due), the most first; `COUNTED` steps are looked at."""
    found = statements.rows(BY_RULE, of.params(until=until, due=True, limit=COUNTED))
    return [(row[0], row[1], row[2], row[3]) for row in found]
