"""A tenant with a long history, written straight into the tables."""

from django.db import connection
from operating import Place, make_rule

from automation.models import Rule

DAYS = 60  # the history's length: half of it is older than the details are kept

FILL = """
WITH e AS (
  INSERT INTO automation_event (tenant_id, kind, change, name, model, record, facts, actor, source, batch, body_sha256,
                                depth, path, created_at, matched_at)
  SELECT %(tenant)s, 'record_changed', 'updated', '', 'helpdesk.ticket', n %% 5000,
         jsonb_build_object('snapshot', jsonb_build_object('subject', repeat('printer ', 20), 'status', 'open')),
         'Ana', 'person', '', '', 0, '[]', at, at
    FROM generate_series(1, %(runs)s) n,
         LATERAL (SELECT now() - %(days)s * interval '1 day' * (1 - n::float / %(runs)s) AS at) t
   ORDER BY n
  RETURNING id, created_at, record),
r AS (
  INSERT INTO automation_run (tenant_id, rule_id, rule_version_id, event_id, state, model, record, root_event_id, depth,
                              created_at, started_at, ended_at)
  SELECT %(tenant)s, %(rule)s, %(version)s, e.id,
         CASE WHEN e.id %% 1000 = 0 THEN 'waiting' WHEN e.id %% 50 = 0 THEN 'failed' ELSE 'succeeded' END,
         'helpdesk.ticket', e.record, e.id, 0, e.created_at, e.created_at,
         CASE WHEN e.id %% 1000 <> 0 THEN e.created_at END
    FROM e ORDER BY e.id
  RETURNING id, created_at, state),
s AS (
  INSERT INTO automation_stepexecution (tenant_id, run_id, path, kind, action, state, attempts, input, output,
                                        created_at, started_at, ended_at)
  SELECT %(tenant)s, r.id, 'tell', 'action', 'add_note@1',
         CASE WHEN r.state = 'waiting' THEN 'waiting' ELSE 'succeeded' END,
         1, '{"text": "The printer is on fire, and nobody knows why it has been so for a while"}', '{"id": 1}',
         r.created_at, r.created_at, CASE WHEN r.state <> 'waiting' THEN r.created_at END
    FROM r ORDER BY r.id
  RETURNING id, created_at)
INSERT INTO automation_attempt (tenant_id, step_id, number, lease_seq, started_at, finished_at, outcome, request,
                                answer)
SELECT %(tenant)s, s.id, 1, 0, s.created_at, s.created_at, 'ok', 'POST /notes', '201 Created' FROM s ORDER BY s.id
"""
BIG = ("run", "event", "stepexecution", "attempt")


def fill(place: Place, runs: int) -> Rule:
    """So many runs over `DAYS` days, one in a thousand of them waiting, each with its event, step and attempt."""
    rule = make_rule(place.tenant)
    asked = {"tenant": place.tenant.pk, "rule": rule.pk, "version": rule.published_id, "runs": runs, "days": DAYS}
    with connection.cursor() as cursor:
        cursor.execute(FILL, asked)
        for table in BIG:
            cursor.execute(f"ANALYZE automation_{table}")
    return rule


def whole_reads() -> dict[str, int]:
    """How often each of the big tables was read from end to end so far."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY(%s)",
            [[f"automation_{table}" for table in BIG]],
        )
        return dict(cursor.fetchall())
