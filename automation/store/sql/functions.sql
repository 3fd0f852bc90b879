-- The guarded statements on the hot tables: the clock, fairness, setting work, claim, settle, wake and heal.
--
-- Rules that every statement keeps (docs/engine.md):
--   * READ COMMITTED, never inside REPEATABLE READ, never in the transaction of a web request;
--   * a claim never waits: SKIP LOCKED on every row that it takes;
--   * everyone else locks runs -> timers -> connections -> steps -> lanes, each ascending, the lane last;
--   * clock_timestamp() is volatile, so it is never an index condition: it is read once into a variable first.
-- The file creates or replaces functions only, so it may be loaded again at any time.

-- The only clock of the engine. Tests replace the body by one that adds an offset.
CREATE OR REPLACE FUNCTION automation_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Whose share the work of a tenant uses: its own lane. The lab's run without the limit replaces the body by one that answers
-- a single lane for all; nothing else of this file then differs.
CREATE OR REPLACE FUNCTION automation_lane_of(p_tenant bigint) RETURNS bigint LANGUAGE sql STABLE AS
  'SELECT x.id FROM automation_lane x WHERE x.tenant_id = p_tenant';

-- Where a lane enters when it becomes runnable: not before the lanes now in line, and, when the pool is idle, not before
-- the lane that was served furthest. So nobody saves up credit by being idle, paused or at the cap.
CREATE OR REPLACE FUNCTION automation_join_pass(p_pool varchar, p_own bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT GREATEST(p_own, COALESCE(
    (SELECT y.stride_pass FROM automation_lane y WHERE y.pool = p_pool AND y.runnable     ORDER BY y.stride_pass      LIMIT 1),
    (SELECT y.stride_pass FROM automation_lane y WHERE y.pool = p_pool AND NOT y.runnable ORDER BY y.stride_pass DESC LIMIT 1),
    p_own))
$$;

---------------------------------------------------------------------------------------------------------- setting work

-- Tells the lane of a timer just written in this transaction. Unconditional: it waits for a claimer that is about to
-- clear the flag; with "AND NOT due_hint" in the WHERE the wake-up is lost.
CREATE OR REPLACE FUNCTION automation_lane_due(p_lane bigint, p_due timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now();
BEGIN
  UPDATE automation_lane x
     SET due_hint    = x.due_hint OR p_due <= t,
         wake_at     = CASE WHEN p_due > t THEN LEAST(COALESCE(x.wake_at, p_due), p_due) ELSE x.wake_at END,
         stride_pass = CASE WHEN x.runnable OR p_due > t THEN x.stride_pass ELSE automation_join_pass(x.pool, x.stride_pass) END
   WHERE x.id = p_lane;
END $$;

-- After the business commit, in a transaction of its own: one match timer per tenant, pending or leased. An arming that meets
-- a leased one leaves a mark that settle_match reads under the row lock. True: a new timer was made.
CREATE OR REPLACE FUNCTION automation_arm_match(p_tenant bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_new boolean; v_lane bigint; t timestamptz := automation_now();
BEGIN
  -- A pending one is enough, and looking costs no write and no flush: whoever claims it commits the claim after this look,
  -- so after our events were committed, and reads events only then.
  IF EXISTS (SELECT 1 FROM automation_timer x WHERE x.tenant_id = p_tenant AND x.kind = 'match' AND x.state = 'pending') THEN
    RETURN false;
  END IF;
  INSERT INTO automation_timer AS x (lane_id, tenant_id, kind, due_at)
  SELECT l.id, p_tenant, 'match', t FROM automation_lane l WHERE l.id = automation_lane_of(p_tenant) AND NOT l.hold_new
  ON CONFLICT (tenant_id) WHERE kind = 'match'
  DO UPDATE SET again = true WHERE x.state = 'leased' AND NOT x.again      -- judged on the locked, newest version
  RETURNING (x.xmax = 0), x.lane_id INTO v_new, v_lane;
  IF v_new THEN PERFORM automation_lane_due(v_lane, t); END IF;
  RETURN COALESCE(v_new, false);
END $$;

----------------------------------------------------------------------------------------------------------------- claim

-- p_max: free threads; p_take: timers of one lane at most; p_match_only: no thread is free, and matching needs none.
CREATE OR REPLACE FUNCTION automation_claim(
  p_worker uuid, p_pool varchar, p_max integer, p_take integer, p_limit interval,
  p_floor bigint DEFAULT -1, p_match_only boolean DEFAULT false)
RETURNS TABLE (timer_id bigint, lane_id bigint, tenant_id bigint, kind varchar, run_id bigint, step_id bigint, subject_id bigint,
               lease_seq bigint, deliveries integer, lost integer, deadline_at timestamptz, lane_pass bigint, rules_version bigint, claimed_at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE l record; n integer; got integer := 0; nxt timestamptz; t timestamptz := automation_now();
BEGIN
  -- 0. Only a live worker claims. KEY SHARE keeps the reaper off this row until the claim commits; a beat may pass.
  PERFORM 1 FROM automation_worker w WHERE w.id = p_worker AND w.expires_at > t FOR KEY SHARE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  -- 1. A few lane mutexes in fairness order, without ever waiting.
  FOR l IN
    SELECT x.id, x.stride_pass, x.rules_version, x.max_running - x.running AS room
      FROM automation_lane x
     WHERE x.pool = p_pool AND x.runnable AND x.stride_pass >= p_floor
       AND (NOT p_match_only OR EXISTS (SELECT 1 FROM automation_timer m WHERE m.lane_id = x.id AND m.kind = 'match'
                                           AND m.state = 'pending' AND m.due_at <= t))
     ORDER BY x.stride_pass, x.id
     LIMIT GREATEST(1, (p_max + p_take - 1) / p_take)
       FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    EXIT WHEN got >= p_max;
    t := automation_now();
    -- 2. That lane's head, in a new statement, hence a snapshot taken after the lane was locked.
    RETURN QUERY
    WITH c AS (
      SELECT w.id FROM automation_timer w
       WHERE w.lane_id = l.id AND w.state = 'pending' AND w.due_at <= t
         AND (NOT p_match_only OR w.kind = 'match')
       ORDER BY w.due_at, w.id
       LIMIT LEAST(l.room, p_take, p_max - got)
         FOR UPDATE SKIP LOCKED)
    UPDATE automation_timer w
       SET state = 'leased', worker_id = p_worker, again = false, lease_seq = w.lease_seq + 1,
           deliveries = w.deliveries + 1, deadline_at = t + p_limit
      FROM c WHERE w.id = c.id
    RETURNING w.id, w.lane_id, w.tenant_id, w.kind, w.run_id, w.step_id, w.subject_id,
              w.lease_seq, w.deliveries, w.lost, w.deadline_at, l.stride_pass, l.rules_version, t;
    GET DIAGNOSTICS n = ROW_COUNT;
    got := got + n;
    -- 3. The earliest timer left decides between "still due" and "wake me then".
    SELECT w.due_at INTO nxt FROM automation_timer w
     WHERE w.lane_id = l.id AND w.state = 'pending' ORDER BY w.due_at, w.id LIMIT 1;
    -- 4. Charge the lane. An empty turn is charged too, so a lane whose head is locked cannot stay in front.
    UPDATE automation_lane x
       SET running     = x.running + n,
           stride_pass = x.stride_pass + GREATEST(n, 1) * (100000 / x.weight),
           due_hint    = (nxt IS NOT NULL AND nxt <= t),
           wake_at     = CASE WHEN nxt > t THEN nxt END
     WHERE x.id = l.id;
  END LOOP;
END $$;

---------------------------------------------------------------------------------------------------------------- settle
-- Each of these is the guarded part of a transaction that also writes run, step and attempt, and comes last in it. False: the
-- lease is gone, the caller rolls everything back and forgets its result.

-- Which of these leases still stand. They are kept for the rest of this transaction: KEY SHARE makes the reaper pass by and
-- lets an arming through. For each event's transaction of the matcher, for intents, and first in a wave.
CREATE OR REPLACE FUNCTION automation_hold(p_worker uuid, p_timers bigint[], p_seqs bigint[]) RETURNS SETOF bigint LANGUAGE sql AS $$
  SELECT x.id FROM automation_timer x
   WHERE x.id = ANY (p_timers) AND x.state = 'leased' AND x.worker_id = p_worker
     AND EXISTS (SELECT 1 FROM unnest(p_timers, p_seqs) AS q (id, seq) WHERE q.id = x.id AND q.seq = x.lease_seq)
   ORDER BY x.id FOR KEY SHARE OF x
$$;

-- Frees places of a lane, last lock of the transaction; p_due is the earliest timer written for the lane in the same
-- transaction, p_charge the steps done beyond the one the claim charged. A lane that was at its cap joins the line again.
CREATE OR REPLACE FUNCTION automation_lane_release(
  p_lane bigint, p_due timestamptz DEFAULT NULL, p_charge integer DEFAULT 0, p_freed integer DEFAULT 1) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now();
BEGIN
  UPDATE automation_lane x
     SET running     = x.running - p_freed,
         due_hint    = x.due_hint OR COALESCE(p_due <= t, false),
         wake_at     = CASE WHEN p_due > t THEN LEAST(COALESCE(x.wake_at, p_due), p_due) ELSE x.wake_at END,
         stride_pass = p_charge * (100000 / x.weight)
                     + CASE WHEN x.runnable OR NOT (x.due_hint OR COALESCE(p_due <= t, false)) THEN x.stride_pass
                            ELSE automation_join_pass(x.pool, x.stride_pass) END
   WHERE x.id = p_lane;
END $$;

-- The wake-up is done. p_due: the earliest timer the same transaction wrote for this lane by plain INSERT.
CREATE OR REPLACE FUNCTION automation_settle(p_timer bigint, p_worker uuid, p_seq bigint, p_due timestamptz DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_lane bigint;
BEGIN
  DELETE FROM automation_timer x
   WHERE x.id = p_timer AND x.state = 'leased' AND x.worker_id = p_worker AND x.lease_seq = p_seq
  RETURNING x.lane_id INTO v_lane;
  IF v_lane IS NULL THEN RETURN false; END IF;
  PERFORM automation_lane_release(v_lane, p_due);
  RETURN true;
END $$;

-- The same row goes back: a retry of this step later or the next step, an outcome having been recorded, so the count of
-- lost leases starts again; or, with p_kind NULL, work handed back untouched: kind and that count stay, else a poison step
-- that was put back for another one's sake would be counted from 0.
CREATE OR REPLACE FUNCTION automation_put_back(
  p_timer bigint, p_worker uuid, p_seq bigint, p_kind varchar, p_due timestamptz, p_next_step bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_lane bigint;
BEGIN
  UPDATE automation_timer x
     SET state = 'pending', worker_id = NULL, deadline_at = NULL, kind = COALESCE(p_kind, x.kind), due_at = p_due,
         lost       = CASE WHEN p_kind IS NULL THEN x.lost ELSE 0 END,
         deliveries = CASE WHEN p_next_step IS NULL THEN x.deliveries ELSE 0 END,
         step_id    = COALESCE(p_next_step, x.step_id)
   WHERE x.id = p_timer AND x.state = 'leased' AND x.worker_id = p_worker AND x.lease_seq = p_seq
  RETURNING x.lane_id INTO v_lane;
  IF v_lane IS NULL THEN RETURN false; END IF;
  PERFORM automation_lane_release(v_lane, p_due);
  RETURN true;
END $$;

-- A wave: for each timer, p_kinds NULL deletes it, otherwise it goes back with that kind, due time and (if given) next step;
-- with the empty kind it goes back untouched, as put_back does it.
-- p_dues of a deleted one: the earliest timer written for its lane. Each lane is touched once, in id order. Answers how many
-- were settled: fewer than asked means that a lease was lost, and the caller does the wave again one run at a time.
CREATE OR REPLACE FUNCTION automation_settle_wave(
  p_worker uuid, p_timers bigint[], p_seqs bigint[], p_kinds varchar[], p_dues timestamptz[], p_next_steps bigint[])
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE n integer := 0; r record;
BEGIN
  FOR r IN
    WITH q AS (SELECT * FROM unnest(p_timers, p_seqs, p_kinds, p_dues, p_next_steps) AS u (id, seq, kind, due, step)),
    mine AS (
      SELECT x.id FROM automation_timer x JOIN q ON q.id = x.id
       WHERE x.state = 'leased' AND x.worker_id = p_worker AND x.lease_seq = q.seq ORDER BY x.id FOR UPDATE OF x),
    gone AS (
      DELETE FROM automation_timer x USING q, mine
       WHERE x.id = mine.id AND q.id = x.id AND q.kind IS NULL RETURNING x.lane_id, q.due),
    back AS (
      UPDATE automation_timer x
         SET state = 'pending', worker_id = NULL, deadline_at = NULL, kind = COALESCE(NULLIF(q.kind, ''), x.kind),
             due_at = q.due, lost = CASE WHEN q.kind = '' THEN x.lost ELSE 0 END,
             deliveries = CASE WHEN q.step IS NULL OR q.step = x.step_id THEN x.deliveries ELSE 0 END,
             step_id = COALESCE(q.step, x.step_id)
        FROM q, mine WHERE x.id = mine.id AND q.id = x.id AND q.kind IS NOT NULL RETURNING x.lane_id, q.due)
    SELECT b.lane_id AS lane, count(*)::integer AS freed, min(b.due) AS due
      FROM (SELECT * FROM gone UNION ALL SELECT * FROM back) b GROUP BY b.lane_id ORDER BY b.lane_id
  LOOP
    PERFORM automation_lane_release(r.lane, r.due, 0, r.freed);       -- a claim finds what falls due later by itself
    n := n + r.freed;
  END LOOP;
  RETURN n;
END $$;

-- A match timer disappears only if nobody armed it since it was claimed and the batch was not cut short. p_charge: what the
-- batch cost beyond one step; p_not_before: the pace of a resume, or the wait after a failure.
CREATE OR REPLACE FUNCTION automation_settle_match(
  p_timer bigint, p_worker uuid, p_seq bigint, p_more boolean, p_charge integer DEFAULT 0, p_not_before timestamptz DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_lane bigint; v_again boolean; v_due timestamptz := COALESCE(p_not_before, automation_now());
BEGIN
  SELECT x.lane_id, x.again INTO v_lane, v_again FROM automation_timer x
   WHERE x.id = p_timer AND x.state = 'leased' AND x.worker_id = p_worker AND x.lease_seq = p_seq
     FOR UPDATE;
  IF v_lane IS NULL THEN RETURN false; END IF;
  IF v_again OR p_more THEN
    UPDATE automation_timer x
       SET state = 'pending', worker_id = NULL, deadline_at = NULL, again = false, deliveries = 0, lost = 0, due_at = v_due
     WHERE x.id = p_timer;
    PERFORM automation_lane_release(v_lane, v_due, p_charge);
  ELSE
    DELETE FROM automation_timer x WHERE x.id = p_timer;
    PERFORM automation_lane_release(v_lane, NULL, p_charge);
  END IF;
  RETURN true;
END $$;

--------------------------------------------------------------------------------------------------------- wake and heal

-- Lanes whose earliest future timer has come. A million sleeping timers of a tenant cost one lane update.
CREATE OR REPLACE FUNCTION automation_wake(p_limit integer DEFAULT 500) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE n integer; t timestamptz := automation_now();
BEGIN
  UPDATE automation_lane x
     SET due_hint = true, wake_at = NULL, stride_pass = automation_join_pass(x.pool, x.stride_pass)
   WHERE x.id = ANY (ARRAY(SELECT y.id FROM automation_lane y
                            WHERE NOT y.due_hint AND y.wake_at <= t
                            ORDER BY y.wake_at LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED));
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

-- False: this process has been declared dead. It starts nothing more and leaves.
CREATE OR REPLACE FUNCTION automation_beat(p_worker uuid, p_ttl interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now();
BEGIN
  UPDATE automation_worker x SET beat_at = t, expires_at = t + p_ttl WHERE x.id = p_worker;
  RETURN FOUND;
END $$;

-- Work of dead workers, and work past its deadline by p_grace, goes back to pending; the lanes get their places back in the
-- same transaction; a worker row goes only when none of its timers is left. Guards of the sweep decide whether the
-- caller may reap at all.
CREATE OR REPLACE FUNCTION automation_reap(p_limit integer DEFAULT 500, p_grace interval DEFAULT '5 seconds')
RETURNS TABLE (timer_id bigint, lane_id bigint, lost integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t timestamptz := automation_now();
  v_dead uuid[]; v_timer bigint[]; v_lane bigint[]; v_lost integer[]; v_due timestamptz[]; r record;
BEGIN
  SELECT COALESCE(array_agg(d.id), '{}') INTO v_dead
    FROM (SELECT w.id FROM automation_worker w WHERE w.expires_at < t
           ORDER BY w.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED) d;
  WITH c AS (
    SELECT x.id FROM automation_timer x
     WHERE x.state = 'leased' AND (x.worker_id = ANY (v_dead) OR x.deadline_at < t - p_grace)
     ORDER BY x.id LIMIT p_limit FOR UPDATE SKIP LOCKED),
  u AS (
    UPDATE automation_timer x
       SET state = 'pending', worker_id = NULL, deadline_at = NULL, lost = x.lost + 1,
           due_at = t + CASE WHEN x.lost = 0 THEN interval '0' ELSE interval '1 second' * power(2, LEAST(x.lost, 6)) END
      FROM c WHERE x.id = c.id
    RETURNING x.id, x.lane_id, x.lost, x.due_at)
  SELECT array_agg(u.id), array_agg(u.lane_id), array_agg(u.lost), array_agg(u.due_at)
    INTO v_timer, v_lane, v_lost, v_due FROM u;
  FOR r IN
    SELECT q.lane, count(*)::integer AS freed, min(q.due) AS due
      FROM unnest(v_lane, v_due) AS q (lane, due) GROUP BY q.lane ORDER BY q.lane
  LOOP
    UPDATE automation_lane x
       SET running     = x.running - r.freed,
           due_hint    = x.due_hint OR r.due <= t,
           wake_at     = CASE WHEN r.due > t THEN LEAST(COALESCE(x.wake_at, r.due), r.due) ELSE x.wake_at END,
           stride_pass = CASE WHEN x.runnable THEN x.stride_pass ELSE automation_join_pass(x.pool, x.stride_pass) END
     WHERE x.id = r.lane;
  END LOOP;
  DELETE FROM automation_worker w
   WHERE w.id = ANY (v_dead)
     AND NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.state = 'leased' AND x.worker_id = w.id);
  RETURN QUERY SELECT q.a, q.b, q.c FROM unnest(v_timer, v_lane, v_lost) AS q (a, b, c);
END $$;

-- Lanes that sleep although a pending timer is due, or due before their wake time. Should always answer 0.
CREATE OR REPLACE FUNCTION automation_heal_lanes() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE n integer := 0; t timestamptz := automation_now(); r record;
BEGIN
  FOR r IN
    SELECT l.id, h.due_at FROM automation_lane l
     CROSS JOIN LATERAL (SELECT x.due_at FROM automation_timer x WHERE x.lane_id = l.id AND x.state = 'pending'
                          ORDER BY x.due_at, x.id LIMIT 1) h
     WHERE NOT l.due_hint AND (l.wake_at IS NULL OR (l.wake_at > t AND h.due_at < l.wake_at))   -- else the waker has it
     ORDER BY l.id
  LOOP
    PERFORM automation_lane_due(r.id, r.due_at);
    n := n + 1;
  END LOOP;
  RETURN n;
END $$;

-- Lanes whose counter differs from the leases: recounted under the lane lock. Every row answered is an alarm.
CREATE OR REPLACE FUNCTION automation_repair_running() RETURNS TABLE (lane_id bigint, was integer, really integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE r record; v_was integer; v_really integer;
BEGIN
  FOR r IN
    SELECT l.id FROM automation_lane l
      LEFT JOIN (SELECT x.lane_id AS lane, count(*) AS c FROM automation_timer x WHERE x.state = 'leased' GROUP BY x.lane_id) n
        ON n.lane = l.id
     WHERE l.running <> COALESCE(n.c, 0) ORDER BY l.id
  LOOP
    SELECT x.running INTO v_was FROM automation_lane x WHERE x.id = r.id FOR NO KEY UPDATE;
    SELECT count(*) INTO v_really FROM automation_timer x WHERE x.lane_id = r.id AND x.state = 'leased';
    CONTINUE WHEN v_was = v_really;                                        -- it was in flight, not wrong
    UPDATE automation_lane x SET running = v_really WHERE x.id = r.id;
    RETURN QUERY SELECT r.id, v_was, v_really;
  END LOOP;
END $$;

-- Tenants with events older than p_age and no match timer: the arming after the commit was lost. One index probe per tenant.
CREATE OR REPLACE FUNCTION automation_heal_match(p_age interval DEFAULT '5 seconds') RETURNS integer LANGUAGE plpgsql AS $$
DECLARE n integer := 0; t timestamptz := automation_now(); r record;
BEGIN
  FOR r IN
    WITH RECURSIVE tenant AS (
      (SELECT e.tenant_id AS id FROM automation_event e WHERE e.matched_at IS NULL ORDER BY e.tenant_id LIMIT 1)
      UNION ALL
      SELECT (SELECT e.tenant_id FROM automation_event e WHERE e.matched_at IS NULL AND e.tenant_id > p.id
               ORDER BY e.tenant_id LIMIT 1)
        FROM tenant p WHERE p.id IS NOT NULL)
    SELECT p.id FROM tenant p
      JOIN automation_lane l ON l.id = automation_lane_of(p.id) AND NOT l.hold_new
     WHERE NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.tenant_id = p.id AND x.kind = 'match')
       AND (SELECT e.created_at FROM automation_event e WHERE e.tenant_id = p.id AND e.matched_at IS NULL
             ORDER BY e.id LIMIT 1) < t - p_age
     ORDER BY p.id
  LOOP
    IF automation_arm_match(r.id) THEN n := n + 1; END IF;
  END LOOP;
  RETURN n;
END $$;

---------------------------------------------------------------------------------------------------------------- worker

-- A new pump says that it is there; its lease begins with the database's clock.
CREATE OR REPLACE FUNCTION automation_enlist(p_worker uuid, p_pool varchar, p_release varchar, p_host varchar, p_pid integer, p_ttl interval)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now();
BEGIN
  INSERT INTO automation_worker (id, pool, release, host, pid, started_at, beat_at, expires_at)
  VALUES (p_worker, p_pool, p_release, p_host, p_pid, t, t, t + p_ttl);
END $$;

-- Takes a chore for a while: true for one caller at a time, until it gives it back or its time is over. Answers how long ago
-- the chore was last seen to by anybody, in seconds; NULL when somebody else has it.
CREATE OR REPLACE FUNCTION automation_take_sweep(p_name varchar, p_holder uuid, p_every interval, p_hold interval)
RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now(); v_last timestamptz;
BEGIN
  INSERT INTO automation_sweep (name) VALUES (p_name) ON CONFLICT DO NOTHING;
  SELECT x.last_seen_at INTO v_last FROM automation_sweep x
   WHERE x.name = p_name AND (x.expires_at IS NULL OR x.expires_at < t) AND (x.last_seen_at IS NULL OR x.last_seen_at <= t - p_every)
     FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE automation_sweep x SET holder = p_holder, expires_at = t + p_hold, last_seen_at = t WHERE x.name = p_name;
  RETURN COALESCE(EXTRACT(epoch FROM t - v_last), -1);
END $$;

CREATE OR REPLACE FUNCTION automation_end_sweep(p_name varchar, p_holder uuid) RETURNS void LANGUAGE sql AS $$
  UPDATE automation_sweep x SET holder = NULL, expires_at = NULL, last_ok_at = automation_now() WHERE x.name = p_name AND x.holder = p_holder
$$;

-- Begins a matcher's transaction: whether the lease stands (kept until its end: the reaper passes by, an arming isn't blocked),
-- the tenant's flags as they are now, the time, and ids for the runs that it may insert. A user who waits for a row of ours gets
-- it, or we give way: 200 ms, below deadlock_timeout.
CREATE OR REPLACE FUNCTION automation_begin_match(p_worker uuid, p_timer bigint, p_seq bigint, p_tenant bigint, p_runs integer)
RETURNS TABLE (ours boolean, paused boolean, hold_new boolean, at timestamptz, run_ids bigint[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('lock_timeout', '200ms', true);
  at := automation_now();
  PERFORM 1 FROM automation_timer x
    WHERE x.id = p_timer AND x.state = 'leased' AND x.worker_id = p_worker AND x.lease_seq = p_seq FOR KEY SHARE;
  ours := FOUND;
  SELECT l.paused, l.hold_new INTO paused, hold_new FROM automation_lane l WHERE l.tenant_id = p_tenant;
  run_ids := ARRAY(SELECT nextval(pg_get_serial_sequence('automation_run', 'id')) FROM generate_series(1, p_runs));
  RETURN NEXT;
END $$;
