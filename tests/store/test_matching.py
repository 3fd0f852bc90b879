"""No event is left unmatched by any meeting of an arming with a matcher, and no tenant ever has two matchers."""

import threading
import uuid
from typing import Any

import psycopg
import pytest
from store.conftest import Store, claim

Row = dict[str, Any]
EVENT = (
    "INSERT INTO automation_event"
    " (tenant_id, kind, change, name, model, facts, actor, source, batch, body_sha256, depth, path)"
    " VALUES (%s, 'custom_event', '', 'tick', '', '{}', '', 'api', '', '', 0, '[]') RETURNING id"
)


def tenant_of(store: Store, lane: int) -> int:
    return int(store.value("SELECT tenant_id FROM automation_lane WHERE id = %s", lane))


def arm(connection: psycopg.Connection[Row], tenant: int) -> bool:
    found = connection.execute("SELECT automation_arm_match(%s) AS made", [tenant]).fetchone()
    assert found is not None
    return bool(found["made"])


def settle(connection: psycopg.Connection[Row], worker: uuid.UUID, claimed: Row, *, more: bool = False) -> bool:
    found = connection.execute(
        "SELECT automation_settle_match(%s, %s, %s, %s) AS done",
        [claimed["timer_id"], worker, claimed["lease_seq"], more],
    ).fetchone()
    assert found is not None
    return bool(found["done"])


def match(connection: psycopg.Connection[Row], tenant: int, limit: int = 50) -> int:
    return connection.execute(
        "UPDATE automation_event SET matched_at = clock_timestamp() WHERE id IN (SELECT id FROM automation_event"
        " WHERE tenant_id = %s AND matched_at IS NULL ORDER BY id LIMIT %s)",
        [tenant, limit],
    ).rowcount


@pytest.mark.fault(41)
def test_an_arming_while_the_matcher_works_brings_its_timer_back(store: Store) -> None:
    (lane,) = store.lanes(1)
    tenant, worker = tenant_of(store, lane), store.worker()
    assert arm(store.connection, tenant)
    (claimed,) = store.claim(worker)
    assert not arm(store.connection, tenant)

    assert settle(store.connection, worker, claimed)

    (again,) = store.claim(worker)
    assert again["kind"] == "match"
    assert settle(store.connection, worker, again)
    assert store.value("SELECT count(*) FROM automation_timer") == 0
    assert store.lane(lane)["running"] == 0


@pytest.mark.fault(41)
def test_an_arming_that_meets_the_settle_and_comes_first_brings_the_timer_back(store: Store) -> None:
    (lane,) = store.lanes(1)
    tenant, worker = tenant_of(store, lane), store.worker()
    arm(store.connection, tenant)
    (claimed,) = store.claim(worker)
    arming, settling = store.another(autocommit=False), store.another()
    assert not arm(arming, tenant)  # holds the row

    waiting = threading.Thread(target=settle, args=(settling, worker, claimed))
    waiting.start()
    waits_for_lock(store, settling)
    arming.commit()
    waiting.join(10)

    assert store.rows("SELECT kind, state, again FROM automation_timer") == [
        {"kind": "match", "state": "pending", "again": False}
    ]
    assert len(store.claim(worker)) == 1


@pytest.mark.fault(41)
def test_an_arming_that_meets_the_settle_and_comes_second_makes_a_new_timer(store: Store) -> None:
    (lane,) = store.lanes(1)
    tenant, worker = tenant_of(store, lane), store.worker()
    arm(store.connection, tenant)
    (claimed,) = store.claim(worker)
    settling, arming = store.another(autocommit=False), store.another()
    assert settle(settling, worker, claimed)

    made: list[bool] = []
    waiting = threading.Thread(target=lambda: made.append(arm(arming, tenant)))
    waiting.start()
    waits_for_lock(store, arming)
    settling.commit()
    waiting.join(10)

    assert made == [True]
    assert len(store.claim(worker)) == 1


