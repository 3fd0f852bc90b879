"""The statements of a wave: all its rows in one, each guarded by the state in which it was read."""

# What a run starts with: the same in both statements.
_INSERTS = """
new_runs AS (
  INSERT INTO automation_run (id, tenant_id, rule_id, rule_version_id, event_id, origin, state, reason, model, record,
                              root_event_id, depth, started_at, ended_at, deadline_at)
  SELECT u.id, u.tenant_id, u.rule_id, u.version_id, u.event_id, 'event', u.state, u.reason, u.model, u.record,
         u.root_event_id, u.depth, CASE WHEN u.state NOT IN ('pending', 'suppressed') THEN clock_timestamp() END,
         CASE WHEN u.ended THEN clock_timestamp() END, automation_now() + u.life
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::text[],
                %s::text[], %s::bigint[], %s::bigint[], %s::int[], %s::interval[], %s::bool[])
         AS u (id, tenant_id, rule_id, version_id, event_id, state, reason, model, record, root_event_id, depth, life,
               ended)
  ON CONFLICT (event_id, rule_id) WHERE origin = 'event' AND forked_from_run_id IS NULL DO NOTHING RETURNING 1),
new_steps AS (
  INSERT INTO automation_stepexecution (id, tenant_id, run_id, path, kind, action, state, reason, attempts,
                                        effect_state, idempotency_key, input, output, error, started_at, ended_at)
  SELECT u.id, u.tenant_id, u.run_id, u.path, u.kind, u.action, u.state, u.reason, u.attempts, u.effect_state, u.key,
         u.input::jsonb, u.output::jsonb, u.error, CASE WHEN u.started THEN clock_timestamp() END,
         CASE WHEN u.ended THEN clock_timestamp() END
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::varchar[], %s::varchar[], %s::varchar[], %s::varchar[],
                %s::varchar[], %s::int[], %s::varchar[], %s::varchar[], %s::text[], %s::text[], %s::text[],
                %s::bool[], %s::bool[])
         AS u (id, tenant_id, run_id, path, kind, action, state, reason, attempts, effect_state, key, input, output,
               error, started, ended)),
new_attempts AS (
  INSERT INTO automation_attempt (tenant_id, step_id, number, worker_id, lease_seq, started_at, finished_at, outcome,
                                  request, answer)
  SELECT u.tenant_id, u.step_id, u.number, u.worker_id, u.lease_seq, clock_timestamp(),
         CASE WHEN u.outcome <> '' THEN clock_timestamp() END, u.outcome, u.request, u.answer
    FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::uuid[], %s::bigint[], %s::varchar[], %s::text[], %s::text[])
         AS u (tenant_id, step_id, number, worker_id, lease_seq, outcome, request, answer)),
matched AS (
  UPDATE automation_event SET matched_at = clock_timestamp() WHERE id = ANY(%s::bigint[]) AND matched_at IS NULL)
"""
WRITE = f"""
WITH steps AS (
  UPDATE automation_stepexecution s
     SET state = u.state, reason = u.reason, attempts = GREATEST(s.attempts, u.attempts),
         deliveries = GREATEST(s.deliveries, u.deliveries), effect_state = u.effect_state,
         idempotency_key = CASE WHEN u.key = '' THEN s.idempotency_key ELSE u.key END,
         request_sha256 = CASE WHEN u.sha = '' THEN s.request_sha256 ELSE u.sha END,
         connection = CASE WHEN u.connection = '' THEN s.connection ELSE u.connection END,
         input = COALESCE(u.input::jsonb, s.input), output = COALESCE(u.output::jsonb, s.output), error = u.error,
         started_at = CASE WHEN u.started THEN COALESCE(s.started_at, clock_timestamp()) ELSE s.started_at END,
         ended_at = CASE WHEN u.ended THEN clock_timestamp() ELSE NULL END
    FROM unnest(%s::bigint[], %s::varchar[], %s::varchar[], %s::varchar[], %s::int[], %s::int[], %s::varchar[],
                %s::varchar[], %s::varchar[], %s::varchar[], %s::text[], %s::text[], %s::text[], %s::bool[], %s::bool[])
         AS u (id, was, state, reason, attempts, deliveries, effect_state, key, sha, connection, input, output, error,
               started, ended)
   WHERE s.id = u.id AND s.state = u.was RETURNING 1),
closed AS (
  UPDATE automation_attempt a SET outcome = u.outcome, answer = u.answer, finished_at = clock_timestamp()
    FROM unnest(%s::bigint[], %s::int[], %s::varchar[], %s::text[]) AS u (step_id, number, outcome, answer)
   WHERE a.step_id = u.step_id AND a.number = u.number AND a.outcome = '' RETURNING 1),
runs AS (
  UPDATE automation_run r SET state = u.state, reason = u.reason,
         started_at = CASE WHEN u.state = 'pending' THEN r.started_at
                           ELSE COALESCE(r.started_at, clock_timestamp()) END,
         ended_at = CASE WHEN u.ended THEN clock_timestamp() END
    FROM unnest(%s::bigint[], %s::varchar[], %s::varchar[], %s::varchar[], %s::bool[])
         AS u (id, was, state, reason, ended)
   WHERE r.id = u.id AND r.state = u.was RETURNING 1),
{_INSERTS}SELECT (SELECT count(*) FROM steps), (SELECT count(*) FROM closed), (SELECT count(*) FROM runs),
       (SELECT count(*) FROM new_runs)
"""  # noqa: S608 the constant above

START = f"WITH {_INSERTS} SELECT (SELECT count(*) FROM new_runs)"  # noqa: S608 the constant above

INSERT_DEAD_LETTERS = """
INSERT INTO automation_deadletter (tenant_id, run_id, step_id, event_id, reason, error, snapshot)
SELECT u.tenant_id, u.run_id, u.step_id, u.event_id, u.reason, u.error, u.snapshot::jsonb
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::varchar[], %s::text[], %s::text[])
       AS u (tenant_id, run_id, step_id, event_id, reason, error, snapshot)
"""

MAILED = """
UPDATE automation_notice n SET mailed = n.mailed || u.states::jsonb,
       sent_at = CASE WHEN u.sent THEN clock_timestamp() ELSE n.sent_at END,
       given_up_at = CASE WHEN u.given_up <> '' THEN clock_timestamp() ELSE n.given_up_at END,
       error = CASE WHEN u.given_up <> '' THEN u.given_up ELSE n.error END
  FROM unnest(%s::bigint[], %s::text[], %s::bool[], %s::text[]) AS u (id, states, sent, given_up) WHERE n.id = u.id
"""
INSERT_NOTICE = """
INSERT INTO automation_notice AS n (tenant_id, kind, subject, period, title, text, recipients, said, cases)
VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb, %s::jsonb, 1)
ON CONFLICT (tenant_id, kind, subject, period) DO UPDATE SET cases = n.cases + 1
RETURNING n.id, (n.xmax = 0)
"""

UNCOUNTED = """
UPDATE automation_stepexecution SET retried_at_attempt = retried_at_attempt + 1 WHERE id = ANY(%s::bigint[])
"""

STEP_IDS = """
SELECT nextval(pg_get_serial_sequence('automation_stepexecution', 'id')) FROM generate_series(1, %s::int)
"""

# Without the indentation they are short enough for the driver to remember how it was parsed (4 kB at most).
START = " ".join(START.split())
WRITE = " ".join(WRITE.split()).replace(", ", ",")
