"""What a claim reads doesn't grow with the backlog, the number of lanes, or how many of them are at their cap."""

import json
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from store.conftest import POOL, Store

from automation.store import runs

Row = dict[str, Any]
HOT = ("automation_timer", "automation_lane", "automation_event")
MOST = 1.3  # times the buffers of the smallest case
CLAIM = "SELECT * FROM automation_claim(%s, %s, 8, 4, interval '1 hour')"


def backlog(store: Store, *, lanes: int, timers: int, saturated: int = 0) -> list[int]:
    """So many lanes in line that share a backlog; of those lanes, `saturated` are at their cap."""
    ids = store.lanes(lanes)
    store.run("UPDATE automation_lane SET stride_pass = id * 10 WHERE id = ANY(%s)", ids)
    store.timers(ids, timers // lanes)
    if saturated:
        store.run("UPDATE automation_lane SET running = max_running WHERE id = ANY(%s)", ids[:saturated])
    store.run("VACUUM ANALYZE automation_lane, automation_timer, automation_worker, automation_event")
    return ids


def buffers(store: Store, sql: str, *params: Any) -> int:
    """Blocks that one call touches, in a transaction that is taken back; the second call, when all is cached."""
    connection = store.another(autocommit=False)
    try:
        found = 0
        for _ in range(2):
            plan = connection.execute(
                psycopg.sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + psycopg.sql.SQL(sql),
                params,  # type: ignore[arg-type]
            ).fetchone()
            assert plan is not None
            top = next(iter(plan.values()))[0]["Plan"]
            found = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
            connection.rollback()
        return int(found)
    finally:
        connection.close()


def sequential_scans(store: Store, work: Callable[[psycopg.Connection[Row]], None]) -> dict[str, int]:
    """How often each hot table was read from end to end while `work` was done on a connection of its own."""
    sql = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY(%s)"
    connection = store.another()
    for each in (connection, store.connection):
        each.execute("SELECT pg_stat_force_next_flush()")
    before = {one["relname"]: one["seq_scan"] for one in store.rows(sql, list(HOT))}
    work(connection)
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.close()
    store.run("SELECT pg_stat_clear_snapshot()")
    after = {one["relname"]: one["seq_scan"] for one in store.rows(sql, list(HOT))}
    return {name: after[name] - before[name] for name in HOT}


@pytest.mark.fault(32)
@pytest.mark.fault(31)
def test_a_claim_reads_as_much_of_a_large_backlog_as_of_a_small_one(store: Store) -> None:
    read: dict[str, int] = {}
    for name, about in {
        "small": {"lanes": 50, "timers": 2_000},
        "many timers": {"lanes": 50, "timers": 100_000},
        "many lanes": {"lanes": 3_000, "timers": 100_000},
        "most of them full": {"lanes": 3_000, "timers": 100_000, "saturated": 2_900},
    }.items():
        store.run("TRUNCATE automation_timer, automation_worker")
        store.run("UPDATE automation_lane SET due_hint = false, running = 0")
        backlog(store, **about)
        read[name] = buffers(store, CLAIM, store.worker(), POOL)
    assert max(read.values()) <= MOST * read["small"], read


@pytest.mark.fault(32)
def test_nothing_on_the_hot_path_reads_a_table_from_end_to_end(store: Store) -> None:
    lanes = backlog(store, lanes=3_000, timers=100_000, saturated=2_900)
    store.run("UPDATE automation_lane SET running = 0")
    store.run(
        "INSERT INTO automation_event"
        " (tenant_id, kind, change, name, model, facts, actor, source, batch, body_sha256, depth, path)"
        " SELECT t.id, 'custom_event', '', 'tick', '', '{}', '', 'api', '', '', 0, '[]'"
        " FROM tenants_tenant t, generate_series(1, 20)"
    )
    store.run("UPDATE automation_event SET matched_at = now() WHERE id %% 20 <> 0")
    store.run("VACUUM ANALYZE automation_lane, automation_timer, automation_event")
    worker = store.worker()

    def work(connection: psycopg.Connection[Row]) -> None:
        for _ in range(5):
            claimed = connection.execute(CLAIM, [worker, POOL]).fetchall()
            assert claimed
            timers, seqs = [one["timer_id"] for one in claimed], [one["lease_seq"] for one in claimed]
            nothing = [None] * len(claimed)
            connection.execute("SELECT automation_hold(%s, %s, %s)", [worker, timers, seqs])
            connection.execute(
                "SELECT automation_settle_wave"
                "(%s, %s::bigint[], %s::bigint[], %s::varchar[], %s::timestamptz[], %s::bigint[])",
                [worker, timers, seqs, nothing, nothing, nothing],
            )
        connection.execute("SELECT automation_claim(%s, %s, 1, 4, interval '1 hour', -1, true)", [worker, POOL])
        connection.execute("SELECT automation_wake()")
        connection.execute("SELECT automation_reap()")
        connection.execute("SELECT automation_arm_match(%s)", [tenant])

    tenant = store.value("SELECT tenant_id FROM automation_lane WHERE id = %s", lanes[0])
    assert sequential_scans(store, work) == dict.fromkeys(HOT, 0)

    def sweep(connection: psycopg.Connection[Row]) -> None:
        connection.execute("SELECT automation_heal_match()")
        connection.execute("SELECT * FROM automation_repair_running()")

    found = sequential_scans(store, sweep)
    # Both sweeps look at every lane by design; timers and events are reached by their indexes only.
    assert (found["automation_timer"], found["automation_event"]) == (0, 0)


@pytest.mark.fault(32)
def test_a_wake_up_touches_only_lanes_whose_time_has_come(store: Store) -> None:
    asleep = store.lanes(2_000)
    store.timers(asleep, 20, due="1 day")
    store.run("VACUUM ANALYZE automation_lane, automation_timer")
    assert buffers(store, "SELECT automation_wake()") <= 20
    assert buffers(store, "SELECT * FROM automation_reap()") <= 40


def test_the_claim_uses_the_index_of_turns(store: Store) -> None:
    backlog(store, lanes=500, timers=5_000)
    plan = store.rows(
        "EXPLAIN (FORMAT JSON) SELECT x.id FROM automation_lane x WHERE x.pool = 'northwind' AND x.runnable"
        " AND x.stride_pass >= -1 ORDER BY x.stride_pass, x.id LIMIT 2 FOR NO KEY UPDATE SKIP LOCKED"
    )
    text = json.dumps(plan, default=str)
    assert "automation_lane_turn" in text
    assert not re.search(r"Seq Scan|\"Sort\"", text)


@pytest.mark.fault(32)
def test_what_a_step_asks_of_the_past_does_not_grow_with_a_long_history(store: Store) -> None:
    """A record with 20,000 runs, of which ten minutes hold ten, among others; and as many messages to one recipient."""
    [lane] = store.lanes(1)
    tenant = store.value("SELECT tenant_id FROM automation_lane WHERE id = %s", lane)
    rule = store.value(
        "INSERT INTO automation_rule (tenant_id, name, position, \"on\", off_mode) VALUES (%s, 'R', 1, true, 'hold')"
        " RETURNING id",
        tenant,
    )
    version = store.value(
        "INSERT INTO automation_ruleversion (tenant_id, rule_id, number, definition, sha256, schema_version, note)"
        " VALUES (%s, %s, 1, '{}', 'x', 1, '') RETURNING id",
        tenant,
        rule,
    )
    store.run(
        "INSERT INTO automation_event (tenant_id, kind, change, name, model, record, facts, actor, source, batch,"
        " body_sha256, depth, path, matched_at) SELECT %s, 'record_changed', 'updated', '', 'helpdesk.ticket',"
        " CASE WHEN n > 20000 THEN n ELSE 7 END, '{}', '', 'api', '', '', 0, '[]', now()"
        " FROM generate_series(1, 40000) n",
        tenant,
    )
    store.run(
        "INSERT INTO automation_run (tenant_id, rule_id, rule_version_id, event_id, state, model, record,"
        " root_event_id, depth, created_at) SELECT e.tenant_id, %s, %s, e.id, 'succeeded', e.model, e.record, e.id, 0,"
        " now() - (20001 - row_number() OVER (PARTITION BY e.record = 7 ORDER BY e.id))"
        " * interval '1 minute' FROM automation_event e"
        " WHERE e.tenant_id = %s ORDER BY e.id",
        rule,
        version,
        tenant,
    )
    store.run(
        "INSERT INTO automation_stepexecution (tenant_id, run_id, path, kind, state, effect_state, input, started_at)"
        " SELECT r.tenant_id, r.id, 'mail', 'action', 'succeeded', 'confirmed', '{\"recipient\": \"ana\"}',"
        " r.created_at FROM automation_run r WHERE r.tenant_id = %s AND r.record = 7",
        tenant,
    )
    store.run("VACUUM ANALYZE automation_event, automation_run, automation_stepexecution")
    ten = 10
    asked = (tenant, ten, [rule], ["helpdesk.ticket"], [7])
    assert store.value(f"SELECT x.count FROM ({runs.LATELY}) x", *asked) == ten - 1
    assert store.value(runs.SENT_TO, tenant, "ana", rule, ten) == ten - 1
    assert buffers(store, runs.LATELY, *asked) <= 100
    assert buffers(store, runs.SENT_TO, tenant, "ana", rule, ten) <= 100
    assert buffers(store, runs.WAITING, [rule], ["helpdesk.ticket"], [7], tenant) <= 10
