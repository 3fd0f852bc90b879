"""Looks at the engine's invariants in one snapshot after the other, while a test breaks things."""

import os
import threading
from collections.abc import Collection
from typing import Any

import psycopg

from northwind import database

EVERY = 0.2
TRACKED_EVERY = 5  # snapshots between two looks at every step and run

ALWAYS = {
    "I1 a lane's counter is its leases": """
        SELECT l.tenant_id, l.running, count(x.id) AS leased FROM automation_lane l
          LEFT JOIN automation_timer x ON x.lane_id = l.id AND x.state = 'leased'
         GROUP BY l.id HAVING l.running <> count(x.id) AND NOT l.id = ANY(%(corrupt)s)""",
    "I2 no lane is above its cap": """
        SELECT l.tenant_id, l.running, l.max_running FROM automation_lane l
         WHERE l.running > l.max_running AND NOT l.id = ANY(%(lowered)s)""",
    "I3 one match timer a tenant": """
        SELECT x.tenant_id, count(*) FROM automation_timer x WHERE x.kind = 'match'
         GROUP BY x.tenant_id HAVING count(*) > 1""",
    "I3 one timer a step": """
        SELECT x.step_id, count(*) FROM automation_timer x WHERE x.step_id IS NOT NULL
         GROUP BY x.step_id HAVING count(*) > 1""",
    "I4 a run that ended has no timer": """
        SELECT r.id, r.state, x.kind, x.state FROM automation_timer x JOIN automation_run r ON r.id = x.run_id
         WHERE r.state IN ('succeeded', 'failed', 'cancelled', 'compensated', 'suppressed')""",
    "I6 one confirmed attempt a step and epoch": """
        SELECT a.step_id, count(*) FROM automation_attempt a WHERE a.outcome = 'ok'
         GROUP BY a.step_id
        HAVING count(*) > (SELECT s.epoch + 1 FROM automation_stepexecution s WHERE s.id = a.step_id)""",
    "I12 a run's event is matched in the same commit": """
        SELECT r.id, r.event_id FROM automation_run r JOIN automation_event e ON e.id = r.event_id
         WHERE e.matched_at IS NULL AND r.origin = 'event'""",
    "I14 one tenant from event to timer": """
        SELECT r.id FROM automation_run r JOIN automation_event e ON e.id = r.event_id WHERE e.tenant_id <> r.tenant_id
        UNION ALL SELECT s.id FROM automation_stepexecution s JOIN automation_run r ON r.id = s.run_id
         WHERE r.tenant_id <> s.tenant_id
        UNION ALL SELECT x.id FROM automation_timer x JOIN automation_run r ON r.id = x.run_id
         WHERE r.tenant_id <> x.tenant_id
        UNION ALL SELECT x.id FROM automation_timer x JOIN automation_lane l ON l.id = x.lane_id
         WHERE l.tenant_id <> x.tenant_id""",
    "a run's event, rule and version exist": """
        SELECT r.id FROM automation_run r WHERE NOT EXISTS (SELECT 1 FROM automation_event e WHERE e.id = r.event_id)
            OR NOT EXISTS (SELECT 1 FROM automation_rule u WHERE u.id = r.rule_id)
            OR NOT EXISTS (SELECT 1 FROM automation_ruleversion v WHERE v.id = r.rule_version_id)""",
    "a lease belongs to a worker": """
        SELECT x.id, x.worker_id FROM automation_timer x WHERE x.state = 'leased'
           AND NOT EXISTS (SELECT 1 FROM automation_worker w WHERE w.id = x.worker_id)""",
}
UNLESS_FROZEN = {
    "no transaction stays open over a call": """
        SELECT a.pid, a.query FROM pg_stat_activity a WHERE a.datname = current_database()
           AND a.state = 'idle in transaction' AND clock_timestamp() - a.state_change > interval '1 second'
           AND a.application_name <> 'somebody'""",
}
AT_THE_END = {
    "I5 a run that hasn't ended has something that wakes it": """
        SELECT r.id, r.state, r.reason FROM automation_run r
         WHERE r.state NOT IN ('succeeded', 'failed', 'cancelled', 'compensated', 'suppressed')
           AND NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.run_id = r.id)
           AND NOT EXISTS (SELECT 1 FROM automation_deadletter d WHERE d.run_id = r.id AND d.resolved_at IS NULL)""",
    "I4 an ended run's steps have ended": """
        SELECT s.id, s.state, r.state FROM automation_stepexecution s JOIN automation_run r ON r.id = s.run_id
         WHERE r.state IN ('succeeded', 'failed', 'cancelled')
           AND s.state IN ('pending', 'running', 'waiting', 'retrying')""",
    "I11 deliveries are not fewer than attempts": """
        SELECT s.id, s.action, s.deliveries, s.attempts FROM automation_stepexecution s
         WHERE s.deliveries < s.attempts - s.retried_at_attempt
           AND EXISTS (SELECT 1 FROM automation_attempt a WHERE a.step_id = s.id AND a.worker_id IS NOT NULL)""",
    "I13 no due timer sleeps": """
        SELECT l.tenant_id FROM automation_lane l WHERE NOT l.due_hint AND NOT l.paused AND EXISTS
         (SELECT 1 FROM automation_timer x WHERE x.lane_id = l.id AND x.state = 'pending'
             AND x.due_at < automation_now() - interval '1 second')""",
    "I13 no event waits without a matcher": """
        SELECT e.tenant_id, count(*) FROM automation_event e JOIN automation_lane l ON l.tenant_id = e.tenant_id
         WHERE e.matched_at IS NULL AND NOT l.hold_new
           AND NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.tenant_id = e.tenant_id AND x.kind = 'match')
         GROUP BY e.tenant_id""",
    "every attempt of a step that ended is closed": """
        SELECT a.step_id, a.number FROM automation_attempt a JOIN automation_stepexecution s ON s.id = a.step_id
         WHERE a.outcome = '' AND s.state IN ('succeeded', 'failed', 'cancelled', 'skipped', 'dead')""",
    "a run says when it ended": """
        SELECT r.id, r.state FROM automation_run r
         WHERE (r.state IN ('succeeded', 'failed', 'cancelled', 'suppressed')) <> (r.ended_at IS NOT NULL)""",
}


