-- Gives places of connections to the steps that wait for one. The file creates or replaces functions only, so it may be loaded
-- again at any time.

-- Has as many waiting steps of each connection fall due as it has places left, the oldest first and ahead of what else is due in
-- their lane, for they have waited for it. A place is taken by a call on its way, and by a step whose turn has come and that
-- nobody has let through yet. Where the outside system is down nobody gets one, but for one step when it is to be tried. A timer
-- that somebody has locked is passed by, so nothing is waited for but connection and lane, in this order. Answers how many.
CREATE OR REPLACE FUNCTION automation_give_places(p_connections bigint[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  c_portion CONSTANT integer := 1000;
  c bigint; k record; t timestamptz; v_known boolean; v_taken integer; v_room integer; v_got integer; v_all integer := 0;
  v_lane bigint; v_lanes bigint[] := '{}';
BEGIN
  FOR c IN SELECT DISTINCT u.id FROM unnest(p_connections) AS u (id) ORDER BY u.id LOOP
    SELECT x.tenant_id, x.name, x.concurrency, x.breaker, x.breaker_until INTO k
      FROM automation_connection x WHERE x.id = c FOR NO KEY UPDATE;
    v_known := FOUND;
    t := automation_now();
    -- What has just been put to wait for it was written under that lock: this statement sees it.
    CONTINUE WHEN NOT EXISTS (SELECT 1 FROM automation_timer x WHERE x.waits_for = c AND x.waits_until = x.due_at AND NOT x.has_turn);
    IF v_known AND (k.breaker = 'off' OR (k.breaker <> 'closed' AND k.breaker_until > t)) THEN
      CONTINUE;
    ELSIF v_known AND (k.breaker <> 'closed' OR k.concurrency IS NOT NULL) THEN
      SELECT count(*) INTO v_taken FROM automation_timer x JOIN automation_stepexecution s ON s.id = x.step_id
       WHERE x.state = 'leased' AND s.tenant_id = k.tenant_id AND s.state = 'running' AND s.effect_state = 'intended'
         AND (s.connection = k.name
              OR (s.connection LIKE '#%' AND '#' || c = ANY (string_to_array(s.connection, ' '))));
      SELECT v_taken + count(*) INTO v_taken FROM automation_timer x JOIN automation_stepexecution s ON s.id = x.step_id
       WHERE x.waits_for = c AND x.has_turn AND x.waits_until = x.due_at
         AND (x.state = 'pending' OR (x.state = 'leased' AND s.effect_state <> 'intended'));
      v_room := LEAST(COALESCE(k.concurrency, c_portion), CASE WHEN k.breaker = 'closed' THEN c_portion ELSE 1 END) - v_taken;
      CONTINUE WHEN v_room <= 0;
    ELSE
      v_room := c_portion;
    END IF;
    WITH w AS (
      SELECT x.id FROM automation_timer x
       WHERE x.waits_for = c AND NOT x.has_turn AND x.waits_until = x.due_at AND x.state = 'pending'
       ORDER BY x.id LIMIT v_room FOR UPDATE SKIP LOCKED),
    h AS (
      SELECT w.id, LEAST(t, (SELECT y.due_at - interval '1 microsecond' FROM automation_timer y
                              WHERE y.lane_id = (SELECT z.lane_id FROM automation_timer z WHERE z.id = w.id)
                                AND y.state = 'pending' ORDER BY y.due_at, y.id LIMIT 1)) AS due FROM w),
    u AS (
      UPDATE automation_timer x SET due_at = h.due, waits_until = h.due, has_turn = true
        FROM h WHERE x.id = h.id RETURNING x.lane_id)
    SELECT count(*), min(u.lane_id) INTO v_got, v_lane FROM u;
    IF v_got > 0 THEN
      v_lanes := v_lanes || v_lane;
      v_all := v_all + v_got;
    END IF;
  END LOOP;
  FOR v_lane IN SELECT DISTINCT u.lane FROM unnest(v_lanes) AS u (lane) ORDER BY u.lane LOOP
    PERFORM automation_lane_due(v_lane, t);
  END LOOP;
  RETURN v_all;
END $$;
