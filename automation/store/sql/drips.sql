-- Lets out at a rate what pauses have held. The file creates or replaces functions only, so it may be loaded again at any time.

-- From when a pace counts at p_now whose next one was due at p_next: what looks come late by is made up for, p_late at most; a
-- standstill of five times that isn't made up for at all.
CREATE OR REPLACE FUNCTION automation_paced_from(p_next timestamptz, p_now timestamptz, p_late interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_next < p_now - 5 * p_late THEN p_now ELSE GREATEST(p_next, p_now - p_late) END
$$;

-- Makes held timers of each drip due that may go by now, and none beforehand: when no worker lives, nothing piles up that would go
-- at once later. Every pump asks once a moment, and for one drip one of them finds it unlocked. What is held under another pause
-- stays. Lanes are locked at the end, in their order. Answers how many timers were let out.
CREATE OR REPLACE FUNCTION automation_let_out(p_late interval) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  t timestamptz := automation_now();
  d record; w record; v_lanes bigint[] := '{}'; v_dues timestamptz[] := '{}';
  v_gap interval; v_start timestamptz; v_most integer; v_got integer; v_lane bigint; v_due timestamptz; v_all integer := 0;
BEGIN
  FOR d IN
    SELECT x.id, x.tenant_id, x.rate, x.next_at, x.kept_until FROM automation_drip x
      JOIN automation_lane l ON l.tenant_id = x.tenant_id AND NOT l.paused
     WHERE x.ended_at IS NULL AND x.next_at <= t
     ORDER BY x.next_at LIMIT 200 FOR NO KEY UPDATE OF x SKIP LOCKED
  LOOP
    v_gap := interval '1 minute' / d.rate;
    v_start := automation_paced_from(d.next_at, t, p_late);
    v_most := floor(EXTRACT(epoch FROM t - v_start) / EXTRACT(epoch FROM v_gap))::integer + 1;
    WITH c AS (
      SELECT x.id, x.due_at FROM automation_timer x WHERE x.drip_id = d.id AND x.state = 'held'
       ORDER BY x.due_at, x.id LIMIT v_most FOR UPDATE SKIP LOCKED),
    k AS (SELECT c.id, row_number() OVER (ORDER BY c.due_at, c.id) - 1 AS place FROM c),
    u AS (
      UPDATE automation_timer x SET state = 'pending', drip_id = NULL, due_at = v_start + v_gap * k.place
        FROM k WHERE x.id = k.id RETURNING x.lane_id, x.due_at)
    SELECT count(*), min(u.lane_id), min(u.due_at) INTO v_got, v_lane, v_due FROM u;
    IF v_got > 0 THEN
      UPDATE automation_drip x SET next_at = v_start + v_gap * v_got, released = x.released + v_got WHERE x.id = d.id;
      v_lanes := v_lanes || v_lane;
      v_dues := v_dues || v_due;
      v_all := v_all + v_got;
    ELSIF NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.drip_id = d.id AND x.state = 'held')
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
-- waited longer. Half a second is made up for, which is how late a matcher may come; what is granted and not used is gone.
CREATE OR REPLACE FUNCTION automation_admit(p_drip bigint, p_wanted integer, OUT granted integer, OUT next_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE t timestamptz := automation_now(); d record; v_gap interval; v_start timestamptz;
BEGIN
  SELECT x.rate, x.next_at, EXISTS (SELECT 1 FROM automation_timer y WHERE y.drip_id = x.id AND y.state = 'held') AS holding INTO d
    FROM automation_drip x WHERE x.id = p_drip AND x.ended_at IS NULL FOR NO KEY UPDATE OF x;
  IF NOT FOUND THEN
    granted := p_wanted;
    RETURN;
  END IF;
  v_gap := interval '1 minute' / d.rate;
  IF d.holding THEN
    granted := 0;
    next_at := GREATEST(d.next_at, t + interval '0.5 seconds');
    RETURN;
  END IF;
  v_start := GREATEST(d.next_at, t - interval '0.5 seconds');
  granted := CASE WHEN v_start > t THEN 0
                  ELSE LEAST(p_wanted, floor(EXTRACT(epoch FROM t - v_start) / EXTRACT(epoch FROM v_gap))::integer + 1) END;
  next_at := v_start + v_gap * granted;
  IF granted > 0 THEN
    UPDATE automation_drip x SET next_at = automation_admit.next_at, released = x.released + granted WHERE x.id = p_drip;
  END IF;
END $$;