class Observer:
    """A thread with a connection of its own; `found` are the violations seen so far."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.snapshots = 0
        self.most_running: dict[int, int] = {}
        self.lowered: set[int] = set()
        self.corrupt: set[int] = set()
        self.frozen = False
        self._counts: dict[int, tuple[int, int]] = {}
        self._versions: dict[int, int] = {}
        self._stop = threading.Event()
        self._connection = psycopg.connect(os.environ[database.VARIABLE], autocommit=False)
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._connection.read_only = True
        self._thread = threading.Thread(target=self._watch, name="observer", daemon=True)

    def start(self) -> "Observer":
        """Begins to look."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Looks no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def close(self) -> None:
        """Stops and closes the connection."""
        self.stop()
        self._connection.close()

    def allow_over_cap(self, lane_ids: Collection[int]) -> None:
        """Caps of these lanes were lowered: what ran then may go on."""
        self.lowered |= set(lane_ids)

    def final(self) -> list[str]:
        """One more look, with the dearer invariants; answers everything that was ever violated."""
        self.stop()
        self._look({**ALWAYS, **UNLESS_FROZEN, **AT_THE_END}, track=True)
        return self.found

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            try:
                self._look(ALWAYS | ({} if self.frozen else UNLESS_FROZEN), track=self.snapshots % TRACKED_EVERY == 0)
            except psycopg.Error as error:
                self._note("the observer itself", repr(error))
                return

    def _look(self, checks: dict[str, str], *, track: bool) -> None:
        known = {"lowered": list(self.lowered), "corrupt": list(self.corrupt)}
        with self._connection.transaction():
            for name, sql in checks.items():
                for row in self._connection.execute(sql, known).fetchall()[:5]:
                    self._note(name, row)
            for tenant_id, running in self._connection.execute(
                "SELECT tenant_id, running FROM automation_lane"
            ).fetchall():
                self.most_running[tenant_id] = max(self.most_running.get(tenant_id, 0), running)
            if track:
                self._track()
        self.snapshots += 1

    def _track(self) -> None:
        """I11: the counts of a step never fall. I9: a run keeps its version."""
        sql = "SELECT id, deliveries, attempts FROM automation_stepexecution"
        for step_id, deliveries, attempts in self._connection.execute(sql).fetchall():
            before = self._counts.get(step_id, (0, 0))
            if deliveries < before[0] or attempts < before[1]:
                self._note("I11 counts never fall", (step_id, before, (deliveries, attempts)))
            self._counts[step_id] = (deliveries, attempts)
        for run_id, version in self._connection.execute("SELECT id, rule_version_id FROM automation_run").fetchall():
            if self._versions.setdefault(run_id, version) != version:
                self._note("I9 a run keeps its version", (run_id, version))

    def _note(self, name: str, what: Any) -> None:
        if len(self.found) < 50:
            self.found.append(f"{name}: {what}")
