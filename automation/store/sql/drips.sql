-- Holds what pauses stop, and lets it out at a rate or in portions. The file creates or replaces functions only, so it may be
-- loaded again at any time. A drip without next_at is a shelf: what it holds stays until its rule or connection may go on.

-- From when a pace counts at p_now whose next one was due at p_next: what looks come late by is made up for, p_late at most; a
-- standstill of five times that isn't made up for at all.
CREATE OR REPLACE FUNCTION automation_paced_from(p_next timestamptz, p_now timestamptz, p_late interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_next < p_now - 5 * p_late THEN p_now ELSE GREATEST(p_next, p_now - p_late) END
$$;

-- How many of a drip may go at p_now, and from when on. Two clocks: p_next is when the next one should go, so that looks which come
-- late lose nothing; p_paced, a tenth faster than the rate, is when it may, so that what is made up for is no burst. What should
-- have gone already may be told to go up to p_ahead from now; what may have gone p_late ago goes at once. After a standstill of
-- 2.5 seconds both begin anew, and ten seconds are made up for at most.
CREATE OR REPLACE FUNCTION automation_pace(
  p_rate integer, p_next timestamptz, p_paced timestamptz, p_now timestamptz, p_late interval, p_ahead interval,
  OUT start timestamptz, OUT paced timestamptz, OUT gap interval, OUT quick interval, OUT most integer)
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  gap := interval '1 minute' / p_rate;
  quick := gap / 1.1;
  IF GREATEST(p_next, p_paced) < p_now - interval '2.5 seconds' THEN
    start := p_now;
    paced := p_now;
  ELSE
    start := GREATEST(p_next, p_now - interval '10 seconds');
    paced := GREATEST(COALESCE(p_paced, p_next), p_now - p_late);
  END IF;
  most := CASE WHEN start > p_now OR paced > p_now + p_ahead THEN 0
               ELSE LEAST(floor(EXTRACT(epoch FROM p_now - start) / EXTRACT(epoch FROM gap)),
                          floor(EXTRACT(epoch FROM p_now + p_ahead - paced) / EXTRACT(epoch FROM quick)))::integer + 1 END;
END $$;

-- Makes held timers of each drip, or of one, due that should have gone by now, and none beforehand: when no worker lives, nothing
-- piles up that would go at once later. Those of one look are due one after the other, within p_late, by when the next one comes. Without a rate a portion goes at each look, so no transaction is long. Every pump asks once a
-- moment, and for one drip one of them finds it unlocked. They are looked at in no order: where more than 200 are due, those that
-- only wait for a matcher keep nobody from their turn. What is held under another pause stays. Lanes are locked at the end, in
-- their order. Answers how many timers were let out.
CREATE OR REPLACE FUNCTION automation_let_out(p_late interval, p_drip bigint DEFAULT NULL) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  c_portion CONSTANT integer := 1000;
  t timestamptz := automation_now();
  d record; w record; v_lanes bigint[] := '{}'; v_dues timestamptz[] := '{}';
  v_start timestamptz; v_paced timestamptz; v_gap interval; v_quick interval; v_most integer; v_got integer; v_lane bigint; v_due timestamptz; v_all integer := 0;
BEGIN
  FOR d IN
    SELECT x.id, x.tenant_id, x.rate, x.next_at, x.paced_at, x.kept_until FROM automation_drip x
      JOIN automation_lane l ON l.tenant_id = x.tenant_id AND NOT l.paused
     WHERE x.ended_at IS NULL AND x.next_at <= t AND (p_drip IS NULL OR x.id = p_drip)
     ORDER BY random() LIMIT 200 FOR NO KEY UPDATE OF x SKIP LOCKED
  LOOP
    EXIT WHEN v_all >= 2 * c_portion;
    v_most := c_portion;
    IF d.rate IS NOT NULL THEN
      SELECT p.start, p.paced, p.gap, p.quick, p.most INTO v_start, v_paced, v_gap, v_quick, v_most
        FROM automation_pace(d.rate, d.next_at, d.paced_at, t, interval '0', p_late) p;
      CONTINUE WHEN v_most = 0;
    END IF;
    WITH c AS (
      SELECT x.id, x.due_at FROM automation_timer x WHERE x.drip_id = d.id AND x.state = 'held'
       ORDER BY x.due_at, x.id LIMIT v_most FOR UPDATE SKIP LOCKED),
    k AS (SELECT c.id, row_number() OVER (ORDER BY c.due_at, c.id) - 1 AS place FROM c),
    u AS (
      UPDATE automation_timer x SET state = 'pending', drip_id = NULL,
             due_at = CASE WHEN d.rate IS NULL THEN LEAST(x.due_at, t) ELSE v_paced + v_quick * k.place END
        FROM k WHERE x.id = k.id RETURNING x.lane_id, x.due_at)
    SELECT count(*), min(u.lane_id), min(u.due_at) INTO v_got, v_lane, v_due FROM u;
    IF v_got > 0 THEN
      UPDATE automation_drip x
         SET next_at = CASE WHEN d.rate IS NULL THEN t ELSE v_start + v_gap * v_got END,
             paced_at = CASE WHEN d.rate IS NULL THEN NULL ELSE v_paced + v_quick * v_got END,
             released = x.released + v_got WHERE x.id = d.id;
      v_lanes := v_lanes || v_lane;
      v_dues := v_dues || v_due;
      v_all := v_all + v_got;
    END IF;
    IF v_got < v_most AND NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.drip_id = d.id AND x.state = 'held')
          AND NOT EXISTS (SELECT 1 FROM automation_event e
                           WHERE e.tenant_id = d.tenant_id AND e.matched_at IS NULL AND e.id <= d.kept_until) THEN
      UPDATE automation_drip x SET ended_at = t WHERE x.id = d.id;
    END IF;
  END LOOP;
  FOR w IN SELECT u.lane, min(u.due) AS due FROM unnest(v_lanes, v_dues) AS u (lane, due) GROUP BY u.lane ORDER BY u.lane LOOP
    PERFORM automation_lane_due(w.lane, w.due);
  END LOOP;
  RETURN v_all;
