"""Letting out what is held costs what is let out, however much is held, and locks lanes in their order and last."""

import threading
import time

import psycopg
import pytest

from automation.store.pauses import ANY_DUE
from tests.store.conftest import Row, Store
from tests.store.test_cost import backlog, buffers, sequential_scans

LET_OUT = "SELECT automation_let_out(interval '0.2 seconds')"


def drips(store: Store, *, tenants: int, each: int) -> None:
    """So many tenants' drips, each with so many held steps, beside a backlog of the others."""
    lanes = backlog(store, lanes=1_000, timers=20_000)[:tenants]
    store.run(
        "INSERT INTO automation_pause (scope, tenant_id, level, reason, actor, ended_at, ended_by)"
        " SELECT 'tenant', l.tenant_id, 'hold', '', '', now(), '' FROM automation_lane l WHERE l.id = ANY(%s)",
        lanes,
    )
    store.run(
        "INSERT INTO automation_drip (pause_id, tenant_id, scope, rate) SELECT p.id, p.tenant_id, 'tenant', 600"
        " FROM automation_pause p"
    )
    store.run(
        "INSERT INTO automation_timer (lane_id, tenant_id, kind, state, due_at, drip_id)"
        " SELECT l.id, l.tenant_id, 'step', 'held', now() - k * interval '1 second', d.id"
        " FROM automation_drip d JOIN automation_lane l ON l.tenant_id = d.tenant_id, generate_series(1, %s) k",
        each,
    )
    store.run("VACUUM ANALYZE automation_timer, automation_lane, automation_drip")


@pytest.mark.fault(47)
def test_a_look_at_what_is_held_reads_as_much_of_a_lot_as_of_a_little(store: Store) -> None:
    read = {}
    for each in (100, 10_000):
        store.run("TRUNCATE automation_timer, automation_pause CASCADE")
        store.run("UPDATE automation_lane SET due_hint = false, running = 0")
        drips(store, tenants=10, each=each)
        read[each] = buffers(store, LET_OUT)
    assert read[10_000] <= 3 * read[100], read


@pytest.mark.fault(47)
def test_a_look_at_what_is_held_reads_no_table_from_end_to_end(store: Store) -> None:
    drips(store, tenants=10, each=2_000)

    def look(connection: psycopg.Connection[Row]) -> None:
        connection.execute(LET_OUT)

    found = sequential_scans(store, look)
    assert not any(found.values()), found


def test_lanes_are_locked_last_and_in_their_order_whichever_drip_comes_first(store: Store) -> None:
    low, high = store.lanes(2)
    for lane, since in ((low, "1 second"), (high, "2 seconds")):  # the drip of the higher lane has waited longer
        store.run(
            "WITH p AS (INSERT INTO automation_pause (scope, tenant_id, level, reason, actor, ended_at, ended_by)"
            " SELECT 'tenant', l.tenant_id, 'hold', '', '', now(), '' FROM automation_lane l WHERE l.id = %s"
            " RETURNING id, tenant_id),"
            " d AS (INSERT INTO automation_drip (pause_id, tenant_id, scope, rate, next_at)"
            " SELECT p.id, p.tenant_id, 'tenant', 600, now() - %s::interval FROM p RETURNING id, tenant_id)"
            " INSERT INTO automation_timer (lane_id, tenant_id, kind, state, due_at, drip_id)"
            " SELECT %s, d.tenant_id, 'step', 'held', now(), d.id FROM d",
            lane,
            since,
            lane,
        )
    holder, looking = store.another(autocommit=False), store.another()
    holder.execute("SELECT 1 FROM automation_lane WHERE id = %s FOR NO KEY UPDATE", [low])
    look = threading.Thread(target=looking.execute, args=(LET_OUT,))
    look.start()
    try:
        ends_at = time.monotonic() + 10
        waits = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"
        while not store.value(waits, looking.info.backend_pid):
            assert time.monotonic() < ends_at
            time.sleep(0.01)
        assert store.rows("SELECT id FROM automation_lane WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", high)
    finally:
        holder.rollback()
        look.join()
    assert store.value("SELECT count(*) FROM automation_timer WHERE state = 'pending'") == 2


def test_drips_that_wait_for_a_matcher_keep_none_of_the_others_from_its_turn(store: Store) -> None:
    store.lanes(201)
    lanes = "(SELECT l.id, l.tenant_id, row_number() OVER (ORDER BY l.id) AS n FROM automation_lane l) l"
    store.run(
        "INSERT INTO automation_event (tenant_id, kind, change, model, name, facts, actor, source, batch,"
        " body_sha256, depth, path) SELECT l.tenant_id, 'record_changed', 'updated', 'helpdesk.ticket', '', '{}', '',"
        f" 'person', '', '', 0, '[]' FROM {lanes}"
        " WHERE l.n <= 200"
    )
    store.run(
        "INSERT INTO automation_drip (tenant_id, scope, rate, next_at, kept_until)"
        " SELECT l.tenant_id, 'tenant', 600, now() - interval '2 seconds' + l.n * interval '1 millisecond', e.id"
        f" FROM {lanes} LEFT JOIN automation_event e ON e.tenant_id = l.tenant_id"
    )
    store.run(
        "INSERT INTO automation_timer (lane_id, tenant_id, kind, state, due_at, drip_id)"
        f" SELECT l.id, l.tenant_id, 'step', 'held', now(), d.id FROM {lanes}"
        " JOIN automation_drip d ON d.tenant_id = l.tenant_id WHERE l.n = 201"
    )
    assert any(store.value(LET_OUT) for _look in range(20))


@pytest.mark.parametrize("open_too", [0, 100_000])
def test_the_poll_for_pauses_that_end_reads_two_pages_of_an_index_however_many_there_are(
    store: Store, open_too: int
) -> None:
    store.run(
        "INSERT INTO automation_pause (scope, subject_id, level, reason, actor, until, ended_at, ended_by)"
        " SELECT 'rule', k, 'hold', '', '', now() + interval '1 day', CASE WHEN k > %s THEN now() END, ''"
        " FROM generate_series(1, 200000) k",
        open_too,
    )
    store.run("VACUUM ANALYZE automation_pause")
    assert buffers(store, ANY_DUE) <= 10