@pytest.mark.fault(41)
def test_four_writers_against_two_matchers_leave_nothing_unmatched(  # noqa: C901 threads in one scene
    store: Store,
) -> None:
    lanes = store.lanes(3, max_running=2)
    tenants = [tenant_of(store, lane) for lane in lanes]
    writing, failures = threading.Event(), []
    matched: list[int] = []

    def write(connection: psycopg.Connection[Row], first: int) -> None:
        try:
            for number in range(150):
                tenant = tenants[(first + number) % 3]
                connection.execute(EVENT, [tenant])
                arm(connection, tenant)
        except BaseException as error:
            failures.append(error)

    def work(worker: uuid.UUID, connection: psycopg.Connection[Row]) -> None:
        try:
            idle = 0
            while idle < 20:
                claimed = claim(connection, worker, 4)
                idle = idle + 1 if writing.is_set() and not claimed else 0
                for one in claimed:
                    matched.append(done := match(connection, one["tenant_id"], 20))
                    assert settle(connection, worker, one, more=done >= 20)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(store.another(), place)) for place in range(4)]
    workers = [threading.Thread(target=work, args=(store.worker(), store.another())) for _ in range(2)]
    for thread in (*workers, *writers):
        thread.start()
    while any(writer.is_alive() for writer in writers):
        for row in store.rows(
            "SELECT tenant_id, count(*) AS n FROM automation_timer WHERE kind = 'match' GROUP BY tenant_id"
        ):
            assert row["n"] == 1
    writing.set()
    for thread in (*writers, *workers):
        thread.join(60)

    assert not failures
    assert sum(matched) == 600
    assert store.value("SELECT count(*) FROM automation_event WHERE matched_at IS NULL") == 0
    assert store.value("SELECT count(*) FROM automation_timer") == 0
    assert store.value("SELECT sum(running) FROM automation_lane") == 0


@pytest.mark.case("S07")
@pytest.mark.fault(27)
def test_an_event_of_a_slow_transaction_with_a_lower_id_is_matched_too(store: Store) -> None:
    (lane,) = store.lanes(1)
    tenant = tenant_of(store, lane)
    slow = store.another(autocommit=False)
    first = slow.execute(EVENT, [tenant]).fetchone()
    second = store.connection.execute(EVENT, [tenant]).fetchone()
    assert first is not None
    assert second is not None
    assert first["id"] < second["id"]
    assert match(store.connection, tenant) == 1
    slow.commit()

    assert match(store.connection, tenant) == 1
    assert store.value("SELECT count(*) FROM automation_event WHERE matched_at IS NULL") == 0


def test_a_tenant_that_holds_new_runs_is_not_armed(store: Store) -> None:
    (lane,) = store.lanes(1, hold_new=True)
    tenant = tenant_of(store, lane)
    store.run(EVENT, tenant)
    assert not arm(store.connection, tenant)
    assert store.value("SELECT automation_heal_match(interval '0')") == 0
    assert store.value("SELECT count(*) FROM automation_timer") == 0


@pytest.mark.fault(24)
def test_an_arming_that_never_happened_is_made_up_for(store: Store) -> None:
    lanes = store.lanes(3)
    lost, armed, quiet = (tenant_of(store, lane) for lane in lanes)
    store.run(EVENT, lost)
    store.run(EVENT, armed)
    arm(store.connection, armed)
    store.run("UPDATE automation_event SET created_at = created_at - interval '6 seconds'")

    assert store.value("SELECT automation_heal_match()") == 1
    assert {one["tenant_id"] for one in store.rows("SELECT tenant_id FROM automation_timer")} == {lost, armed}
    assert store.value("SELECT automation_heal_match()") == 0
    assert quiet not in (lost, armed)


def waits_for_lock(store: Store, connection: psycopg.Connection[Row]) -> None:
    """Until the other connection waits for a lock: the two have met."""
    pid = connection.info.backend_pid
    for _ in range(100_000):
        if store.value("SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", pid) == "Lock":
            return
    raise AssertionError("nobody waits")