END $$;

-- How many of p_wanted kept events may start their runs now, and when the next one may. Timers of the drip come first: they have
-- waited longer. A quarter of a second is how late a matcher comes; what is granted and not used is gone.
CREATE OR REPLACE FUNCTION automation_admit(p_drip bigint, p_wanted integer, OUT granted integer, OUT next_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now(); d record; p record;
BEGIN
  SELECT x.rate, x.next_at, x.paced_at,
         EXISTS (SELECT 1 FROM automation_timer y WHERE y.drip_id = x.id AND y.state = 'held') AS holding INTO d
    FROM automation_drip x WHERE x.id = p_drip AND x.ended_at IS NULL FOR NO KEY UPDATE OF x;
  IF NOT FOUND OR d.rate IS NULL OR d.next_at IS NULL THEN
    granted := p_wanted;
    RETURN;
  END IF;
  IF d.holding THEN
    granted := 0;
    next_at := GREATEST(d.next_at, t + interval '0.25 seconds');
    RETURN;
  END IF;
  SELECT * INTO p FROM automation_pace(d.rate, d.next_at, d.paced_at, t, interval '0.25 seconds', interval '0');
  granted := LEAST(p_wanted, p.most);
  next_at := GREATEST(p.start + p.gap * granted, p.paced + p.quick * granted);
  IF granted > 0 THEN
    UPDATE automation_drip x
       SET next_at = p.start + p.gap * granted, paced_at = p.paced + p.quick * granted, released = x.released + granted
     WHERE x.id = p_drip;
  END IF;
END $$;

-- Closes or opens the shelf of a rule or connection, as its open pause and the rule's switch say now; in the transaction that has
-- changed one of them, before its lanes. Opened, it goes on at p_rate a minute, or in portions. A rule that was deleted isn't
-- stopped: its runs are cancelled by whoever claims them.
CREATE OR REPLACE FUNCTION automation_follow_shelf(p_scope varchar, p_tenant bigint, p_subject bigint, p_rate integer DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now(); v_pause bigint; v_stopped boolean;
BEGIN
  SELECT x.id INTO v_pause FROM automation_pause x
   WHERE x.scope = p_scope AND x.tenant_id = p_tenant AND x.subject_id = p_subject AND x.ended_at IS NULL;
  v_stopped := v_pause IS NOT NULL;
  IF p_scope = 'rule' THEN
    SELECT x.deleted_at IS NULL AND (v_stopped OR (NOT x."on" AND x.off_mode = 'hold' AND x.published_id IS NOT NULL))
      INTO v_stopped FROM automation_rule x WHERE x.id = p_subject AND x.tenant_id = p_tenant;
  END IF;
  IF COALESCE(v_stopped, false) THEN
    INSERT INTO automation_drip AS x (pause_id, tenant_id, scope, subject_id, next_at)
    VALUES (v_pause, p_tenant, p_scope, p_subject, NULL)
    ON CONFLICT (tenant_id, scope, subject_id) WHERE ended_at IS NULL
    DO UPDATE SET next_at = NULL, pause_id = COALESCE(EXCLUDED.pause_id, x.pause_id);
  ELSE
    UPDATE automation_drip x
       SET rate = p_rate, since = t, next_at = t, paced_at = NULL,
           held = x.released + (SELECT count(*) FROM automation_timer y WHERE y.drip_id = x.id AND y.state = 'held')
     WHERE x.tenant_id = p_tenant AND x.scope = p_scope AND x.subject_id = p_subject AND x.ended_at IS NULL AND x.next_at IS NULL;
  END IF;
END $$;

-- Puts pending timers, by their steps, on the shelf of what stops them; last in the transaction that has written them or put them
-- back. A shelf that somebody opens at this moment is passed by: its timer is looked at again at its due time. Nobody opens one
-- that this transaction has put something on before it ends.
CREATE OR REPLACE FUNCTION automation_shelve(p_tenants bigint[], p_scopes varchar[], p_subjects bigint[], p_steps bigint[])
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now(); n integer; v_drips bigint[];
BEGIN
  SELECT array_agg(s.id) INTO v_drips FROM (
    SELECT x.id FROM automation_drip x
     WHERE x.ended_at IS NULL AND x.next_at IS NULL
       AND EXISTS (SELECT 1 FROM unnest(p_tenants, p_scopes, p_subjects) AS u (tenant, scope, subject)
                    WHERE u.tenant = x.tenant_id AND u.scope = x.scope AND u.subject = x.subject_id)
       AND x.tenant_id = ANY (p_tenants)
     ORDER BY x.id FOR SHARE SKIP LOCKED) s;
  UPDATE automation_timer y SET state = 'held', drip_id = x.id, due_at = LEAST(y.due_at, t)
    FROM unnest(p_tenants, p_scopes, p_subjects, p_steps) AS u (tenant, scope, subject, step)
    JOIN automation_drip x ON x.id = ANY (v_drips) AND x.tenant_id = u.tenant AND x.scope = u.scope AND x.subject_id = u.subject
   WHERE y.step_id = u.step AND y.state = 'pending';
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;
